"""The search of one person: reach the class, give back what is not needed, exchange one change for another.

Every point on the way is one that the person can have. `reach` buys the target's margin for as little cost as it can;
`reduce` takes back what is not needed; `exchange` sends one feature home and moves another instead, for less in all.
Where a point must resemble real people, only what would be taken is compared with them.
"""

from __future__ import annotations

import numpy as np

from holdfast.search.engine.compiled import entry, kernel
from holdfast.search.engine.crowd import measure, passes, unlikeness
from holdfast.search.engine.donors import approach, from_donors
from holdfast.search.engine.exchange import improve
from holdfast.search.engine.goals import CHEAPEST, REPAIRED, RISEN
from holdfast.search.engine.moves import total_cost
from holdfast.search.engine.reach import rise, walk
from holdfast.search.engine.reduce import prune
from holdfast.search.engine.references import reference
from holdfast.search.engine.scorers import begin_order
from holdfast.search.engine.world import NEVER, begin, keep_cheaper


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
