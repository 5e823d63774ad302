"""To the class: round after round the move that gains most, for its cost or in all."""

from __future__ import annotations

import numpy as np

from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.crowd import resembles
from holdfast.search.engine.moves import TINY, extra_cost, move_one, move_two, price, total_cost
from holdfast.search.engine.networks import slope_along
from holdfast.search.engine.scorers import lead
from holdfast.search.engine.sweeps import NO_FEATURE, ask_sweep, note
from holdfast.search.engine.values import count_of_values, swept, value_worth_a_look
from holdfast.search.engine.world import ENOUGH, NEVER, TRIED, alike, answered, go, score_after, sure_here

WORTHWHILE = 0.2  # of the largest gain there is: a move of less is no way to the class, however cheap
EACH = 3  # moves of one feature, of those that look best
JUDGED = 6  # moves of a round that are compared with people
ROUNDS = 16  # of `reach`, beside two for each feature
SCANS = 6  # of all moves, on one way: where slopes mislead more often, the way rarely ends in the class
CLIMBS = 6  # rounds in which many features move at a time


@kernel
def keep(tried, kept, rank, feature, value):
    """Put a move among those that look best, ``EACH`` of a feature at most; how many there are."""
    of_feature, last = 0, kept
    for slot in range(kept):
        if tried.feature[slot] == feature:
            of_feature += 1
            last = slot
    full = of_feature == EACH or kept == TRIED
    slot = last if of_feature == EACH else min(kept, TRIED - 1)
    if full and rank <= tried.rank[slot]:  # the last move, of the feature or of all, is the better one
        return kept
    while slot > 0 and tried.rank[slot - 1] < rank:
        tried.rank[slot] = tried.rank[slot - 1]
        tried.feature[slot] = tried.feature[slot - 1]
        tried.value[slot] = tried.value[slot - 1]
        slot -= 1
    tried.rank[slot], tried.feature[slot], tried.value[slot] = rank, feature, value
    return kept if full else kept + 1


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
def look_at(world, room, row, kept, index, value, now, by_gain):
    """One candidate: by the slopes, as if there were no relations."""
    board, state = world.board, room.state
    feature = board.features[index]
    if value == state.value[index]:
        return kept
    extra = price(world, row, index, value) - state.cost[index]
    if feature.is_group:
        change = 0.0
        for turn in range(2):
            level = state.value[index] if turn == 0 else value
            if level < feature.size:
                column = board.columns_of_groups[feature.first + int(level)]
                on, off = board.columns[column].on, board.columns[column].off
                before, after = (on, off) if turn == 0 else (off, on)
                change += slope_along(world.models.networks, room.standing.layers, column, before, after)
    else:
        change = slope_along(world.models.networks, room.standing.layers, feature.column, state.value[index], value)
    return keep(room.tried, kept, rank_of(now, change, extra, by_gain), index, value)


@kernel
def candidates(world, room, row, now, by_gain):
    """The moves that look best by the slopes; how many."""
    kept = 0
    for index in range(world.board.features.shape[0]):
        if not world.persons.ranges[row, index].free:
            continue
        for turn in range(-1, count_of_values(world, row, index)):
            value = value_worth_a_look(world, room, row, index, turn, now)
            kept = look_at(world, room, row, kept, index, value, now, by_gain)
    return kept


