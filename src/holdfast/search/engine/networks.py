"""How sure networks and linear models are of a point, kept up to date while one feature after another moves.

The sums of every member's first layer are kept. A move costs the rows of weights that it changes and the layers above,
of those members that are asked. They are asked in the order of doubt: whoever refused last comes first. A rejection may
stop early, an acceptance asks everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.models.dense import Dense
from holdfast.search.engine.board import Floats, Integers, Records
from holdfast.search.engine.compiled import kernel

RELU, IDENTITY, TANH, LOGISTIC = range(4)
ACTIVATIONS = {"relu": RELU, "identity": IDENTITY, "tanh": TANH, "logistic": LOGISTIC}
LIGHT = 0.01  # a member that weighs less has no say in which way is up

MEMBER = np.dtype(
    [
        ("first_sum", np.int64),  # where its sums begin
        ("layers", np.int64),
        ("first_size", np.int64),  # in `sizes`: how many outputs each layer has
        ("first_weight", np.int64),  # in `weights`: of every layer above the first, its weights, then its biases
        ("activation", np.int64),
        ("log_sigmoid", np.bool_),  # of its outputs: each class against the rest
        ("first_group", np.int64),  # in `groups`: the class of each output
    ],
    align=True,
)
# How a column of the point enters the first layer: times one row of weights, or as one row for each of its levels.
INPUT = np.dtype(
    [("row", np.int64), ("levels", np.int64), ("shift", np.float64), ("scale", np.float64)],
    align=True,
)
Singles = NDArray[np.float32]


class Networks(NamedTuple):
    """The deployed model first, and the members beside it."""

    members: Records  # (k,) MEMBER
    inputs: Records  # (d,) INPUT
    first: Singles  # (r, h) weights of all first layers side by side
    start: Singles  # (h,) their biases
    sizes: Integers
    weights: Singles
    groups: Integers
    needed: int  # how many of the members must agree, the deployed one aside
    margin: float  # by how much each of them
    temperature: float


class Standing(NamedTuple):
    """What the networks say of where a person is, and room to ask them about a move."""

    sums: Singles  # (h,)
    margins: Floats  # (k,) of whoever was asked last
    order: Integers  # (k,) of doubt
    one: Singles  # (w,) a layer,
    other: Singles  # and the next
    trace: Singles  # (l, w) all layers of one member
    back: Singles  # (w,)
    slopes: Floats  # (r,) of the joint score by every row of weights
    sorted: Floats  # (k,)
    tally: Integers  # (2,) members and moves that were asked about


def networks_of(models: Sequence[Dense], needed: int, margin: float, temperature: float) -> Networks:
    """The deployed model, and the members beside it, of whom so many must agree."""
    inputs, rows = _inputs(models)
    widths = [model.biases[0].shape[0] for model in models]
    first = np.zeros((rows, sum(widths)), dtype=np.float32)
    members = np.zeros(len(models), dtype=MEMBER)
    sizes: list[int] = []
    weights: list[NDArray[Any]] = [np.zeros(0)]
    groups: list[int] = []
    begins = np.cumsum([0, *widths])
    for place, model in enumerate(models):
        upper = [part.ravel() for pair in zip(model.weights[1:], model.biases[1:], strict=True) for part in pair]
        members[place] = (
            begins[place],
            len(model.biases),
            len(sizes),
            sum(map(len, weights)),
            ACTIVATIONS[model.activation],
            model.log_sigmoid,
            len(groups),
        )
        _write_first(model, inputs, first[:, begins[place] : begins[place + 1]])
        sizes += [len(bias) for bias in model.biases]
        groups += list(model.classes)
        weights += upper
    return Networks(
        members,
        inputs,
        first,
        np.concatenate([model.biases[0] for model in models]).astype(np.float32),
        np.array(sizes, dtype=np.int64),
        np.concatenate(weights).astype(np.float32),
        np.array(groups, dtype=np.int64),
        needed,
        margin,
        temperature,
    )


def _inputs(models: Sequence[Dense]) -> tuple[Records, int]:
    """How each column enters, and how many rows of weights there are."""
    inputs, row = np.zeros(models[0].columns, dtype=INPUT), 0
    for column, record in enumerate(inputs):
        table = next((model.tables[column] for model in models if column in model.tables), None)
        record["row"] = row
        if table is not None:
            record["levels"], record["shift"], record["scale"] = len(table.rows), table.shift, table.scale
        row += max(1, int(record["levels"]))
    return inputs, row


def _write_first(model: Dense, inputs: Records, into: NDArray[np.float32]) -> None:
    for column, record in enumerate(inputs):
        rows = slice(record["row"], record["row"] + max(1, record["levels"]))
        if column in model.tables:
            into[rows] = model.tables[column].rows
        elif record["levels"]:
            levels = (np.arange(record["levels"]) - record["shift"]) / record["scale"]
            into[rows] = levels[:, None] * model.weights[0][column]
        else:
            into[rows] = model.weights[0][column]


def standing_of(networks: Networks) -> Standing:
    members, widest = len(networks.members), int(networks.sizes.max())
    deepest = int(networks.members["layers"].max())
    return Standing(
        np.zeros(networks.first.shape[1], np.float32),
        np.zeros(members),
        np.arange(members),
        np.zeros(widest, np.float32),
        np.zeros(widest, np.float32),
        np.zeros((deepest, widest), np.float32),
        np.zeros(widest, np.float32),
        np.zeros(networks.first.shape[0]),
        np.zeros(members),
        np.zeros(2, np.int64),
    )


# ---- one member ----


@kernel
def activated(value, activation):
    if activation == RELU:
        return value if value > 0 else np.float32(0)
    if activation == IDENTITY:
        return value
    if activation == TANH:
        return np.tanh(value)
    return np.float32(1) / (np.float32(1) + np.exp(-value))


@kernel
def log_sigmoid(value):
    return min(value, np.float32(0)) - np.log1p(np.exp(-abs(value)))


@kernel
def level_of(entering, value):
    """The level that a column counts."""
    level = int(np.rint(value * entering.scale + entering.shift))
    return min(max(level, 0), entering.levels - 1)


@kernel
def add_column(networks, column, before, after, begin, width, sums):
    """Add what the change of one column does to the sums of a member."""
    entering, first = networks.inputs[column], networks.first
    row = entering.row
    if entering.levels > 0:
        old, new = row + level_of(entering, before), row + level_of(entering, after)
        on, off = first[new, begin : begin + width], first[old, begin : begin + width]
        for unit in range(width):
            sums[unit] += on[unit] - off[unit]
        return
    change, rises = np.float32(after - before), first[row, begin : begin + width]
    for unit in range(width):
        sums[unit] += change * rises[unit]


@kernel
def margin_of(networks, member, target, now, following):
    """By how much a member prefers the target to every other class, from the sums of its first layer in ``now``."""
    own, weights = networks.members[member], networks.weights
    width, at = networks.sizes[own.first_size], own.first_weight
    for layer in range(1, own.layers):
        outputs = networks.sizes[own.first_size + layer]
        bias = at + width * outputs
        biases = weights[bias : bias + outputs]
        for out in range(outputs):
            following[out] = biases[out]
        for unit in range(width):
            value = activated(now[unit], own.activation)
            if value != 0:
                row = at + unit * outputs
                rises = weights[row : row + outputs]
                for out in range(outputs):
                    following[out] += value * rises[out]
        at, width = bias + outputs, outputs
        now, following = following, now
    best, rest = -np.inf, -np.inf
    for out in range(width):
        value = log_sigmoid(now[out]) if own.log_sigmoid else now[out]
        if networks.groups[own.first_group + out] == target:
            best = max(best, value)
        else:
            rest = max(rest, value)
    found = best - rest
    return found if found == found else -np.inf


@kernel
def asked(networks, standing, state, move, member, target):
    """The margin of a member after a move."""
    own = networks.members[member]
    begin, width = own.first_sum, networks.sizes[own.first_size]
    one, sums = standing.one, standing.sums[begin : begin + width]
    for unit in range(width):
        one[unit] = sums[unit]
    for turn in range(move.counts[1]):
        column = move.columns[turn]
        add_column(networks, column, state.point[column], move.after[turn], begin, width, standing.one)
    standing.tally[0] += 1
    return margin_of(networks, member, target, standing.one, standing.other)


# ---- all of them ----


@kernel
def begin_order(standing):
    """Nobody has refused yet."""
    for member in range(standing.order.shape[0]):
        standing.order[member] = member


@kernel
def sum_anew(networks, standing, point):
    """The sums of everybody's first layer, at a point."""
    sums, first, start = standing.sums, networks.first, networks.start
    for unit in range(start.shape[0]):
        sums[unit] = start[unit]
    for column in range(point.shape[0]):
        entering = networks.inputs[column]
        row, value = entering.row, np.float32(point[column])
        if entering.levels > 0:
            row, value = row + level_of(entering, point[column]), np.float32(1)
        if value != 0:
            for unit in range(start.shape[0]):
                sums[unit] += value * first[row, unit]


