"""Which pairs of columns are worth a look at all rows: some of the rows rule most of them out, for good.

A table of thousands of columns has millions of pairs. What two columns never do in all rows they never do in some of
them, so a pair that does it there needs no further look. Nothing is lost by it: whoever passes is looked at in full.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

ROWS = 1000  # that are looked at
FIRST = 50  # of them, before it is known which pairs are left
CELLS = 30_000_000  # numbers that a step may hold in memory

Codes = NDArray[np.int64]


def chosen_rows(rows: int, most: int = ROWS) -> NDArray[np.int64]:
    """Some of the rows, at random: tables are often sorted."""
    return np.random.default_rng(0).permutation(rows)[:most]


def of_levels(codes: Codes, counts: list[Codes], rows: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """For every two columns of few values: (f, f) whether the first may fix the second, and how many rows at most
    independence would expect to have two values that may never meet.

    ``codes`` (m, f) has the places of the values in some of the rows, -1 where missing; ``counts`` how many of all
    ``rows`` have each value.
    """
    sizes = np.array([len(one) for one in counts])
    starts = np.cumsum(sizes) - sizes
    codes = codes[: max(FIRST, CELLS // int(sizes.sum()))]
    known = np.array([one.sum() for one in counts], dtype=np.float64)
    total = np.concatenate(counts).astype(np.float64)
    column = np.repeat(np.arange(len(sizes)), sizes)
    on = np.zeros((len(codes), int(sizes.sum())), dtype=np.float32)
    there = codes >= 0
    on[np.nonzero(there)[0], (codes + starts)[there]] = 1
    fixes, missed = np.zeros((len(sizes), len(sizes)), dtype=bool), np.zeros((len(sizes), len(sizes)))
    for block in _blocks(sizes):
        first, last = starts[block.start], starts[block.stop - 1] + sizes[block.stop - 1]
        own = starts[block] - first
        meet = (on[:, first:last].T @ on) > 0
        others = np.add.reduceat(meet, starts, axis=1, dtype=np.int32)
        fixes[block] = np.maximum.reduceat(others, own, axis=0) <= 1
        least = np.maximum(known[block, None] + known - rows, 1)  # rows in which both are known
        expected = np.where(
            meet, 0, total[first:last, None] * total / least[column[first:last] - block.start][:, column]
        )
        missed[block] = np.maximum.reduceat(np.maximum.reduceat(expected, starts, axis=1), own, axis=0)
    return fixes, missed


def _blocks(sizes: Codes) -> Iterator[slice]:
    """Columns that are taken together, so that a step fits into memory."""
    step = max(1, CELLS // max(1, int(sizes.sum()) * int(sizes.max(initial=1))))
    return (slice(first, min(first + step, len(sizes))) for first in range(0, len(sizes), step))


def never_both(above: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The pairs of columns (k, 2) that no row of (m, f) has both of."""
    numbers = above.astype(np.float32)
    return np.argwhere(np.triu((numbers.T @ numbers) == 0, k=1))


def never_larger(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    """The pairs of columns (k, 2) of which no row of (m, f) has the first larger than the second."""
    may = ~np.eye(numbers.shape[1], dtype=bool)
    for row in numbers[:FIRST]:
        may &= ~(row[:, None] > row)  # a missing number is not larger
    pairs = np.argwhere(may)
    for first, last in pairwise((FIRST, 4 * FIRST, len(numbers))):  # most pairs that are left go soon
        some = numbers[first:last]
        step = max(1, CELLS // max(1, len(some)))
        parts = np.split(pairs, range(step, len(pairs), step))
        pairs = np.concatenate([part[~(some[:, part[:, 0]] > some[:, part[:, 1]]).any(0)] for part in parts])
    return pairs
