"""Could a person really do this? A second opinion, in plain pandas, on tables as people see them.

Nothing here comes from `holdfast.tabular`: the schema is read as a list of settings, and what it demands is worked out
again, so that a mistake in the space, its rules or its completions cannot hide itself. `bench/believable.py` reads this
file too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

Numbers = np.ndarray[Any, np.dtype[np.float64]]
Truths = np.ndarray[Any, np.dtype[np.bool_]]
Found = tuple[str, Truths]  # what is wrong, and with which rows

CLOSE = 1e-5  # of a real number's range: what an encoded number may be off
ROUNDING = 1e-6  # of a real number


def violations(
    schema: Any,
    before: pd.DataFrame,
    after: pd.DataFrame,
    seen: pd.DataFrame,
    ranges: Mapping[str, tuple[tuple[float, float], ...]] | None = None,
) -> list[tuple[int, str]]:
    """Each row (its place) of ``after`` that is no advice for the same row of ``before``, and why.

    seen     the training rows: where a number has no bounds, nobody is moved beyond what they show
    ranges   for numbers whose ranges were learned, what was learned; nobody is moved to between them
    """
    assert len(before) == len(after)
    table = _Tables(schema, before.reset_index(drop=True), after.reset_index(drop=True), seen, dict(ranges or {}))
    parts = [part for feature in schema.features for part in table.feature(feature)]
    parts += [part for relation in schema.relations for part in table.relation(relation)]
    return sorted((int(row), what) for what, wrong in parts for row in np.flatnonzero(wrong))


class _Tables:
    def __init__(self, schema: Any, before: pd.DataFrame, after: pd.DataFrame, seen: pd.DataFrame, ranges: Any) -> None:
        self.before, self.after, self.ranges = before, after, ranges
        self.features = {feature.name: feature for feature in schema.features}
        self.followers = {relation.column for relation in schema.relations if _kind(relation) == "Follows"}
        self.ends = {name: _ends(feature, seen) for name, feature in self.features.items() if _is_number(feature)}

    # ---- one column by itself ----

    def feature(self, feature: Any) -> Iterator[Found]:
        name = feature.name
        moved = _moved(self.before[name], self.after[name])
        if not feature.mutable and name not in self.followers:
            yield f"{name} may not change", moved
        yield f"{name} is lost", moved & self.after[name].isna().to_numpy()
        moved = moved & self.after[name].notna().to_numpy()
        yield from self._number(feature, moved) if _is_number(feature) else self._levels(feature, moved)

    def _number(self, feature: Any, moved: Truths) -> Iterator[Found]:
        name, slack = feature.name, self.slack(feature.name)
        old, new = _floats(self.before[name]), _floats(self.after[name])
        low, high = self.ends[name]
        yield f"{name} is out of bounds", moved & ~((new >= low - slack) & (new <= high + slack))
        inside = np.zeros_like(moved)
        for first, last in feature.ranges or self.ranges.get(name, ()) or ((low, high),):
            inside |= (new >= first - slack) & (new <= last + slack)
        yield f"{name} is where nobody is", moved & ~inside
        sign = {"any": 0, "rise": 1, "fall": -1}[feature.direction]
        yield f"{name} goes the wrong way", moved & (sign * (new - old) < -slack)
        step = feature.step or (1 if feature.kind == "integer" else 0)
        if step:
            yield f"{name} is off its grid", moved & (np.abs(new / step - np.round(new / step)) > 1e-4)

    def _levels(self, feature: Any, moved: Truths) -> Iterator[Found]:
        name, old, new = feature.name, self.before[feature.name], self.after[feature.name]
        known = (*feature.levels, *([] if feature.zero_level is None else [feature.zero_level]))
        yield f"{name} is no level", moved & ~new.isin(known).to_numpy()
        yield f"{name} is to be avoided", moved & new.isin(feature.avoid).to_numpy()
        if feature.direction != "any":
            order = {level: float(n) for n, level in enumerate(feature.levels) if level not in feature.avoid}
            rise = _floats(new.map(order)) - _floats(old.map(order))
            yield f"{name} goes the wrong way", moved & ((rise < 0) if feature.direction == "rise" else (rise > 0))

    def _on_grid(self, name: str) -> bool:
        return self.features[name].kind != "real" or bool(self.features[name].step)

    def slack(self, name: str) -> Numbers:
        """By how much a number may be off: not at all where it is on a grid."""
        if self._on_grid(name):
            return np.full(len(self.after), 1e-6)
        low, high = self.ends[name]
        return CLOSE * (high - low) + ROUNDING * np.abs(np.nan_to_num(_floats(self.after[name])))

    # ---- columns together ----

    def relation(self, relation: Any) -> Iterator[Found]:
        kind, names = _kind(relation), list(relation.columns)
        complete = self.after[names].notna().all(axis=1).to_numpy()
        if kind == "Follows":
            yield f"{relation}: moved otherwise", self._strays(relation)
            return
        breach: Callable[[pd.DataFrame], Numbers] = getattr(self, f"_{kind.lower()}")(relation)
        start = np.where(self.before[names].notna().all(axis=1), breach(self.before), 0)
        end = np.where(complete, breach(self.after), 0)
        slack = sum(self.slack(name) for name in names)
        if kind in ("Determines", "Implies"):
            same = ~np.any([_moved(self.before[name], self.after[name]) for name in names], axis=0)
            yield f"{relation}: broken", (end > 0) & ~(same & (start > 0))
        else:
            yield f"{relation}: broken", (end > slack) & ~((start > slack) & (end <= start + slack))

    def _determines(self, relation: Any) -> Callable[[pd.DataFrame], Numbers]:
        fixed = {row[:-1]: row[-1] for row in relation.rows}
        slack = float(self.slack(relation.column).max(initial=0.0))

        def right(row: tuple[Any, ...]) -> bool:
            wanted = fixed.get(row[:-1])
            numbers = not isinstance(wanted, str) and _is_number(self.features[relation.column])
            return wanted is not None and (abs(wanted - row[-1]) <= slack if numbers else wanted == row[-1])

        def breach(table: pd.DataFrame) -> Numbers:
            rows = table[list(relation.columns)].itertuples(index=False, name=None)
            return np.array([0.0 if any(map(pd.isna, row)) or right(row) else 1.0 for row in rows])

        return breach

    def _implies(self, relation: Any) -> Callable[[pd.DataFrame], Numbers]:
        def met(table: pd.DataFrame, side: Mapping[str, Any], room: int) -> Truths:
            truth = np.ones(len(table), dtype=bool)
            for name, allowed in side.items():
                if _is_number(self.features[name]):
                    # A number on a grid is where it is: at the very end of what is allowed, it is inside.
                    slack, values = self.slack(name) * (1 if self._on_grid(name) else room), _floats(table[name])
                    truth &= (values >= allowed[0] - slack) & (values <= allowed[-1] + slack)
                else:
                    truth &= table[name].isin(list(allowed)).to_numpy()
            return truth

        return lambda table: (met(table, relation.when, -1) & ~met(table, relation.then, 1)).astype(float)

    def _exclusive(self, relation: Any) -> Callable[[pd.DataFrame], Numbers]:
        def breach(table: pd.DataFrame) -> Numbers:
            above = np.sort(self._matrix(table, relation.columns).clip(min=0), axis=1)
            return above[:, :-1].sum(axis=1)

        return breach

    def _ordered(self, relation: Any) -> Callable[[pd.DataFrame], Numbers]:
        def breach(table: pd.DataFrame) -> Numbers:
            values, worst = self._matrix(table, relation.columns), np.zeros(len(table))
            for first in range(values.shape[1]):
                for later in range(first + 1, values.shape[1]):
                    worst = np.maximum(worst, values[:, first] - values[:, later])
            return worst

        return breach

    def _sums(self, relation: Any) -> Callable[[pd.DataFrame], Numbers]:
        def breach(table: pd.DataFrame) -> Numbers:
            values = self._matrix(table, (relation.total, *relation.parts))
            return np.abs(values[:, 0] - values[:, 1:].sum(axis=1))

        return breach

    def _strays(self, relation: Any) -> Truths:
        """Where a column that follows is not where it must be."""
        old, new = _floats(self.before[relation.column]), _floats(self.after[relation.column])
        gain = np.maximum(0, self._gain(relation, self.after) - self._gain(relation, self.before))
        still = ~(gain > 1e-9)  # or unknown: then it has no reason to move
        for name in (relation.column, relation.of):  # a number beyond the declared bounds is a code, and counts nothing
            low, high = self.features[name].lower, self.features[name].upper
            start = self._values(self.before, name)
            still |= (start < (-np.inf if low is None else low)) | (start > (np.inf if high is None else high))
        feature = self.features[relation.column]
        step = feature.step or (1 if feature.kind == "integer" else 0)
        room = step / 2 + self.slack(relation.column)
        if _is_number(self.features[relation.of]):
            room = room + abs(relation.rate or 0) * self.slack(relation.of)
        moved = _moved(self.before[relation.column], self.after[relation.column])
        return np.where(still, moved, np.isfinite(old) & ~(np.abs(new - old - gain) <= room)).astype(bool)

    def _gain(self, relation: Any, table: pd.DataFrame) -> Numbers:
        if relation.by:
            return _floats(table[relation.of].map(dict(relation.by)))
        return relation.rate * self._matrix(table, (relation.of,))[:, 0]

    def _matrix(self, table: pd.DataFrame, names: tuple[str, ...]) -> Numbers:
        return np.stack([self._values(table, name) for name in names], axis=1)

    def _values(self, table: pd.DataFrame, name: str) -> Numbers:
        """A number as it is, a level as its place."""
        if _is_number(self.features[name]):
            return _floats(table[name])
        return _floats(table[name].map({level: n for n, level in enumerate(self.features[name].levels)}))


def _kind(relation: Any) -> str:
    return type(relation).__name__


def _is_number(feature: Any) -> bool:
    return feature.kind in ("real", "integer")


def _floats(column: pd.Series[Any]) -> Numbers:
    return pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)


def _moved(old: pd.Series[Any], new: pd.Series[Any]) -> Truths:
    return ((old != new) & ~(old.isna() & new.isna())).to_numpy(dtype=bool)


def _ends(feature: Any, seen: pd.DataFrame) -> tuple[float, float]:
    """Where a number must stay: what is declared, else what the training rows show."""
    values = _floats(seen[feature.name])
    low = min([first for first, _ in feature.ranges], default=np.nanmin(values))
    high = max([last for _, last in feature.ranges], default=np.nanmax(values))
    return (
        float(low if feature.lower is None else feature.lower),
        float(high if feature.upper is None else feature.upper),
    )
