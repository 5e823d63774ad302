"""One move: a feature or two set to other values, what relations demand beside them, and what it costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.search.engine.board import FINE, Board, Floats, Integers
from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.rules import Rules, Workspace, complete, workspace

TINY = 1e-9
ON_GRID = 1e-3  # of a step: what rounding does to a number on a grid


class State(NamedTuple):
    """Where a person is."""

    point: Floats  # (d,)
    value: Floats  # (f,) of each feature
    cost: Floats  # (f,)
    related: Floats  # (m,) the values that relations join


class Move(NamedTuple):
    """What changes in a state."""

    features: Integers  # (f,) the first counts[0] of them change
    values: Floats  # (f,)
    prices: Floats  # (f,) what each of these features costs then
    columns: Integers  # (d,) the first counts[1]
    after: Floats  # (d,)
    counts: Integers  # (2,)
    related: Floats  # (m,) after the move
    kept: np.ndarray  # (m,) bool
    room: Workspace


def state_of(board: Board) -> State:
    features, columns = len(board.features), len(board.columns)
    return State(np.zeros(columns), np.zeros(features), np.zeros(features), np.zeros(len(board.feature_of_related)))


def move_of(board: Board, rules: Rules) -> Move:
    features, columns, related = len(board.features), len(board.columns), len(board.feature_of_related)
    return Move(
        np.zeros(2 * features + 2, np.int64),
        np.zeros(2 * features + 2),
        np.zeros(2 * features + 2),
        np.zeros(2 * columns + 4, np.int64),
        np.zeros(2 * columns + 4),
        np.zeros(2, np.int64),
        np.zeros(related),
        np.zeros(related, np.bool_),
        workspace(rules),
    )


# ---- values of a number ----


@kernel
def rounded(board, value):
    """As a point holds it."""
    return np.float64(np.float32(value)) if board.single else value


@kernel
def number_at(board, feature, limits, grid_index):
    """The value that is so many steps up its grid."""
    if feature.step > 0:
        return rounded(board, (grid_index * feature.step - feature.shift) / feature.scale)
    return rounded(board, limits.low + (limits.high - limits.low) * (grid_index / FINE))


@kernel
def index_of(feature, limits, value):
    """The index of a value on its grid, or nearest to it."""
    if feature.step > 0:
        return int(np.rint((value * feature.scale + feature.shift) / feature.step))
    width = limits.high - limits.low
    return int(np.rint((value - limits.low) / width * FINE)) if width > 0 else 0


@kernel
def nearest_index(feature, limits, value):
    """The same of the nearest value that a person may have."""
    return min(max(index_of(feature, limits, value), limits.first), limits.last)


@kernel
def is_open(board, feature, value):
    """Whether a number lies in no gap and is no code for a missing value."""
    for at in range(feature.first_gap, feature.end_gap):
        gap = board.gaps[at]
        if gap.low + feature.slack < value and value < gap.high - feature.slack:
            return False
    for at in range(feature.first_code, feature.end_code):  # noqa: SIM110
        if np.float64(np.float32(value)) == board.codes[at]:
            return False
    return True


@kernel
def allows(world, row, index, value):
    """Whether a person may have this value of a feature, moved there by a relation or not."""
    feature, limits = world.board.features[index], world.persons.ranges[row, index]
    if value == limits.home:
        return True
    if not (limits.free or feature.follows):
        return False
    if feature.is_group:
        return world.persons.levels[row, feature.group, int(value)]
    noise = feature.slack + 5e-7 * abs(value)
    if not (limits.low - noise <= value and value <= limits.high + noise):
        return False
    if feature.step > 0:
        steps = (value * feature.scale + feature.shift) / feature.step
        if abs(steps - np.rint(steps)) > ON_GRID + 5e-7 * abs(value) * feature.scale / feature.step:
            return False
    return is_open(world.board, feature, value)


# ---- prices ----


@kernel
def share_of(board, column, value):
    """The share of people below a value; see `holdfast.tabular.shares`."""
    parts = board.quantiles.shape[1] - 1
    first = 0
    while first <= parts and board.quantiles[column, first] < value:
        first += 1
    after = first
    while after <= parts and board.quantiles[column, after] == value:
        after += 1
    if first < after:
        return (first + after - 1) / (2 * parts)
    low, high = board.quantiles[column, 0], board.quantiles[column, parts]
    if first == 0 or first > parts:
        width = high - low if high > low else 1.0
        return (value - low) / width if first == 0 else 1 + (value - high) / width
    low, high = board.quantiles[column, first - 1], board.quantiles[column, first]
    return (first - 1 + (value - low) / (high - low if high > low else 1.0)) / parts


@kernel
def powered(board, length):
    return length if board.norm == 1 else length * length


@kernel
def price(world, row, index, value):
    """What it costs a person to have this value of a feature."""
    board, persons = world.board, world.persons
    feature, home = board.features[index], persons.ranges[row, index].home
    if value == home:
        return 0.0
    by_share = board.quantiles.shape[1] > 0
    if feature.is_group:
        total, passed_home, passed_there = 0.0, 0.0, 0.0
        if by_share:  # a changed level counts 1, shared out among its columns
            if home < feature.size:
                passed_home = board.columns[board.columns_of_groups[feature.first + int(home)]].passed
            if value < feature.size:
                passed_there = board.columns[board.columns_of_groups[feature.first + int(value)]].passed
        for turn in range(2):
            level = home if turn == 0 else value
            if level < feature.size:
                column = board.columns_of_groups[feature.first + int(level)]
                length = board.columns[column].on - board.columns[column].off
                if by_share:
                    each = passed_home + passed_there
                    length = board.columns[column].passed * (
                        (1 + abs(passed_there - passed_home) / each) / 2 if each > 0 else 1.0
                    )
                total += powered(board, length * persons.weight[row, column])
        return total
    column = feature.column
    length = abs(value - home)
    if by_share:
        length = abs(share_of(board, column, value) - share_of(board, column, home))
    return powered(board, length * persons.weight[row, column])


# ---- a state, and moves from it ----


@kernel
def place_at(world, row, state, point):
    """Put a person at a valid point."""
    board = world.board
    for column in range(state.point.shape[0]):
        state.point[column] = point[column]
    for index in range(board.features.shape[0]):
        feature = board.features[index]
        value = point[feature.column]
        if feature.is_group:
            value = np.float64(feature.size)
            for level in range(feature.size):
                column = board.columns_of_groups[feature.first + level]
                if point[column] > (board.columns[column].on + board.columns[column].off) / 2:
                    value = np.float64(level)
        state.value[index] = value
        state.cost[index] = price(world, row, index, value)
        if feature.related >= 0:
            state.related[feature.related] = related_value(world, row, index, value)


@kernel
def related_value(world, row, index, value):
    """A value as relations read it."""
    feature = world.board.features[index]
    if value == world.persons.ranges[row, index].home:
        return world.persons.values[row, feature.related]  # which may be missing
    if feature.is_group:
        return value
    number = value * feature.scale + feature.shift
    if feature.step > 0:
        steps = np.rint(number / feature.step)
        if abs(number / feature.step - steps) <= ON_GRID + 1e-6 * (abs(number) + abs(feature.shift)) / feature.step:
            return steps * feature.step
    return number


@kernel
def stay(room):
    """The move that changes nothing."""
    room.move.counts[0] = 0
    room.move.counts[1] = 0


@kernel
def move_one(world, room, row, feature, value):
    """Write down the move that sets a feature, with all that relations demand; False where that cannot be."""
    stay(room)
    add_feature(world, room, row, feature, value)
    return joined_by_rules(world, room, row)


@kernel
def move_two(world, room, row, first, first_value, second, second_value):
    """The same of two features."""
    stay(room)
    add_feature(world, room, row, first, first_value)
    add_feature(world, room, row, second, second_value)
    return joined_by_rules(world, room, row)


@kernel
def joined_by_rules(world, room, row):
    """Complete what relations join; False where that cannot be, or a person may not have it."""
    board, persons, state, move = world.board, world.persons, room.state, room.move
    joined = False
    for turn in range(move.counts[0]):
        joined = joined or board.features[move.features[turn]].related >= 0
    if not joined:
        return True
    for number in range(move.related.shape[0]):
        move.related[number] = state.related[number]
        move.kept[number] = False
    for turn in range(move.counts[0]):
        index = move.features[turn]
        if board.features[index].related >= 0:
            joined_value = board.features[index].related
            move.related[joined_value] = related_value(world, row, index, move.values[turn])
            move.kept[joined_value] = True
    if not complete(
        world.rules,
        move.related,
        persons.values[row],
        move.kept,
        persons.lower[row],
        persons.upper[row],
        persons.movable[row],
        move.room,
    ):
        return False
    for number in range(move.related.shape[0]):
        after = move.related[number]
        if move.kept[number] or after == state.related[number]:
            continue
        if np.isnan(after):
            if np.isnan(state.related[number]):
                continue
            return False
        index = board.feature_of_related[number]
        feature = board.features[index]
        if after == persons.values[row, number]:
            value = persons.ranges[row, index].home
        elif feature.is_group:
            value = after
        else:
            value = rounded(board, (after - feature.shift) / feature.scale)
        if not allows(world, row, index, value):
            return False
        if value != state.value[index]:
            add_feature(world, room, row, index, value)
    return True


@kernel
def add_feature(world, room, row, index, value):
    """One more feature that changes, with its columns."""
    board, state, move = world.board, room.state, room.move
    feature, turn, at = board.features[index], move.counts[0], move.counts[1]
    move.features[turn], move.values[turn] = index, value
    move.prices[turn] = price(world, row, index, value)
    move.counts[0] = turn + 1
    if not feature.is_group:
        move.columns[at], move.after[at] = feature.column, value
        move.counts[1] = at + 1
        return
    for turn in range(2):
        level = state.value[index] if turn == 0 else value
        if level < feature.size:
            column = board.columns_of_groups[feature.first + int(level)]
            move.columns[at] = column
            move.after[at] = level_bits(world, row, index, column, turn == 1, level)
            at += 1
    move.counts[1] = at


@kernel
def level_bits(world, row, index, column, on, level):
    """A column of a group that is on or off, in the person's own bits where that is as at home."""
    if (world.persons.ranges[row, index].home == level) == on:
        return world.persons.origin[row, column]
    return world.board.columns[column].on if on else world.board.columns[column].off


@kernel
def extra_cost(room):
    """How much more a move costs than staying."""
    state, move, extra = room.state, room.move, 0.0
    for turn in range(move.counts[0]):
        extra += move.prices[turn] - state.cost[move.features[turn]]
    return extra


@kernel
def make(world, room):
    """Go there."""
    state, move, joined = room.state, room.move, False
    for turn in range(move.counts[1]):
        state.point[move.columns[turn]] = move.after[turn]
    for turn in range(move.counts[0]):
        index = move.features[turn]
        state.value[index] = move.values[turn]
        state.cost[index] = move.prices[turn]
        joined = joined or world.board.features[index].related >= 0
    if joined:
        for number in range(move.related.shape[0]):
            state.related[number] = move.related[number]


@kernel
def total_cost(state):
    total = 0.0
    for index in range(state.cost.shape[0]):
        total += state.cost[index]
    return total
