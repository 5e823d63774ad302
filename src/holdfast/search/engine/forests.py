"""What trees say of a move: a change of one feature asks the trees that use it, and nobody else.

Trees compare a column as a row holds it, not the raw number: of every threshold the largest encoded value that goes
left is looked up once. So a kernel and the user's model agree on every value, however either of them rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from holdfast.models.parts import Grown
from holdfast.search.engine.board import Board, Flags, Floats, Integers, Records
from holdfast.search.engine.compiled import kernel, record
from holdfast.search.engine.sorting import count_below
from holdfast.tabular.encoding import Encoding

if TYPE_CHECKING:
    from holdfast.models.trees.ensemble import Ensemble

KEPT = 2  # forests for each deployed model: people who ask one by one are asked about with the same members
INSIDE = 1e-3  # of a column's scale, how far behind a threshold a value may lie to be a round number,
PART = 0.1  # and of the way to the next threshold
DECIMALS = 12
WINDOW = 6  # neighbouring numbers among which rounding has moved a threshold, to either side
LEAST_SHARE = 1e-12  # of a class, so that its logarithm is a number

# Small, so that the trees of a member stay in the processor's cache.
NODE = record(
    feature=np.int16,  # -1 at a leaf
    by_levels=np.bool_,
    missing_left=np.bool_,
    cut=np.int32,  # the index of the threshold among the cuts of the member and the feature; or in `sets`
    left=np.int32,
    right=np.int32,
)
GROWN = record(
    first_tree=np.int64,
    end_tree=np.int64,
    outputs=np.int64,
    first_total=np.int64,
    first_class=np.int64,  # in `classes`: of each logit
    probability=np.bool_,  # whether the sums are shares rather than logits
)
READING = record(
    by_levels=np.bool_,  # its values are levels, in one column each or in one for all
    counts=np.bool_,  # a column that counts levels: as its level, and not as a number
    levels=np.int64,
    shift=np.float64,
    scale=np.float64,
    code=np.float64,  # that says "missing"; NaN where nothing does
    below=np.float64,  # the known numbers that are nearest to it
    above=np.float64,
)


class Forest(NamedTuple):
    """The trees of several models, one after another."""

    members: Records  # (k,) GROWN
    nodes: Records  # NODE
    sets: Flags
    value: Floats  # (nodes, outputs)
    roots: Integers  # (t,)
    base: Floats  # of all members' outputs, one after another
    classes: Integers
    readings: Records  # (f,) READING
    first_use: Integers  # (k · f + 1,) the trees of a member that use a feature
    uses: Integers
    first_edge: Integers  # (f + 1,) the thresholds of a feature, all members' together
    edges: Floats  # the largest encoded value to the left of each,
    below: Floats  # the largest that a person may have there; NaN where there is none,
    above: Floats  # and the smallest to the right
    first_member_edge: Integers  # (k + 1,) which of them each member has
    member_edges: Integers
    first_cut: Integers  # (k · f + 1,) the thresholds of a member and a feature, in order
    cuts: Floats  # the largest encoded value to the left of each
    most_cuts: int
    most_nodes: int  # of a model
    class_count: int


class Leaves(NamedTuple):
    """Where a person is in every tree, and room to ask about a move."""

    rank: Integers  # (k, f) the person as the trees of a member read them; see `rank_of`
    leaf: Integers  # (t,)
    totals: Floats  # as `Forest.base`
    sums: Floats  # of one member
    stamp: Integers  # (t,) the last turn in which a tree was asked
    turn: Integers  # (1,)
    heard: Flags  # (k,) members whose thresholds are worth a look
    active: Flags  # (e,)


# ---- from models ----


def forest_of(parts: Sequence[Grown], board: Board) -> Forest:
    """The trees of several models that were read with the same encoding, over the features of a board."""
    if not parts:
        return _nothing(len(board.features))
    kept = _FORESTS.setdefault(parts[0].ensemble, {})
    models = tuple((part.ensemble, part.classes) for part in parts)
    key = models, board.single, *(records.tobytes() for records in (board.features, board.gaps, board.codes))
    if key not in kept:
        while len(kept) >= KEPT:
            kept.pop(next(iter(kept)))
        kept[key] = _forest(parts, board)
    return kept[key]


_FORESTS: WeakKeyDictionary[Ensemble, dict[tuple[Any, ...], Forest]] = WeakKeyDictionary()


def _forest(parts: Sequence[Grown], board: Board) -> Forest:
    features = len(board.features)
    encoding = parts[0].ensemble.encoding
    at_column = {int(feature["column"]): index for index, feature in enumerate(board.features)}
    index_of = np.array([at_column[columns.start] for _, columns in encoding.places])
    edges = _joint_edges([part.ensemble.edges for part in parts], encoding, index_of, features)
    boundaries = _boundaries(encoding, edges, index_of, board)
    readings = _readings(encoding, board, index_of)
    first_edge = np.cumsum([0, *map(len, edges)])
    members, nodes, member_edges, uses, cuts = np.zeros(len(parts), GROWN), [], [], [], []
    start, tree, total, label, level = 0, 0, 0, 0, 0
    for number, part in enumerate(parts):
        trees = part.ensemble
        members[number] = (
            tree, tree + len(trees.roots), len(trees.base), total, label, trees.link == "probability",
        )  # fmt: skip
        split, used, ends = _nodes(trees, index_of, edges, boundaries, first_edge)
        cuts += ends
        split["left"] += start
        split["right"] += start
        split["cut"] += np.where(split["by_levels"], level, 0)
        nodes.append(split)
        member_edges.append(used)
        uses += [users + tree for users in _users(trees, index_of, features)]
        start, tree, total = start + len(split), tree + len(trees.roots), total + len(trees.base)
        label, level = label + len(part.classes), level + len(trees.sets)
    outputs, widest = max(len(part.ensemble.base) for part in parts), max(p.ensemble.sets.shape[1] for p in parts)
    starts = np.cumsum([0, *(len(part.ensemble.feature) for part in parts)])
    beside = [_beside(board, index, boundaries[index], edges[index]) for index in range(features)]
    return Forest(
        members,
        np.concatenate(nodes),
        np.concatenate([_wide(part.ensemble.sets, widest) for part in parts]),
        np.concatenate([_wide(part.ensemble.value, outputs) for part in parts]),
        np.concatenate([part.ensemble.roots + at for part, at in zip(parts, starts, strict=False)]).astype(np.int64),
        np.concatenate([part.ensemble.base for part in parts]),
        np.concatenate([part.classes for part in parts]).astype(np.int64),
        readings,
        np.cumsum([0, *map(len, uses)]).astype(np.int64),
        np.concatenate(uses).astype(np.int64),
        first_edge.astype(np.int64),
        np.concatenate(boundaries),
        np.concatenate([below for below, _ in beside]),
        np.concatenate([above for _, above in beside]),
        np.cumsum([0, *map(len, member_edges)]).astype(np.int64),
        np.concatenate(member_edges).astype(np.int64),
        np.cumsum([0, *map(len, cuts)]).astype(np.int64),
        np.concatenate(cuts),
        max(map(len, cuts)),
        max(len(part.ensemble.feature) for part in parts),
        max(max(part.classes) for part in parts) + 1,
    )


def _nothing(features: int) -> Forest:
    none, numbers = np.zeros(0, np.int64), np.zeros(0)
    return Forest(
        np.zeros(0, GROWN), np.zeros(0, NODE), np.zeros((0, 1), np.bool_), np.zeros((0, 1)), none, numbers, none,
        np.zeros(0, READING), np.zeros(1, np.int64), none, np.zeros(features + 1, np.int64), numbers, numbers, numbers,
        np.zeros(1, np.int64), none, np.zeros(1, np.int64), numbers, most_cuts=0, most_nodes=0, class_count=0,
    )  # fmt: skip


def _joint_edges(
    edges_of_models: Sequence[tuple[Floats, ...]], encoding: Encoding, index_of: Integers, features: int
) -> list[Floats]:
    """The raw thresholds of every feature of the board, those of all models together."""
    edges = [np.zeros(0)] * features
    for number, (feature, _) in enumerate(encoding.places):
        if feature.is_numeric:
            edges[index_of[number]] = np.unique(np.concatenate([raw[number] for raw in edges_of_models]))
    return edges


def _boundaries(encoding: Encoding, edges: list[Floats], index_of: Integers, board: Board) -> list[Floats]:
    """Of every threshold, the largest encoded value that is decoded to a number that goes left."""
    import torch

    dtype = board.dtype
    most_edges = max(map(len, edges))
    tried = np.zeros((len(edges), most_edges, 2 * WINDOW + 1), dtype)  # neighbours of where a threshold should be
    for number, (feature, columns) in enumerate(encoding.places):
        raw = edges[index_of[number]]
        # A whole number is decoded to the nearest one: half of the way to the next decides.
        threshold = np.floor(raw) + 0.5 if feature.kind == "integer" else raw
        shift, scale = encoding.shift[columns.start], encoding.scale[columns.start]
        at = ((threshold - shift) / scale).astype(dtype)
        tried[index_of[number], : len(raw)] = _neighbours(at)
    rows = np.zeros((most_edges * (2 * WINDOW + 1), encoding.width), dtype)
    for number, (_, columns) in enumerate(encoding.places):
        if len(edges[index_of[number]]):
            rows[:, columns.start] = tried[index_of[number]].ravel()
    decoded = encoding.raw(torch.from_numpy(rows)) if most_edges else np.zeros((0, len(index_of)))
    found = [np.zeros(0)] * len(edges)
    for number, index in enumerate(index_of):
        count = len(edges[index])
        read = decoded[:, number].reshape(most_edges, -1)[:count] if count else np.zeros((0, 2 * WINDOW + 1))
        # A code for a missing value among them is read as no number: whatever lies beside it decides.
        left = ~(read > edges[index][:, None])
        last = np.where(left.any(1), left.shape[1] - 1 - left[:, ::-1].argmax(1), 0)
        found[index] = tried[index][np.arange(count), last].astype(np.float64)
    return found


def _neighbours(values: NDArray[Any]) -> NDArray[Any]:
    """(e,) -> (e, 2 · WINDOW + 1) the numbers on both sides, in order."""
    ways = []
    for end in (-np.inf, np.inf):
        steps = [values]
        for _ in range(WINDOW):
            steps.append(np.nextafter(steps[-1], values.dtype.type(end)))
        ways.append(steps)
    return np.stack([*ways[0][:0:-1], *ways[1]], axis=1)


def _readings(encoding: Encoding, board: Board, index_of: Integers) -> Records:
    readings = np.zeros(len(board.features), READING)
    readings["code"] = np.nan
    for number, (feature, _) in enumerate(encoding.places):
        index = index_of[number]
        board_feature, reading = board.features[index], readings[index]
        reading["by_levels"] = not feature.is_numeric
        if board_feature["is_group"]:
            continue
        reading["shift"], reading["scale"] = board_feature["shift"], board_feature["scale"]
        reading["counts"] = not feature.is_numeric
        reading["levels"] = 0 if feature.is_numeric else len(feature.values)
        if board_feature["first_code"] < board_feature["end_code"]:
            code = board.codes[board_feature["first_code"], None]
            below, above = _beside(board, index, code, code * board_feature["scale"] + board_feature["shift"])
            reading["code"], reading["below"], reading["above"] = code[0], below[0], above[0]
    return readings


def _nodes(
    trees: Any, index_of: Integers, edges: list[Floats], boundaries: list[Floats], first_edge: Integers
) -> tuple[Records, Integers, list[Floats]]:
    """The nodes of one model, which of the joint thresholds they have, and those of each feature by themselves."""
    nodes = np.zeros(len(trees.feature), NODE)
    nodes["feature"] = np.where(trees.feature >= 0, index_of[trees.feature], -1)
    nodes["left"], nodes["right"], nodes["missing_left"] = trees.left, trees.right, trees.missing_left
    used: list[Integers] = [np.zeros(0, np.int64)]
    cuts = [np.zeros(0)] * len(edges)
    for number, feature in enumerate(trees.features):
        splits = np.flatnonzero(trees.feature == number)
        split = trees.split[splits]
        if not feature.is_numeric:
            nodes["by_levels"][splits], nodes["cut"][splits] = True, split
            continue
        index, thresholds = index_of[number], trees.edges[number]
        joint = np.searchsorted(edges[index], thresholds)
        real = np.unique(joint[split[(split >= 0) & (split < len(thresholds))]])
        used.append(first_edge[index] + real)
        cuts[index] = np.unique(boundaries[index][real])
        # A split of -1 sends every number to the right, and one behind the last edge every number to the left.
        among = np.searchsorted(cuts[index], boundaries[index][joint])
        nodes["cut"][splits] = np.concatenate([among, [len(cuts[index]), -1]])[np.clip(split, -1, len(thresholds))]
    return nodes, np.concatenate(used), cuts


def _users(trees: Any, index_of: Integers, features: int) -> list[Integers]:
    """The trees that use each feature of the board."""
    node, tree = trees.roots, np.arange(len(trees.roots))
    used = np.zeros((features, len(trees.roots)), dtype=bool)
    while len(node):
        inner = trees.feature[node] >= 0
        node, tree = node[inner], tree[inner]
        used[index_of[trees.feature[node]], tree] = True
        node, first = np.unique(np.concatenate([trees.left[node], trees.right[node]]), return_index=True)
        tree = np.tile(tree, 2)[first]  # of a child that several nodes share, once
    return [np.flatnonzero(by_tree) for by_tree in used]


def _wide(rows: NDArray[Any], width: int) -> NDArray[Any]:
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))


# ---- the values beside a threshold ----


def _beside(board: Board, index: int, boundary: Floats, raw: Floats) -> tuple[Floats, Floats]:
    """The largest value to the left of each threshold that a person may have, and the smallest to the right."""
    feature = board.features[index]
    held = partial(_held, board)
    if feature["step"] > 0:
        step, shift, scale = (float(feature[name]) for name in ("step", "shift", "scale"))
        near = np.floor((boundary * scale + shift) / step)[:, None] + np.arange(-1, 3)
        values = held((near * step - shift) / scale)
        left = values <= boundary[:, None]
        rows = np.arange(len(boundary))
        last = np.where(left.any(1), values.shape[1] - 1 - left[:, ::-1].argmax(1), 0)
        below = values[rows, last]
        above = values[rows, np.minimum(last + 1, values.shape[1] - 1)]
        above = np.where(above > boundary, above, np.nan)
        below = np.where(below <= boundary, below, np.nan)
        grain = step / scale
    else:
        below, above = _round_numbers(feature, boundary, raw, board)
        grain = INSIDE
    for first, second in board.gaps[feature["first_gap"] : feature["end_gap"]]:
        slack = feature["slack"]
        inside_below = (first + slack < below) & (below < second - slack)
        inside_above = (first + slack < above) & (above < second - slack)
        below, above = np.where(inside_below, first, below), np.where(inside_above, second, above)
    for code in board.codes[feature["first_code"] : feature["end_code"]]:
        below = np.where(below.astype(np.float32) == np.float32(code), held(below - grain), below)
        above = np.where(above.astype(np.float32) == np.float32(code), held(above + grain), above)
    return below, above


def _held(board: Board, values: NDArray[Any]) -> Floats:
    """Numbers as a point holds them."""
    return values.astype(board.dtype).astype(np.float64)


def _round_numbers(feature: Any, boundary: Floats, raw: Floats, board: Board) -> tuple[Floats, Floats]:
    """Numbers of few decimals near the thresholds: 3.43 rather than 3.4217001."""
    shift, scale = float(feature["shift"]), float(feature["scale"])
    width = np.diff(raw, prepend=-np.inf, append=np.inf)
    low, high = (np.minimum(INSIDE * scale, PART * part) for part in (width[:-1], width[1:]))
    below = _held(board, (_rounded(raw, -low, np.floor) - shift) / scale)
    above = _held(board, (_rounded(np.nextafter(raw, np.inf), high, np.ceil) - shift) / scale)
    beyond = np.nextafter(boundary.astype(board.dtype), board.dtype(np.inf)).astype(np.float64)
    return np.where(below <= boundary, below, boundary), np.where(above > boundary, above, beyond)


def _rounded(ends: Floats, room: Floats, towards: Any) -> Floats:
    """Near each end the number of fewest decimals, ``room`` away from it at most, on the side that room is on."""
    best = ends.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for decimals in range(DECIMALS, -1, -1):
            shorter = towards(ends * 10.0**decimals) / 10.0**decimals
            away = (shorter - ends) * np.sign(room)
            best = np.where((away >= 0) & (away <= np.abs(room)), shorter, best)
    return best


def leaves_of(forest: Forest) -> Leaves:
    trees, members = len(forest.roots), len(forest.members)
    return Leaves(
        np.zeros((members, len(forest.readings)), np.int64),
        np.zeros(trees, np.int64),
        np.zeros(len(forest.base)),
        np.zeros(max(1, forest.value.shape[1])),
        np.zeros(trees, np.int64),
        np.zeros(1, np.int64),
        np.zeros(members, np.bool_),
        np.zeros(len(forest.edges), np.bool_),
    )


# ---- kernels ----


@kernel
def reading_of(forest, index, value):
    """A value as trees read it: NaN for a missing number, the index of a level."""
    reading = forest.readings[index]
    missing = np.float64(np.float32(value)) == reading.code
    if not reading.counts:
        return np.nan if missing else value
    if missing:
        return np.float64(reading.levels)
    return min(max(np.rint(value * reading.scale + reading.shift), 0.0), reading.levels - 1.0)


@kernel
def rank_of(forest, member, index, read):
    """How many of a member's thresholds of a feature a number exceeds, -1 for a missing one; a level is itself."""
    if read != read:
        return np.int64(-1)
    if forest.readings[index].by_levels:
        return np.int64(read)
    use = member * forest.readings.shape[0] + index
    first = forest.first_cut[use]
    return count_below(forest.cuts, first, forest.first_cut[use + 1] - first, read)


