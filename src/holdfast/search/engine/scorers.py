"""How sure several models are of a move: networks and trees, asked in the order of doubt.

Whoever refused last is asked first. A rejection may stop early, an acceptance asks everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdfast.models.parts import Dense, Grown, Part
from holdfast.search.engine.board import Board, Floats, Integers
from holdfast.search.engine.compiled import kernel
from holdfast.search.engine.forests import (
    Forest,
    Leaves,
    follow_trees,
    forest_margin,
    forest_of,
    hear,
    hear_nobody,
    leaves_of,
    stand,
)
from holdfast.search.engine.moves import stay
from holdfast.search.engine.networks import (
    Layers,
    Networks,
    add_slopes,
    layers_of,
    network_margin,
    networks_of,
    sum_anew,
)
from holdfast.search.engine.outside import Notes, heard, heard_here, note_here, notes_of
from holdfast.search.engine.sorting import bring_forward, keep_least

LIGHT = 0.01  # a member that weighs less has no say in which way is up


class Models(NamedTuple):
    """The deployed model first, and the members beside it."""

    networks: Networks
    forest: Forest
    position: Integers  # (k,) of a model among the networks; -1 - its position among those of trees
    needed: int  # how many of the members must agree, the deployed one aside
    margin: float  # by how much each of them
    temperature: float
    odds: bool  # log-odds in place of margins
    by_slopes: bool  # whether slopes say which moves to ask about: all are networks, or asked outside
    outside: bool  # whether a function of Python says how sure they are


class Standing(NamedTuple):
    """What the models say of where a person is, and room to ask them about a move."""

    layers: Layers
    leaves: Leaves
    margins: Floats  # (k,) of whoever was asked last
    order: Integers  # (k,) of doubt
    sorted: Floats  # (k,)
    notes: Notes  # of models that are asked outside


def models_of(
    parts: Sequence[Part],
    board: Board,
    needed: int = 0,
    margin: float = 0.0,
    temperature: float = 0.0,
    odds: bool = False,
) -> Models:
    """The deployed model, and the members beside it, of whom so many must agree."""
    layers = [part for part in parts if isinstance(part, Dense)]
    grown = [part for part in parts if isinstance(part, Grown)]
    is_grown = np.array([isinstance(part, Grown) for part in parts], dtype=np.bool_)
    among_trees, among_networks = (np.cumsum(flags, dtype=np.int64) for flags in (is_grown, ~is_grown))
    return Models(
        networks_of(layers, len(board.columns)),
        forest_of(grown, board),
        np.where(is_grown, -among_trees, among_networks - 1),
        needed,
        float(margin),
        float(temperature),
        odds,
        by_slopes=not grown,
        outside=False,
    )


def asked_outside(board: Board) -> Models:
    """One model that a function of Python asks."""
    return models_of((), board)._replace(position=np.zeros(1, np.int64), outside=True)


def standing_of(models: Models, notes: Notes | None = None) -> Standing:
    members = len(models.position)
    return Standing(
        layers_of(models.networks),
        leaves_of(models.forest),
        np.zeros(members),
        np.arange(members),
        np.zeros(members),
        notes_of(len(models.networks.inputs), 0) if notes is None else notes,
    )


# ---- where a person is ----


@kernel
def begin_order(models, standing):
    """Nobody has refused yet; of trees, the deployed model alone says which thresholds are worth a look."""
    for member in range(standing.order.shape[0]):
        standing.order[member] = member
    hear_nobody(standing.leaves)
    listen(models, standing, 0)


@kernel
def listen(models, standing, member):
    """From now on a member, if it is one of trees, says what is worth a look."""
    if models.position[member] < 0:
        hear(models.forest, standing.leaves, -1 - models.position[member])


@kernel
def stand_at(models, standing, state):
    """Ask about moves from here."""
    if models.outside:
        note_here(standing.notes, state.point)
        return
    sum_anew(models.networks, standing.layers, state.point)
    stand(models.forest, standing.leaves, state)


@kernel
def stand_after(models, standing, state, move):
    """The same after a move that was made."""
    if models.outside:
        note_here(standing.notes, state.point)
        return
    sum_anew(models.networks, standing.layers, state.point)
    follow_trees(models.forest, standing.leaves, state, move)


# ---- a move ----


@kernel
def margin_after(models, standing, state, move, member, target):
    """By how much a member prefers the target after a move that was entered."""
    position = models.position[member]
    if position >= 0:
        return network_margin(models.networks, standing.layers, state, move, position, target) - models.margin
    return (
        forest_margin(models.forest, standing.leaves, state, move, -1 - position, target, models.odds) - models.margin
    )


@kernel
def sure(models, standing, state, move, target, bound):
    """How sure all of them are after a move, if that is above the bound; else some number that is not above it."""
    if models.outside:
        return heard(standing.notes, state, move)
    members = models.position.shape[0]
    spare = members - 1 - models.needed  # so many may refuse
    refused, least, check = 0, np.inf, 4
    for turn in range(members):
        member = standing.order[turn]
        margin = margin_after(models, standing, state, move, member, target)
        standing.margins[member] = margin
        least = min(least, margin)
        if margin <= bound:
            refused += 1
            if member == 0 or refused > spare:
                bring_forward(standing.order, turn, 0)  # whoever refused comes first from now on
                return margin
        if spare == 0 and models.temperature > 0 and turn + 1 == check and check < members:
            check += max(4, check // 4)
            if soft_bound(models, standing, turn + 1, least) <= bound:
                return bound
    return joint(models, standing)


@kernel
def most_telling_first(standing):
    """For the soft minimum: of those who were all asked, three of the least sure, then one of the surest, and so on.

    The least sure weigh most, and how far the surest are from them says how much.
    """
    order, margins, members = standing.order, standing.margins, standing.order.shape[0]
    for turn in range(1, members):
        slot = turn
        while slot > 0 and margins[order[slot - 1]] > margins[order[turn]]:
            slot -= 1
        bring_forward(order, turn, slot)
    for turn in range(3, members, 4):
        bring_forward(order, members - 1, turn)


@kernel
def soft_bound(models, standing, asked_so_far, least):
    """What the soft minimum is at most, from the members that were asked.

    Their spread about their own mean is at most that of all, so that the temperature in logits is at least tau.
    """
    total = 0.0
    for turn in range(asked_so_far):
        total += standing.margins[standing.order[turn]]
    mean, square = total / asked_so_far, 0.0
    for turn in range(asked_so_far):
        square += (standing.margins[standing.order[turn]] - mean) ** 2
    tau = models.temperature * np.sqrt(square / standing.order.shape[0])
    if not (tau > 0 and tau < np.inf):
        return least
    soft = 0.0
    for turn in range(asked_so_far):
        soft += np.exp(-(standing.margins[standing.order[turn]] - least) / tau)
    return least - tau * np.log(soft)


@kernel
def joint(models, standing):
    """How sure all of them are together, from everybody's margins; those that need not agree are left out."""
    lowest = counted_from(models, standing)
    least = standing.margins[0]
    for member in range(1, standing.margins.shape[0]):
        if standing.margins[member] >= lowest:
            least = min(least, standing.margins[member])
    tau = spread_of(models, standing, lowest)
    if not tau > 0 or not np.isfinite(least):
        return least
    soft = 0.0
    for member in range(standing.margins.shape[0]):
        if member == 0 or standing.margins[member] >= lowest:
            soft += np.exp(-(standing.margins[member] - least) / tau)
    return least - tau * np.log(soft)


