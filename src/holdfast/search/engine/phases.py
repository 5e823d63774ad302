"""The search of one person: reach the class, give back what is not needed, exchange one change for another.

Every point on the way is one that the person can have. ``reach`` buys the target's margin for as little cost as it
can; ``reduce`` takes back what is not needed; ``exchange`` sends one feature home and moves another instead, for less
in all. Where a point must resemble real people, only what would be taken is compared with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.search.engine.board import Board, Floats, Integers, Persons
from holdfast.search.engine.compiled import entry, kernel
from holdfast.search.engine.crowd import (
    Crowd,
    Distances,
    distances_of,
    follow,
    measure,
    passes,
    resembles,
    unlikeness,
    unlikeness_at_most,
)
from holdfast.search.engine.moves import (
    TINY,
    Move,
    State,
    add_feature,
    extra_cost,
    index_of,
    is_open,
    joined_by_rules,
    make,
    move_of,
    number_at,
    place_at,
    price_of,
    propose,
    propose_two,
    state_of,
    total_cost,
)
from holdfast.search.engine.networks import slope_along
from holdfast.search.engine.outside import UNSURE, Notes, all_heard
from holdfast.search.engine.references import reference
from holdfast.search.engine.rules import Rules
from holdfast.search.engine.scorers import (
    Models,
    Standing,
    begin_order,
    lead,
    listen,
    stand_after,
    stand_at,
    standing_of,
    sure,
)

NEVER = -1e100  # a score of somebody who agrees with nothing
ENOUGH = 1.5e-4  # a score that rounding does not bring below what is asked for
WORTHWHILE = 0.2  # of the largest gain there is: a move of less is no way to the class, however cheap
FEW_VALUES = 64  # of a number, that are all tried
TRIED = 24  # moves that are asked about in a round of `reach`, of those that look best by the slopes,
EACH = 3  # of one feature
JUDGED = 6  # moves of a round that are compared with people
ROUNDS = 16  # of `reach`, beside two for each feature
STARTS = 2  # people of the class from whom a search begins,
DONORS = 96  # who are tried at a time,
DONOR_TURNS = 4  # so often where something has been found
WALKS = 4  # from people who are not good enough themselves
IMPROVEMENTS = 40  # of one start, at most
CLIMBS = 6  # rounds in which many features move at a time
APPROACHES = 24  # moves towards real people
LEAST_SAVING = 1e-6
# Of what a point costs, so much may be spent on the way to a cheaper one; and of the best so far, what costs more is
# not bought anew: of one model, and of several, where every move takes longer.
SPARE = 1.5, 1.1
PROMISING = 1.3, 1.0


class Tried(NamedTuple):
    """Moves that look best, best first."""

    rank: Floats
    feature: Integers
    value: Floats


class Donors(NamedTuple):
    """People of the class, cheapest first."""

    cost: Floats  # (m,) of everybody; infinite who has been listed
    who: Integers


CHEAPEST, REPAIRED, RISEN, PRUNED = range(4)  # what is wanted of a search; see `search_person`


class World(NamedTuple):
    """What is the same for everybody who wants the same class."""

    board: Board
    rules: Rules
    models: Models
    crowd: Crowd
    persons: Persons
    target: int
    goal: int


class Room(NamedTuple):
    """What a thread writes to."""

    state: State
    move: Move
    standing: Standing
    distances: Distances
    tried: Tried
    donors: Donors
    start: Floats  # (d,) where a search begins
    before: Floats  # (d,) where to come back to


def room_of(world: World, notes: Notes | None = None) -> Room:
    """For one thread; ``notes`` are those of the person, where a model is asked outside."""
    board = world.board
    return Room(
        state_of(board),
        move_of(board, world.rules),
        standing_of(world.models, notes),
        distances_of(world.crowd),
        tried_of(),
        donors_of(world.crowd),
        np.zeros(len(board.columns)),
        np.zeros(len(board.columns)),
    )


def tried_of() -> Tried:
    return Tried(np.zeros(TRIED), np.zeros(TRIED, np.int64), np.zeros(TRIED))


def donors_of(crowd: Crowd) -> Donors:
    return Donors(np.zeros(len(crowd.values)), np.zeros(DONORS, np.int64))


# ---- moves, as a search asks about them ----


@kernel
def move_one(world, room, row, feature, value):
    """Write down the move that sets a feature, with all that relations demand; False where that cannot be."""
    return propose(world.board, world.rules, world.persons, row, room.state, room.move, feature, value)


@kernel
def move_two(world, room, row, one, value, two, other):
    return propose_two(world.board, world.rules, world.persons, row, room.state, room.move, one, value, two, other)


@kernel
def price(world, row, feature, value):
    return price_of(world.board, world.persons, row, feature, value)


@kernel
def sure_enough(world, room):
    """Whether everybody who must agrees after the move; whoever objects has a say in what is tried next."""
    if sure(world.models, room.standing, room.state, room.move, world.target, ENOUGH) > ENOUGH:
        return True
    listen(world.models, room.standing, room.standing.order[0])
    return False


@kernel
def sure_here(world, room):
    """Whether everybody who must agrees where a person is."""
    stay(room)
    while True:
        found = sure_enough(world, room)
        if answered(room):
            return found


@kernel
def answered(room):
    """Whether a scan knew all that it asked; else it knows more now, and is made again."""
    return all_heard(room.standing.notes)


@kernel
def unsure(room):
    """Whether the last point that was asked about since `forget` waits for its score."""
    return room.standing.notes.counts[UNSURE] > 0


@kernel
def forget(room):
    room.standing.notes.counts[UNSURE] = 0


@kernel
def alike(world, room, limit):
    """Whether the point after the move could be a person."""
    return limit == np.inf or resembles(world.crowd, room.distances, room.state, room.move, limit)


@kernel
def good(world, room, limit):
    """Whether it is all that is wanted; who answers outside is not asked about what nobody is like."""
    if world.models.outside and not alike(world, room, limit):
        return False
    return sure_enough(world, room) and (world.models.outside or alike(world, room, limit))


@kernel
def go(world, room, limit):
    """Make the move, and keep up to date what depends on it."""
    if limit < np.inf:
        follow(world.crowd, room.distances, room.state, room.move)
    make(world.board, room.state, room.move)
    stand_after(world.models, room.standing, room.state, room.move)


@kernel
def stay(room):
    """The move that changes nothing."""
    room.move.counts[0] = 0
    room.move.counts[1] = 0


@kernel
def place_on_grid(feature, limits, value):
    """The place of a value among those that a person may have; one before the first, or behind the last, if outside."""
    return min(max(index_of(feature, limits, value), limits.first - 1), limits.last + 1)


# ---- reach ----


@kernel
def keep(tried, kept, rank, feature, value):
    """Put a move among those that look best, ``EACH`` of a feature at most; how many there are."""
    own, worst = 0, -1
    for place in range(kept):
        if tried.feature[place] == feature:
            own += 1
            worst = place
    if own == EACH:  # it takes the place of the feature's last one
        if rank <= tried.rank[worst]:
            return kept
        for place in range(worst, kept - 1):
            tried.rank[place] = tried.rank[place + 1]
            tried.feature[place] = tried.feature[place + 1]
            tried.value[place] = tried.value[place + 1]
        kept -= 1
    elif kept == TRIED:
        if rank <= tried.rank[kept - 1]:
            return kept
        kept -= 1
    place = kept
    while place > 0 and tried.rank[place - 1] < rank:
        tried.rank[place] = tried.rank[place - 1]
        tried.feature[place] = tried.feature[place - 1]
        tried.value[place] = tried.value[place - 1]
        place -= 1
    tried.rank[place], tried.feature[place], tried.value[place] = rank, feature, value
    return kept + 1


@kernel
def rank_of(now, change, extra, by_gain):
    """How good a move is: what it gains, up to enough, for what it costs."""
    if now == -np.inf:  # whatever it costs
        return change
    gain = min(now + change, 2 * ENOUGH) - now
    if gain <= 0:
        return change / (1 + abs(extra)) - 1e12  # a slope may be wrong: last rather than never
    # Of moves that are worth the same, the longer.
    return gain if by_gain else gain / max(extra, TINY) * (1 + 1e-6 * gain / (1 + gain))


@kernel
def look_at(world, room, row, kept, place, value, now, by_gain):
    """One candidate: by the slopes, as if there were no relations."""
    board, state = world.board, room.state
    feature = board.features[place]
    if value == state.value[place]:
        return kept
    extra = price(world, row, place, value) - state.cost[place]
    if feature.is_group:
        change = 0.0
        for turn in range(2):
            level = state.value[place] if turn == 0 else value
            if level < feature.size:
                column = board.columns_of_groups[feature.first + int(level)]
                on, off = board.columns[column].on, board.columns[column].off
                before, after = (on, off) if turn == 0 else (off, on)
                change += slope_along(world.models.networks, room.standing.layers, column, before, after)
    else:
        if not is_open(board, feature, value):
            return kept
        change = slope_along(world.models.networks, room.standing.layers, feature.column, state.value[place], value)
    return keep(room.tried, kept, rank_of(now, change, extra, by_gain), place, value)


@kernel
def part_of_the_way(turn):
    return 1.0 if turn == 0 else 0.5 if turn == 1 else 0.2 if turn == 2 else 0.05 if turn == 3 else 0.01


@kernel
def wanted_value(world, room, row, place, turn, now):
    """One of the values of a number that are worth a look; where it is now, if there is none."""
    board, limits = world.board, world.persons.ranges[row, place]
    feature, here = board.features[place], room.state.value[place]
    if turn < 10:  # parts of the way to both ends
        end = limits.first if turn < 5 else limits.last
        begin = min(max(index_of(feature, limits, here), limits.first), limits.last)
        return number_at(board, feature, limits, begin + int(np.rint(part_of_the_way(turn % 5) * (end - begin))))
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
    index = min(max(index_of(feature, limits, wanted), limits.first), limits.last)
    return number_at(board, feature, limits, index)


@kernel
def thresholds_alone(models, place):
    """Whether all models are trees that split a feature: beside its thresholds hardly a value is worth a look."""
    if models.by_slopes or models.outside:
        return False
    return models.networks.members.shape[0] == 0 and not models.forest.readings[place].counts


@kernel
def count_of_values(world, row, place):
    """How many values of a feature are worth a look."""
    feature, limits = world.board.features[place], world.persons.ranges[row, place]
    if feature.is_group:
        return feature.size + 1
    if limits.last < limits.first:
        return 0
    models = world.models
    if not thresholds_alone(models, place):
        every = feature.step > 0 and limits.last - limits.first < FEW_VALUES
        others = limits.last - limits.first + 1 if every else 13
    else:
        others = 4  # the first and the last one, and two beside the code for a missing number
    return (
        others if models.by_slopes else others + models.forest.first_edge[place + 1] - models.forest.first_edge[place]
    )


@kernel
def value_worth_a_look(world, room, row, place, turn, now):
    """One of them; where the feature is now, if a person may not have it."""
    feature, limits, models = world.board.features[place], world.persons.ranges[row, place], world.models
    if feature.is_group:
        return np.float64(turn) if world.persons.levels[row, feature.group, turn] else room.state.value[place]
    if not models.by_slopes:
        edges = models.forest.first_edge[place + 1] - models.forest.first_edge[place]
        if turn < edges:
            return behind(world, room, row, place, models.forest.first_edge[place] + turn)
        turn -= edges
        reading = models.forest.readings[place]
        if thresholds_alone(models, place):
            if turn < 2:
                return number_at(world.board, feature, limits, limits.first if turn == 0 else limits.last)
            missing = np.float64(np.float32(limits.home)) == reading.code
            value = (reading.below if turn == 2 else reading.above) if missing else limits.home
            return value if limits.low <= value and value <= limits.high else room.state.value[place]
    if feature.step > 0 and limits.last - limits.first < FEW_VALUES:
        return number_at(world.board, feature, limits, limits.first + turn)
    return wanted_value(world, room, row, place, turn, now)


@kernel
def behind(world, room, row, place, edge):
    """The value behind a threshold that is nearest to home; where the feature is now, if a person may not have it."""
    forest, limits, here = world.models.forest, world.persons.ranges[row, place], room.state.value[place]
    if not room.standing.leaves.active[edge]:
        return here
    value = forest.above[edge] if forest.edges[edge] >= limits.home else forest.below[edge]
    noise = 5e-7 * abs(value)
    return value if limits.low - noise <= value and value <= limits.high + noise else here


@kernel
def candidates(world, room, row, now, by_gain):
    """The moves that look best by the slopes; how many."""
    kept = 0
    for place in range(world.board.features.shape[0]):
        limits = world.persons.ranges[row, place]
        if not limits.free:
            continue
        kept = look_at(world, room, row, kept, place, limits.home, now, by_gain)
        for turn in range(count_of_values(world, row, place)):
            value = value_worth_a_look(world, room, row, place, turn, now)
            kept = look_at(world, room, row, kept, place, value, now, by_gain)
    return kept


@kernel
def take_any(world, room, row, limit, now):
    """Where no move gains anything that looks good by the slopes: of all moves, the one that gains most. Whether there
    is one."""
    while True:
        best, chosen, best_value = now + TINY, np.int64(-1), 0.0
        for place in range(world.board.features.shape[0]):
            if not world.persons.ranges[row, place].free:
                continue
            feature = world.board.features[place]
            for turn in range(count_of_values(world, row, place)):
                value = value_worth_a_look(world, room, row, place, turn, now)
                if value == room.state.value[place] or not (feature.is_group or is_open(world.board, feature, value)):
                    continue
                if not move_one(world, room, row, place, value):
                    continue
                after = sure(world.models, room.standing, room.state, room.move, world.target, best)
                if after > best and alike(world, room, limit):
                    best, chosen, best_value = after, place, value
        if answered(room):
            break
    if chosen < 0:
        return False
    move_one(world, room, row, chosen, best_value)
    go(world, room, limit)
    return True


@kernel
def reach(world, room, row, limit, power, most, barred):
    """To the class, for ``most`` at most: in every round the move that gains most for its cost to the power; one
    feature is barred. Whether it got there."""
    standing, state, move, tried = room.standing, room.state, room.move, room.tried
    for _ in range(2 * world.board.features.shape[0] + ROUNDS + world.models.place.shape[0]):
        now = lead(world.models, standing, state, move, world.target)
        if now > ENOUGH:
            return True
        if world.models.by_slopes:
            kept = asked_by_slopes(world, room, row, limit, now, power)
        else:
            kept = asked_about_all(world, room, row, limit, max(now, NEVER), power, most, barred)
        chosen = choose(world, room, row, kept, limit)
        if chosen < 0:
            if not world.models.by_slopes:
                return False
            if not (take_any(world, room, row, limit, now) or take_pair(world, room, row, kept, limit, now)):
                return False
            continue
        move_one(world, room, row, tried.feature[chosen], tried.value[chosen])
        go(world, room, limit)
    return sure_here(world, room)


@kernel
def asked_by_slopes(world, room, row, limit, now, power):
    """The moves that look best by the slopes, with what they gain for their cost; how many."""
    state, move, tried, by_gain = room.state, room.move, room.tried, power == 0
    kept = candidates(world, room, row, now, by_gain)
    while True:
        most, best = 0.0, 0.0
        for place in range(kept):
            tried.rank[place] = -np.inf
            if not move_one(world, room, row, tried.feature[place], tried.value[place]):
                continue
            if world.models.outside and not alike(world, room, limit):
                continue
            extra = max(extra_cost(state, move), TINY)
            bound = now + max(WORTHWHILE * most, 0.0)
            if limit == np.inf:
                bound = max(bound, now + (best if by_gain else best * extra))
            after = sure(world.models, room.standing, state, move, world.target, bound)
            if after <= bound:
                continue
            gain = min(after, 2 * ENOUGH) - now
            most = max(most, gain)
            tried.rank[place] = gain if by_gain else gain / extra
            best = max(best, tried.rank[place])
        if answered(room):
            return kept


@kernel
def to_power(extra, power):
    extra = max(extra, TINY)
    return 1.0 if power == 0 else extra if power == 1 else np.sqrt(extra)


@kernel
def asked_about_all(world, room, row, limit, now, power, most, barred):
    """The same where there are no slopes: whatever may rank among the best is asked about."""
    while True:
        kept = scan_all(world, room, row, limit, now, power, most, barred)
        if answered(room):
            return kept


@kernel
def scan_all(world, room, row, limit, now, power, most, barred):
    board, state, move, tried = world.board, room.state, room.move, room.tried
    kept, spent = 0, total_cost(state)
    enough = 1 if limit == np.inf else JUDGED  # moves that are wanted
    for place in range(board.features.shape[0]):
        feature = board.features[place]
        if place == barred or not world.persons.ranges[row, place].free:
            continue
        for turn in range(-1, count_of_values(world, row, place)):
            value = world.persons.ranges[row, place].home
            if turn >= 0:
                value = value_worth_a_look(world, room, row, place, turn, now)
            if value == state.value[place] or not (feature.is_group or is_open(board, feature, value)):
                continue
            worst = tried.rank[enough - 1] if kept >= enough else 0.0
            extra = price(world, row, place, value) - state.cost[place]
            if feature.related < 0 and (spent + extra > most or (2 * ENOUGH - now) / to_power(extra, power) <= worst):
                continue
            if not move_one(world, room, row, place, value):
                continue
            extra = extra_cost(state, move)
            bound = now + max(worst * to_power(extra, power), TINY)
            if spent + extra > most:
                continue
            after = sure(world.models, room.standing, state, move, world.target, bound)
            if after > bound:
                kept = keep(tried, kept, (min(after, 2 * ENOUGH) - now) / to_power(extra, power), place, value)
    return kept


@kernel
def choose(world, room, row, kept, limit):
    """The best of the moves that were asked about, that could be a person; -1 where there is none."""
    tried = room.tried
    for _ in range(JUDGED):
        best, chosen = 0.0, np.int64(-1)
        for place in range(kept):
            if tried.rank[place] > best:
                best, chosen = tried.rank[place], place
        if chosen < 0 or limit == np.inf:
            return chosen
        move_one(world, room, row, tried.feature[chosen], tried.value[chosen])
        if resembles(world.crowd, room.distances, room.state, room.move, limit):
            return chosen
        tried.rank[chosen] = -np.inf
    return -1


@kernel
def take_pair(world, room, row, kept, limit, now):
    """Where no move alone gains anything: the two that gain most together. Whether there are two."""
    while True:
        tried, best, one, two = room.tried, now + TINY, np.int64(-1), np.int64(-1)
        for place in range(kept):
            for other in range(place):
                if tried.feature[place] == tried.feature[other]:
                    continue
                if not move_both(world, room, row, place, other):
                    continue
                after = sure(world.models, room.standing, room.state, room.move, world.target, best)
                if after > best and alike(world, room, limit):
                    best, one, two = after, place, other
        if answered(room):
            break
    if one < 0:
        return False
    move_both(world, room, row, one, two)
    go(world, room, limit)
    return True


@kernel
def move_both(world, room, row, place, other):
    tried = room.tried
    return move_two(
        world, room, row, tried.feature[place], tried.value[place], tried.feature[other], tried.value[other]
    )


@kernel
def climb(world, room, row, limit):
    """To the class by whatever gains, many features at a time: where small steps lead nowhere. Whether it got there."""
    tried = room.tried
    for _ in range(CLIMBS):
        now = lead(world.models, room.standing, room.state, room.move, world.target)
        if now > ENOUGH:
            return True
        kept, moved = candidates(world, room, row, -np.inf, True), False
        for place in range(kept):
            feature = tried.feature[place]
            taken = False
            for earlier in range(place):
                taken = taken or tried.feature[earlier] == feature
            if taken or not tried.rank[place] > TINY:
                continue
            if move_one(world, room, row, feature, tried.value[place]) and alike(world, room, limit):
                go(world, room, limit)
                moved = True
        if not moved:
            return False
    return sure_here(world, room)


# ---- reduce ----


@kernel
def nearer(world, room, row, limit, place):
    """The value of a feature that saves most and keeps all that is wanted, and what it saves; 0 for nothing."""
    board, state = world.board, room.state
    feature, limits = board.features[place], world.persons.ranges[row, place]
    best, value = 0.0, state.value[place]
    forget(room)
    if move_one(world, room, row, place, limits.home):
        saved = -extra_cost(state, room.move)
        if saved > TINY and good(world, room, limit):
            return limits.home, saved
        if unsure(room):
            return value, best
    if not world.models.by_slopes:
        value, best = nearer_by_values(world, room, row, limit, place)
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
            possible = world.persons.levels[row, feature.group, middle] and tried != state.value[place]
            possible = possible and price(world, row, place, tried) < state.cost[place] - TINY
        else:
            tried = number_at(board, feature, limits, middle)
            possible = is_open(board, feature, tried)
        fits = False
        if possible and move_one(world, room, row, place, tried):
            saved = -extra_cost(state, room.move)
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
def nearer_by_values(world, room, row, limit, place):
    """The same where less may do, though more does not: every value is tried."""
    board, state = world.board, room.state
    feature, best, chosen = board.features[place], 0.0, state.value[place]
    for turn in range(count_of_values(world, row, place)):
        value = value_worth_a_look(world, room, row, place, turn, 0.0)
        if state.cost[place] - price(world, row, place, value) <= best + TINY:
            continue
        if (feature.is_group or is_open(board, feature, value)) and move_one(world, room, row, place, value):
            saved = -extra_cost(state, room.move)
            if saved > best + TINY and good(world, room, limit):
                best, chosen = saved, value
    return chosen, best


@kernel
def reduce(world, room, row, limit, barred):
    """Cheaper: in every round the move of one feature that saves most; one feature is barred."""
    for _ in range(IMPROVEMENTS):
        while True:
            most, chosen, value = TINY, np.int64(-1), 0.0
            for place in range(world.board.features.shape[0]):
                if room.state.cost[place] > most and place != barred and world.persons.ranges[row, place].free:
                    tried, saved = nearer(world, room, row, limit, place)
                    if saved > most:
                        most, chosen, value = saved, place, tried
            if answered(room):
                break
        if chosen < 0:
            return
        move_one(world, room, row, chosen, value)
        go(world, room, limit)


# ---- exchange ----


@kernel
def furthest(world, room, row, place, up, budget):
    """How far on its grid a number may go for so much more; where it is, if nowhere."""
    board, limits = world.board, world.persons.ranges[row, place]
    feature, spent = board.features[place], room.state.cost[place]
    here = place_on_grid(feature, limits, room.state.value[place])
    end = limits.last if up else limits.first
    if (up and end <= here) or (not up and end >= here):
        return here
    if price(world, row, place, number_at(board, feature, limits, end)) - spent <= budget:
        return end
    inside, outside = here, end
    while abs(outside - inside) > 1:
        middle = (inside + outside) // 2
        if price(world, row, place, number_at(board, feature, limits, middle)) - spent <= budget:
            inside = middle
        else:
            outside = middle
    return inside


@kernel
def swap(world, room, row, limit, given, back, place, value, least):
    """What is saved if one feature goes back and another moves, and all is still as wanted; 0 where it is not."""
    if not move_two(world, room, row, given, back, place, value):
        return 0.0
    saved = -extra_cost(room.state, room.move)
    return saved if saved > least + TINY and good(world, room, limit) else 0.0


@kernel
def replacement(world, room, row, limit, given, back, place, budget, best):
    """The value of another feature that saves most if one goes back, and what that saves; ``best`` at least, or 0."""
    board = world.board
    feature, limits = board.features[place], world.persons.ranges[row, place]
    most, value = 0.0, 0.0
    if not world.models.by_slopes:
        most, value = replacement_by_values(world, room, row, limit, given, back, place, budget, best)
        if not world.models.outside or feature.is_group:
            return most, value
    if feature.is_group:
        for level in range(feature.size + 1):
            if world.persons.levels[row, feature.group, level] and level != room.state.value[place]:
                tried = np.float64(level)
                if budget - (price(world, row, place, tried) - room.state.cost[place]) > max(best, most) + TINY:
                    saved = swap(world, room, row, limit, given, back, place, tried, max(best, most))
                    if saved > 0:
                        most, value = saved, tried
        return most, value
    for way in range(2):
        far = furthest(world, room, row, place, way == 1, budget - max(best, most) - TINY)
        near = place_on_grid(feature, limits, room.state.value[place])
        first = True
        while (first and far != near) or abs(far - near) > 1:  # the far end first, then halve the way
            middle = far if first else (far + near) // 2
            tried = number_at(board, feature, limits, middle)
            saved = 0.0
            forget(room)
            if is_open(board, feature, tried):
                saved = swap(world, room, row, limit, given, back, place, tried, max(best, most))
            if saved > 0:
                most, value, far = saved, tried, middle
            elif first or unsure(room):
                break
            else:
                near = middle
            first = False
    return most, value


@kernel
def replacement_by_values(world, room, row, limit, given, back, place, budget, best):
    """The same where every value is tried."""
    board, state = world.board, room.state
    feature, most, chosen = board.features[place], 0.0, 0.0
    for turn in range(count_of_values(world, row, place)):
        value = value_worth_a_look(world, room, row, place, turn, 0.0)
        if value == state.value[place] or not (feature.is_group or is_open(board, feature, value)):
            continue
        least = max(best, most)
        if budget - (price(world, row, place, value) - state.cost[place]) > least + TINY:
            saved = swap(world, room, row, limit, given, back, place, value, least)
            if saved > 0:
                most, chosen = saved, value
    return most, chosen


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
        budget = -extra_cost(state, room.move)
        while True:
            best, chosen, value = 0.0, np.int64(-1), 0.0
            for place in range(world.board.features.shape[0]):
                if place == given or budget <= TINY or not world.persons.ranges[row, place].free:
                    continue
                saved, tried = replacement(world, room, row, limit, given, back, place, budget, best)
                if saved > best:
                    best, chosen, value = saved, place, tried
            if answered(room):
                break
        if chosen >= 0:
            move_two(world, room, row, given, back, chosen, value)
            go(world, room, limit)
            better = True
    return better


@kernel
def half_way(world, room, row, place):
    """The dearest value of a feature that costs no more than half; home, if there is none."""
    board, best, chosen = world.board, 0.0, world.persons.ranges[row, place].home
    for turn in range(count_of_values(world, row, place)):
        value = value_worth_a_look(world, room, row, place, turn, 0.0)
        paid = price(world, row, place, value)
        if (
            best < paid
            and paid <= room.state.cost[place] / 2
            and (board.features[place].is_group or is_open(board, board.features[place], value))
        ):
            best, chosen = paid, value
    return chosen


@kernel
def rebuild(world, room, row, limit):
    """One feature goes back, whole or half of the way, and others buy anew what it had bought, for less in all.
    Whether that was done."""
    state, paid = room.state, total_cost(room.state)
    most = SPARE[np.int64(world.models.place.shape[0] > 1)] * paid
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
    now = sure(world.models, room.standing, state, room.move, world.target, -np.inf)
    for place in range(world.board.features.shape[0]):
        if not world.persons.ranges[row, place].free:
            continue
        for turn in range(2):
            while True:
                value = best_gain(world, room, row, place, now, paid, turn == 0)
                if answered(room):
                    break
            if value == state.value[place] or not like_move(world, room, row, limit, place, value):
                continue
            go(world, room, limit)
            reduce(world, room, row, limit, place)
            reduce(world, room, row, limit, -1)
            if total_cost(state) < paid - LEAST_SAVING:
                return True
            begin(world, room, row, room.before, limit)
    return False


@kernel
def like_move(world, room, row, limit, place, value):
    """Write down a move after which a person is like people; False where that cannot be."""
    return move_one(world, room, row, place, value) and alike(world, room, limit)


@kernel
def best_gain(world, room, row, place, now, most, for_its_cost):
    """The value of a feature at which everybody is surest, for its cost or in all; where it is now, if at none."""
    board, state = world.board, room.state
    best, chosen = 0.0, state.value[place]
    for turn in range(count_of_values(world, row, place)):
        value = value_worth_a_look(world, room, row, place, turn, 0.0)
        extra = price(world, row, place, value) - state.cost[place]
        if (
            extra <= TINY
            or extra >= most
            or not (board.features[place].is_group or is_open(board, board.features[place], value))
        ):
            continue
        bound = now + best * (extra if for_its_cost else 1.0)
        if not move_one(world, room, row, place, value):
            continue
        after = sure(world.models, room.standing, state, room.move, world.target, bound)
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
        several = np.int64(world.models.place.shape[0] > 1)
        # A soft minimum asks everybody about nearly every move: what is bought anew then saves too little for its time.
        if world.models.by_slopes or world.models.temperature > 0 or total_cost(room.state) > PROMISING[several] * cost:
            return
        for column in range(room.before.shape[0]):
            room.before[column] = room.state.point[column]
        if not rebuild(world, room, row, limit) and not enlarge(world, room, row, limit):
            return


# ---- other ends than the cheapest point ----


@kernel
def rise(world, room, row, limit):
    """To where the score is highest: in every round the move that gains most."""
    state, move, tried = room.state, room.move, room.tried
    for _ in range(2 * world.board.features.shape[0] + ROUNDS):
        now = lead(world.models, room.standing, state, move, world.target)
        kept = candidates(world, room, row, -np.inf, True)
        while True:
            best, chosen = now + TINY, np.int64(-1)
            for place in range(kept):
                if move_one(world, room, row, tried.feature[place], tried.value[place]) and alike(world, room, limit):
                    after = sure(world.models, room.standing, state, move, world.target, best)
                    if after > best:
                        best, chosen = after, np.int64(place)
            if answered(room):
                break
        if chosen < 0:
            return
        move_one(world, room, row, tried.feature[chosen], tried.value[chosen])
        go(world, room, limit)


@kernel
def prune(world, room, row, limit):
    """Whole features go home that need not change: in every round the one that saves most."""
    for _ in range(world.board.features.shape[0]):
        while True:
            most, chosen = TINY, np.int64(-1)
            for place in range(world.board.features.shape[0]):
                limits = world.persons.ranges[row, place]
                if not limits.free or not move_one(world, room, row, place, limits.home):
                    continue
                saved = -extra_cost(room.state, room.move)
                if saved > most and good(world, room, limit):
                    most, chosen = saved, np.int64(place)
            if answered(room):
                break
        if chosen < 0:
            return
        move_one(world, room, row, chosen, world.persons.ranges[row, chosen].home)
        go(world, room, limit)


# ---- real people ----


@kernel
def clipped(world, row, place, value):
    """Somebody's value of a feature as far as a person may have it; home where they may not."""
    board, limits = world.board, world.persons.ranges[row, place]
    feature = board.features[place]
    if not limits.free:
        return limits.home
    if feature.is_group:
        return value if world.persons.levels[row, feature.group, int(value)] else limits.home
    if limits.last < limits.first:
        return limits.home
    index = min(max(index_of(feature, limits, value), limits.first), limits.last)
    found = number_at(board, feature, limits, index)
    return found if is_open(board, feature, found) else limits.home


