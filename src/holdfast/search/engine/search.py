"""The search of many people: compiled models on every thread, a few people at a time, others by an interview."""

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
from holdfast.models.checked import CheckedModel, itself, leading
from holdfast.models.model import Model
from holdfast.models.parts import Dense, Grown, Part
from holdfast.models.scores import AtLeast, Score, log_odds, margin
from holdfast.models.worst_case import WorstCaseEnsemble
from holdfast.search.engine.goals import CHEAPEST, PRUNED, REPAIRED, RISEN
from holdfast.search.gradients import LEAST_SCORE
from holdfast.search.people import people_for
from holdfast.search.task import Task
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space
from holdfast.utils.threads import most_threads

if TYPE_CHECKING:
    from holdfast.search.engine.board import Board, Integers
    from holdfast.search.engine.scorers import Models
    from holdfast.search.engine.world import World

LOG = logging.getLogger(__name__)
AT_ONCE = 8  # people: in between, a search can be interrupted
KNOWN = 1000  # rows of a training table from which a search may begin
CALLS = 2000  # points that a model which is not compiled is asked about for each person


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
        return all(columns.stop - columns.start == 1 for _, columns in self.encoding.places)


def wanted_of(model: Model, score: Score) -> Wanted | None:
    """What must agree; None where that is neither networks of dense layers nor trees, or the score no margin."""
    underlying, least = itself(model), _least(score)
    parts = able(underlying).parts
    if parts is None or least is None or not _alike(parts):
        return None
    is_ensemble = isinstance(underlying, WorstCaseEnsemble)
    odds = _is_odds(score) and (is_ensemble or max(parts[0].classes) > 1)
    if odds and (is_ensemble or isinstance(parts[0], Dense)):
        return None
    if isinstance(underlying, WorstCaseEnsemble):
        return Wanted(parts, underlying.needed, underlying.margin + least, underlying.temperature)
    return Wanted(parts, least=least, odds=odds)


def _alike(parts: Sequence[Part]) -> bool:
    """Whether an encoded row is the same person to all trees."""
    encodings = [part.ensemble.encoding for part in parts if isinstance(part, Grown)]
    return all(encoding.reads_like(encodings[0]) for encoding in encodings)


def _least(score: Score) -> float | None:
    """By how much a margin must exceed 0; None where the score is another one."""
    if isinstance(score, AtLeast):
        inner = _least(score.score)
        return None if inner is None else inner + score.least
    return 0.0 if score is margin or score is log_odds else None


def _is_odds(score: Score) -> bool:
    return _is_odds(score.score) if isinstance(score, AtLeast) else score is log_odds


def cheapest(task: Task, start: Callable[[Tensor], Tensor] | None = None, calls: int = CALLS) -> Tensor:
    """The cheapest points that score above 0; the row itself where none was found: (n, d).

    A person's point depends on that person alone, and not on who is searched beside them, or on how many threads.
    Where every way from home has failed, models without slopes are searched from known rows, and others from the valid
    points that ``start`` gives for those rows (m,); with norm 2 everybody is.
    """
    search = _Search(task, CHEAPEST, calls)
    everybody = np.arange(len(task.origin))
    search.run(everybody)
    if len(search.lost) and search.people is None and not search.has_slopes:
        search.run(search.lost, among_known=True)
    elif start is not None and search.has_slopes:
        # Squares favour many small moves, which one feature at a time comes to late. Who was searched from real people
        # too and is lost gains nothing by one more start.
        rows = everybody if task.norm == 2 else search.lost if search.people is None else search.lost[:0]
        if len(rows):
            search.run_from(start(torch.from_numpy(rows).to(task.origin.device)), rows)
    return search.found