@kernel
def sure(networks, standing, state, move, target, bound):
    """How sure all of them are after a move, if that is above the bound; else some number that is not above it."""
    members = networks.members.shape[0]
    spare = members - 1 - networks.needed  # so many may refuse
    refused, least, check = 0, np.inf, 4
    standing.tally[1] += 1
    for turn in range(members):
        member = standing.order[turn]
        own = asked(networks, standing, state, move, member, target) - networks.margin
        standing.margins[member] = own
        least = min(least, own)
        if own <= bound:
            refused += 1
            if member == 0 or refused > spare:
                doubt(standing, turn)
                return own
        if spare == 0 and networks.temperature > 0 and turn + 1 == check and check < members:
            check *= 2
            if soft_bound(networks, standing, turn + 1, least) <= bound:
                return bound
    return joint(networks, standing)


@kernel
def doubt(standing, turn):
    """Whoever refused comes first from now on."""
    member = standing.order[turn]
    for place in range(turn, 0, -1):
        standing.order[place] = standing.order[place - 1]
    standing.order[0] = member


@kernel
def soft_bound(networks, standing, asked_so_far, least):
    """What the soft minimum is at most, from the members that were asked.

    Their spread about their own mean is at most that of all, so that the temperature in logits is at least tau.
    """
    total = 0.0
    for turn in range(asked_so_far):
        total += standing.margins[standing.order[turn]]
    mean, square = total / asked_so_far, 0.0
    for turn in range(asked_so_far):
        square += (standing.margins[standing.order[turn]] - mean) ** 2
    tau = networks.temperature * np.sqrt(square / standing.order.shape[0])
    if not (tau > 0 and tau < np.inf):
        return least
    soft = 0.0
    for turn in range(asked_so_far):
        soft += np.exp(-(standing.margins[standing.order[turn]] - least) / tau)
    return least - tau * np.log(soft)


