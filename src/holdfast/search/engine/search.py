"""The cheapest points of many people: a few at a time on every thread, since kernels leave the interpreter free."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.asked import itself
from holdfast.models.least_sure import LeastSure
from holdfast.models.model import Model
from holdfast.models.parts import Dense, Grown, Part
from holdfast.models.scores import AtLeast, Score, log_odds, margin
from holdfast.search.people import people_for
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space
from holdfast.utils.threads import most_threads

if TYPE_CHECKING:
    from holdfast.search.engine.board import Board, Floats, Integers
    from holdfast.search.engine.phases import Room, World
    from holdfast.search.engine.scorers import Models

LOG = logging.getLogger(__name__)
AT_ONCE = 8  # people: in between, a search can be interrupted


@dataclass(frozen=True, eq=False)
class Wanted:
    """Which models must agree, read as arrays, and by how much."""

    parts: tuple[Part, ...]  # of the deployed model first
    needed: int = 0  # how many of the others must agree
    least: float = 0.0
    temperature: float = 0.0
    odds: bool = False

    def models(self, board: Board) -> Models:
        from holdfast.search.engine.scorers import models_of

        return models_of(self.parts, board, self.needed, self.least, self.temperature, self.odds)

    @property
    def encoding(self) -> Encoding | None:
        """That of the trees, if there are any; it knows rows of the training table."""
        return next((part.ensemble.encoding for part in self.parts if isinstance(part, Grown)), None)

    def fits(self, space: Space) -> bool:
        """Whether its points can be searched: a feature of trees must be one of the space's.

        Networks have slopes, which serve better where every number may be anything.
        """
        if space.discrete or self.encoding is None:
            return space.discrete
        return all(place.stop - place.start == 1 for _, place in self.encoding.places)


def wanted_of(model: Model, score: Score) -> Wanted | None:
    """What must agree; None where that is neither networks of dense layers nor trees, or the score no margin."""
    own, least = itself(model), _least(score)
    parts = able(own).parts
    if parts is None or least is None or not _alike(parts):
        return None
    several = isinstance(own, LeastSure)
    odds = _is_odds(score) and (several or max(parts[0].classes) > 1)
    if odds and (several or isinstance(parts[0], Dense)):
        return None
    if isinstance(own, LeastSure):
        return Wanted(parts, own.needed, own.margin + least, own.temperature)
    return Wanted(parts, least=least, odds=odds)


def _alike(parts: Sequence[Part]) -> bool:
    """Whether an encoded row is the same person to all trees."""
    encodings = [part.ensemble.encoding for part in parts if isinstance(part, Grown)]
    return all(one.reads_like(encodings[0]) for one in encodings)


def _least(score: Score) -> float | None:
    """By how much a margin must exceed 0; None where the score is another one."""
    if isinstance(score, AtLeast):
        own = _least(score.score)
        return None if own is None else own + score.least
    return 0.0 if score is margin or score is log_odds else None


def _is_odds(score: Score) -> bool:
    return _is_odds(score.score) if isinstance(score, AtLeast) else score is log_odds


def cheapest(
    wanted: Wanted,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    norm: int,
    start: Callable[[Tensor], Tensor],
) -> Tensor:
    """The cheapest points that were found; the row itself where there is none: (n, d).

    A person's point depends on that person alone, and not on who is searched beside them, or on how many threads.
    Where every way from home has failed, trees are searched from people of the training table, and networks from the
    valid points that ``start`` gives for those rows (m,).
    """
    from holdfast.search.engine import phases
    from holdfast.search.engine.board import board_of, persons_of
    from holdfast.search.engine.compiled import announced
    from holdfast.search.engine.crowd import crowd_of, crowd_of_known

    origin, labels = x.cpu(), target.cpu()
    here = space.to(origin)
    board, rules = board_of(here, norm)
    persons, models = persons_of(here, origin, board), wanted.models(board)
    points, costs = persons.origin.copy(), np.full(len(origin), np.inf)
    people = people_for(model, here)

    def search(rows: Integers, donors: Encoding | None = None) -> None:
        for label in sorted(set(labels[rows].tolist())):
            crowd = crowd_of(people, label, board) if donors is None else crowd_of_known(donors, board)
            world = phases.World(board, rules, models, crowd, persons, label)
            own = rows[labels[rows].numpy() == label]
            _on_threads(partial(_search_some, world, points=points, costs=costs), list(_chunks(own)))

    with announced(phases.search_rows):
        search(np.arange(min(1, len(origin))))  # which compiles
    search(np.arange(1, len(origin)))
    lost = np.flatnonzero(np.isinf(costs))
    if len(lost) and people is None and wanted.encoding is not None:
        search(lost, wanted.encoding)
    elif len(lost) and models.by_slopes:
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
    from holdfast.search.engine.phases import Room, donors_of, tried_of
    from holdfast.search.engine.scorers import standing_of

    board = world.board
    return Room(
        state_of(board),
        move_of(board, world.rules),
        standing_of(world.models),
        distances_of(world.crowd),
        tried_of(),
        donors_of(world.crowd),
        np.zeros(len(board.columns)),
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
