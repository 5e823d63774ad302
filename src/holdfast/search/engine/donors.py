"""Towards real people, and from people of the class."""

from __future__ import annotations

import numpy as np

from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.crowd import passes, resembles, unlikeness, unlikeness_at_most
from holdfast.search.engine.exchange import improve
from holdfast.search.engine.moves import (
    TINY,
    add_feature,
    extra_cost,
    is_open,
    joined_by_rules,
    move_one,
    nearest_index,
    number_at,
    price,
    stay,
)
from holdfast.search.engine.reach import reach
from holdfast.search.engine.sorting import list_least
from holdfast.search.engine.world import DONORS, answered, begin, go, keep_cheaper, sure_enough

STARTS = 2  # people of the class from whom a search begins
DONOR_TURNS = 4  # lists of people who are tried where something has been found
WALKS = 2  # from people who are not of the class for all models
NEARLY = 4  # walks towards real people, from people who are of the class but could not exist there
APPROACHES = 24  # moves towards real people


@kernel
def clipped(world, row, index, value):
    """Somebody's value of a feature as far as a person may have it; home where they may not."""
    board, limits = world.board, world.persons.ranges[row, index]
    feature = board.features[index]
    if not limits.free:
        return limits.home
    if feature.is_group:
        return value if world.persons.levels[row, feature.group, int(value)] else limits.home
    if limits.last < limits.first:
        return limits.home
    found = number_at(board, feature, limits, nearest_index(feature, limits, value))
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
            for index in range(world.board.features.shape[0]):
                for turn in range(crowd.nearest + 1):  # the values of those who are nearest, and that at home
                    tried = world.persons.ranges[row, index].home
                    if turn < crowd.nearest:
                        if distances.near[turn] < 0:
                            continue
                        tried = clipped(world, row, index, crowd.values[distances.near[turn], index])
                    if tried == state.value[index] or not move_one(world, room, row, index, tried):
                        continue
                    like = max(unlikeness_at_most(crowd, distances, room.move), limit)
                    gain = (now - like) / max(extra_cost(room), 0.01 * (now - like))
                    if like < now - TINY and gain > best and sure_enough(world, room):
                        best, chosen, value, after = gain, index, tried, like
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
        for index in range(world.board.features.shape[0]):
            if world.persons.ranges[row, index].free:
                cost += price(world, row, index, clipped(world, row, index, world.crowd.values[someone, index]))
        donors.cost[someone] = cost


@kernel
def cheapest_donors(donors):
    """List the cheapest people who have not been listed, cheapest first; how many."""
    kept = list_least(donors.cost, donors.who)
    for slot in range(kept):
        donors.cost[donors.who[slot]] = np.inf
    return kept


@kernel
def towards(world, room, row, someone):
    """The move from home as far towards somebody as a person may go; False where that cannot be."""
    values = world.crowd.values
    stay(room)
    for index in range(world.board.features.shape[0]):
        value = clipped(world, row, index, values[someone, index])
        if value != room.state.value[index]:
            add_feature(world, room, row, index, value)
    return joined_by_rules(world, room, row)


@kernel
def ask_about_donors(world, room, row, listed):
    """Who answers outside is asked about all who are listed at once."""
    while world.models.outside:
        for slot in range(listed):
            if towards(world, room, row, room.donors.who[slot]):
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
        for slot in range(listed):
            if not towards(world, room, row, room.donors.who[slot]):
                continue
            accepted, like = sure_enough(world, room), True
            if not accepted and (cost < np.inf or walked == WALKS):
                continue
            if limit < np.inf:
                like = resembles(world.crowd, room.distances, room.state, room.move, limit)
            if not like and (not accepted or approached == NEARLY):
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
