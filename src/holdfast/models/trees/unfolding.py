"""Nodes at which a number changes sides several times, as several nodes at which it changes once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.models.trees.ensemble import Ensemble

Rough = tuple[bool, NDArray[np.int64]]  # whether the first cell goes left, and the last cells before every change
Reach = tuple[int, int, bool]  # first and last cell of a feature that rows can have here, and whether they can miss it
MOST = 20  # times as many nodes, beyond which it is not worth it


def unfolded(ensemble: Ensemble, rough: dict[int, Rough]) -> Ensemble:
    """The same ensemble with every rough node replaced. What follows a node is repeated where it has to be."""
    if not rough:
        return ensemble
    work = _Unfolding(ensemble, rough)
    roots = [work.tree(int(root)) for root in ensemble.roots]
    old = np.array(work.old)
    return replace(
        ensemble,
        feature=ensemble.feature[old],
        split=np.array(work.split, dtype=np.int32),
        missing_left=np.array(work.missing_left, dtype=bool),
        left=np.array(work.left, dtype=np.int32),
        right=np.array(work.right, dtype=np.int32),
        value=ensemble.value[old],
        roots=np.array(roots, dtype=np.int32),
    )


@dataclass(frozen=True, eq=False)
class _Unfolding:
    """The nodes that are made, one list for each of their arrays."""

    ensemble: Ensemble
    rough: dict[int, Rough]
    old: list[int] = field(default_factory=list)
    split: list[int] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)

    def tree(self, root: int) -> int:
        """Makes the nodes of one tree; gives the number of its root."""
        first = len(self.old)
        todo: list[tuple[int, dict[int, Reach], int, bool]] = [(root, {}, -1, False)]
        while todo:
            node, reach, parent, is_left = todo.pop()
            made = len(self.old)
            if made > MOST * (len(self.ensemble.feature) + 1000):
                raise ValueError("its splits of a number change sides too often")
            if parent >= 0:
                (self.left if is_left else self.right)[parent] = made
            todo += [(*child, made, side) for child, side in zip(self._made(node, reach), (True, False), strict=False)]
        return first

    def _made(self, node: int, reach: dict[int, Reach]) -> list[tuple[int, dict[int, Reach]]]:
        """Makes a node for rows within reach; gives its children, left and right, and what is within their reach."""
        own = self.ensemble
        place = int(own.feature[node])
        while place >= 0 and own.features[place].is_numeric:
            low, high, misses = reach.get(place, self._all(place))
            at_low, inside = self._sides(node, low, high)
            missing_left = bool(own.missing_left[node])
            left, right = int(own.left[node]), int(own.right[node])
            if len(inside) or (misses and missing_left != at_low):
                break
            node = left if at_low else right  # all that come here go there
            place = int(own.feature[node])
        else:
            self._add(node, int(own.split[node]), bool(own.missing_left[node]))
            return [(int(own.left[node]), reach), (int(own.right[node]), reach)] if place >= 0 else []
        if len(inside) > 1:  # this node again, on both sides of the middle change
            cut = int(inside[len(inside) // 2])
            self._add(node, cut, False)
            return [(node, reach | {place: (low, cut, False)}), (node, reach | {place: (cut + 1, high, misses)})]
        cut = int(inside[0]) if len(inside) else high
        below, above = (left, right) if at_low else (right, left)
        with_below = missing_left == at_low
        self._add(node, cut, with_below)
        return [
            (below, reach | {place: (low, cut, misses and with_below)}),
            (above, reach | {place: (cut + 1, high, misses and not with_below)}),
        ]

    def _sides(self, node: int, low: int, high: int) -> tuple[bool, NDArray[np.int64]]:
        """Whether the lowest cell goes left at a node of a number, and after which cells within reach sides change."""
        first, changes = self.rough.get(node) or (True, np.array([self.ensemble.split[node]]))
        return first ^ bool((changes < low).sum() % 2), changes[(changes >= low) & (changes < high)]

    def _add(self, node: int, split: int, missing_left: bool) -> None:
        self.old.append(node)
        self.split.append(split)
        self.missing_left.append(missing_left)
        self.left.append(-1)
        self.right.append(-1)

    def _all(self, place: int) -> Reach:
        return 0, len(self.ensemble.edges[place]), self.ensemble.features[place].missing
