"""Trees as their library keeps them, and the same trees over the cells of the schema's features.

A library splits columns of a matrix that it makes of the table. Every column comes from one feature (`Inputs`), so a
split is a set of values of that feature. Which set is asked, not calculated: a level goes where its own column leads,
and the raw number at which a split changes sides is found by halving an interval of float64 numbers, every one of
which goes through the user's own steps and the library's own comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.ensemble import Ensemble, Floats, Link
from holdfast.models.inputs import Inputs, numbers, quietly
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Compare = Callable[[Floats, Floats], Bools]  # numbers, thresholds -> goes left
GRID = 1000  # values of a number among which a column must rise, or fall, throughout
MAGNITUDE = np.iinfo(np.int64).max  # the bits of a float64 but its sign


class UnreadableError(ValueError):
    """Why a model's trees cannot be read: it is then searched as a black box."""


@dataclass(frozen=True, eq=False)
class Grown:
    """Trees over the columns of the matrix that their library sees. Nodes of all trees lie one after another."""

    column: Ints  # (m,) −1 at a leaf
    threshold: Floats  # (m,)
    missing_left: Bools  # (m,) where a NaN goes
    left: Ints  # (m,)
    right: Ints  # (m,)
    value: Floats  # (m, o)
    roots: Ints  # (t,)
    base: Floats  # (o,)
    link: Link
    below: Compare  # whether numbers go left at thresholds
    sets: Mapping[int, Ints] = field(default_factory=dict)  # node -> the codes of categories it singles out
    sets_left: bool = True  # whether those go left; the others go the other way
    numbers: Callable[[Any], Floats] = numbers  # what the library is given -> its matrix
    rounding: float = 0.0  # how far its own sums may be from exact ones


def joined(trees: list[Grown], base: Floats) -> Grown:
    """Several trees as one ensemble. What they share is the first's."""
    starts = np.cumsum([0, *(len(tree.column) for tree in trees)])
    parts = list(zip(starts.tolist(), trees, strict=False))
    return replace(
        trees[0],
        column=np.concatenate([tree.column for tree in trees]),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        missing_left=np.concatenate([tree.missing_left for tree in trees]),
        left=np.concatenate([tree.left + start for start, tree in parts]),
        right=np.concatenate([tree.right + start for start, tree in parts]),
        value=np.concatenate([tree.value for tree in trees]),
        roots=np.concatenate([tree.roots + start for start, tree in parts]),
        sets={node + start: codes for start, tree in parts for node, codes in tree.sets.items()},
        base=base,
    )


