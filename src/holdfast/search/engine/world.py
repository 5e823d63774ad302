"""What a search of one person reads and writes, and moves as it asks about them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast.search.engine.board import Board, Floats, Integers, Persons
from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.crowd import Crowd, Distances, distances_of, follow, measure, resembles
from holdfast.search.engine.moves import (
    Move,
    State,
    index_of,
    make,
    move_of,
    move_one,
    place_at,
    state_of,
    stay,
    total_cost,
)
from holdfast.search.engine.outside import UNSURE, Notes, all_heard
from holdfast.search.engine.rules import Rules
from holdfast.search.engine.scorers import Models, Standing, listen, stand_after, stand_at, standing_of, sure
from holdfast.search.engine.sweeps import FEW_VALUES, Sweep, sweep_of

NEVER = -1e100  # a score of somebody who agrees with nothing
ENOUGH = 1.5e-4  # a score that rounding does not bring below what is asked for
TRIED = 24  # moves that are asked about in a round of `reach`, of those that look best by the slopes
DONORS = 96  # people of the class who are tried at a time


class Tried(NamedTuple):
    """Moves that look best, best first."""

    rank: Floats
    feature: Integers
    value: Floats


class Later(NamedTuple):
    """Moves that are asked about when it is known what the others are worth."""

    feature: Integers
    value: Floats
    extra: Floats  # what they cost more than staying


class Donors(NamedTuple):
    """People of the class, cheapest first."""

    cost: Floats  # (m,) of everybody; infinite who has been listed
    who: Integers


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
    sweep: Sweep
    distances: Distances
    tried: Tried
    later: Later
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
        sweep_of(world.models),
        distances_of(world.crowd),
        Tried(np.zeros(TRIED), np.zeros(TRIED, np.int64), np.zeros(TRIED)),
        later_of(board, world.models),
        Donors(np.zeros(len(world.crowd.values)), np.zeros(DONORS, np.int64)),
        np.zeros(len(board.columns)),
        np.zeros(len(board.columns)),
    )


def later_of(board: Board, models: Models) -> Later:
    edges = models.forest.first_edge
    most = sum(max(FEW_VALUES, int(feature["size"]) + 1) + 2 for feature in board.features) + int(edges[-1])
    return Later(np.zeros(most, np.int64), np.zeros(most), np.zeros(most))


@kernel
def score_after(world, room, bound):
    """How sure all are after the move, if that is above the bound; else some number that is not above it."""
    return sure(world.models, room.standing, room.state, room.move, world.target, bound)


@kernel
def sure_enough(world, room):
    """Whether everybody who must agrees after the move; whoever objects has a say in what is tried next."""
    if score_after(world, room, ENOUGH) > ENOUGH:
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
    make(world, room)
    stand_after(world.models, room.standing, room.state, room.move)


@kernel
def place_on_grid(feature, limits, value):
    """The grid index of a value; one before the first that a person may have, or behind the last, if it is outside."""
    return min(max(index_of(feature, limits, value), limits.first - 1), limits.last + 1)


@kernel
def like_move(world, room, row, limit, index, value):
    """Write down a move after which a person is like people; False where that cannot be."""
    return move_one(world, room, row, index, value) and alike(world, room, limit)


@kernel
def begin(world, room, row, point, limit):
    """Put a person at a valid point, and all that depends on it."""
    place_at(world, row, room.state, point)
    stand_at(world.models, room.standing, room.state)
    if limit < np.inf:
        measure(world.crowd, room.distances, room.state.point)


@kernel
def keep_cheaper(state, best, cost):
    """The cheaper of the best point so far and this one; what it costs."""
    new_cost = total_cost(state)
    if new_cost >= cost:
        return cost
    for column in range(best.shape[0]):
        best[column] = state.point[column]
    return new_cost