@kernel
def leaf_of(forest, node, rank):
    """The leaf below a node that a person comes to."""
    nodes, sets = forest.nodes, forest.sets
    while nodes[node].feature >= 0:
        here, cut = rank[nodes[node].feature], nodes[node].cut
        goes_left = sets[cut, here] if nodes[node].by_levels else here <= cut if here >= 0 else nodes[node].missing_left
        node = nodes[node].left if goes_left else nodes[node].right
    return node


@kernel
def stand(forest, leaves, state):
    """Find the leaves of everybody's trees anew."""
    for index in range(forest.readings.shape[0]):
        read = reading_of(forest, index, state.value[index])
        for member in range(forest.members.shape[0]):
            leaves.rank[member, index] = rank_of(forest, member, index, read)
    for member in range(forest.members.shape[0]):
        grown, rank = forest.members[member], leaves.rank[member]
        for tree in range(grown.first_tree, grown.end_tree):
            leaves.leaf[tree] = leaf_of(forest, forest.roots[tree], rank)
    sum_up(forest, leaves)


@kernel
def enter(forest, leaves, state, move, member, after):
    """Let a member read the features of a move as they are after it, or as they are."""
    for turn in range(move.counts[0]):
        index = move.features[turn]
        read = reading_of(forest, index, move.values[turn] if after else state.value[index])
        leaves.rank[member, index] = rank_of(forest, member, index, read)


