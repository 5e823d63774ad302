"""What networks and linear models say of a move: the first layer's sums are kept, and changed by what moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.models.parts import Dense
from holdfast.search.engine.board import Floats, Integers, Records
from holdfast.search.engine.compiled import kernel, record

RELU, IDENTITY, TANH, LOGISTIC = range(4)
ACTIVATIONS = {"relu": RELU, "identity": IDENTITY, "tanh": TANH, "logistic": LOGISTIC}

MEMBER = record(
    first_sum=np.int64,  # where its sums begin
    layers=np.int64,
    first_size=np.int64,  # in `sizes`: how many outputs each layer has
    first_weight=np.int64,  # in `weights`: of every layer above the first, its weights, then its biases
    activation=np.int64,
    log_sigmoid=np.bool_,  # of its outputs: each class against the rest
    first_group=np.int64,  # in `groups`: the class of each output
)
# How a column of the point enters the first layer: times one row of weights, or as one row for each of its levels.
INPUT = record(row=np.int64, levels=np.int64, shift=np.float64, scale=np.float64)
Singles = NDArray[np.float32]


class Networks(NamedTuple):
    """The layers of several models."""

    members: Records  # (k,) MEMBER
    inputs: Records  # (d,) INPUT
    first: Singles  # (r, h) weights of all first layers side by side
    start: Singles  # (h,) their biases
    sizes: Integers
    weights: Singles
    groups: Integers


class Layers(NamedTuple):
    """The sums of all first layers where a person is, and room to ask about a move."""

    sums: Singles  # (h,)
    current: Singles  # (w,) a layer,
    following: Singles  # and the next
    trace: Singles  # (l, w) all layers of one member
    slopes: Floats  # (r,) of the joint score by every row of weights


def networks_of(models: Sequence[Dense], columns: int) -> Networks:
    """The layers of several models of so many columns."""
    inputs, rows = _inputs(models, columns)
    widths = [model.biases[0].shape[0] for model in models]
    first = np.zeros((rows, sum(widths)), dtype=np.float32)
    members = np.zeros(len(models), dtype=MEMBER)
    sizes: list[int] = []
    weights: list[NDArray[Any]] = [np.zeros(0)]
    groups: list[int] = []
    begins = np.cumsum([0, *widths])
    for member, model in enumerate(models):
        upper = [part.ravel() for pair in zip(model.weights[1:], model.biases[1:], strict=True) for part in pair]
        members[member] = (
            begins[member],
            len(model.biases),
            len(sizes),
            sum(map(len, weights)),
            ACTIVATIONS[model.activation],
            model.log_sigmoid,
            len(groups),
        )
        _write_first(model, inputs, first[:, begins[member] : begins[member + 1]])
        sizes += [len(bias) for bias in model.biases]
        groups += list(model.classes)
        weights += upper
    return Networks(
        members,
        inputs,
        first,
        np.concatenate([np.zeros(0), *(model.biases[0] for model in models)]).astype(np.float32),
        np.array(sizes, dtype=np.int64),
        np.concatenate(weights).astype(np.float32),
        np.array(groups, dtype=np.int64),
    )


def _inputs(models: Sequence[Dense], columns: int) -> tuple[Records, int]:
    """How each column enters, and how many rows of weights there are."""
    inputs, row = np.zeros(columns, dtype=INPUT), 0
    for column, entering in enumerate(inputs):
        table = next((model.tables[column] for model in models if column in model.tables), None)
        entering["row"] = row
        if table is not None:
            entering["levels"], entering["shift"], entering["scale"] = len(table.rows), table.shift, table.scale
        row += max(1, int(entering["levels"]))
    return inputs, row


def _write_first(model: Dense, inputs: Records, into: NDArray[np.float32]) -> None:
    for column, entering in enumerate(inputs):
        rows = slice(entering["row"], entering["row"] + max(1, entering["levels"]))
        if column in model.tables:
            into[rows] = model.tables[column].rows
        elif entering["levels"]:
            levels = (np.arange(entering["levels"]) - entering["shift"]) / entering["scale"]
            into[rows] = levels[:, None] * model.weights[0][column]
        else:
            into[rows] = model.weights[0][column]


def layers_of(networks: Networks) -> Layers:
    widest, deepest = int(networks.sizes.max(initial=1)), int(networks.members["layers"].max(initial=1))
    return Layers(
        np.zeros(networks.first.shape[1], np.float32),
        np.zeros(widest, np.float32),
        np.zeros(widest, np.float32),
        np.zeros((deepest, widest), np.float32),
        np.zeros(networks.first.shape[0]),
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
def next_layer(weights, at, width, outputs, activation, before, after):
    """Compute a layer whose weights, and behind them its biases, begin ``at``; where those of the next one begin."""
    bias = at + width * outputs
    biases = weights[bias : bias + outputs]
    for out in range(outputs):
        after[out] = biases[out]
    for unit in range(width):
        value = activated(before[unit], activation)
        if value != 0:
            row = at + unit * outputs
            rises = weights[row : row + outputs]
            for out in range(outputs):
                after[out] += value * rises[out]
    return bias + outputs


@kernel
def margin_of(networks, member, target, now, following):
    """By how much a member prefers the target to every other class, from the sums of its first layer in ``now``."""
    network, weights = networks.members[member], networks.weights
    width, at = networks.sizes[network.first_size], network.first_weight
    for layer in range(1, network.layers):
        outputs = networks.sizes[network.first_size + layer]
        at = next_layer(weights, at, width, outputs, network.activation, now, following)
        now, following, width = following, now, outputs
    best, rival = -np.inf, -np.inf
    for out in range(width):
        value = log_sigmoid(now[out]) if network.log_sigmoid else now[out]
        if networks.groups[network.first_group + out] == target:
            best = max(best, value)
        else:
            rival = max(rival, value)
    found = best - rival
    return found if found == found else -np.inf


@kernel
def network_margin(networks, layers, state, move, member, target):
    """The margin of a member after a move."""
    network = networks.members[member]
    begin, width = network.first_sum, networks.sizes[network.first_size]
    current, sums = layers.current, layers.sums[begin : begin + width]
    for unit in range(width):
        current[unit] = sums[unit]
    for turn in range(move.counts[1]):
        column = move.columns[turn]
        add_column(networks, column, state.point[column], move.after[turn], begin, width, layers.current)
    return margin_of(networks, member, target, layers.current, layers.following)


@kernel
def sum_anew(networks, layers, point):
    """The sums of everybody's first layer, at a point."""
    sums, first, start = layers.sums, networks.first, networks.start
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