@kernel
def take_gains(world, room, row, limit, now):
    """Where no move gains anything that looks good by the slopes: of all moves the one that gains most, and those that
    gain half as much, one after another as long as each still gains. Whether there is one."""
    tried = room.tried
    while True:
        kept = 0
        for index in range(world.board.features.shape[0]):
            if not world.persons.ranges[row, index].free:
                continue
            for turn in range(count_of_values(world, row, index)):
                value = value_worth_a_look(world, room, row, index, turn, now)
                if value == room.state.value[index] or not move_one(world, room, row, index, value):
                    continue
                bound = now + TINY + (tried.rank[kept - 1] if kept == TRIED else 0.0)
                after = score_after(world, room, bound)
                if after > bound and alike(world, room, limit):
                    kept = keep(tried, kept, after - now, index, value)
        if answered(room):
            break
    moved = False
    for slot in range(kept):
        if tried.rank[slot] < tried.rank[0] / 2:
            break
        if not move_one(world, room, row, tried.feature[slot], tried.value[slot]) or not alike(world, room, limit):
            continue
        while True:
            after = score_after(world, room, now + TINY)
            if answered(room):
                break
        if after > now + TINY:
            go(world, room, limit)
            now, moved = after, True
    return moved


@kernel
def reach(world, room, row, limit, power, most, barred):
    """To the class, for ``most`` at most: in every round the move that gains most for its cost to the power; one
    feature is barred. Whether it got there."""
    tried, scans = room.tried, 0
    for _ in range(2 * world.board.features.shape[0] + ROUNDS + world.models.position.shape[0]):
        now = lead(world, room)
        if now > ENOUGH:
            return True
        if world.models.by_slopes:
            kept = asked_by_slopes(world, room, row, limit, now, power)
        else:
            kept = asked_about_all(world, room, row, limit, max(now, NEVER), power, most, barred)
        chosen = choose(world, room, row, kept, limit)
        if chosen < 0:
            if not world.models.by_slopes or scans == SCANS:
                return False
            scans += 1
            if not (take_gains(world, room, row, limit, now) or take_pair(world, room, row, kept, limit, now)):
                return False
            continue
        move_one(world, room, row, tried.feature[chosen], tried.value[chosen])
        go(world, room, limit)
    return sure_here(world, room)


@kernel
def asked_by_slopes(world, room, row, limit, now, power):
    """The moves that look best by the slopes, with what they gain for their cost; how many."""
    tried, by_gain = room.tried, power == 0
    kept = candidates(world, room, row, now, by_gain)
    while True:
        most, best = 0.0, 0.0
        for slot in range(kept):
            tried.rank[slot] = -np.inf
            if not move_one(world, room, row, tried.feature[slot], tried.value[slot]):
                continue
            if world.models.outside and not alike(world, room, limit):
                continue
            extra = max(extra_cost(room), TINY)
            bound = now + max(WORTHWHILE * most, 0.0)
            if limit == np.inf:
                bound = max(bound, now + (best if by_gain else best * extra))
            after = score_after(world, room, bound)
            if after <= bound:
                continue
            gain = min(after, 2 * ENOUGH) - now
            most = max(most, gain)
            tried.rank[slot] = gain if by_gain else gain / extra
            best = max(best, tried.rank[slot])
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
    board, state, move, tried, sweep = world.board, room.state, room.move, room.tried, room.sweep
    kept, spent, later, waiting = 0, total_cost(state), room.later, 0
    enough = 1 if limit == np.inf else JUDGED  # moves that are wanted
    for index in range(board.features.shape[0]):
        feature = board.features[index]
        if index == barred or not world.persons.ranges[row, index].free:
            continue
        count = 0
        for turn in range(-1, count_of_values(world, row, index)):
            value = value_worth_a_look(world, room, row, index, turn, now)
            if value == state.value[index]:
                continue
            worst = tried.rank[enough - 1] if kept >= enough else 0.0
            extra = price(world, row, index, value) - state.cost[index]
            if feature.related < 0 and (spent + extra > most or (2 * ENOUGH - now) / to_power(extra, power) <= worst):
                continue
            if not move_one(world, room, row, index, value):
                continue
            extra = extra_cost(room)
            bound = now + max(worst * to_power(extra, power), TINY)
            if spent + extra > most:
                continue
            if swept(world, room, index, 0):
                count = note(sweep, count, value, extra, bound)
            else:  # dearer to ask about: when it is known what the others are worth
                later.feature[waiting], later.value[waiting], later.extra[waiting] = index, value, extra
                waiting += 1
        ask_sweep(world.models, room.standing, state, move, sweep, count, index, NO_FEATURE, 0.0, world.target, False)
        for at in range(count):
            if sweep.score[at] > -np.inf:
                gain = min(sweep.score[at], 2 * ENOUGH) - now
                kept = keep(tried, kept, gain / to_power(sweep.extra[at], power), index, sweep.value[at])
    for at in range(waiting):
        worst = tried.rank[enough - 1] if kept >= enough else 0.0
        scaled = to_power(later.extra[at], power)
        if (2 * ENOUGH - now) / scaled <= worst:
            continue
        bound = now + max(worst * scaled, TINY)
        move_one(world, room, row, later.feature[at], later.value[at])
        after = score_after(world, room, bound)
        if after > bound:
            rank = (min(after, 2 * ENOUGH) - now) / scaled
            kept = keep(tried, kept, rank, later.feature[at], later.value[at])
    return kept