@kernel
def follow_trees(forest, leaves, state, move):
    """The same after a move that was made: only of trees that use what has moved."""
    features = forest.readings.shape[0]
    for member in range(forest.members.shape[0]):
        enter(forest, leaves, state, move, member, True)
        rank = leaves.rank[member]
        for turn in range(move.counts[0]):
            use = member * features + move.features[turn]
            for at in range(forest.first_use[use], forest.first_use[use + 1]):
                tree = forest.uses[at]
                leaves.leaf[tree] = leaf_of(forest, forest.roots[tree], rank)
    sum_up(forest, leaves)


@kernel
def sum_up(forest, leaves):
    """Add up anew, so that no rounding adds up."""
    for at in range(leaves.totals.shape[0]):
        leaves.totals[at] = forest.base[at]
    for member in range(forest.members.shape[0]):
        grown = forest.members[member]
        for tree in range(grown.first_tree, grown.end_tree):
            leaf = leaves.leaf[tree]
            for out in range(grown.outputs):
                leaves.totals[grown.first_total + out] += forest.value[leaf, out]


@kernel
def forest_margin(forest, leaves, state, move, member, target, odds):
    """By how much the trees of a member prefer the target after a move."""
    grown, sums, features, rank = forest.members[member], leaves.sums, forest.readings.shape[0], leaves.rank[member]
    for out in range(grown.outputs):
        sums[out] = leaves.totals[grown.first_total + out]
    leaves.turn[0] += 1
    enter(forest, leaves, state, move, member, True)
    for turn in range(move.counts[0]):
        use = member * features + move.features[turn]
        for at in range(forest.first_use[use], forest.first_use[use + 1]):
            tree = forest.uses[at]
            if turn > 0 and leaves.stamp[tree] == leaves.turn[0]:
                continue
            leaves.stamp[tree] = leaves.turn[0]
            before, after = leaves.leaf[tree], leaf_of(forest, forest.roots[tree], rank)
            if after != before:
                for out in range(grown.outputs):
                    sums[out] += forest.value[after, out] - forest.value[before, out]
    enter(forest, leaves, state, move, member, False)
    return preferred(forest, grown, sums, target, odds)


