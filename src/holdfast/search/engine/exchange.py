"""One change for another, for less in all."""

from __future__ import annotations

import numpy as np

from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.moves import (
    TINY,
    extra_cost,
    is_open,
    move_one,
    move_two,
    number_at,
    price,
    stay,
    total_cost,
)
from holdfast.search.engine.reach import reach
from holdfast.search.engine.reduce import IMPROVEMENTS, best_of_sweep, reduce
from holdfast.search.engine.sweeps import note
from holdfast.search.engine.values import count_of_values, swept, value_worth_a_look
from holdfast.search.engine.world import (
    ENOUGH,
    answered,
    begin,
    forget,
    go,
    good,
    like_move,
    place_on_grid,
    score_after,
    unsure,
)

LEAST_SAVING = 1e-6
# Of what a point costs, so much may be spent on the way to a cheaper one; and of the best so far, what costs more is
# not bought anew: of one model, and of several, where every move takes longer.
SPARE = 1.5, 1.1
PROMISING = 1.3, 1.0


@kernel
def furthest(world, room, row, index, up, budget):
    """How far on its grid a number may go for so much more; where it is, if nowhere."""
    board, limits = world.board, world.persons.ranges[row, index]
    feature, spent = board.features[index], room.state.cost[index]
    here = place_on_grid(feature, limits, room.state.value[index])
    end = limits.last if up else limits.first
    if (up and end <= here) or (not up and end >= here):
        return here
    if price(world, row, index, number_at(board, feature, limits, end)) - spent <= budget:
        return end
    inside, outside = here, end
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if price(world, row, index, number_at(board, feature, limits, middle)) - spent <= budget:
            inside = middle
        else:
            outside = middle
    return inside


@kernel
def swap(world, room, row, limit, given, back, index, value, least):
    """What is saved if one feature goes back and another moves, and all is still as wanted; 0 where it is not."""
    if not move_two(world, room, row, given, back, index, value):
        return 0.0
    saved = -extra_cost(room)
    return saved if saved > least + TINY and good(world, room, limit) else 0.0


@kernel
def replacement(world, room, row, limit, given, back, index, budget, best):
    """The value of another feature that saves most if one goes back, and what that saves; ``best`` at least, or 0."""
    board = world.board
    feature, limits = board.features[index], world.persons.ranges[row, index]
    most, value = 0.0, 0.0
    if not world.models.by_slopes:
        most, value = replacement_by_values(world, room, row, limit, given, back, index, budget, best)
        if not world.models.outside or feature.is_group:
            return most, value
    if feature.is_group:
        for level in range(feature.size + 1):
            if world.persons.levels[row, feature.group, level] and level != room.state.value[index]:
                tried = np.float64(level)
                if budget - (price(world, row, index, tried) - room.state.cost[index]) > max(best, most) + TINY:
                    saved = swap(world, room, row, limit, given, back, index, tried, max(best, most))
                    if saved > 0:
                        most, value = saved, tried
        return most, value
    for way in range(2):
        far = furthest(world, room, row, index, way == 1, budget - max(best, most) - TINY)
        near = place_on_grid(feature, limits, room.state.value[index])
        first = True
        while (first and far != near) or abs(far - near) > 1:  # the far end first, then halve the way
            middle = far if first else (far + near) // 2
            tried = number_at(board, feature, limits, middle)
            saved = 0.0
            forget(room)
            if is_open(board, feature, tried):
                saved = swap(world, room, row, limit, given, back, index, tried, max(best, most))
            if saved > 0:
                most, value, far = saved, tried, middle
            elif first or unsure(room):
                break
            else:
                near = middle
            first = False
    return most, value


@kernel
def replacement_by_values(world, room, row, limit, given, back, index, budget, best):
    """The same where every value is tried."""
    state, later, least, count, waiting = room.state, room.later, max(best, 0.0), 0, 0
    for turn in range(count_of_values(world, row, index)):
        value = value_worth_a_look(world, room, row, index, turn, 0.0)
        extra = price(world, row, index, value) - state.cost[index]
        if value == state.value[index] or budget - extra <= least + TINY:
            continue
        if not move_two(world, room, row, given, back, index, value):
            continue
        saved = -extra_cost(room)
        if saved > least + TINY and swept(world, room, index, 1):
            count = note(room.sweep, count, value, -saved, ENOUGH)
        elif saved > least + TINY:
            later.value[waiting], later.extra[waiting] = value, -saved
            waiting += 1
    chosen, most = best_of_sweep(world, room, row, limit, count, index, given, back, 0.0, least)
    for at in range(waiting):
        if -later.extra[at] > most + TINY:
            move_two(world, room, row, given, back, index, later.value[at])
            if good(world, room, limit):
                chosen, most = later.value[at], -later.extra[at]
    return (most, chosen) if most > least else (0.0, 0.0)


