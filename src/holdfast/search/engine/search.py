"""The cheapest points of many people: a few at a time on every thread, since kernels leave the interpreter free."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.asked import itself
from holdfast.models.least_sure import LeastSure
from holdfast.models.model import Model
from holdfast.models.scores import AtLeast, Score, log_odds, margin
from holdfast.search.people import people_for
from holdfast.tabular.space import Space
from holdfast.utils.threads import most_threads

if TYPE_CHECKING:
    from holdfast.search.engine.board import Floats, Integers
    from holdfast.search.engine.networks import Networks
    from holdfast.search.engine.phases import Room, World

LOG = logging.getLogger(__name__)
AT_ONCE = 8  # people: in between, a search can be interrupted


def networks_for(model: Model, score: Score) -> Networks | None:
    """What must agree, compiled; None where that is no network of dense layers, or the score no margin."""
    own, least = itself(model), _least(score)
    models = able(own).dense
    if models is None or least is None or (_is_odds(score) and max(models[0].classes) > 1):
        return None
    from holdfast.search.engine.networks import networks_of

    if isinstance(own, LeastSure):
        return networks_of(models, own.needed, own.margin + least, own.temperature)
    return networks_of(models, 0, least, 0.0)


def _least(score: Score) -> float | None:
    """By how much a margin must exceed 0; None where the score is another one."""
    if isinstance(score, AtLeast):
        own = _least(score.score)
        return None if own is None else own + score.least
    return 0.0 if score is margin or score is log_odds else None


def _is_odds(score: Score) -> bool:
    return _is_odds(score.score) if isinstance(score, AtLeast) else score is log_odds


def cheapest(
    networks: Networks,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    norm: int,
    start: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """The cheapest points that were found; the row itself where there is none: (n, d).

    A person's point depends on that person alone, and not on who is searched beside them, or on how many threads.
    ``start`` gives valid points to begin from for some rows (m,), those for whom every way from home has failed.
    """
    from holdfast.search.engine import phases
    from holdfast.search.engine.board import board_of, persons_of
    from holdfast.search.engine.compiled import announced
    from holdfast.search.engine.crowd import crowd_of

    origin, wanted = x.cpu(), target.cpu()
    here = space.to(origin)
    board, rules = board_of(here, norm)
    persons = persons_of(here, origin, board)
    points, costs = persons.origin.copy(), np.full(len(origin), np.inf)
    people = people_for(model, here)

    def search(rows: Integers) -> None:
        for label in sorted(set(wanted[rows].tolist())):
            world = phases.World(board, rules, networks, crowd_of(people, label, board), persons, label)
            own = rows[wanted[rows].numpy() == label]
            _on_threads(partial(_search_some, world, points=points, costs=costs), list(_chunks(own)))

    with announced(phases.search_rows):
        search(np.arange(min(1, len(origin))))  # which compiles
    search(np.arange(1, len(origin)))
    lost = np.flatnonzero(np.isinf(costs))
    if start is not None and len(lost):
        points[lost] = start(torch.from_numpy(lost).to(x.device)).cpu().double().numpy()
        search(lost)
        points[np.isinf(costs)] = persons.origin[np.isinf(costs)]
    return torch.from_numpy(points).to(x)


def _chunks(rows: Integers) -> Iterator[Integers]:
    for start in range(0, len(rows), AT_ONCE):
        yield np.ascontiguousarray(rows[start : start + AT_ONCE])


def _search_some(world: World, rows: Integers, *, points: Floats, costs: Floats) -> None:
    from holdfast.search.engine.phases import search_rows

    search_rows(world, _room(world), rows, points, costs)


def _room(world: World) -> Room:
    from holdfast.search.engine.crowd import distances_of
    from holdfast.search.engine.moves import move_of, state_of
    from holdfast.search.engine.networks import standing_of
    from holdfast.search.engine.phases import Room, donors_of, tried_of

    board = world.board
    return Room(
        state_of(board),
        move_of(board, world.rules),
        standing_of(world.networks),
        distances_of(world.crowd),
        tried_of(),
        donors_of(world.crowd),
        np.zeros(len(board.columns)),
    )


def _on_threads(search: Callable[[Integers], None], chunks: Sequence[Integers]) -> None:
    """All chunks; Ctrl-C ends the search behind those that have begun."""
    threads = min(most_threads(), len(chunks))
    if threads <= 1:
        for chunk in chunks:
            search(chunk)
        return
    with ThreadPoolExecutor(threads) as pool:
        waiting = [pool.submit(search, chunk) for chunk in chunks]
        try:
            for done in as_completed(waiting):
                done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
