"""Back towards home, as far as all that is wanted stays true."""

from __future__ import annotations

import numpy as np

from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.moves import TINY, extra_cost, is_open, move_one, move_two, number_at, price
from holdfast.search.engine.sweeps import NO_FEATURE, ask_sweep, note
from holdfast.search.engine.values import count_of_values, swept, value_worth_a_look
from holdfast.search.engine.world import (
    ENOUGH,
    alike,
    answered,
    forget,
    go,
    good,
    place_on_grid,
    unsure,
)

IMPROVEMENTS = 40  # of one start, at most


@kernel
def nearer(world, room, row, limit, index):
    """The value of a feature that saves most and keeps all that is wanted, and what it saves; 0 for nothing."""
    board, state = world.board, room.state
    feature, limits = board.features[index], world.persons.ranges[row, index]
    best, value = 0.0, state.value[index]
    forget(room)
    if move_one(world, room, row, index, limits.home):
        saved = -extra_cost(room)
        if saved > TINY and good(world, room, limit):
            return limits.home, saved
        if unsure(room):
            return value, best
    if not world.models.by_slopes:
        value, best = nearer_by_values(world, room, row, limit, index)
        if not world.models.outside or feature.is_group or unsure(room):
            return value, best
    # A number lies between where it is, which will do, and home, which will not: halve the way.
    far, near = 0, 0
    if not feature.is_group:
        far = place_on_grid(feature, limits, value)
        near = place_on_grid(feature, limits, limits.home)
        if feature.step <= 0 and abs(far - near) > 4096:
            near += int(np.sign(far - near))
    turn = 0
    while (feature.is_group and turn <= feature.size) or (not feature.is_group and abs(far - near) > 1):
        middle = turn if feature.is_group else (far + near) // 2
        turn += 1
        if feature.is_group:
            tried = np.float64(middle)
            possible = world.persons.levels[row, feature.group, middle] and tried != state.value[index]
            possible = possible and price(world, row, index, tried) < state.cost[index] - TINY
        else:
            tried = number_at(board, feature, limits, middle)
            possible = is_open(board, feature, tried)
        fits = False
        if possible and move_one(world, room, row, index, tried):
            saved = -extra_cost(room)
            if saved > best + TINY and good(world, room, limit):
                best, value, fits = saved, tried, True
        if unsure(room) and not feature.is_group:
            break
        if fits:
            far = middle
        else:
            near = middle
    return value, best


@kernel
def nearer_by_values(world, room, row, limit, index):
    """The same where less may do, though more does not: every value is tried."""
    state = room.state
    best, chosen, count = 0.0, state.value[index], 0
    for turn in range(count_of_values(world, row, index)):
        value = value_worth_a_look(world, room, row, index, turn, 0.0)
        if state.cost[index] - price(world, row, index, value) <= best + TINY:
            continue
        if move_one(world, room, row, index, value):
            saved = -extra_cost(room)
            if saved > best + TINY and swept(world, room, index, 0):
                count = note(room.sweep, count, value, -saved, ENOUGH)
            elif saved > best + TINY and good(world, room, limit):
                best, chosen = saved, value
    return best_of_sweep(world, room, row, limit, count, index, NO_FEATURE, 0.0, chosen, best)


@kernel
def best_of_sweep(world, room, row, limit, count, index, given, back, chosen, best):
    """The value of a sweep that saves most and keeps all that is wanted, and what it saves; what was found so far, if
    that is better."""
    sweep = room.sweep
    ask_sweep(world.models, room.standing, room.state, room.move, sweep, count, index, given, back, world.target, True)
    while True:
        at, most = -1, best + TINY
        for other in range(count):
            if sweep.score[other] > -np.inf and -sweep.extra[other] > most:
                at, most = other, -sweep.extra[other]
        if at < 0:
            return chosen, best
        if given == NO_FEATURE:
            move_one(world, room, row, index, sweep.value[at])
        else:
            move_two(world, room, row, given, back, index, sweep.value[at])
        if alike(world, room, limit):
            return sweep.value[at], most
        sweep.score[at] = -np.inf


@kernel
def reduce(world, room, row, limit, barred):
    """Cheaper: in every round the move of one feature that saves most; one feature is barred."""
    for _ in range(IMPROVEMENTS):
        while True:
            most, chosen, value = TINY, np.int64(-1), 0.0
            for index in range(world.board.features.shape[0]):
                if room.state.cost[index] > most and index != barred and world.persons.ranges[row, index].free:
                    tried, saved = nearer(world, room, row, limit, index)
                    if saved > most:
                        most, chosen, value = saved, index, tried
            if answered(room):
                break
        if chosen < 0:
            return
        move_one(world, room, row, chosen, value)
        go(world, room, limit)


@kernel
def prune(world, room, row, limit):
    """Whole features go home that need not change: in every round the one that saves most."""
    for _ in range(world.board.features.shape[0]):
        while True:
            most, chosen = TINY, np.int64(-1)
            for index in range(world.board.features.shape[0]):
                limits = world.persons.ranges[row, index]
                if not limits.free or not move_one(world, room, row, index, limits.home):
                    continue
                saved = -extra_cost(room)
                if saved > most and good(world, room, limit):
                    most, chosen = saved, np.int64(index)
            if answered(room):
                break
        if chosen < 0:
            return
        move_one(world, room, row, chosen, world.persons.ranges[row, chosen].home)
        go(world, room, limit)
