r"""Quantiles of a weighted mean Σ Dⱼ·pⱼ of fixed points, with weights D drawn from a Dirichlet law.

D is Eⱼ / Σ E for independent Gamma draws E, so the mean exceeds t if and only if S = Σ Eⱼ·(pⱼ − t) exceeds 0. With
weights wⱼ (a point that occurs three times has the weight 3), the moment generating function of S gives

    P(S > 0) = 1/(2πi) ∫ e^φ(s) ds,    φ(s) = −log s − Σ wⱼ·log(1 − (pⱼ − t)·s),

along any path that goes up through c with 0 < c < 1/max(p − t) and stays between the singularities on both sides of c.
On the real line φ is convex, so it has a lowest point there, and a path through it that goes up (nearly) where the
imaginary part of φ stays 0 has an integrand without oscillation. The path here is a branch of a hyperbola,

    s(u) = c + r·(b·(cosh u − 1) + i·sinh u),    r = 1/√φ''(c),

with b such that the imaginary part is 0 at u = HEIGHT, or as near as |b| ≤ 1 allows. Then the trapezoidal rule
converges geometrically: with this STEP the probability is right to nine digits (`tests/auditing/test_dirichlet.py`
compares it with a recursion that is exact).
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEP, BLOCK, BLOCKS = 0.2, 16, 8  # nodes of the trapezoidal rule, a block at a time until the integrand is 0
HEIGHT = 2.0
BENDS: Floats = np.linspace(-1, 1, 5)


def upper_quantile(points: Floats, weights: Floats, tail: float) -> float:
    """The t that the weighted mean of the points exceeds with probability ``tail``; weights need not be whole."""
    points, weights = points[weights > 0], weights[weights > 0]
    lowest, highest = float(points.min()), float(points.max())
    if lowest == highest:
        return lowest
    if tail > 0.5:
        return -upper_quantile(-points, weights, 1 - tail)
    scaled = (points - lowest) / (highest - lowest)
    return lowest + (highest - lowest) * _solved(scaled, weights, tail)


def _solved(points: Floats, weights: Floats, tail: float) -> float:
    """For points from 0 to 1, by Newton's method in log(1 − t), in which the log probability is nearly a line."""
    total = weights.sum()
    mean = weights @ points / total
    deviation = np.sqrt(weights @ (points - mean) ** 2 / total / (total + 1))
    low, high = 0.0, 1.0
    t = float(np.clip(mean + NormalDist().inv_cdf(1 - tail) * deviation, mean / 2, (1 + mean) / 2))
    for _ in range(100):
        chance, slope = exceeded(points, weights, t)
        surplus = chance - np.log(tail)
        low, high = (t, high) if surplus > 0 else (low, t)
        before, t = t, 1 - (1 - t) * float(np.exp(np.clip(surplus / slope / (1 - t), -50, 50)))
        if abs(t - before) <= 1e-9 * min(t, 1 - t) or high - low < 1e-15:
            break
        if not low < t < high:
            t = (low + high) / 2
    return t


def exceeded(points: Floats, weights: Floats, t: float) -> tuple[float, float]:
    """The log of the probability that the weighted mean exceeds t, and its derivative in t."""
    offsets = points - t
    if (
        weights @ offsets > 0
    ):  # the integral is that of the smaller probability: the pole at 0 is then far from the path
        log_rest, slope = _positive(-offsets, weights)
        return float(np.log1p(-np.exp(log_rest))), -slope / float(np.expm1(-log_rest))
    chance, slope = _positive(offsets, weights)
    return chance, -slope


def _positive(offsets: Floats, weights: Floats) -> tuple[float, float]:
    """The log of the probability that Σ Eⱼ·offsetⱼ exceeds 0, and how fast it falls as all points move down."""
    centre, reach = _lowest_point(offsets, weights)
    bend = _bend(offsets, weights, centre, reach)
    top = -(weights @ np.log1p(-offsets * centre))
    chance = density = 0.0
    for block in range(BLOCKS):
        u = STEP * (BLOCK * block + np.arange(BLOCK))
        s = centre + reach * (bend * (np.cosh(u) - 1) + 1j * np.sinh(u))
        logs, inverses = _summed(s, offsets, weights)
        part = np.exp(-logs - top) * (np.cosh(u) - 1j * bend * np.sinh(u))
        if not block:
            part[0] /= 2  # the path is symmetric: only its upper half is summed
        chance += float((part / s).real.sum())
        density += float((part * inverses).real.sum())
        if abs(part[-1] / s[-1]) < 1e-14 * chance:
            break
    return float(top + np.log(chance * reach * STEP / np.pi)), density / chance


def _lowest_point(offsets: Floats, weights: Floats) -> tuple[float, float]:
    """Nearly where φ is lowest on the real line, and 1/√φ'' there: Newton's method within a bracket."""
    low, high = 0.0, 1 / float(offsets.max())
    s = high / 2
    for _ in range(100):
        ratio = offsets / (1 - offsets * s)
        slope, curve = weights @ ratio - 1 / s, weights @ (ratio * ratio) + 1 / s**2
        if slope * slope < 0.01 * curve:
            break
        low, high = (s, high) if slope < 0 else (low, s)
        s -= float(slope / curve)
        if not low < s < high:
            s = (low + high) / 2
    return s, float(1 / np.sqrt(curve))


def _bend(offsets: Floats, weights: Floats, centre: float, reach: float) -> float:
    s = centre + reach * (BENDS * (np.cosh(HEIGHT) - 1) + 1j * np.sinh(HEIGHT))
    turned = -(_summed(s, offsets, weights)[0] + np.log(s)).imag
    return float(np.interp(0, turned, BENDS)) if (np.diff(turned) > 0).all() else 0.0


def _summed(s: NDArray[np.complex128], offsets: Floats, weights: Floats) -> tuple[NDArray[np.complex128], ...]:
    """Σ w·log f and Σ w/f for f = 1 − offset·s, (nodes,) each; in real numbers, which is three times as fast."""
    real, imaginary = 1 - np.multiply.outer(s.real, offsets), -np.multiply.outer(s.imag, offsets)
    square = real * real + imaginary * imaginary
    logs = np.log(square) @ weights / 2 + 1j * (np.arctan2(imaginary, real) @ weights)
    return logs, (real / square) @ weights - 1j * ((imaginary / square) @ weights)
