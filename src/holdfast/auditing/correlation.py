"""How two columns go together: rank correlation, and R², from values or from their sums."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]


def spearman(a: Floats, b: Floats) -> float:
    """Rank correlation; NaN where one of them does not vary."""
    return float(stats.spearmanr(a, b).statistic) if varies(a) and varies(b) else float("nan")


def r_squared(a: Floats, b: Floats) -> float:
    """Of a straight line through the points; NaN where one of them does not vary, or is not finite."""
    if not varies(a) or not varies(b) or not np.isfinite([a, b]).all():
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1]) ** 2


def r_squared_of_sums(n: Any, a: Any, b: Any, aa: Any, ab: Any, bb: Any) -> Any:
    """The same from the number of points and Σa, Σb, Σa², Σab, Σb²: numbers, or columns of them."""
    return (ab - a * b / n) ** 2 / ((aa - a**2 / n) * (bb - b**2 / n))


def varies(values: Floats) -> bool:
    """By comparing: the mean of equal numbers need not equal them to the last bit."""
    return bool((values != values[:1]).any())