@kernel
def joint(networks, standing):
    """How sure all of them are together, from everybody's margins; those that need not agree are left out."""
    lowest = counted_from(networks, standing)
    least = standing.margins[0]
    for member in range(1, standing.margins.shape[0]):
        if standing.margins[member] >= lowest:
            least = min(least, standing.margins[member])
    tau = spread_of(networks, standing, lowest)
    if not tau > 0 or not np.isfinite(least):
        return least
    soft = 0.0
    for member in range(standing.margins.shape[0]):
        if member == 0 or standing.margins[member] >= lowest:
            soft += np.exp(-(standing.margins[member] - least) / tau)
    return least - tau * np.log(soft)


@kernel
def counted_from(networks, standing):
    """The least margin of a member that counts, the deployed model aside."""
    members = standing.margins.shape[0] - 1
    spare = members - networks.needed
    if spare <= 0:
        return -np.inf
    # The (spare + 1)-th least: few may be left out, so it is found by insertion.
    count = 0
    for member in range(1, members + 1):
        value = standing.margins[member]
        if count <= spare or value < standing.sorted[spare]:
            place = min(count, spare)
            while place > 0 and standing.sorted[place - 1] > value:
                standing.sorted[place] = standing.sorted[place - 1]
                place -= 1
            standing.sorted[place] = value
            count += 1
    return standing.sorted[spare]


@kernel
def spread_of(networks, standing, lowest):
    """The temperature in logits; 0 for the hard minimum."""
    if networks.temperature <= 0:
        return 0.0
    total, count = 0.0, 0
    for member in range(standing.margins.shape[0]):
        value = standing.margins[member]
        if (member == 0 or value >= lowest) and np.isfinite(value):
            total += value
            count += 1
    if count == 0:
        return 0.0
    mean, square = total / count, 0.0
    for member in range(standing.margins.shape[0]):
        value = standing.margins[member]
        if (member == 0 or value >= lowest) and np.isfinite(value):
            square += (value - mean) ** 2
    return networks.temperature * np.sqrt(square / count)


# ---- which way is up ----