@kernel
def preferred(forest, grown, sums, target, odds):
    """The margin, or the log-odds, that sums over trees give the target."""
    classes = forest.classes
    if grown.outputs == 1:
        raw = sums[0]
        if grown.probability:
            raw = np.log(min(max(raw, LEAST_SHARE), 1.0)) - np.log(min(max(1.0 - raw, LEAST_SHARE), 1.0))
        return raw if classes[grown.first_class + 1] == target else -raw
    wanted, highest, others = -np.inf, -np.inf, 0.0
    for label in range(forest.class_count):
        best = -np.inf
        for out in range(grown.outputs):
            if classes[grown.first_class + out] == label:
                raw = sums[out]
                best = max(best, np.log(min(max(raw, LEAST_SHARE), 1.0)) if grown.probability else raw)
        if label == target:
            wanted = best
        elif best > highest:
            others = others * np.exp(highest - best) + 1.0
            highest = best
        elif best > -np.inf:
            others += np.exp(best - highest)
    return wanted - highest - (np.log(others) if odds else 0.0)


@kernel
def hear(forest, leaves, member):
    """From now on the thresholds of a member are worth a look."""
    if not leaves.heard[member]:
        leaves.heard[member] = True
        for at in range(forest.first_member_edge[member], forest.first_member_edge[member + 1]):
            leaves.active[forest.member_edges[at]] = True


@kernel
def hear_nobody(leaves):
    for member in range(leaves.heard.shape[0]):
        leaves.heard[member] = False
    for edge in range(leaves.active.shape[0]):
        leaves.active[edge] = False
