"""Where people are on the line: the ranges of a number that has rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ranges = tuple[tuple[float, float], ...]

CUT = 0.001  # of the rows, on each side: the outermost ones are often errors, and never advice
LONG_GAP = 0.1  # of the whole range: a shorter gap excludes nothing that matters
ROWS_TO_CUT = 2_000  # rows: below, one row is half of what would be cut, and nothing is
EXPECTED_ROWS = 20  # rows that an even spread would put into a gap
SURPRISE = 7.0  # nats: the chance of such a gap in a smooth tail is below 0.001


def ranges_of(values: NDArray[Any], step: float | None, lower: float | None, upper: float | None) -> Ranges:
    """The intervals of the line in which the rows lie, in order; a value by itself is (v, v).

    An end that is given is taken as it is, and values beyond it do not count. On the other sides the outermost 0.1 %
    of the rows are cut, and so no value that more rows than that share; below 2,000 rows nothing is cut. Long gaps
    between neighbouring values are left out: longer than a tenth of the range and than a step, where an even spread
    would put 20 rows, and where the tail is not simply getting thinner (see `_surprise`).
    """
    least, most = -np.inf if lower is None else lower, np.inf if upper is None else upper
    inside = np.sort(values[np.isfinite(values) & (values >= least) & (values <= most)].astype(np.float64))
    if not len(inside):
        if lower is None or upper is None:
            raise ValueError("there are no values between the bounds; give both lower and upper")
        return ((float(lower), float(upper)),)
    cut = int(CUT * len(inside)) if len(inside) >= ROWS_TO_CUT else 0
    begin, end = (0 if lower is not None else cut), len(inside) - 1 - (0 if upper is not None else cut)
    kept = inside[(inside >= inside[begin]) & (inside <= inside[end])]
    first = float(kept[0] if lower is None else lower)
    last = float(kept[-1] if upper is None else upper)
    gaps = _long_gaps(kept, step or 0.0)
    edges = [first, *(float(end) for gap in gaps for end in gap), last]
    return tuple(zip(edges[::2], edges[1::2], strict=True))


def _long_gaps(kept: NDArray[np.float64], step: float) -> list[tuple[float, float]]:
    """The gaps between neighbouring values of a sorted column that no chance explains."""
    whole, middle = float(kept[-1]) - float(kept[0]), float(kept[len(kept) // 2])
    if not 0 < whole < np.inf:
        return []
    wide = np.flatnonzero(np.diff(kept) > max(LONG_GAP * whole, step * (1 + 1e-9))).tolist()
    return [
        (float(kept[end]), float(kept[end + 1]))
        for end in wide
        if (kept[end + 1] - kept[end]) / whole * len(kept) >= EXPECTED_ROWS and _surprise(kept, end, middle) > SURPRISE
    ]


def _surprise(kept: NDArray[np.float64], end: int, middle: float) -> float:
    """Minus the logarithm of the chance of the gap after place ``end``, were the column thin there but not empty.

    In a tail as heavy as 1/x, counted from the median, the m rows beyond a gap from a to b leave it with the chance
    (a / b)^m: the end of a column of credit amounts has such gaps, where m is small, and a code such as 99999, which
    many rows have, is something else. Right at the median there is no tail to count from: there, the rows beyond
    leave the gap with the chance that rows spread evenly would.
    """
    low, high = float(kept[end]), float(kept[end + 1])
    above = low >= middle
    beyond = len(kept) - end - 1 if above else end + 1
    near, far = sorted((abs(low - middle), abs(high - middle)))
    if near > 0:
        return beyond * float(np.log(far / near))
    side = float(kept[-1]) - low if above else high - float(kept[0])
    left = 1 - (high - low) / side
    return beyond * (1.0 if left < np.exp(-1) else -float(np.log(left)))


def gaps_of(ranges: Ranges) -> list[tuple[float, float]]:
    """What lies between the ranges."""
    return [(before[1], after[0]) for before, after in pairwise(ranges)]
