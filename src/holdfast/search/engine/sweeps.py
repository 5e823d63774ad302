"""One feature at many values, asked of trees member by member.

With all other features as they are, the trees of a member say the same between any two neighbouring thresholds of their
own: so each member is drawn along the feature once, and looked up for every value. What a member refuses, the next one
is not asked about. A lookup differs from a walk through the trees by rounding alone, far less than what a score must
exceed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.search.engine.board import Floats, Integers
from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.forests import forest_margin, leaf_of, preferred, rank_of, reading_of
from holdfast.search.engine.scorers import Models, joint, listen, soft_bound
from holdfast.search.engine.sorting import bring_forward

NO_FEATURE = -1
FEW_VALUES = 64  # of a number without thresholds, that are all tried
SURE_SHARE = 1e-6  # a share of a class nearer to 0 or 1 has a logarithm that rounding moves


class Sweep(NamedTuple):
    """Values of a feature, how sure all are of them, and room to draw one member."""

    value: Floats  # (v,)
    extra: Floats  # (v,) what it costs more than staying
    bound: Floats  # (v,) above which a score counts
    score: Floats  # (v,) minus infinity where it does not
    least: Floats  # (v,)
    margins: Floats  # (v, k)
    refused: Integers  # (v,) by how many members
    open: Integers  # the values that are still asked about
    sums: Floats  # (cuts + 2, outputs) between the thresholds of one member
    nodes: Integers  # to be walked,
    low: Integers  # between these thresholds
    high: Integers


def sweep_of(models: Models) -> Sweep:
    forest, members = models.forest, len(models.position)
    values = FEW_VALUES + int(np.diff(forest.first_edge).max(initial=0))
    nodes = forest.most_nodes + 1
    return Sweep(
        value=np.zeros(values),
        extra=np.zeros(values),
        bound=np.zeros(values),
        score=np.zeros(values),
        least=np.zeros(values),
        margins=np.zeros((values, members)),
        refused=np.zeros(values, np.int64),
        open=np.zeros(values, np.int64),
        sums=np.zeros((forest.most_cuts + 2, max(1, forest.value.shape[1]))),
        nodes=np.zeros(nodes, np.int64),
        low=np.zeros(nodes, np.int64),
        high=np.zeros(nodes, np.int64),
    )


@kernel
def note(sweep, count, value, extra, bound):
    """One value more that is to be asked about; how many there are."""
    sweep.value[count], sweep.extra[count], sweep.bound[count] = value, extra, bound
    return count + 1


@kernel
def ask_sweep(models, standing, state, move, sweep, count, index, given, back, target, listening):
    """How sure all are of so many values of a feature, where another one has gone ``back``; minus infinity where that
    is not above the bound. Whoever refuses is heard, if ``listening``."""
    members = models.position.shape[0]
    spare, check, still = members - 1 - models.needed, 4, count
    for at in range(count):
        sweep.open[at], sweep.refused[at], sweep.score[at], sweep.least[at] = at, 0, -np.inf, np.inf
    for turn in range(members):
        if still == 0:
            return
        member = standing.order[turn]
        draw(models.forest, standing.leaves, sweep, state, -1 - models.position[member], index, given, back)
        before, still = still, 0
        for number in range(before):
            at = sweep.open[number]
            margin = margin_at(
                models, standing, state, move, sweep, member, index, given, back, sweep.value[at], target
            )
            sweep.margins[at, member], sweep.least[at] = margin, min(sweep.least[at], margin)
            if margin <= sweep.bound[at]:
                sweep.refused[at] += 1
                if member == 0 or sweep.refused[at] > spare:
                    continue
            sweep.open[still] = at
            still += 1
        if listening and still < before:
            listen(models, standing, member)
        if still == 0:
            bring_forward(standing.order, turn, 0)
        if spare == 0 and models.temperature > 0 and turn + 1 == check and check < members:
            check += max(4, check // 4)
            before, still = still, 0
            for number in range(before):
                at = sweep.open[number]
                recall(standing, sweep, at)
                if soft_bound(models, standing, turn + 1, sweep.least[at]) > sweep.bound[at]:
                    sweep.open[still] = at
                    still += 1
    for number in range(still):
        at = sweep.open[number]
        recall(standing, sweep, at)
        score = joint(models, standing)
        if score > sweep.bound[at]:
            sweep.score[at] = score


@kernel
def recall(standing, sweep, at):
    """What the members said of one of the values."""
    for member in range(standing.margins.shape[0]):
        standing.margins[member] = sweep.margins[at, member]


@kernel
def margin_at(models, standing, state, move, sweep, member, index, given, back, value, target):
    """By how much the member that is drawn prefers the target at a value of the feature."""
    forest, leaves, trees = models.forest, standing.leaves, -1 - models.position[member]
    grown, sums = forest.members[trees], leaves.sums
    rank = rank_of(forest, trees, index, reading_of(forest, index, value))
    known = rank >= 0
    for out in range(grown.outputs):
        sums[out] = sweep.sums[max(rank, 0), out]
        known = known and not (grown.probability and not (sums[out] > SURE_SHARE and sums[out] < 1 - SURE_SHARE))
    if known:
        return preferred(forest, grown, sums, target, models.odds) - models.margin
    count = 0
    if given != NO_FEATURE:
        move.features[0], move.values[0] = given, back
        count = 1
    move.features[count], move.values[count] = index, value
    move.counts[0] = count + 1
    return forest_margin(forest, leaves, state, move, trees, target, models.odds) - models.margin


@kernel
def draw(forest, leaves, sweep, state, member, swept, other, value):
    """Sum up the trees of a member between any two thresholds of the swept feature, where another one has moved."""
    grown, features, row = forest.members[member], forest.readings.shape[0], sweep.sums
    use = member * features + swept
    cuts = forest.first_cut[use + 1] - forest.first_cut[use]
    rank = leaves.rank[member]
    if other != NO_FEATURE:
        rank[other] = rank_of(forest, member, other, reading_of(forest, other, value))
    for at in range(cuts + 2):
        for out in range(grown.outputs):
            row[at, out] = 0.0
    for out in range(grown.outputs):
        row[0, out] = leaves.totals[grown.first_total + out]
    leaves.turn[0] += 1
    for at in range(forest.first_use[use], forest.first_use[use + 1]):
        tree = forest.uses[at]
        leaves.stamp[tree] = leaves.turn[0]
        for out in range(grown.outputs):
            row[0, out] -= forest.value[leaves.leaf[tree], out]
        draw_tree(forest, sweep, rank, grown.outputs, forest.roots[tree], swept, cuts)
    if other != NO_FEATURE:
        use = member * features + other
        for at in range(forest.first_use[use], forest.first_use[use + 1]):
            tree = forest.uses[at]
            if leaves.stamp[tree] != leaves.turn[0]:
                after = leaf_of(forest, forest.roots[tree], rank)
                for out in range(grown.outputs):
                    row[0, out] += forest.value[after, out] - forest.value[leaves.leaf[tree], out]
        rank[other] = rank_of(forest, member, other, reading_of(forest, other, state.value[other]))
    for at in range(1, cuts + 1):
        for out in range(grown.outputs):
            row[at, out] += row[at - 1, out]


@kernel
def draw_tree(forest, sweep, rank, outputs, root, swept, cuts):
    """Add the leaves of a tree that the swept feature can lead to, each where its thresholds begin, and less it where
    they end."""
    nodes, sets, row = forest.nodes, forest.sets, sweep.sums
    waiting, low, high = sweep.nodes, sweep.low, sweep.high
    waiting[0], low[0], high[0], count = root, 0, cuts, 1
    while count > 0:
        count -= 1
        node, begin, end = waiting[count], low[count], high[count]
        while nodes[node].feature >= 0:
            index, cut = nodes[node].feature, nodes[node].cut
            if index != swept:
                here = rank[index]
                if nodes[node].by_levels:
                    goes_left = sets[cut, here]
                else:
                    goes_left = here <= cut if here >= 0 else nodes[node].missing_left
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