def repaired(task: Task, point: Tensor, calls: int = CALLS) -> Tensor:
    """The points where they are good, and where they are not, good ones that are reached from there; (n, d).

    Where there is no way, the nearest valid point, or the row itself where that is not near enough.
    """
    if not task.space.discrete and task.space.people is None:
        return point
    snapped = task.space.snap(point, task.origin)
    start = torch.where(task.near(snapped[:, None]), snapped, task.origin)
    search = _Search(task, REPAIRED, calls, start)
    search.run(np.arange(len(point)))
    return torch.where(torch.from_numpy(np.isinf(search.costs)).to(start.device)[:, None], start, search.found)


def risen(task: Task, point: Tensor, aim: Score, calls: int = CALLS) -> Tensor:
    """From points that are good to such for which another score is as high as it gets: (n, d)."""
    search = _Search(task, RISEN, calls, point, aim)
    search.run(np.arange(len(point)))
    return search.found


def pruned(task: Task, point: Tensor, calls: int = CALLS) -> Tensor:
    """Good points without the changes of whole features that they can do without, the dearest first: (n, d)."""
    search = _Search(task, PRUNED, calls, point)
    search.run(np.arange(len(point)))
    return search.found


class _Search:
    """One search: what is the same for all people, and what was found so far."""

    def __init__(
        self, task: Task, goal: int, calls: int, point: Tensor | None = None, aim: Score | None = None
    ) -> None:
        from holdfast.search.engine.board import board_of, persons_of
        from holdfast.search.engine.scorers import asked_outside

        self.origin, self.target = task.origin, task.target.cpu().numpy()
        here = task.space.to(task.origin.cpu())
        self.board, self.rules = board_of(here, task.norm)
        self.persons = persons_of(here, task.origin.cpu(), self.board)
        plain = task.ball is None and task.guard is None and aim is None
        wanted = wanted_of(task.model, task.score) if plain else None
        if wanted is not None and wanted.fits(task.space):
            self.models, self.has_slopes = wanted.models(self.board), wanted.encoding is None
            self.known = partial(_known_rows, wanted.encoding)
        else:
            self.models, self.has_slopes = asked_outside(self.board), able(itself(task.model)).has_gradient
            self.known = partial(_learned_rows, task.model)
        self.answers, self.people, self.goal = _Outside(task, aim), people_for(task.model, here), goal
        self.calls = np.full(len(self.target), calls)
        self.points = self.persons.origin.copy() if point is None else point.detach().cpu().double().numpy().copy()
        self.costs = np.full(len(self.points), np.inf)

    @property
    def lost(self) -> Integers:
        """For whom nothing was found: (m,)."""
        return np.flatnonzero(np.isinf(self.costs))

    @property
    def found(self) -> Tensor:
        """The points; the row itself where nothing was found: (n, d)."""
        lost = np.isinf(self.costs)[:, None]
        return torch.from_numpy(np.where(lost, self.persons.origin, self.points)).to(self.origin)

    def run(self, rows: Integers, among_known: bool = False) -> None:
        """Search for some of the people: among those of the space, or else from known rows."""
        from holdfast.search.engine.compiled import announced
        from holdfast.search.engine.crowd import crowd_of, crowd_of_rows
        from holdfast.search.engine.interview import Interview
        from holdfast.search.engine.person import search_rows
        from holdfast.search.engine.world import World

        def world_of(label: int) -> World:
            crowd = crowd_of(self.people, label, self.board)
            if among_known:
                crowd = crowd_of_rows(self.known(label), self.board)
            return World(self.board, self.rules, self.models, crowd, self.persons, label, self.goal)

        worlds = {label: world_of(label) for label in sorted(set(self.target[rows].tolist()))}
        if self.models.outside:
            # Led by slopes first. A surrogate's may mislead: then by what is said of every value.
            asked_by = [self.models.by_slopes] if self.has_slopes else [True, False]
            turns = {
                label: [world._replace(models=world.models._replace(by_slopes=slopes)) for slopes in asked_by]
                for label, world in worlds.items()
            }
            with announced(search_rows):
                scores, slopes = self.answers.scores, self.answers.slopes
                ask = Interview(
                    lambda row: turns[self.target[row]], scores, slopes, self.calls, self.points, self.costs
                )
                ask(rows)
            return
        with announced(search_rows):
            for row in rows[:1]:  # which compiles
                self._search_chunk(worlds[self.target[row]], rows[:1])
        for label, world in worlds.items():
            same_label = rows[1:][self.target[rows[1:]] == label]
            _on_threads(partial(self._search_chunk, world), list(_chunks(same_label)))

    def run_from(self, point: Tensor, rows: Integers) -> None:
        """The same from other points (m, d); the cheaper one is kept."""
        points, costs = self.points[rows], self.costs[rows]
        self.points[rows], self.costs[rows] = point.cpu().double().numpy(), np.inf
        self.run(rows)
        kept = costs <= self.costs[rows]
        self.points[rows[kept]], self.costs[rows[kept]] = points[kept], costs[kept]

    def _search_chunk(self, world: World, rows: Integers) -> None:
        from holdfast.search.engine.person import search_rows
        from holdfast.search.engine.world import room_of

        search_rows(world, room_of(world), rows, self.points, self.costs)


