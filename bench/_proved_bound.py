"""The bounds of Phan, Thomas and Learned-Miller (2021), which are proved, by simulation, to be put beside the others.

Of all samples y in [0, 1] that are ranked no higher than the one drawn, take the one whose weighted mean is largest,
with Dirichlet(1, …, 1) weights over y in ascending order and the end 1; the bound is a quantile of that over the
weights. How samples are ranked must be fixed beforehand: here by their mean, or by their Euclidean norm. The bound then
depends on this one number, so it is tabulated once for each number of members.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

Floats = NDArray[np.float64]

DRAWS = 5_000
LEVELS: Floats = np.linspace(0, 1, 151) ** 2  # dense where rates are small


@dataclass(frozen=True)
class Ranked:
    """The bound for one ranking of samples, from 0 (all are 0) to 1 (all are 1)."""

    rank: Callable[[Floats], float]
    largest: Callable[[Floats, float], Floats]  # over the samples of a rank: the largest weighted mean for each draw

    def interval(self, values: Floats, tail: float = 0.025) -> tuple[float, float]:
        return 1 - self._upper(1 - values, tail), self._upper(values, tail)

    def _upper(self, values: Floats, tail: float) -> float:
        return float(np.interp(self.rank(values), LEVELS, _table(self, len(values), tail)))


@cache
def _table(bound: Ranked, members: int, tail: float) -> Floats:
    weights, end = _monotone_weights(members)
    return np.array([np.quantile(bound.largest(weights, level) + end, 1 - tail) for level in LEVELS])


@cache
def _monotone_weights(members: int) -> tuple[Floats, Floats]:
    """Weights over members, projected onto those that do not fall: only they matter to ascending values."""
    drawn = np.random.default_rng(0).dirichlet(np.ones(members + 1), DRAWS)
    return np.stack([isotonic_regression(row[:-1]).x for row in drawn]), drawn[:, -1]


def _with_mean(weights: Floats, mean: float) -> Floats:
    """Fill the members from the last, which has the largest weight, as far as the mean goes."""
    members = weights.shape[1]
    full = np.clip(mean * members - np.arange(members)[::-1], 0, 1)
    return weights @ full


def _with_norm(weights: Floats, norm: float) -> Floats:
    """Values in proportion to the weights, but the last few are 1: so few that no other one exceeds 1."""
    members = weights.shape[1]
    full = np.arange(members)
    square = np.cumsum(weights**2, axis=1)[:, ::-1]  # of those that are not full
    scale = np.sqrt(np.maximum(members * norm**2 - full, 0) / square)
    fits = scale * weights[:, ::-1] <= 1
    few = np.where(fits.any(1), fits.argmax(1), members - 1)[:, None]
    filled = np.cumsum(weights[:, ::-1], axis=1) - weights[:, ::-1]
    largest: Floats = np.take_along_axis(filled + scale * square, few, 1)[:, 0]
    return largest


BY_MEAN = Ranked(lambda values: float(values.mean()), _with_mean)
BY_NORM = Ranked(lambda values: float(np.sqrt((values**2).mean())), _with_norm)