@kernel
def approach(world, room, row, limit):
    """From a point of the class towards the real people who are nearest, in the class all the way; whether it is like
    them then."""
    crowd, distances, state = world.crowd, room.distances, room.state
    now = unlikeness(crowd, distances.square, distances.least)
    for _ in range(APPROACHES):
        if now <= limit:
            return passes(crowd, distances.square, distances.least, limit)
        while True:
            best, chosen, value, after = 0.0, np.int64(-1), 0.0, now
            for place in range(world.board.features.shape[0]):
                for turn in range(crowd.nearest + 1):  # the values of those who are nearest, and that at home
                    tried = world.persons.ranges[row, place].home
                    if turn < crowd.nearest:
                        if distances.near[turn] < 0:
                            continue
                        tried = clipped(world, row, place, crowd.values[distances.near[turn], place])
                    if tried == state.value[place] or not move_one(world, room, row, place, tried):
                        continue
                    like = max(unlikeness_at_most(crowd, distances, room.move), limit)
                    gain = (now - like) / max(extra_cost(state, room.move), 0.01 * (now - like))
                    if like < now - TINY and gain > best and sure_enough(world, room):
                        best, chosen, value, after = gain, place, tried, like
            if answered(room):
                break
        if chosen < 0:
            return False
        move_one(world, room, row, chosen, value)
        go(world, room, limit)
        now = min(after, unlikeness(crowd, distances.square, distances.least))
    return passes(crowd, distances.square, distances.least, limit)