@kernel
def choose(world, room, row, kept, limit):
    """The best of the moves that were asked about, that could be a person; -1 where there is none."""
    tried = room.tried
    for _ in range(JUDGED):
        best, chosen = 0.0, np.int64(-1)
        for slot in range(kept):
            if tried.rank[slot] > best:
                best, chosen = tried.rank[slot], slot
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
        tried, best, first, second = room.tried, now + TINY, np.int64(-1), np.int64(-1)
        for slot in range(kept):
            for other in range(slot):
                if tried.feature[slot] == tried.feature[other]:
                    continue
                if not move_both(world, room, row, slot, other):
                    continue
                after = score_after(world, room, best)
                if after > best and alike(world, room, limit):
                    best, first, second = after, slot, other
        if answered(room):
            break
    if first < 0:
        return False
    move_both(world, room, row, first, second)
    go(world, room, limit)
    return True


@kernel
def move_both(world, room, row, slot, other):
    tried = room.tried
    return move_two(world, room, row, tried.feature[slot], tried.value[slot], tried.feature[other], tried.value[other])


@kernel
def climb(world, room, row, limit):
    """To the class by whatever gains, many features at a time: where small steps lead nowhere. Whether it got there."""
    tried = room.tried
    for _ in range(CLIMBS):
        now = lead(world, room)
        if now > ENOUGH:
            return True
        kept, moved = candidates(world, room, row, -np.inf, True), False
        for slot in range(kept):
            feature = tried.feature[slot]
            taken = False
            for earlier in range(slot):
                taken = taken or tried.feature[earlier] == feature
            if taken or not tried.rank[slot] > TINY:
                continue
            if move_one(world, room, row, feature, tried.value[slot]) and alike(world, room, limit):
                go(world, room, limit)
                moved = True
        if not moved:
            return False
    return sure_here(world, room)


@kernel
def rise(world, room, row, limit):
    """To where the score is highest: in every round the move that gains most."""
    tried = room.tried
    for _ in range(2 * world.board.features.shape[0] + ROUNDS):
        now = lead(world, room)
        kept = candidates(world, room, row, -np.inf, True)
        while True:
            best, chosen = now + TINY, np.int64(-1)
            for slot in range(kept):
                if move_one(world, room, row, tried.feature[slot], tried.value[slot]) and alike(world, room, limit):
                    after = score_after(world, room, best)
                    if after > best:
                        best, chosen = after, np.int64(slot)
            if answered(room):
                break
        if chosen < 0:
            return
        move_one(world, room, row, tried.feature[chosen], tried.value[chosen])
        go(world, room, limit)


@kernel
def walk(world, room, row, limit, way):
    """To the class by gain for its cost, by gain, or by all gains at once."""
    if world.models.by_slopes and way == 2:
        return climb(world, room, row, limit)
    power = 1.0 - way / 2 if not world.models.by_slopes else 1.0 - way
    return reach(world, room, row, limit, power, np.inf, -1)