@kernel
def exchange(world, room, row, limit):
    """One feature goes home and another moves instead, for less in all. Whether that was done."""
    better, state = False, room.state
    for given in range(world.board.features.shape[0]):
        if state.cost[given] <= TINY or not world.persons.ranges[row, given].free:
            continue
        back = world.persons.ranges[row, given].home
        if not move_one(world, room, row, given, back):
            continue
        budget = -extra_cost(room)
        while True:
            best, chosen, value = 0.0, np.int64(-1), 0.0
            for index in range(world.board.features.shape[0]):
                if index == given or budget <= TINY or not world.persons.ranges[row, index].free:
                    continue
                saved, tried = replacement(world, room, row, limit, given, back, index, budget, best)
                if saved > best:
                    best, chosen, value = saved, index, tried
            if answered(room):
                break
        if chosen >= 0:
            move_two(world, room, row, given, back, chosen, value)
            go(world, room, limit)
            better = True
    return better


@kernel
def half_way(world, room, row, index):
    """The dearest value of a feature that costs no more than half; home, if there is none."""
    best, chosen = 0.0, world.persons.ranges[row, index].home
    for turn in range(count_of_values(world, row, index)):
        value = value_worth_a_look(world, room, row, index, turn, 0.0)
        paid = price(world, row, index, value)
        if best < paid and paid <= room.state.cost[index] / 2:
            best, chosen = paid, value
    return chosen


@kernel
def rebuild(world, room, row, limit):
    """One feature goes back, whole or half of the way, and others buy anew what it had bought, for less in all.
    Whether that was done."""
    state, paid = room.state, total_cost(room.state)
    most = SPARE[np.int64(world.models.position.shape[0] > 1)] * paid
    for given in range(world.board.features.shape[0]):
        if state.cost[given] <= TINY or not world.persons.ranges[row, given].free:
            continue
        home = world.persons.ranges[row, given].home
        half = half_way(world, room, row, given)
        for turn in range(3 if half != home else 2):
            if not like_move(world, room, row, limit, given, half if turn == 2 else home):
                continue
            go(world, room, limit)
            if reach(world, room, row, limit, 0.5 if turn == 1 else 1.0, most, given):
                reduce(world, room, row, limit, -1)
                if total_cost(state) < paid - LEAST_SAVING:
                    return True
            begin(world, room, row, room.before, limit)
    return False


@kernel
def enlarge(world, room, row, limit):
    """One feature goes further, and what that makes needless is given back, for less in all. Whether that was done."""
    state, paid = room.state, total_cost(room.state)
    stay(room)
    now = score_after(world, room, -np.inf)
    for index in range(world.board.features.shape[0]):
        if not world.persons.ranges[row, index].free:
            continue
        for turn in range(2):
            while True:
                value = best_gain(world, room, row, index, now, paid, turn == 0)
                if answered(room):
                    break
            if value == state.value[index] or not like_move(world, room, row, limit, index, value):
                continue
            go(world, room, limit)
            reduce(world, room, row, limit, index)
            reduce(world, room, row, limit, -1)
            if total_cost(state) < paid - LEAST_SAVING:
                return True
            begin(world, room, row, room.before, limit)
    return False


@kernel
def best_gain(world, room, row, index, now, most, for_its_cost):
    """The value of a feature at which everybody is surest, for its cost or in all; where it is now, if at none."""
    state = room.state
    best, chosen = 0.0, state.value[index]
    for turn in range(count_of_values(world, row, index)):
        value = value_worth_a_look(world, room, row, index, turn, 0.0)
        extra = price(world, row, index, value) - state.cost[index]
        if extra <= TINY or extra >= most:
            continue
        bound = now + best * (extra if for_its_cost else 1.0)
        if not move_one(world, room, row, index, value):
            continue
        after = score_after(world, room, bound)
        if after > bound:
            best, chosen = (after - now) / (extra if for_its_cost else 1.0), value
    return chosen


@kernel
def improve(world, room, row, limit, cost):
    """To where no exchange is cheaper; where the best of all costs so much, and this no more than a promising part
    above it, to where nothing bought anew is cheaper either."""
    for _ in range(IMPROVEMENTS):
        reduce(world, room, row, limit, -1)
        if exchange(world, room, row, limit):
            continue
        is_ensemble = np.int64(world.models.position.shape[0] > 1)
        # A soft minimum asks everybody about nearly every move: what is bought anew then saves too little for its time.
        if (
            world.models.by_slopes
            or world.models.temperature > 0
            or total_cost(room.state) > PROMISING[is_ensemble] * cost
        ):
            return
        for column in range(room.before.shape[0]):
            room.before[column] = room.state.point[column]
        if not rebuild(world, room, row, limit) and not enlarge(world, room, row, limit):
            return