@dataclass(frozen=True, eq=False)
class _Outside:
    """A model that is not compiled, asked in torch."""

    task: Task
    aim: Score | None  # what is to be high where all that is wanted is true; the task's own score where None

    def scores(self, people: Tensor, points: Tensor) -> Tensor:
        """What points (m, d) of these people (m,) are worth; those that may not be, minus infinity: (m,)."""
        task, who = self.task, people.to(self.task.origin.device)
        points = points.to(task.origin)
        found = torch.full_like(points[:, 0], -torch.inf)
        near = None if task.ball is None else task.ball.of(who).holds(points[:, None])[:, 0]
        rows = torch.arange(len(who), device=who.device) if near is None else torch.nonzero(near).flatten()
        if not len(rows):
            return found
        target, origin = task.target[who[rows]], task.origin[who[rows]]
        with torch.no_grad():
            score = task.score(task.model, points[rows], target, origin)
            fits = torch.ones_like(score, dtype=torch.bool)
            if task.guard is not None and task.floor is not None:
                fits = task.guard(task.model, points[rows], target, origin) >= task.floor[who[rows]]
            if self.aim is not None:
                fits &= score > LEAST_SCORE
                score = self.aim(task.model, points[rows], target, origin)
        if isinstance(task.model, CheckedModel) and not able(itself(task.model)).has_gradient:
            task.model.tally.rows += len(rows)
        found[rows] = torch.where(fits, score, -torch.inf)
        return found

    def slopes(self, people: Tensor, points: Tensor) -> Tensor:
        """The gradient of the score, or of that of a surrogate: (m, d)."""
        task, who = self.task, people.to(self.task.origin.device)
        score = task.score if self.aim is None else self.aim
        with torch.enable_grad():
            at = points.to(task.origin).requires_grad_()
            value = score(leading(task.model), at, task.target[who], task.origin[who])
            (gradient,) = torch.autograd.grad(value.sum(), at)
        return gradient.nan_to_num(0.0, 0.0, 0.0)


def _known_rows(encoding: Encoding | None, label: int) -> Tensor:
    """Some rows of the training table."""
    if encoding is None or encoding.known is None:
        return torch.zeros(0, 0)
    known = encoding.known
    return encoding.encode(known.iloc[np.unique(np.linspace(0, len(known), KNOWN, endpoint=False).astype(int))])


def _learned_rows(model: Model, label: int) -> Tensor:
    """Rows to which a model that only answers gives the class."""
    rows, logits = able(itself(model)).learned
    return rows[logits.argmax(1) == label]


def _chunks(rows: Integers) -> Iterator[Integers]:
    size = max(1, min(AT_ONCE, len(rows) // (4 * most_threads())))  # so that no thread waits long for another
    for start in range(0, len(rows), size):
        yield np.ascontiguousarray(rows[start : start + size])


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