@kernel
def lead(networks, standing, state, move, target):
    """How sure all are of where a person is, and the slope of that by every row of weights, in ``standing.slopes``."""
    move.counts[1] = 0
    now = sure(networks, standing, state, move, target, -np.inf)
    for row in range(standing.slopes.shape[0]):
        standing.slopes[row] = 0.0
    lowest = counted_from(networks, standing)
    tau = spread_of(networks, standing, lowest)
    least, who = np.inf, 0
    for member in range(standing.margins.shape[0]):
        if (member == 0 or standing.margins[member] >= lowest) and standing.margins[member] < least:
            least, who = standing.margins[member], member
    if not tau > 0 or not np.isfinite(least):
        add_slopes(networks, standing, who, target, 1.0)
    else:
        total = 0.0
        for member in range(standing.margins.shape[0]):
            if member == 0 or standing.margins[member] >= lowest:
                total += np.exp(-(standing.margins[member] - least) / tau)
        for member in range(standing.margins.shape[0]):
            if member == 0 or standing.margins[member] >= lowest:
                share = np.exp(-(standing.margins[member] - least) / tau) / total
                if share > LIGHT:
                    add_slopes(networks, standing, member, target, share)
    for place in range(standing.order.shape[0]):
        if standing.order[place] == who:
            doubt(standing, place)
            break
    return now


@kernel
def add_slopes(networks, standing, member, target, share):
    """Add the gradient of a member's margin by every row of the first layer's weights, times its share."""
    own, weights, first, slopes = networks.members[member], networks.weights, networks.first, standing.slopes
    trace, back, other_back = standing.trace, standing.one, standing.other
    width, at = networks.sizes[own.first_size], own.first_weight
    for unit in range(width):
        trace[0, unit] = standing.sums[own.first_sum + unit]
    for layer in range(1, own.layers):
        outputs = networks.sizes[own.first_size + layer]
        bias = at + width * outputs
        for out in range(outputs):
            trace[layer, out] = weights[bias + out]
        for unit in range(width):
            value = activated(trace[layer - 1, unit], own.activation)
            if value != 0:
                row = at + unit * outputs
                rises, sums = weights[row : row + outputs], trace[layer]
                for out in range(outputs):
                    sums[out] += value * rises[out]
        at, width = bias + outputs, outputs
    top = own.layers - 1
    best, rest, best_at, rest_at = -np.inf, -np.inf, 0, 0
    for out in range(width):
        value = log_sigmoid(trace[top, out]) if own.log_sigmoid else trace[top, out]
        back[out] = 0
        if networks.groups[own.first_group + out] == target:
            if value > best:
                best, best_at = value, out
        elif value > rest:
            rest, rest_at = value, out
    back[best_at] = activated(-trace[top, best_at], LOGISTIC) if own.log_sigmoid else 1
    back[rest_at] = -activated(-trace[top, rest_at], LOGISTIC) if own.log_sigmoid else -1
    for layer in range(top, 0, -1):
        outputs, inputs = networks.sizes[own.first_size + layer], networks.sizes[own.first_size + layer - 1]
        at -= inputs * outputs + outputs
        for unit in range(inputs):
            total, value = np.float32(0), trace[layer - 1, unit]
            if own.activation != RELU or value > 0:
                row = at + unit * outputs
                rises = weights[row : row + outputs]
                for out in range(outputs):
                    total += back[out] * rises[out]
                if own.activation == TANH:
                    total *= np.float32(1) - np.tanh(value) ** 2
                elif own.activation == LOGISTIC:
                    level = activated(value, LOGISTIC)
                    total *= level * (np.float32(1) - level)
            other_back[unit] = total
        back, other_back = other_back, back
    begin, width = own.first_sum, networks.sizes[own.first_size]
    for row in range(first.shape[0]):
        total, rises = np.float32(0), first[row, begin : begin + width]
        for unit in range(width):
            total += back[unit] * rises[unit]
        slopes[row] += share * total


@kernel
def expected(networks, standing, state, move):
    """What a move changes by the slopes."""
    found = 0.0
    for turn in range(move.counts[1]):
        column = move.columns[turn]
        found += slope_along(networks, standing, column, state.point[column], move.after[turn])
    return found


@kernel
def slope_along(networks, standing, column, before, after):
    """What the change of one column adds by the slopes."""
    entering = networks.inputs[column]
    if entering.levels > 0:
        new, old = level_of(entering, after), level_of(entering, before)
        return standing.slopes[entering.row + new] - standing.slopes[entering.row + old]
    return (after - before) * standing.slopes[entering.row]
