"""Columns that determine one another: in every row, each value of the one goes with one value of the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.tabular.feature import Feature
from holdfast.tabular.findings import ENOUGH_ROWS, Column, Finding
from holdfast.tabular.relations import Determines

MOST_VALUES = 50  # of a column that determines another or is determined
ROWS_OF_A_VALUE = 5  # that show by themselves what it goes with
SCREENED = 1000  # rows that rule out most pairs, before the others are looked at in all rows

Counts = NDArray[np.int64]


def determined(features: Sequence[tuple[Feature, Column]]) -> Iterator[tuple[Finding, Determines]]:
    """The columns of few values that determine others, without what follows from the rest.

    Of columns that determine each other, the first column of levels determines the others.
    """
    in_order = sorted(features, key=lambda pair: pair[0].is_numeric)
    columns = [column for _, column in in_order if 2 <= column.different <= MOST_VALUES]
    if len(columns) < 2 or columns[0].rows < ENOUGH_ROWS:
        return
    determines = _possible(columns)
    for by, other in np.argwhere(determines).tolist():
        determines[by, other] = by != other and _is_certain(_counts(columns[by], columns[other]))
    for by, other in np.argwhere(_without_what_follows(determines)).tolist():
        yield _finding(columns[by], columns[other]), Determines((columns[by].name,), columns[other].name)


def _possible(columns: list[Column]) -> NDArray[np.bool_]:
    """(f, f) whether the first column may determine the second: some of the rows rule most pairs out, for good."""
    rows = np.random.default_rng(0).permutation(columns[0].rows)[:SCREENED]  # tables are often sorted
    codes = np.stack([column.codes[rows] for column in columns], axis=1).astype(np.int8)
    possible = np.zeros((len(columns), len(columns)), dtype=bool)
    for position in range(len(columns)):
        ordered = codes[np.argsort(codes[:, position])]
        before, after = ordered[:-1], ordered[1:]
        same = (before[:, [position]] == after[:, [position]]) & (after[:, [position]] >= 0)
        possible[position] = ~(same & (before != after) & (before >= 0) & (after >= 0)).any(0)
    return possible


def _counts(by: Column, other: Column) -> Counts:
    """How many rows have each pair of values: (values of the one, values of the other)."""
    both = (by.codes >= 0) & (other.codes >= 0)
    pairs = by.codes[both] * other.different + other.codes[both]
    return np.bincount(pairs, minlength=by.different * other.different).reshape(by.different, other.different)


def _is_certain(counts: Counts) -> bool:
    """Each value goes with one value of the other column, so often that chance is no explanation.

    A few rare values may have too few rows to say so by themselves: a quarter of the values at most, in 5 % of the
    rows. A value that goes only with missing ones says nothing.
    """
    counts = counts[counts.sum(1) > 0]
    if len(counts) < counts.shape[1] or ((counts > 0).sum(1) != 1).any():
        return False
    rows, answer = counts.sum(1), counts.argmax(1)
    shares = counts.sum(0) / counts.sum()
    surprise = rows * -np.log(np.where(shares < 1, shares, 1.0)[answer])
    sure = (rows >= ROWS_OF_A_VALUE) & (surprise >= -np.log(0.05))
    return bool(4 * sure.sum() >= 3 * len(sure) and rows[sure].sum() >= 0.95 * rows.sum() and surprise.sum() > 20)


def _without_what_follows(determines: NDArray[np.bool_]) -> NDArray[np.bool_]:
    same = determines & determines.T
    first: NDArray[np.bool_] = np.tril(same, -1).sum(1) == 0  # of those that are the same
    coarser = determines & ~same & first & first[:, None]
    steps = coarser.astype(np.float32)
    follows: NDArray[np.bool_] = steps @ steps > 0
    return (coarser & ~follows) | (same & first[:, None])


def _finding(by: Column, other: Column) -> Finding:
    rows = _counts(by, other).sum(1)
    few = int((rows < ROWS_OF_A_VALUE).sum())
    often = f"in {int(rows.min()):,} rows or more" if not few else f"{few} of them in fewer than {ROWS_OF_A_VALUE} rows"
    both_ways = "and the other way round " if by.different == other.different else ""
    return Finding(
        (by.name, other.name),
        "determines",
        f"'{by.name}' fixes '{other.name}' {both_ways}in all {int(rows.sum()):,} rows: each of its {by.different} "
        f"values goes with one value, {often}; so the two change together",
    )
