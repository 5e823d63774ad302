"""How two columns go together: correlation, ranks, and R², from values or from their sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def correlation(a: Floats, b: Floats) -> float:
    """Pearson's; NaN where one of them does not vary, or is not finite."""
    if not varies(a) or not varies(b) or not np.isfinite([a, b]).all():
        return float("nan")
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / np.sqrt((a**2).sum() * (b**2).sum()))


def r_squared(a: Floats, b: Floats) -> float:
    """Of a straight line through the points."""
    return correlation(a, b) ** 2


def r_squared_of_sums(n: Any, a: Any, b: Any, aa: Any, ab: Any, bb: Any) -> Any:
    """The same from the number of points and Σa, Σb, Σa², Σab, Σb²: numbers, or columns of them."""
    return (ab - a * b / n) ** 2 / ((aa - a**2 / n) * (bb - b**2 / n))


def ranks(values: Floats) -> Floats:
    """Places in order, ties at their mean."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    last = count.cumsum()
    found: Floats = (last - (count - 1) / 2)[place]
    return found


def varies(values: Floats) -> bool:
    """By comparing: the mean of equal numbers need not equal them to the last bit."""
    return bool((values != values[:1]).any())