# ---- which way is up ----


@kernel
def add_slopes(networks, layers, member, target, share):
    """Add the gradient of a member's margin by every row of the first layer's weights, times its share."""
    network, weights, first, slopes = networks.members[member], networks.weights, networks.first, layers.slopes
    trace, back, other_back = layers.trace, layers.current, layers.following
    width, at = networks.sizes[network.first_size], network.first_weight
    for unit in range(width):
        trace[0, unit] = layers.sums[network.first_sum + unit]
    for layer in range(1, network.layers):
        outputs = networks.sizes[network.first_size + layer]
        at = next_layer(weights, at, width, outputs, network.activation, trace[layer - 1], trace[layer])
        width = outputs
    top = network.layers - 1
    best, rival, best_at, rival_at = -np.inf, -np.inf, 0, 0
    for out in range(width):
        value = log_sigmoid(trace[top, out]) if network.log_sigmoid else trace[top, out]
        back[out] = 0
        if networks.groups[network.first_group + out] == target:
            if value > best:
                best, best_at = value, out
        elif value > rival:
            rival, rival_at = value, out
    back[best_at] = activated(-trace[top, best_at], LOGISTIC) if network.log_sigmoid else 1
    back[rival_at] = -activated(-trace[top, rival_at], LOGISTIC) if network.log_sigmoid else -1
    for layer in range(top, 0, -1):
        outputs, inputs = networks.sizes[network.first_size + layer], networks.sizes[network.first_size + layer - 1]
        at -= inputs * outputs + outputs
        for unit in range(inputs):
            total, value = np.float32(0), trace[layer - 1, unit]
            if network.activation != RELU or value > 0:
                row = at + unit * outputs
                rises = weights[row : row + outputs]
                for out in range(outputs):
                    total += back[out] * rises[out]
                if network.activation == TANH:
                    total *= np.float32(1) - np.tanh(value) ** 2
                elif network.activation == LOGISTIC:
                    level = activated(value, LOGISTIC)
                    total *= level * (np.float32(1) - level)
            other_back[unit] = total
        back, other_back = other_back, back
    begin, width = network.first_sum, networks.sizes[network.first_size]
    for row in range(first.shape[0]):
        total, rises = np.float32(0), first[row, begin : begin + width]
        for unit in range(width):
            total += back[unit] * rises[unit]
        slopes[row] += share * total


@kernel
def slope_along(networks, layers, column, before, after):
    """What the change of one column adds by the slopes."""
    entering = networks.inputs[column]
    if entering.levels > 0:
        new, old = level_of(entering, after), level_of(entering, before)
        return layers.slopes[entering.row + new] - layers.slopes[entering.row + old]
    return (after - before) * layers.slopes[entering.row]