@kernel
def price_donors(world, row, donors):
    """What it costs to be like each of the people of the class, as far as a person may be."""
    for someone in range(donors.cost.shape[0]):
        cost = 0.0
        for place in range(world.board.features.shape[0]):
            if world.persons.ranges[row, place].free:
                cost += price(world, row, place, clipped(world, row, place, world.crowd.values[someone, place]))
        donors.cost[someone] = cost


@kernel
def cheapest_donors(donors):
    """List the cheapest people who have not been listed, cheapest first; how many."""
    kept = 0
    for someone in range(donors.cost.shape[0]):
        cost = donors.cost[someone]
        if cost == np.inf or (kept == DONORS and cost >= donors.cost[donors.who[kept - 1]]):
            continue
        at = kept if kept < DONORS else DONORS - 1
        while at > 0 and donors.cost[donors.who[at - 1]] > cost:
            donors.who[at] = donors.who[at - 1]
            at -= 1
        donors.who[at] = someone
        kept = min(kept + 1, DONORS)
    for place in range(kept):
        donors.cost[donors.who[place]] = np.inf
    return kept


@kernel
def towards(world, room, row, someone):
    """The move from home as far towards somebody as a person may go; False where that cannot be."""
    move, values = room.move, world.crowd.values
    stay(room)
    for place in range(world.board.features.shape[0]):
        value = clipped(world, row, place, values[someone, place])
        if value != room.state.value[place]:
            add_feature(world.board, world.persons, row, room.state, move, place, value)
    return joined_by_rules(world.board, world.rules, world.persons, row, room.state, move)