@kernel
def counted_from(models, standing):
    """The least margin of a member that counts, the deployed model aside."""
    members = standing.margins.shape[0] - 1
    spare = members - models.needed
    if spare <= 0:
        return -np.inf
    # The (spare + 1)-th least: few may be left out, so it is found by insertion.
    for slot in range(spare + 1):
        standing.sorted[slot] = np.inf
    for member in range(1, members + 1):
        keep_least(standing.sorted, spare + 1, standing.margins[member])
    return standing.sorted[spare]


@kernel
def spread_of(models, standing, lowest):
    """The temperature in logits; 0 for the hard minimum."""
    if models.temperature <= 0:
        return 0.0
    total, count = 0.0, 0
    for member in range(standing.margins.shape[0]):
        value = standing.margins[member]
        if (member == 0 or value >= lowest) and np.isfinite(value):
            total += value
            count += 1
    if count == 0:
        return 0.0
    mean, square = total / count, 0.0
    for member in range(standing.margins.shape[0]):
        value = standing.margins[member]
        if (member == 0 or value >= lowest) and np.isfinite(value):
            square += (value - mean) ** 2
    return models.temperature * np.sqrt(square / count)


@kernel
def lead(world, room):
    """How sure all are of where a person is; of networks the slope of that by every row of weights too."""
    models, standing, state, target = world.models, room.standing, room.state, world.target
    stay(room)
    if models.outside:
        score = heard_here(standing.notes, state)
        for column in range(standing.notes.slopes.shape[0]):
            standing.layers.slopes[column] = standing.notes.slopes[column]
        return score
    now = sure(models, standing, state, room.move, target, -np.inf)
    lowest = counted_from(models, standing)
    tau = spread_of(models, standing, lowest)
    least, who = np.inf, 0
    for member in range(standing.margins.shape[0]):
        if (member == 0 or standing.margins[member] >= lowest) and standing.margins[member] < least:
            least, who = standing.margins[member], member
    if models.by_slopes:
        slopes = standing.layers.slopes
        for row in range(slopes.shape[0]):
            slopes[row] = 0.0
        if not tau > 0 or not np.isfinite(least):
            add_slopes(models.networks, standing.layers, who, target, 1.0)
        else:
            total = 0.0
            for member in range(standing.margins.shape[0]):
                if member == 0 or standing.margins[member] >= lowest:
                    total += np.exp(-(standing.margins[member] - least) / tau)
            for member in range(standing.margins.shape[0]):
                if member == 0 or standing.margins[member] >= lowest:
                    share = np.exp(-(standing.margins[member] - least) / tau) / total
                    if share > LIGHT:
                        add_slopes(models.networks, standing.layers, member, target, share)
    if tau > 0:
        most_telling_first(standing)
    else:
        for turn in range(standing.order.shape[0]):
            if standing.order[turn] == who:
                bring_forward(standing.order, turn, 0)
                break
    listen(models, standing, who)
    return now
