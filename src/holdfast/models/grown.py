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
PROBES = 4000  # numbers of a feature that are asked about at once
FURTHER = (-1e3, 1e3, -1e9, 1e9)  # spans beyond the data where splits are still looked for
WHOLE = 2.0**53  # up to which every whole number is a float64
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
            nodes.by_level(np.flatnonzero(inner & (source == place)), inputs.of_levels[place])
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
        for place in np.flatnonzero(np.isin(nodes, list(grown.sets))).tolist():
            left[:, place] = np.isin(values[:, place], grown.sets[int(nodes[place])]) == grown.sets_left
        return np.where(np.isnan(values), grown.missing_left[nodes], left)

    def fix(self, nodes: Ints, row: Floats) -> None:
        """Nodes of columns that never change."""
        left = self.left_of(nodes, row[:1, self.grown.column[nodes]])[0]
        self.goes[nodes] = np.where(left, 1, -1)

    def by_level(self, nodes: Ints, rows: Floats) -> None:
        """Nodes of one feature of levels: rows (levels, m) are the columns for each."""
        if not len(nodes):
            return
        some, which = self._alike(nodes)
        left = self.left_of(some, rows[:, self.grown.column[some]])  # (levels, some)
        self.goes[nodes] = np.where(left.all(axis=0), 1, np.where(left.any(axis=0), 0, -1))[which]
        found, same = np.unique(left.T, axis=0, return_inverse=True)
        self.split[nodes] = len(self.sets) + same.reshape(-1)[which]
        self.sets.extend(found)

    def _alike(self, nodes: Ints) -> tuple[Ints, Ints]:
        """One node of each kind of test, and for every node which of them is like it."""
        grown = self.grown
        alone = np.where(np.isin(nodes, list(grown.sets)), nodes, -1)
        test = [grown.column[nodes], grown.threshold[nodes], grown.missing_left[nodes], alone]
        _, first, which = np.unique(np.stack(test, axis=1), axis=0, return_index=True, return_inverse=True)
        return nodes[first], which.reshape(-1)

    def by_number(self, nodes: Ints, source: Ints, inputs: Inputs) -> tuple[Floats, ...]:
        """Nodes of all numeric features; gives the edges of every feature."""
        if np.isin(nodes, list(self.grown.sets)).any():
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
                row = inputs.of_missing[place][None]
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
        start, end, first, last = self._between_known()
        whole = np.array([feature.kind == "integer" for feature in self.features])[self.source]
        low, high = (
            np.where(whole, np.where(whole, ends, 0).astype(np.int64), _ordered(ends)) for ends in (start, end)
        )
        parts = max(1, PROBES // int(np.bincount(self.source).max()))
        which = np.arange(len(low))
        while ((first != last) & (_apart(low, high) > 1)).any():
            inside = _between(low, high, parts)  # (parts, k)
            same = (self._left(np.where(whole, inside.astype(np.float64), _float(inside))) == first).sum(axis=0)
            ladder = np.concatenate([low[None], inside, high[None]])
            low, high = ladder[same, which], ladder[same + 1, which]
        return np.where(whole, low.astype(np.float64), _float(low)), first, last

    def _left(self, raw: Floats) -> Bools:
        """Whether numbers (n, k), n for each split, go left there."""
        asked, rows = {}, np.empty(raw.shape, dtype=np.int64)
        for place in np.unique(self.source).tolist():
            own = np.flatnonzero(self.source == place)
            asked[place] = raw[:, own].reshape(-1)
            rows[:, own] = np.arange(len(asked[place])).reshape(len(raw), -1)
        return self._below(self.inputs.at(asked)[rows, self.column])

    def _below(self, values: Floats) -> Bools:
        with np.errstate(over="ignore", invalid="ignore"):
            return self.below(values, self.threshold)

    def _between_known(self) -> tuple[Floats, Floats, Bools, Bools]:
        """The two numbers of a grid (k,) between which each split changes sides, and the sides of the grid's ends."""
        used, row = np.unique(self.column, return_inverse=True)
        raw, values, count = self._grids(used)
        low, high = np.zeros(len(row), dtype=np.int64), count[row] - 1
        first, last = self._below(values[row, low]), self._below(values[row, high])
        while (high - low > 1).any():
            middle = (low + high) // 2
            same = self._below(values[row, middle]) == first
            low, high = np.where(same, middle, low), np.where(same, high, np.maximum(middle, low + 1))
        return raw[row, low], raw[row, high], first, last

    def _grids(self, used: Ints) -> tuple[Floats, Floats, Ints]:
        """For the columns that are used: numbers (c, most), what they become (c, most), and how many there are (c,)."""
        places = np.unique(self.inputs.source[used]).tolist()
        grids = {place: self._grid(place) for place in places}
        columns = self.inputs.at(grids)
        further = {place: self._further(place, grid) for place, grid in grids.items()}
        beyond = self._beyond(further)
        raw = np.zeros((len(used), max(map(len, grids.values())) + len(FURTHER)))
        values, count = np.zeros_like(raw), np.zeros(len(used), dtype=np.int64)
        for row, column in enumerate(used.tolist()):
            place = int(self.inputs.source[column])
            own = np.stack([grids[place], columns[: len(grids[place]), column]])
            if not _one_way(own[1]):
                name = self.features[place].name
                raise UnreadableError(
                    f"what its trees see of column '{name}' neither rises nor falls with it throughout"
                )
            own = _stretched(own, np.stack([further[place][: len(beyond)], beyond[:, column]]))
            count[row] = own.shape[1]
            raw[row, : count[row]], values[row, : count[row]] = own
        return raw, values, count

    def _grid(self, place: int) -> Floats:
        """Numbers of the data and of the encoding's bounds, in order."""
        encoding, feature = self.inputs.encoding, self.features[place]
        assert encoding.known is not None
        known = np.unique(encoding.known[feature.name].dropna().to_numpy(dtype=np.float64))
        some = known[np.linspace(0, len(known) - 1, min(GRID, len(known))).astype(int)]
        column = encoding.places[place][1].start
        ends = np.array([encoding.lower[column], encoding.upper[column]])
        return np.unique([*some, *(np.rint(ends) if feature.kind == "integer" else ends)])

    def _further(self, place: int, grid: Floats) -> Floats:
        """Numbers beyond the data: (len(FURTHER),)."""
        span = float(grid[-1] - grid[0]) or abs(float(grid[0])) or 1.0
        ends = np.array([grid[0] + times * span if times < 0 else grid[-1] + times * span for times in FURTHER])
        return np.rint(ends.clip(-WHOLE, WHOLE)) if self.features[place].kind == "integer" else ends

    def _beyond(self, further: dict[int, Floats]) -> Floats:
        """Their columns, as far as the user's own steps take such numbers: (at most len(FURTHER), m)."""
        for most in (len(FURTHER), len(FURTHER) // 2):
            try:
                return self.inputs.at({place: own[:most] for place, own in further.items()})
            except Exception:  # the steps may refuse a number in whatever way they like
                continue
        return np.zeros((0, len(self.inputs.source)))


def _one_way(values: Floats) -> bool:
    """Whether numbers rise or fall throughout."""
    steps = np.diff(values)
    return bool(np.isfinite(values).all() and ((steps >= 0).all() or (steps <= 0).all()))


def _stretched(grid: Floats, further: Floats) -> Floats:
    """Numbers and what they become (2, n), with those beyond that still go the same way."""
    for raw, value in further.T:
        own = np.array([[raw], [value]])
        longer = np.concatenate([own, grid] if raw < grid[0, 0] else [grid, own], axis=1)
        if (raw < grid[0, 0] or raw > grid[0, -1]) and _one_way(longer[1]):
            grid = longer
    return grid


def _apart(low: Ints, high: Ints) -> NDArray[np.uint64]:
    """high − low, which may be too large for a number with a sign."""
    apart: NDArray[np.uint64] = high.view(np.uint64) - low.view(np.uint64)
    return apart


def _between(low: Ints, high: Ints, parts: int) -> Ints:
    """So many numbers in order from low to high (parts, k), one of them between the two where there is any."""
    apart, whole = _apart(low, high), np.uint64(parts + 1)
    step = np.arange(1, parts + 1, dtype=np.uint64)[:, None]
    inside: Ints = (low.view(np.uint64) + apart // whole * step + apart % whole * step // whole).view(np.int64)
    return inside


def _ordered(numbers: Floats) -> Ints:
    """float64 numbers as whole numbers in the same order, neighbours one apart."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & MAGNITUDE))


def _float(ordered: Ints) -> Floats:
    """What `_ordered` made whole numbers of."""
    size = np.ascontiguousarray(np.abs(ordered)).view(np.float64)
    return np.where(ordered < 0, -size, size)
