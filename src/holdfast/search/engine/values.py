"""Which values of a feature are worth a look."""

from __future__ import annotations

import numpy as np

from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.moves import TINY, is_open, nearest_index, number_at
from holdfast.search.engine.networks import slope_along
from holdfast.search.engine.sweeps import FEW_VALUES
from holdfast.search.engine.world import ENOUGH

PARTS_OF_THE_WAY = 1.0, 0.5, 0.2, 0.05, 0.01  # to either end of a number


@kernel
def wanted_value(world, room, row, index, turn, now):
    """One of the values of a number that are worth a look; where it is now, if there is none."""
    board, limits = world.board, world.persons.ranges[row, index]
    feature, here = board.features[index], room.state.value[index]
    if turn < 10:  # parts of the way to both ends
        end = limits.first if turn < 5 else limits.last
        begin = nearest_index(feature, limits, here)
        return number_at(board, feature, limits, begin + int(np.rint(PARTS_OF_THE_WAY[turn % 5] * (end - begin))))
    if not world.models.by_slopes:
        return here
    # Where it alone would score just enough, as far as its slope tells.
    slope = slope_along(world.models.networks, room.standing.layers, feature.column, here, here + 1.0)
    if abs(slope) < TINY:
        return here
    beyond = 1.0 if turn == 10 else 1.03 if turn == 11 else 1.2
    wanted = here + beyond * (2 * ENOUGH - now) / slope
    if not abs(wanted) < 1e9:
        return here
    return number_at(board, feature, limits, nearest_index(feature, limits, wanted))


@kernel
def thresholds_alone(models, index):
    """Whether all models are trees that split a feature: beside its thresholds hardly a value is worth a look."""
    if models.by_slopes or models.outside:
        return False
    return models.networks.members.shape[0] == 0 and not models.forest.readings[index].counts


@kernel
def swept(world, room, index, others):
    """Whether the move that was written down is one of a sweep: of one number, beside so many others."""
    return (
        room.move.counts[0] == 1 + others
        and not world.board.features[index].is_group
        and thresholds_alone(world.models, index)
    )


@kernel
def count_of_values(world, row, index):
    """How many values of a feature are worth a look."""
    feature, limits = world.board.features[index], world.persons.ranges[row, index]
    if feature.is_group:
        return feature.size + 1
    if limits.last < limits.first:
        return 0
    models = world.models
    if not thresholds_alone(models, index):
        every = feature.step > 0 and limits.last - limits.first < FEW_VALUES
        others = limits.last - limits.first + 1 if every else 13
    else:
        others = 4  # the first and the last one, and two beside the code for a missing number
    return (
        others if models.by_slopes else others + models.forest.first_edge[index + 1] - models.forest.first_edge[index]
    )


@kernel
def value_worth_a_look(world, room, row, index, turn, now):
    """One of them, or before the first one home; where the feature is now, if a person may not have it."""
    board, value = world.board, world.persons.ranges[row, index].home
    if turn >= 0:
        value = listed_value(world, room, row, index, turn, now)
    may_have = board.features[index].is_group or is_open(board, board.features[index], value)
    return value if may_have else room.state.value[index]


@kernel
def listed_value(world, room, row, index, turn, now):
    """One of the values; where the feature is now, if that is no value of a person."""
    feature, limits, models = world.board.features[index], world.persons.ranges[row, index], world.models
    if feature.is_group:
        return np.float64(turn) if world.persons.levels[row, feature.group, turn] else room.state.value[index]
    if not models.by_slopes:
        edges = models.forest.first_edge[index + 1] - models.forest.first_edge[index]
        if turn < edges:
            return behind(world, room, row, index, models.forest.first_edge[index] + turn)
        turn -= edges
        reading = models.forest.readings[index]
        if thresholds_alone(models, index):
            if turn < 2:
                return number_at(world.board, feature, limits, limits.first if turn == 0 else limits.last)
            missing = np.float64(np.float32(limits.home)) == reading.code
            value = (reading.below if turn == 2 else reading.above) if missing else limits.home
            return value if limits.low <= value and value <= limits.high else room.state.value[index]
    if feature.step > 0 and limits.last - limits.first < FEW_VALUES:
        return number_at(world.board, feature, limits, limits.first + turn)
    return wanted_value(world, room, row, index, turn, now)


@kernel
def behind(world, room, row, index, edge):
    """The value behind a threshold that is nearest to home; where the feature is now, if a person may not have it."""
    forest, limits, here = world.models.forest, world.persons.ranges[row, index], room.state.value[index]
    if not room.standing.leaves.active[edge]:
        return here
    value = forest.above[edge] if forest.edges[edge] >= limits.home else forest.below[edge]
    noise = 5e-7 * abs(value)
    return value if limits.low - noise <= value and value <= limits.high + noise else here
