"""What one member of trees says while one feature is swept: drawn once, looked up for every value.

With all other features as they are, the trees of a member say the same between any two neighbouring thresholds of their
own. A lookup differs from a walk through the trees by rounding alone, far less than what a score must exceed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.search.engine.board import Floats, Integers
from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.forests import Forest, leaf_of, preferred, rank_of, reading_of

NO_FEATURE = -1
SURE_SHARE = 1e-6  # a share of a class nearer to 0 or 1 has a logarithm that rounding moves


class Outlines(NamedTuple):
    """Of each member the last sweep that it was asked about."""

    sums: Floats  # (k, cuts + 2, outputs) between thresholds
    version: Integers  # (k,) of the state; 0 for none
    swept: Integers  # (k,) the feature
    other: Integers  # (k,) another feature that moves too,
    value: Floats  # (k,) to here
    nodes: Integers  # to be walked,
    low: Integers  # between these thresholds
    high: Integers


def outlines_of(forest: Forest) -> Outlines:
    members = len(forest.members)
    return Outlines(
        np.zeros((members, forest.most_cuts + 2, max(1, forest.value.shape[1]))),
        np.zeros(members, np.int64),
        np.zeros(members, np.int64),
        np.zeros(members, np.int64),
        np.zeros(members),
        *(np.zeros(forest.most_nodes + 1, np.int64) for _ in range(3)),
    )


@kernel
def outlined(forest, leaves, outlines, state, move, member, target, odds):
    """By how much a member prefers the target after a move, up to rounding; NaN where that is not drawn."""
    count = move.counts[0]
    if count < 1 or count > 2:
        return np.nan
    swept, other, value = move.features[count - 1], np.int64(NO_FEATURE), 0.0
    if count == 2:
        other, value = move.features[0], move.values[0]
    use = member * forest.readings.shape[0] + swept
    cuts = forest.first_cut[use + 1] - forest.first_cut[use]
    if cuts == 0:
        return np.nan
    rank = rank_of(forest, member, swept, reading_of(forest, swept, move.values[count - 1]))
    if rank < 0:
        return np.nan
    if (
        outlines.version[member] != leaves.version[0]
        or outlines.other[member] != other
        or outlines.value[member] != value
    ):
        outlines.version[member], outlines.swept[member] = leaves.version[0], NO_FEATURE
        outlines.other[member], outlines.value[member] = other, value
        if count == 2:  # not a sweep: one feature moves, and what relations demand of another
            return np.nan
    if outlines.swept[member] != swept:
        outlines.swept[member] = swept
        draw(forest, leaves, outlines, state, member, swept, other, value, cuts)
    own, sums = forest.members[member], leaves.sums
    for out in range(own.outputs):
        sums[out] = outlines.sums[member, rank, out]
        if own.probability and not (sums[out] > SURE_SHARE and sums[out] < 1 - SURE_SHARE):
            return np.nan
    return preferred(forest, own, sums, target, odds)


@kernel
def draw(forest, leaves, outlines, state, member, swept, other, value, cuts):
    """Sum up the trees of a member between any two thresholds of the swept feature, where another one has moved."""
    own, features, row = forest.members[member], forest.readings.shape[0], outlines.sums[member]
    rank = leaves.rank[member]
    if other != NO_FEATURE:
        rank[other] = rank_of(forest, member, other, reading_of(forest, other, value))
    for at in range(cuts + 2):
        for out in range(own.outputs):
            row[at, out] = 0.0
    for out in range(own.outputs):
        row[0, out] = leaves.totals[own.first_total + out]
    leaves.turn[0] += 1
    use = member * features + swept
    for at in range(forest.first_use[use], forest.first_use[use + 1]):
        tree = forest.uses[at]
        leaves.stamp[tree] = leaves.turn[0]
        for out in range(own.outputs):
            row[0, out] -= forest.value[leaves.leaf[tree], out]
        sweep(forest, outlines, rank, row, own.outputs, forest.roots[tree], swept, cuts)
    if other != NO_FEATURE:
        use = member * features + other
        for at in range(forest.first_use[use], forest.first_use[use + 1]):
            tree = forest.uses[at]
            if leaves.stamp[tree] != leaves.turn[0]:
                after = leaf_of(forest, forest.roots[tree], rank)
                for out in range(own.outputs):
                    row[0, out] += forest.value[after, out] - forest.value[leaves.leaf[tree], out]
        rank[other] = rank_of(forest, member, other, reading_of(forest, other, state.value[other]))
    for at in range(1, cuts + 1):
        for out in range(own.outputs):
            row[at, out] += row[at - 1, out]


@kernel
def sweep(forest, outlines, rank, row, outputs, root, swept, cuts):
    """Add the leaves of a tree that the swept feature can lead to, each where its thresholds begin, and less it where
    they end."""
    nodes, sets = forest.nodes, forest.sets
    waiting, low, high = outlines.nodes, outlines.low, outlines.high
    waiting[0], low[0], high[0], count = root, 0, cuts, 1
    while count > 0:
        count -= 1
        node, begin, end = waiting[count], low[count], high[count]
        while nodes[node].feature >= 0:
            place, cut = nodes[node].feature, nodes[node].cut
            if place != swept:
                own = rank[place]
                if nodes[node].by_levels:
                    goes_left = sets[cut, own]
                else:
                    goes_left = own <= cut if own >= 0 else nodes[node].missing_left
            elif begin <= cut and cut < end:
                waiting[count], low[count], high[count] = nodes[node].right, cut + 1, end
                count += 1
                goes_left, end = True, np.int64(cut)
            else:
                goes_left = end <= cut
            node = np.int64(nodes[node].left if goes_left else nodes[node].right)
        for out in range(outputs):
            row[begin, out] += forest.value[node, out]
            row[end + 1, out] -= forest.value[node, out]
