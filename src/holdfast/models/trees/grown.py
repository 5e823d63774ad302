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
        **settings: Any,
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
            **settings,
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
    nodes = _Nodes(grown, inputs)
    nodes.read_fixed()
    for feature_index, feature in enumerate(encoding.schema.features):
        if not feature.is_numeric:
            nodes.read_levels(feature_index)
    return nodes.ensemble(nodes.read_numbers())


class _Nodes:
    """Nodes on their way from columns to cells: filled in place, kind by kind."""

    def __init__(self, grown: Grown, inputs: Inputs) -> None:
        count = len(grown.column)
        self.grown, self.inputs, self.encoding = grown, inputs, inputs.encoding
        self.inner = grown.column >= 0
        self.feature = np.where(self.inner, inputs.source[grown.column], -1)
        self.split, self.missing_left = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=bool)
        self.left, self.right = grown.left.copy(), grown.right.copy()
        self.sets: list[Bools] = []  # rows of levels that go left
        self.further: list[list[int]] = []  # nodes beside those of the library: see `_continue`

    def goes_left(self, nodes: Ints, values: Floats) -> Bools:
        """Whether values (k, number of nodes) go left at nodes."""
        grown = self.grown
        with np.errstate(over="ignore", invalid="ignore"):
            left = grown.below(values, grown.threshold[nodes])
        for column in np.flatnonzero(np.isin(nodes, list(grown.sets))).tolist():
            left[:, column] = np.isin(values[:, column], grown.sets[int(nodes[column])]) == grown.sets_left
        return np.where(np.isnan(values), grown.missing_left[nodes], left)

    def read_fixed(self) -> None:
        """Nodes of columns that never change: both children are the one where everybody goes."""
        nodes = np.flatnonzero(self.inner & (self.feature < 0))
        left = self.goes_left(nodes, self.inputs.transform(self.inputs.typical)[:, self.grown.column[nodes]])[0]
        self.left[nodes] = self.right[nodes] = np.where(left, self.left[nodes], self.right[nodes])
        self.feature[nodes] = 0

    def read_levels(self, feature: int) -> None:
        """Nodes of one feature of levels."""
        nodes = np.flatnonzero(self.inner & (self.inputs.source[self.grown.column] == feature))
        tests, which = self._tests(nodes)
        left = self.goes_left(tests, self.inputs.of_levels[feature][:, self.grown.column[tests]])  # (levels, tests)
        found, same = np.unique(left.T, axis=0, return_inverse=True)
        self.split[nodes] = len(self.sets) + same.reshape(-1)[which]
        self.sets.extend(found)

    def _tests(self, nodes: Ints) -> tuple[Ints, Ints]:
        """One node of each kind of test, and for every node which of them is like it."""
        grown = self.grown
        alone = np.where(np.isin(nodes, list(grown.sets)), nodes, -1)
        test = [grown.column[nodes], grown.threshold[nodes], grown.missing_left[nodes], alone]
        _, first, which = np.unique(np.stack(test, axis=1), axis=0, return_index=True, return_inverse=True)
        return nodes[first], which.reshape(-1)

    def read_numbers(self) -> tuple[Floats, ...]:
        """Nodes of all numeric features; gives the edges of every feature."""
        features, grown = self.encoding.schema.features, self.grown
        edges: list[Floats] = [np.zeros(0) for _ in features]
        is_number = np.array([feature.is_numeric for feature in features])
        source = self.inputs.source[grown.column]
        nodes = np.flatnonzero(self.inner & (source >= 0) & is_number[source])
        if np.isin(nodes, list(grown.sets)).any():
            raise UnreadableError(
                "it splits a column of numbers by categories; make that column categorical in the schema"
            )
        if not len(nodes):
            return tuple(edges)
        tests, which = self._tests(nodes)
        cuts = Cuts(self.inputs, grown.below, grown.column[tests], grown.threshold[tests], grown.missing_left[tests])
        first, test_of, before = cuts.changes()
        cell = np.zeros(len(test_of), dtype=np.int64)
        for feature_index in np.unique(cuts.source).tolist():
            these = cuts.source[test_of] == feature_index
            edges[feature_index] = np.unique(before[these])
            cell[these] = np.searchsorted(edges[feature_index], before[these])
        never = np.setdiff1d(np.arange(len(tests)), test_of)  # these change sides behind the last cell, so to say
        last = np.array([len(each) for each in edges])[cuts.source[never]]
        test_of, cell = np.append(test_of, never), np.append(cell, last)
        order = np.lexsort((cell, test_of))
        changes = np.split(cell[order], np.searchsorted(test_of[order], np.arange(1, len(tests))))
        self._split_numbers(nodes, first[which], [changes[test] for test in which.tolist()])
        return tuple(edges)

    def _split_numbers(self, nodes: Ints, first: Bools, changes: list[Ints]) -> None:
        """Nodes at which the smallest number goes left or not, and the side changes after each of some cells."""
        left, right = self.left[nodes], self.right[nodes]
        self.left[nodes], self.right[nodes] = np.where(first, left, right), np.where(first, right, left)
        missing = self.inputs.of_missing[None, self.grown.column[nodes]]
        self.missing_left[nodes] = self.goes_left(nodes, missing)[0] == first
        self.split[nodes] = [cells[0] for cells in changes]
        for node, cells in zip(nodes.tolist(), changes, strict=True):
            if len(cells) > 1:
                self._continue(node, cells[1:])

    def _continue(self, node: int, cells: Ints) -> None:
        """A node whose sides change again: further nodes follow to its right, with the same two children in turn."""
        below, above = int(self.left[node]), int(self.right[node])
        missing = below if self.missing_left[node] else above
        count = len(self.left) + len(self.further)
        self.right[node] = count
        for number, cell in enumerate(cells.tolist()):
            below, above = above, below
            right = above if number == len(cells) - 1 else count + number + 1
            self.further.append([int(self.feature[node]), cell, missing == below, below, right])

    def ensemble(self, edges: tuple[Floats, ...]) -> Ensemble:
        grown, features = self.grown, self.encoding.schema.features
        further = np.array(self.further, dtype=np.int64).reshape(-1, 5).T
        nodes = (self.feature, self.split, self.missing_left, self.left, self.right)
        feature, split, missing_left, left, right = map(np.append, nodes, further)
        sets = np.zeros((max(1, len(self.sets)), max(len(each.values) + 1 for each in features)), dtype=bool)
        for number, row in enumerate(self.sets):
            sets[number, : len(row)] = row
        value = np.where(self.inner[:, None], 0.0, grown.value)
        return Ensemble(
            encoding=self.encoding,
            edges=edges,
            feature=feature.astype(np.int32),
            split=split.astype(np.int32),
            missing_left=missing_left.astype(bool),
            left=np.where(feature >= 0, left, -1).astype(np.int32),
            right=np.where(feature >= 0, right, -1).astype(np.int32),
            value=np.concatenate([value, np.zeros((further.shape[1], value.shape[1]))]),
            roots=grown.roots.astype(np.int32),
            sets=sets,
            base=grown.base,
            link=grown.link,
        )
