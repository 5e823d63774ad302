"""Confidence intervals that hold for the sample one has, not only for large ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv  # the Beta quantile; scipy.stats takes half a second to import

Floats = NDArray[np.float64]

# The bets of `mean_interval`: nodes of the arcsine law on [0, 1], dense near 0 and near 1.
BETS: Floats = np.sin(np.pi / 2 * (np.arange(128) + 0.5) / 128) ** 2


def clopper_pearson(successes: ArrayLike, trials: int, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Exact binomial limits for each count of successes."""
    count = np.asarray(successes, dtype=np.float64)
    tail = _tail(confidence)
    # At 0 and at `trials` one Beta parameter is 0 and the limit is the end of [0, 1].
    low = np.where(count > 0, betaincinv(np.maximum(count, 1), trials - count + 1, tail), 0.0)
    high = np.where(count < trials, betaincinv(count + 1, np.maximum(trials - count, 1), 1 - tail), 1.0)
    return low, high


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    r"""Limits for the mean of independent draws in [0, 1], whatever their distribution; finite-sample.

    By betting (Waudby-Smith and Ramdas 2024) with constant bets, mixed as in Cover's universal portfolio: for
    the true mean μ and any c in [0, 1], the product Π (1 − c + c·Xᵢ/μ) is non-negative with expectation at
    most 1 (for draws of different means too, with μ their average, since a product of numbers is at most their
    mean to the same power). So is its average over c, and by Markov it exceeds 2/α with probability at most α/2.
    The lower limit is the smallest m that is not refuted so; the upper one comes from 1 − X.
    Constant bets make the product symmetric: the order of the draws does not matter.
    """
    draws = np.asarray(values, dtype=np.float64)
    if draws.ndim != 1 or not len(draws):
        raise ValueError(f"expected one draw or more in a row, got shape {draws.shape}")
    if not ((draws >= 0) & (draws <= 1)).all():
        raise ValueError(f"draws must lie in [0, 1], got {draws.min()} to {draws.max()}")
    draws = np.sort(draws)  # for equal bits in any order
    tail = _tail(confidence)
    return _lower_limit(draws, tail), 1 - _lower_limit(1 - draws, tail)


def _lower_limit(draws: Floats, tail: float) -> float:
    """Bisection: the capital falls in m, from above 1/tail near 0 to at most 1 at the sample mean."""
    low, high = 0.0, float(draws.mean())
    for _ in range(60):
        middle = (low + high) / 2
        if middle <= 0 or _log_capital(draws, middle) >= -np.log(tail):
            low = middle
        else:
            high = middle
    return low


def _log_capital(draws: Floats, mean: float) -> float:
    with np.errstate(divide="ignore"):
        growth = np.log(1 - BETS[:, None] + BETS[:, None] * draws / mean).sum(1)
    return float(np.logaddexp.reduce(growth) - np.log(len(BETS)))


def _tail(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    return (1 - confidence) / 2
