"""What a careful look at two columns of a table finds: one that fixes the other, and what never goes together.

Every rule asks how likely the same would be if the columns had nothing to do with one another, counting how often it
was tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from holdfast.tabular import screening
from holdfast.tabular.feature import Feature
from holdfast.tabular.findings import ENOUGH, Column, Finding, words_of
from holdfast.tabular.relations import Determines, Exclusive, Implies, Ordered, Relation, relation_to_dict
from holdfast.utils.messages import plain, some

LEVELS = 50  # different values at most, for rules about values one by one
AT_LEAST = 5  # rows that independence would expect, and rows of every value that fixes another
CHANCE = 0.01  # that a table of columns that have nothing to do with one another shows anything
TOLD = 20  # of what never goes together, the most surprising

_COUNTS = {"num", "n", "number", "count", "counts"}
_SHARES = {"percent", "percentage", "pct", "share", "ratio", "fraction", "rate"}

Table = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pair:
    """A feature and its column."""

    feature: Feature
    column: Column

    @property
    def name(self) -> str:
        return self.feature.name

    @property
    def has_few(self) -> bool:
        return 2 <= self.column.different <= LEVELS

    @cached_property
    def values(self) -> list[Any]:
        """The value behind each code."""
        codes, places = np.unique(self.column.codes, return_index=True)
        return [plain(self.column.cells.iloc[place]) for place in places[codes >= 0].tolist()]

    @cached_property
    def counts(self) -> Table:
        """How many rows have each value."""
        codes = self.column.codes
        return np.bincount(codes[codes >= 0], minlength=self.column.different)

    @cached_property
    def said(self) -> NDArray[np.bool_]:
        """Which values say something: "unknown" goes with anything."""
        return np.array([value not in self.feature.avoid for value in self.values])


def related(features: Sequence[tuple[Feature, Column]]) -> Iterator[tuple[Finding, Relation | None]]:
    """What is found about two columns, with the relation that the schema takes over, if any."""
    pairs = [Pair(feature, column) for feature, column in features]
    if not pairs or pairs[0].column.rows < ENOUGH:
        return
    screened = _Screened.of(pairs)
    fixed = _determined(screened)
    yield from ((_determines_finding(by, column), Determines((by.name,), column.name)) for by, column in fixed)
    yield from _exclusive(pairs)
    known = {frozenset((a.name, b.name)) for a, b in fixed}
    for finding in (*_ordered(pairs), *_never_together(screened, known)):
        yield finding, None


@dataclass(frozen=True, eq=False)
class _Screened:
    """The columns of few values, and what some of the rows do not rule out about every two of them."""

    few: list[Pair]
    may_fix: NDArray[np.bool_]  # (f, f)
    missed: NDArray[np.float64]  # (f, f) rows at most that independence would expect with two values that never meet

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> _Screened:
        few = [pair for pair in pairs if pair.has_few]
        if not few:
            return cls([], np.zeros((0, 0), dtype=bool), np.zeros((0, 0)))
        rows = screening.chosen_rows(few[0].column.rows)
        codes = np.stack([pair.column.codes[rows] for pair in few], axis=1)
        return cls(few, *screening.of_levels(codes, [pair.counts for pair in few], few[0].column.rows))


def _counts(first: Pair, second: Pair) -> Table:
    """How many rows have each pair of values: (values of the first, values of the second)."""
    a, b = first.column.codes, second.column.codes
    both = (a >= 0) & (b >= 0)
    shape = first.column.different, second.column.different
    return np.bincount(a[both] * shape[1] + b[both], minlength=shape[0] * shape[1]).reshape(shape)


# ---- one fixes another ----


def _determined(screened: _Screened) -> list[tuple[Pair, Pair]]:
    """Who fixes whom, without what follows from the rest: of two that fix each other, the one of levels comes first."""
    few = screened.few
    asked = [(few[a], few[b]) for a, b in np.argwhere(screened.may_fix).tolist() if a != b]
    fixing = [(a, b) for a, b in asked if _fixes(_counts(a, b))]
    found = {(a.name, b.name) for a, b in fixing}
    order = {pair.name: place for place, pair in enumerate(sorted(few, key=lambda pair: pair.feature.is_numeric))}
    kept: dict[tuple[str, str], tuple[Pair, Pair]] = {}
    for a, b in sorted(fixing, key=lambda pair: (order[pair[0].name], order[pair[1].name])):
        if (b.name, a.name) in kept:
            continue
        others = [name for name in order if name not in (a.name, b.name)]
        between = any(
            {(a.name, c), (c, b.name)} <= found and not _same(c, a.name, found) and not _later(c, b.name, found, order)
            for c in others
        )
        follows = any(_same(c, a.name, found) and order[c] < order[a.name] for c in others)
        if not between and not follows:
            kept[a.name, b.name] = (a, b)
    return list(kept.values())


def _same(c: str, a: str, found: set[tuple[str, str]]) -> bool:
    return {(c, a), (a, c)} <= found


def _later(c: str, b: str, found: set[tuple[str, str]], order: dict[str, int]) -> bool:
    """Whether c is b in other values, and comes after it."""
    return _same(c, b, found) and order[c] > order[b]


def _fixes(counts: Table) -> bool:
    """Each value of the rows goes with one of the columns, so often that chance is no explanation.

    A few rare values may have too few rows to say so by themselves: a quarter of the values at most, in 5 % of the
    rows. A value that goes only with missing ones says nothing.
    """
    counts = counts[counts.sum(1) > 0]
    if len(counts) < counts.shape[1] or ((counts > 0).sum(1) != 1).any():
        return False
    rows, answer = counts.sum(1), counts.argmax(1)
    shares = counts.sum(0) / counts.sum()
    surprise = rows * -np.log(np.where(shares < 1, shares, 1.0)[answer])
    sure = (rows >= AT_LEAST) & (surprise >= -np.log(0.05))
    return bool(4 * sure.sum() >= 3 * len(sure) and rows[sure].sum() >= 0.95 * rows.sum() and surprise.sum() > 20)


def _determines_finding(by: Pair, column: Pair) -> Finding:
    rows = _counts(by, column).sum(1)
    few = int((rows < AT_LEAST).sum())
    often = f"in {int(rows.min()):,} rows or more" if not few else f"{few} of them in fewer than {AT_LEAST} rows"
    other = "and the other way round " if by.column.different == column.column.different else ""
    return Finding(
        (by.name, column.name),
        "determines",
        f"'{by.name}' fixes '{column.name}' {other}in all {int(rows.sum()):,} rows: each of its "
        f"{by.column.different} values goes with one value, {often}; so the two change together",
    )


# ---- never both above 0 ----


def _exclusive(pairs: Sequence[Pair]) -> Iterator[tuple[Finding, Relation]]:
    numbers = [pair for pair in pairs if pair.feature.is_numeric and np.nanmin(pair.column.numbers) == 0]
    if not numbers:
        return
    tried = len(numbers) * (len(numbers) - 1) / 2
    some_rows = screening.chosen_rows(numbers[0].column.rows)
    above = np.stack([pair.column.numbers[some_rows] > 0 for pair in numbers], axis=1)
    for a, b in ((numbers[i], numbers[j]) for i, j in screening.never_both(above).tolist()):
        both = ~np.isnan(a.column.numbers) & ~np.isnan(b.column.numbers)
        first, second = a.column.numbers[both] > 0, b.column.numbers[both] > 0
        rows = int(both.sum())
        expected = float(first.sum()) * float(second.sum()) / max(rows, 1)
        if expected >= _enough(tried) and not (first & second).any():
            finding = Finding(
                (a.name, b.name),
                "exclusive",
                f"'{a.name}' is above 0 in {int(first.sum()):,} rows and '{b.name}' in {int(second.sum()):,}, never "
                f"both; were they independent, about {expected:,.0f} of {rows:,} rows would have both",
            )
            yield finding, Exclusive((a.name, b.name))


# ---- never the larger ----


def _ordered(pairs: Sequence[Pair]) -> Iterator[Finding]:
    """a <= b in every row, though their values overlap: proposed where their names say that they belong together."""
    numbers = [pair for pair in pairs if pair.feature.is_numeric and pair.column.different > 2]
    if not numbers:
        return
    rows = screening.chosen_rows(numbers[0].column.rows)
    words = {pair.name: frozenset(words_of(pair.name)) for pair in numbers}
    pairs_left = screening.never_larger(np.stack([pair.column.numbers[rows] for pair in numbers], axis=1))
    for a, b in ((numbers[i], numbers[j]) for i, j in pairs_left.tolist()):
        if not _belong(words[a.name], words[b.name]):
            continue
        both = ~np.isnan(a.column.numbers) & ~np.isnan(b.column.numbers)
        first, second = a.column.numbers[both], b.column.numbers[both]
        if not len(first) or (first > second).any() or (first == second).all():
            continue
        expected = float(np.searchsorted(np.sort(second), first, side="left").sum()) / len(first)
        if expected >= _enough(len(numbers) ** 2):
            yield Finding(
                (a.name, b.name),
                "ordered",
                f"'{a.name}' <= '{b.name}' in all {len(first):,} rows; were they independent, about {expected:,.0f} "
                "rows would not keep that. If it must be so, add the relation",
                as_toml(Ordered((a.name, b.name))),
            )


def _belong(a: frozenset[str], b: frozenset[str]) -> bool:
    """Whether two names share a word, or both count something; a count and a share are different things."""
    if bool(a & _SHARES) != bool(b & _SHARES):
        return False
    shared = {word for word in a & b if len(word) >= 3 and word not in {*_COUNTS, "the"}}
    return bool(shared) or bool(a & _COUNTS and b & _COUNTS)


# ---- levels that never meet ----


def _never_together(screened: _Screened, known: set[frozenset[str]]) -> Iterator[Finding]:
    """Levels of two columns that no row has together: proposed, the most surprising first."""
    places = [place for place, pair in enumerate(screened.few) if not pair.feature.is_numeric]
    levels, missed = [screened.few[place] for place in places], screened.missed[np.ix_(places, places)]
    sizes = np.array([pair.column.different for pair in levels], dtype=np.int64)
    tried = (int(sizes.sum()) ** 2 - int((sizes**2).sum())) // 2
    size = {pair.name: pair.column.different for pair in levels}
    tried -= sum(int(np.prod([size[name] for name in pair])) for pair in known if pair <= set(size))
    left = np.argwhere(np.triu(missed * 1.0001 >= _enough(tried), k=1))  # a little more, for rounding
    found: list[tuple[float, Finding]] = []
    for a, b in ((levels[i], levels[j]) for i, j in left.tolist()):
        if frozenset((a.name, b.name)) in known:
            continue
        table = _counts(a, b)
        expected = table.sum(1, keepdims=True) * table.sum(0) / max(int(table.sum()), 1)
        empty = (table == 0) & (expected >= _enough(tried)) & a.said[:, None] & b.said
        if empty.any():
            # From the side that takes fewer sentences.
            if empty.any(1).sum() <= empty.any(0).sum():
                found += list(_implications(a, b, empty, expected))
            else:
                found += list(_implications(b, a, empty.T, expected.T))
    found.sort(key=lambda one: -one[0])
    yield from (finding for _, finding in found[:TOLD])
    if len(found) > TOLD:
        more = found[TOLD:]
        names = tuple(dict.fromkeys(name for _, finding in more for name in finding.columns))
        yield Finding(
            names, "never together", f"{len(more)} more pairs of levels never go together, of {some(names, 12)}"
        )


def _implications(
    a: Pair, b: Pair, empty: NDArray[np.bool_], expected: NDArray[np.float64]
) -> Iterator[tuple[float, Finding]]:
    for place in np.flatnonzero(empty.any(1)).tolist():
        absent = [value for value, none in zip(b.values, empty[place], strict=True) if none]
        rest = [value for value in b.feature.values if value not in absent]
        missed = float(expected[place][empty[place]].sum())
        if not rest:
            continue
        relation = Implies(when={a.name: (a.values[place],)}, then={b.name: tuple(rest)})
        yield (
            missed,
            Finding(
                (a.name, b.name),
                "never together",
                f"no row has '{a.name}' {a.values[place]!r} and '{b.name}' {some(absent)}; were they independent, "
                f"about {missed:,.0f} would. If it cannot be, add the relation",
                as_toml(relation),
            ),
        )


def _enough(tried: float) -> float:
    """Rows that independence must expect before none is evidence: one in e^x tables would show none by chance."""
    return max(AT_LEAST, float(np.log(max(tried, 1) / CHANCE)))


# ---- as a schema file has it ----


def as_toml(relation: Relation) -> str:
    """The relation as lines of a schema file."""
    return "\n".join(["[[relations]]", *(as_line(key, value) for key, value in relation_to_dict(relation).items())])


def as_line(key: str, value: Any) -> str:
    return f"{_literal(key)} = {_inline(value)}"


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_literal(key)} = {_inline(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return tomli_w.dumps({"x": value}).removeprefix("x = ").rstrip("\n")


def _literal(key: str) -> str:
    """A key, with quotes where it needs them."""
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")
