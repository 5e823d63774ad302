"""What trees say of many rows, without a walk from node to node (QuickScorer, Lucchese et al., SIGIR 2015).

A row is in the first leaf of a tree, from left to right, that no node of it excludes: a node where the row goes right
excludes the leaves on its left. Each cell of a feature has the list of nodes where a row in it goes right, so a row
takes one list per feature and the trees follow without a branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.models.trees.ordered import Ints, in_order

if TYPE_CHECKING:
    from holdfast.models.trees.ensemble import Cells, Ensemble, Floats

LEAVES = 64  # of a tree: the bits of a mask


@dataclass(frozen=True, eq=False)
class Masks:
    """The trees of a model.

    Sums are added up in the order of the trees, to the same bits as after a walk through each.
    """

    offset: Ints  # (f + 1,) where the cells of each feature begin
    begin: Ints  # (k,) where the list of each cell begins
    end: Ints  # (k,) and ends
    tree: NDArray[np.int32]  # of every entry of the lists
    mask: NDArray[np.uint64]  # the leaves of that tree that the node leaves over
    first: Ints  # (t,) the first leaf of each tree
    value: Floats  # (leaves, o)

    @classmethod
    def of(cls, ensemble: Ensemble) -> Masks | None:
        """None where a tree has too many leaves."""
        order, tree, end = in_order(ensemble)
        place = np.argsort(order)
        used = order[: int(end[place[ensemble.roots]].max(initial=0))]  # nodes that no tree has come last
        tree, leaf = tree[: len(used)], ensemble.feature[used] < 0
        if np.bincount(tree[leaf]).max(initial=0) > LEAVES:
            return None
        before: Ints = np.cumsum(leaf) - leaf  # leaves before a node
        first: Ints = before[place[ensemble.roots]]
        inner = np.flatnonzero(~leaf)
        left, right = (place[child[used[inner]]] for child in (ensemble.left, ensemble.right))
        start = (before[left] - first[tree[inner]]).astype(np.uint64)
        count = (before[right] - before[left]).astype(np.uint64)
        mask = ~(((np.uint64(1) << count) - np.uint64(1)) << start)
        offset, begin, stop, nodes = _lists(ensemble, used[inner])
        entries = tree[inner[nodes]].astype(np.int32), mask[nodes]
        return cls(offset, begin, stop, *entries, first, ensemble.value[used[leaf]])

    def sums(self, cells: Cells) -> Floats:
        """The sums over the trees: (n, o)."""
        from holdfast.models.trees.kernels import sums_by_masks

        lists = self.offset, self.begin, self.end, self.tree, self.mask
        total: Floats = sums_by_masks(np.ascontiguousarray(cells), *lists, self.first, self.value)
        return total


def _lists(ensemble: Ensemble, inner: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Where the cells of each feature begin; where the list of each cell begins and ends; and the lists themselves:
    places among the inner nodes at which a row in the cell goes right.

    The lists of a number's cells all begin at its smallest threshold, so they are one list, cut at different ends.
    """
    offset = np.concatenate([[0], np.cumsum(ensemble.counts())]).astype(np.int64)
    begin, end = np.zeros(offset[-1], dtype=np.int64), np.zeros(offset[-1], dtype=np.int64)
    is_number, missing = ensemble.arrays[0], ensemble.arrays[1]
    feature, split, missing_left = ensemble.feature[inner], ensemble.split[inner], ensemble.missing_left[inner]
    lists: list[Ints] = []
    length = 0

    def add(cells: slice | int, nodes: Ints, ends: Ints | int) -> None:
        nonlocal length
        begin[cells], end[cells] = length, length + ends
        lists.append(nodes)
        length += len(nodes)

    for number in range(len(ensemble.features)):
        own, start, stop = np.flatnonzero(feature == number), int(offset[number]), int(offset[number + 1])
        if not is_number[number]:
            for cell in range(stop - start if len(own) else 0):  # sets are as wide as features that are used
                right = own[~ensemble.sets[split[own], cell]]
                add(start + cell, right, len(right))
            continue
        own = own[np.argsort(split[own], kind="stable")]
        add(slice(start, stop), own, np.searchsorted(split[own], np.arange(stop - start)))
        if missing[number] < stop - start:
            right = own[~missing_left[own]]
            add(start + int(missing[number]), right, len(right))
    return offset, begin, end, np.concatenate([np.zeros(0, dtype=np.int64), *lists])
