"""The loops over trees, compiled by numba. Arrays are those of `Ensemble.arrays`, and of `Masks`."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def leaf_of(node, cells, is_number, missing, feature, split, missing_left, left, right, sets):  # type: ignore[no-untyped-def]
    """The leaf that one row (f,) reaches from a node."""
    while feature[node] >= 0:
        own = feature[node]
        cell = cells[own]
        if is_number[own]:
            goes_left = missing_left[node] if cell == missing[own] else cell <= split[node]
        else:
            goes_left = sets[split[node], cell]
        node = left[node] if goes_left else right[node]
    return node


@numba.njit(cache=True)
def sums(cells, is_number, missing, feature, split, missing_left, left, right, value, roots, sets):  # type: ignore[no-untyped-def]
    """The sum over trees of the values of the leaves that rows (n, f) reach: (n, o)."""
    total = np.zeros((cells.shape[0], value.shape[1]))
    for row in range(cells.shape[0]):
        for root in roots:
            leaf = leaf_of(root, cells[row], is_number, missing, feature, split, missing_left, left, right, sets)
            for out in range(value.shape[1]):
                total[row, out] += value[leaf, out]
    return total


ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE = np.uint64(1)
SPREAD, KEPT_BITS = np.uint64(0x03F79D71B4CB0A89), np.uint64(58)  # a de Bruijn sequence: its six first bits differ,
PLACES = np.zeros(64, dtype=np.int64)  # whichever single bit it is multiplied with, and tell which that was
for _bit in range(64):
    PLACES[((0x03F79D71B4CB0A89 << _bit) % 2**64) >> 58] = _bit


@numba.njit(cache=True, error_model="numpy")
def sums_by_masks(cells, offset, begin, end, trees, mask, first, value):  # type: ignore[no-untyped-def]
    """The sums over trees of the values of the leaves that rows (n, f) are in: (n, o)."""
    total = np.zeros((cells.shape[0], value.shape[1]))
    left = np.empty(first.shape[0], np.uint64)  # the leaves of every tree that no node excludes
    for row in range(cells.shape[0]):
        for tree in range(left.shape[0]):
            left[tree] = ALL
        for feature in range(cells.shape[1]):
            cell = offset[feature] + cells[row, feature]
            for at in range(begin[cell], end[cell]):
                left[trees[at]] &= mask[at]
        for tree in range(left.shape[0]):
            lowest = left[tree] & (~left[tree] + ONE)
            leaf = first[tree] + PLACES[(lowest * SPREAD) >> KEPT_BITS]
            for out in range(value.shape[1]):
                total[row, out] += value[leaf, out]
    return total