@kernel
def ask_about_donors(world, room, row, listed):
    """Who answers outside is asked about all who are listed at once."""
    while world.models.outside:
        for place in range(listed):
            if towards(world, room, row, room.donors.who[place]):
                sure_enough(world, room)
        if answered(room):
            return


@kernel
def from_donors(world, room, row, limit, best, cost):
    """From the people of the class who are cheapest to be like; what the best point costs."""
    home, starts, approached, walked = world.persons.origin[row], 0, 0, 0
    price_donors(world, row, room.donors)
    begin(world, room, row, home, limit)
    for turn in range(world.crowd.values.shape[0] // DONORS + 1):
        if turn == DONOR_TURNS and cost < np.inf:
            return cost
        listed = cheapest_donors(room.donors)
        ask_about_donors(world, room, row, listed)
        for place in range(listed):
            if not towards(world, room, row, room.donors.who[place]):
                continue
            accepted, like = sure_enough(world, room), True
            if not accepted and (cost < np.inf or walked == WALKS):
                continue
            if limit < np.inf:
                like = resembles(world.crowd, room.distances, room.state, room.move, limit)
            if not like and (not accepted or approached == WALKS):
                continue
            go(world, room, limit)
            if not like:
                approached += 1
                like = approach(world, room, row, limit)
            elif not accepted:
                walked += 1
                accepted = reach(world, room, row, limit, 1.0, np.inf, -1)
            if accepted and like:
                improve(world, room, row, limit, cost)
                cost = keep_cheaper(room.state, best, cost)
                starts += 1
                if starts == STARTS:
                    return cost
            begin(world, room, row, home, limit)
    return cost


# ---- a person ----


@kernel
def begin(world, room, row, point, limit):
    """Put a person at a valid point, and all that depends on it."""
    place_at(world.board, world.persons, row, room.state, point)
    stand_at(world.models, room.standing, room.state)
    if limit < np.inf:
        measure(world.crowd, room.distances, room.state.point)


@kernel
def keep_cheaper(state, best, cost):
    """The cheaper of the best point so far and this one; what it costs."""
    own = total_cost(state)
    if own >= cost:
        return cost
    for column in range(best.shape[0]):
        best[column] = state.point[column]
    return own


@kernel
def search_person(world, room, row, best):
    """What the point costs that was found, in ``best``; infinite where there is none.

    The search begins at the point that is in ``best`` before: home, or where another search has ended. Its goal is the
    cheapest point; or the start itself where it is good, and one that is reached from there where it is not; or where
    the score is highest around the start; or the start without the changes that it can do without.
    """
    limit = np.inf
    begin_order(world.models, room.standing)
    if world.crowd.threshold.shape[0] > 0:
        measure(world.crowd, room.distances, world.persons.origin[row])
        limit = max(unlikeness(world.crowd, room.distances.square, room.distances.least), 1.0)
    for column in range(best.shape[0]):
        room.start[column] = best[column]
    if world.goal == CHEAPEST or world.goal == REPAIRED:
        return search_class(world, room, row, limit, best)
    begin(world, room, row, room.start, limit)
    if world.goal == RISEN:
        rise(world, room, row, limit)
    else:
        prune(world, room, row, limit)
    return keep_cheaper(room.state, best, np.inf)


@kernel
def search_class(world, room, row, limit, best):
    """A point of the class: from the start, and where points must be like people, from there to some, from home and
    from people of the class."""
    home, cost, thrifty, from_home = world.persons.origin[row], np.inf, world.goal == CHEAPEST, True
    for column in range(best.shape[0]):
        from_home = from_home and room.start[column] == home[column]
    reached, among_people = False, np.inf  # in the class; what it costs to be like people there
    for way in range(3):
        begin(world, room, row, room.start, np.inf)
        if not walk(world, room, row, np.inf, way):
            continue
        reached = True
        if thrifty:
            improve(world, room, row, np.inf, cost if limit == np.inf else NEVER)
        alike = True
        if limit < np.inf:
            measure(world.crowd, room.distances, room.state.point)
            alike = passes(world.crowd, room.distances.square, room.distances.least, limit)
            if not alike and not approach(world, room, row, limit):
                continue
            if thrifty or not alike:
                improve(world, room, row, limit, cost)
            if not alike:
                among_people = min(among_people, total_cost(room.state))
        cost = keep_cheaper(room.state, best, cost)
        if not thrifty and alike:
            return cost
    if cost < among_people or (not from_home and thrifty):  # the cheapest point of all is like people
        return cost
    if limit < np.inf and (reached or not thrifty):
        for way in range(2):
            begin(world, room, row, home, limit)
            if walk(world, room, row, limit, way):
                improve(world, room, row, limit, cost)
                cost = keep_cheaper(room.state, best, cost)
    return from_donors(world, room, row, limit, best, cost)


@kernel
def walk(world, room, row, limit, way):
    """To the class by gain for its cost, by gain, or by all gains at once."""
    if world.models.by_slopes and way == 2:
        return climb(world, room, row, limit)
    power = 1.0 - way / 2 if not world.models.by_slopes else 1.0 - way
    return reach(world, room, row, limit, power, np.inf, -1)


@entry
def search_rows(world, room, rows, points, costs):
    """The same for some rows, whose points cost so much already: infinite where they are only a start."""
    here, desk = reference(world), reference(room)
    for turn in range(rows.shape[0]):
        row = rows[turn]
        cost = search_person(here, desk, row, points[row])
        if cost < costs[row]:
            costs[row] = cost
        else:
            points[row, :] = room.start
