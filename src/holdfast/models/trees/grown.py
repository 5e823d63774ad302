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

from holdfast.models.adapters.seen import Inputs, numbers, quietly
from holdfast.models.trees.cuts import Bools, Compare, Cuts, Ints
from holdfast.models.trees.ensemble import Ensemble, Floats, Link
from holdfast.models.trees.unfolding import Rough, unfolded
from holdfast.tabular.encoding import Encoding


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
    link: Link = "logit"
    below: Compare = np.less_equal  # whether numbers go left at thresholds
    sets: Mapping[int, Ints] = field(default_factory=dict)  # node -> the codes of categories it singles out
    sets_left: bool = True  # whether those go left; the others go the other way
    numbers: Callable[[Any], Floats] = numbers  # what the library is given -> its matrix
    rounding: float = 0.0  # how far its own sums may be from exact ones

    @classmethod
    def of(
        cls,
        inner: Any,
        column: Any,
        threshold: Any,
        missing_left: Any,
        left: Any,
        right: Any,
        value: Floats,
        **own: Any,
    ) -> Grown:
        """One tree: ``inner`` says which nodes are splits; what the arrays have at leaves does not count. They may be
        as short as the splits, which then come first."""
        count = len(inner)

        def at_splits(values: Any, at_leaves: Any) -> Any:
            there = np.asarray(values)
            return np.where(inner, np.pad(there, (0, count - len(there))), at_leaves)

        return cls(
            column=at_splits(column, -1).astype(np.int64),
            threshold=at_splits(threshold, 0).astype(np.float64),
            missing_left=at_splits(missing_left, 0).astype(bool),
            left=at_splits(left, 0).astype(np.int64),
            right=at_splits(right, 0).astype(np.int64),
            value=value,
            roots=np.zeros(1, dtype=np.int64),
            base=np.zeros(value.shape[1]),
            **own,
        )


def of_output(values: Floats, output: int, outputs: int) -> Floats:
    """Values of nodes (m,) as those of one of several outputs: (m, outputs)."""
    return np.outer(values, np.arange(outputs) == output)


def bits_of(words: Any) -> Ints:
    """The numbers whose bits are set in words of 32: a set of categories, as libraries write it."""
    return np.flatnonzero(np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little"))


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
    inner = grown.column >= 0
    source = np.where(inner, inputs.source[grown.column], -1)
    nodes = _Nodes.of(grown)
    nodes.by_level(np.flatnonzero(inner & (source < 0)), inputs.transform(inputs.typical))  # columns that never change
    for place, feature in enumerate(features):
        if not feature.is_numeric:
            nodes.by_level(np.flatnonzero(inner & (source == place)), inputs.of_levels[place])
    number = np.array([feature.is_numeric for feature in features])
    own = np.flatnonzero(inner & (source >= 0) & number[source])
    edges = nodes.by_number(own, inputs)
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
    rough: dict[int, Rough]  # nodes of numbers that change sides several times

    @classmethod
    def of(cls, grown: Grown) -> _Nodes:
        count = len(grown.column)
        no = np.zeros(count, dtype=bool)
        return cls(grown, np.zeros(count, dtype=np.int64), no, no.copy(), np.zeros(count, dtype=np.int64), [], {})

    def left_of(self, nodes: Ints, values: Floats) -> Bools:
        """Whether values (k, number of nodes) go left at nodes."""
        grown = self.grown
        with np.errstate(over="ignore", invalid="ignore"):
            left = grown.below(values, grown.threshold[nodes])
        for place in np.flatnonzero(np.isin(nodes, list(grown.sets))).tolist():
            left[:, place] = np.isin(values[:, place], grown.sets[int(nodes[place])]) == grown.sets_left
        return np.where(np.isnan(values), grown.missing_left[nodes], left)

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

    def by_number(self, nodes: Ints, inputs: Inputs) -> tuple[Floats, ...]:
        """Nodes of all numeric features; gives the edges of every feature."""
        if np.isin(nodes, list(self.grown.sets)).any():
            raise UnreadableError(
                "it splits a column of numbers by categories; make that column categorical in the schema"
            )
        edges: list[Floats] = [np.zeros(0) for _ in inputs.encoding.schema.features]
        if not len(nodes):
            return tuple(edges)
        some, which = self._alike(nodes)
        grown = self.grown
        cuts = Cuts(inputs, grown.below, grown.column[some], grown.threshold[some], grown.missing_left[some])
        first, own, boundary = cuts.found()
        cell = np.zeros(len(own), dtype=np.int64)
        for place in np.unique(cuts.source).tolist():
            these = cuts.source[own] == place
            edges[place] = np.unique(boundary[these])
            cell[these] = np.searchsorted(edges[place], boundary[these])
        changes = np.bincount(own, minlength=len(some))
        split = np.zeros(len(some), dtype=np.int64)
        split[own] = cell
        self._fill(nodes, first[which], changes[which], split[which], np.array([len(each) for each in edges]), inputs)
        for node in nodes[changes[which] > 1].tolist():
            this = which[np.searchsorted(nodes, node)]
            self.rough[node] = bool(first[this]), cell[own == this]
        return tuple(edges)

    def _fill(self, nodes: Ints, first: Bools, changes: Ints, split: Ints, counts: Ints, inputs: Inputs) -> None:
        """Nodes at which the smallest number goes left or not, and the side changes so many times, last at a split."""
        column = self.grown.column[nodes]
        source, same, swapped = inputs.source[column], changes == 0, ~first & (changes == 1)
        may_miss = np.array([feature.missing for feature in inputs.encoding.schema.features])[source]
        self.swapped[nodes] = swapped
        self.missing_left[nodes] = may_miss & self.left_of(nodes, inputs.of_missing[None, column])[0] ^ swapped
        self.split[nodes] = np.where(same, np.where(first, counts[source], -1), split)
        fixed = same & (~may_miss | (self.missing_left[nodes] == first))
        self.goes[nodes] = np.where(fixed, np.where(first, 1, -1), 0)

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
        ensemble = Ensemble(
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
        return unfolded(ensemble, {int(number[node]): how for node, how in self.rough.items() if kept[node]})


def _reached(roots: Ints, left: Ints, right: Ints, is_inner: Bools) -> Bools:
    reached = np.zeros(len(left), dtype=bool)
    front = roots
    while len(front):
        reached[front] = True
        inner = front[is_inner[front]]
        front = np.concatenate([left[inner], right[inner]])
    return reached