def ensemble_of(grown: Grown, see: Callable[[pd.DataFrame], Any], encoding: Encoding) -> Ensemble:
    """The same trees over cells. Raises `UnreadableError` where a split is no set of values of one feature."""
    inputs = Inputs.of(quietly(lambda table: grown.numbers(see(table))), encoding)
    if inputs is None:
        raise UnreadableError("a number that its trees see depends on several columns of the table")
    features = encoding.schema.features
    source = np.where(grown.column >= 0, inputs.source[grown.column], -1)
    inner = grown.column >= 0
    nodes = _Nodes.of(grown)
    nodes.fix(np.flatnonzero(inner & (source < 0)), inputs.transform(inputs.typical))
    for place, feature in enumerate(features):
        if not feature.is_numeric:
            nodes.by_level(np.flatnonzero(inner & (source == place)), inputs.of_levels(place))
    number = np.array([feature.is_numeric for feature in features])
    own = np.flatnonzero(inner & (source >= 0) & number[source])
    edges = nodes.by_number(own, source, inputs)
    return nodes.ensemble(source, edges, encoding)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Nodes on their way from columns to cells: filled in place, kind by kind."""

    grown: Grown
    split: Ints  # (m,)
    missing_left: Bools  # (m,)
    swapped: Bools  # (m,) those whose children change places
    goes: Ints  # (m,) 1 where every value goes left, −1 where every one goes right, else 0
    sets: list[Bools]  # rows of levels that go left

    @classmethod
    def of(cls, grown: Grown) -> _Nodes:
        count = len(grown.column)
        no = np.zeros(count, dtype=bool)
        return cls(grown, np.zeros(count, dtype=np.int64), no, no.copy(), np.zeros(count, dtype=np.int64), [])

    def left_of(self, nodes: Ints, values: Floats) -> Bools:
        """Whether values (k, number of nodes) go left at nodes."""
        grown = self.grown
        with np.errstate(over="ignore", invalid="ignore"):
            left = grown.below(values, grown.threshold[nodes])
        for place, node in enumerate(nodes.tolist()):
            if node in grown.sets:
                left[:, place] = np.isin(values[:, place], grown.sets[node]) == grown.sets_left
        return np.where(np.isnan(values), grown.missing_left[nodes], left)

    def fix(self, nodes: Ints, row: Floats) -> None:
        """Nodes of columns that never change."""
        left = self.left_of(nodes, row[:1, self.grown.column[nodes]])[0]
        self.goes[nodes] = np.where(left, 1, -1)

    def by_level(self, nodes: Ints, rows: Floats) -> None:
        """Nodes of one feature of levels: rows (levels, m) are the columns for each."""
        if not len(nodes):
            return
        left = self.left_of(nodes, rows[:, self.grown.column[nodes]])  # (levels, nodes)
        self.goes[nodes] = np.where(left.all(axis=0), 1, np.where(left.any(axis=0), 0, -1))
        found, which = np.unique(left.T, axis=0, return_inverse=True)
        self.split[nodes] = len(self.sets) + which.reshape(-1)
        self.sets.extend(found)

    def by_number(self, nodes: Ints, source: Ints, inputs: Inputs) -> tuple[Floats, ...]:
        """Nodes of all numeric features; gives the edges of every feature."""
        if any(node in self.grown.sets for node in nodes.tolist()):
            raise UnreadableError(
                "it splits a column of numbers by categories; make that column categorical in the schema"
            )
        features = inputs.encoding.schema.features
        edges: list[Floats] = [np.zeros(0) for _ in features]
        columns, thresholds = self.grown.column[nodes], self.grown.threshold[nodes]
        pairs, which = np.unique(np.stack([columns, thresholds], axis=1), axis=0, return_inverse=True)
        which = which.reshape(-1)
        cuts = _Cuts(inputs, self.grown.below, pairs[:, 0].astype(np.int64), pairs[:, 1])
        if not len(nodes):
            return tuple(edges)
        boundary, first, last = cuts.found()
        split = np.zeros(len(pairs), dtype=np.int64)
        for place in np.unique(cuts.source).tolist():
            own = (cuts.source == place) & (first != last)
            edges[place] = np.unique(boundary[own])
            split[own] = np.searchsorted(edges[place], boundary[own])
        same = (first == last)[which]
        swapped = ~first[which] & ~same
        self.swapped[nodes] = swapped
        self.missing_left[nodes] = self._missing(nodes, source, inputs, features) ^ swapped
        counts = np.array([len(own) for own in edges])[source[nodes]]
        self.split[nodes] = np.where(same, np.where(first[which], counts, -1), split[which])
        may_miss = np.array([feature.missing for feature in features])[source[nodes]]
        fixed = same & (~may_miss | (self.missing_left[nodes] == first[which]))
        self.goes[nodes] = np.where(fixed, np.where(first[which], 1, -1), 0)
        return tuple(edges)

    def _missing(self, nodes: Ints, source: Ints, inputs: Inputs, features: tuple[Feature, ...]) -> Bools:
        """Where a missing value of a number goes at its nodes."""
        left = np.zeros(len(nodes), dtype=bool)
        for place in np.unique(source[nodes]).tolist():
            if features[place].missing:
                own = source[nodes] == place
                row = inputs.of_missing(place)[None]
                left[own] = self.left_of(nodes[own], row[:, self.grown.column[nodes[own]]])[0]
        return left

    def ensemble(self, source: Ints, edges: tuple[Floats, ...], encoding: Encoding) -> Ensemble:
        """Without the nodes at which every row goes the same way."""
        grown = self.grown
        left = np.where(self.swapped, grown.right, grown.left)
        right = np.where(self.swapped, grown.left, grown.right)
        onward = np.arange(len(left))
        onward = np.where(self.goes > 0, grown.left, np.where(self.goes < 0, grown.right, onward))
        while not (onward[onward] == onward).all():
            onward = onward[onward]
        roots = onward[grown.roots]
        kept = _reached(roots, onward[left], onward[right], grown.column >= 0)
        number = np.cumsum(kept) - 1
        is_inner = (grown.column >= 0)[kept]
        width = max((len(row) for row in self.sets), default=1)
        sets = np.zeros((max(1, len(self.sets)), width), dtype=bool)
        for place, row in enumerate(self.sets):
            sets[place, : len(row)] = row
        return Ensemble(
            encoding=encoding,
            edges=edges,
            feature=np.where(is_inner, source[kept], -1).astype(np.int32),
            split=self.split[kept].astype(np.int32),
            missing_left=self.missing_left[kept],
            left=np.where(is_inner, number[onward[left[kept]]], -1).astype(np.int32),
            right=np.where(is_inner, number[onward[right[kept]]], -1).astype(np.int32),
            value=np.where(is_inner[:, None], 0.0, grown.value[kept]),
            roots=number[roots].astype(np.int32),
            sets=sets,
            base=grown.base,
            link=grown.link,
        )


def _reached(roots: Ints, left: Ints, right: Ints, is_inner: Bools) -> Bools:
    reached = np.zeros(len(left), dtype=bool)
    front = roots
    while len(front):
        reached[front] = True
        inner = front[is_inner[front]]
        front = np.concatenate([left[inner], right[inner]])
    return reached


@dataclass(frozen=True, eq=False)
class _Cuts:
    """Splits of numbers: each a column and a threshold."""

    inputs: Inputs
    below: Compare
    column: Ints  # (k,)
    threshold: Floats  # (k,)

    @property
    def source(self) -> Ints:
        return self.inputs.source[self.column]

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.inputs.encoding.schema.features

    def found(self) -> tuple[Floats, Bools, Bools]:
        """The largest number on the side of the smallest (k,), and whether the smallest and the largest go left."""
        whole = np.array([feature.kind == "integer" for feature in self.features])[self.source]
        low, high = (
            np.where(whole, np.where(whole, ends, 0).astype(np.int64), _ordered(ends)) for ends in self._ends()
        )
        first, last = self._left(low, whole), self._left(high, whole)
        while (open_ := (first != last) & (high - 1 > low)).any():
            middle = np.where(open_, (low >> 1) + (high >> 1) + (low & high & 1), low)
            as_first = self._left(middle, whole) == first
            low, high = np.where(as_first, middle, low), np.where(open_ & ~as_first, middle, high)
        return np.where(whole, low.astype(np.float64), _float(low)), first, last

    def _left(self, place: Ints, whole: Bools) -> Bools:
        """Whether numbers (k,), one for each split, go left there."""
        raw = np.where(whole, place.astype(np.float64), _float(place))
        with np.errstate(over="ignore", invalid="ignore"):
            return self.below(self._columns(raw), self.threshold)

    def _columns(self, raw: Floats) -> Floats:
        """The own column of every split for its own number: (k,)."""
        source = self.source
        order = np.argsort(source, kind="stable")
        row = np.empty(len(raw), dtype=np.int64)  # of each number among those of its feature
        asked: dict[int, Floats] = {}
        for place, own in _runs(source[order], order):
            row[own] = np.arange(len(own))
            asked[place] = raw[own]
        out: Floats = self.inputs.at(asked)[row, self.column]
        return out

    def _ends(self) -> tuple[Floats, Floats]:
        """The interval that each split is looked for in: (k,) twice. Beyond the data where the columns go on there."""
        used = np.unique(self.source).tolist()
        grids = {place: self._grid(place) for place in used}
        columns = self.inputs.at(grids)
        rises: dict[int, Floats] = {}
        for place, grid in grids.items():
            steps = np.diff(columns[: len(grid)][:, self.inputs.source == place], axis=0)
            if np.isnan(steps).any() or not ((steps >= 0).all(axis=0) | (steps <= 0).all(axis=0)).all():
                name = self.features[place].name
                raise UnreadableError(
                    f"what its trees see of column '{name}' neither rises nor falls with it throughout"
                )
            rises[place] = np.sign(steps.sum(axis=0))
        low = {place: float(grid[0]) for place, grid in grids.items()}
        high = {place: float(grid[-1]) for place, grid in grids.items()}
        for times in (1e3, 1e9):
            low |= self._further(low, high, -times, rises)
            high |= self._further(high, low, times, rises)
        return np.array([low[place] for place in self.source]), np.array([high[place] for place in self.source])

    def _grid(self, place: int) -> Floats:
        """Numbers of the data and of the encoding's bounds, in order."""
        encoding, feature = self.inputs.encoding, self.features[place]
        assert encoding.known is not None
        known = np.unique(encoding.known[feature.name].dropna().to_numpy(dtype=np.float64))
        some = known[np.linspace(0, len(known) - 1, min(GRID, len(known))).astype(int)]
        column = encoding.places[place][1].start
        ends = [encoding.lower[column], encoding.upper[column]]
        return np.unique([*some, *(np.rint(ends) if feature.kind == "integer" else ends)])

    def _further(
        self, near: dict[int, float], far: dict[int, float], times: float, rises: dict[int, Floats]
    ) -> dict[int, float]:
        """Ends further out, of the features whose columns still go the same way there."""
        ends = {}
        for place, end in near.items():
            span = abs(end - far[place]) or abs(end) or 1.0
            moved = end + times * span
            ends[place] = float(np.rint(np.clip(moved, -(2.0**53), 2.0**53)) if self._is_whole(place) else moved)
        try:
            columns = self.inputs.at({place: [near[place], end] for place, end in ends.items()})
        except Exception:  # the user's own steps may refuse such numbers in whatever way they like
            return {}
        onward = np.sign(times)
        found = {}
        for place, end in ends.items():
            step = np.diff(columns[:, self.inputs.source == place], axis=0)[0] * onward
            if np.isfinite(step).all() and (step * rises[place] >= 0).all():
                found[place] = end
        return found

    def _is_whole(self, place: int) -> bool:
        return self.features[place].kind == "integer"


def _runs(sorted_: Ints, order: Ints) -> list[tuple[int, Ints]]:
    """The numbers that have each value, of values in order."""
    values, starts = np.unique(sorted_, return_index=True)
    return list(zip(values.tolist(), np.split(order, starts[1:]), strict=True))


def _ordered(numbers: Floats) -> Ints:
    """float64 numbers as whole numbers in the same order, neighbours one apart."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & MAGNITUDE))


def _float(ordered: Ints) -> Floats:
    """What `_ordered` made whole numbers of."""
    size = np.ascontiguousarray(np.abs(ordered)).view(np.float64)
    return np.where(ordered < 0, -size, size)
