"""The cheapest counterfactuals inside an ensemble of trees.

What an ensemble says depends on the cells of a row alone, so a search among cells misses nothing, and a step from one
cell to the next asks only the trees that have this threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.asked import itself
from holdfast.models.least_sure import LeastSure
from holdfast.models.scores import AtLeast, Score, log_odds, margin
from holdfast.models.trees.committee import Committee
from holdfast.models.trees.ensemble import Ensemble
from holdfast.models.trees.ordered import in_order
from holdfast.search.believable import believable, cheapest
from holdfast.search.gradients import LEAST_SCORE
from holdfast.search.moves import Task, settle
from holdfast.search.tree_cells import Board, Cells

ROWS = 256  # whose cells are priced at a time,
AT_ONCE = 4  # and that are searched at a time: in between, the search can be interrupted
OTHERS = 64  # points beside the cheapest, where relations or people may refuse that
EXTRA = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # beyond the margin asked for, in log-odds
WORTHWHILE = 0.5  # of what a soft minimum is below the minimum: less beyond the margin is not tried
PRICES = 1 << 22  # of cells that are held at a time
PEOPLE = 4000  # training rows at most whose boxes are tried; where several models are searched, their share of them,
FEWEST = 250  # but so many
ENOUGH = 1.02 * LEAST_SCORE  # what a score must be, so that rounding to float32 decides nothing


def cheapest_of_trees(task: Task, ensemble: Ensemble | Committee) -> Tensor:
    """The cheapest points found that score above 0; where there are none, the row itself: (n, d).

    Where relations join columns or points must pass for people, the search is asked for more points than the cheapest.
    Each is made valid, the cheapest that then is all that is wanted counts, and needless moves are taken back. Who has
    none is searched for as with other models.
    """
    space, strict = task.space, task.guarded
    if space.related is None and strict.people is None:
        return _several(task, ensemble, 0)[0]
    apart, others = _several(task, ensemble, OTHERS)
    points = torch.cat([apart[:, None], others], 1)
    point = apart.clone()
    for rows in torch.split(torch.arange(len(apart)), ROWS):
        point[rows] = cheapest(strict.of(rows), points[rows])
    # Where no point scores enough, relations and people leave none; but a column that follows others may open a way.
    hopeful = task.enough(apart) | bool(space.follows.any())
    # From the cheapest point, then from wherever else a search would begin; where several models are searched together,
    # that takes long and leads nowhere new.
    for joined in (_joined, settle) if isinstance(ensemble, Ensemble) else (_joined,):
        lost = torch.nonzero(hopeful & ~strict.good(point)).flatten()
        if len(lost):
            own = task.of(lost)
            point[lost] = believable(own, joined(own, apart[lost]), again=joined is settle)
    return point


def _several(task: Task, ensemble: Ensemble | Committee, count: int) -> tuple[Tensor, Tensor]:
    """The cheapest point of every row and others, see `Trees.several`.

    Kernels look for the least of several models. Where that is not enough because a soft minimum is asked for, they
    look again for a larger one.
    """
    best, others = Trees(task, ensemble).several(count)
    own = itself(task.model)
    if not isinstance(own, LeastSure) or not own.temperature:
        return best, others
    for extra in EXTRA:
        left = torch.nonzero((best != task.origin).any(1) & ~task.enough(best)).flatten()
        if not len(left):
            break
        left = left[_softness(task.of(left), own, best[left]) * WORTHWHILE <= extra]
        if not len(left):
            continue
        some = task.of(left)
        best[left], others[left] = Trees(replace(some, score=AtLeast(task.score, extra)), ensemble).several(count)
    return best, others


def _softness(task: Task, own: LeastSure, point: Tensor) -> Tensor:
    """How far the soft minimum of several models is below the minimum: (n,)."""
    hard = replace(task, model=replace(own.searched, temperature=0.0))
    return hard.tried(task.score, point[:, None])[:, 0] - task.tried(task.score, point[:, None])[:, 0]


def _joined(task: Task, apart: Tensor) -> Tensor:
    """Points that are valid column by column, made valid by the relations too, and of the class again."""
    point = task.space.snap(apart, task.origin)
    left = torch.nonzero(task.enough(apart) & ~task.enough(point)).flatten()
    if len(left):
        point[left] = settle(task.of(left), apart[left])
    return point


def cheapest_in_trees(task: Task, ensemble: Ensemble | Committee) -> Tensor:
    """The same as if there were neither relations nor people."""
    return Trees(task, ensemble).several(0)[0]


class Trees:
    """A task whose model is an ensemble, or several that are searched together."""

    def __init__(self, task: Task, ensemble: Ensemble | Committee) -> None:
        if task.ball is not None:
            raise NotImplementedError("a search inside trees has no ball; leave it out of the task")
        # Kernels work in the memory of the processor, wherever the rows are.
        origin = task.origin.cpu()
        self.device = task.origin.device
        self.task = replace(task, origin=origin, target=task.target.cpu(), space=task.space.to(origin))
        if isinstance(ensemble, Ensemble):
            ensemble = Committee.alone(ensemble, itself(task.model))
        self.committee = ensemble
        self.board = Board.of(self.committee.joint, self.task.space)

    def several(self, count: int) -> tuple[Tensor, Tensor]:
        """The cheapest point of every row (n, d), and others that score enough, the row itself where there are fewer.

        Others are (n, count, d).
        """
        task = self.task
        best, others = task.origin.clone(), task.origin[:, None].repeat(1, count, 1)
        count_of_people = max(FEWEST, PEOPLE // len(self.committee.ensembles))
        known, people = arrays_of(self.board), _people(self.board.ensemble, count_of_people)
        for target in sorted(set(task.target.tolist())):
            search = Search(self.board, (*known, *Goal.of(task, self.committee, target).arrays), people)
            some = max(1, min(ROWS, PRICES // len(self.board.column)))
            for rows in torch.split(torch.nonzero(task.target == target).flatten(), some):
                best[rows], others[rows] = search(task.of(rows), count)
        return best.to(self.device), others.to(self.device)


@dataclass(frozen=True, eq=False)
class Goal:
    """What is wanted of the sums over trees: kernels take its ``arrays``."""

    arrays: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, task: Task, committee: Committee, target: int) -> Goal:
        odds, least = _wanted(task.score)
        own, ensembles = itself(task.model), committee.ensembles
        missing = 0  # so many of the members need not agree
        if isinstance(own, LeastSure):
            least, missing = least + own.margin, len(committee) - own.needed
        group = np.zeros((len(ensembles), max(sum(map(len, groups)) for groups in committee.groups)), dtype=np.int64)
        for place, groups in enumerate(committee.groups):
            for number, labels in enumerate(groups):
                group[place, list(labels)] = number
        settings = np.array([0, odds, least, target, len(committee.groups[0]), ENOUGH], dtype=np.float64)
        kinds = np.zeros((len(ensembles), 3), dtype=np.int64)
        for place, one in enumerate(ensembles):
            kinds[place] = one.link == "probability", len(one.base), place * committee.joint.value.shape[1]
        owner = np.repeat(np.arange(len(ensembles)), [len(one.roots) for one in ensembles])
        return cls((settings, group, kinds, owner, np.zeros(len(ensembles), dtype=np.bool_), np.zeros(missing + 1)))


def searches(trees: Ensemble | Committee, score: Score) -> bool:
    """Whether what is wanted can be looked for inside the trees: of several models, their margins can."""
    return isinstance(trees, Ensemble) or not _wanted(score)[0]


def _wanted(score: Score) -> tuple[bool, float]:
    """Whether a score is of odds rather than a margin, and how much of it is asked."""
    if isinstance(score, AtLeast):
        odds, least = _wanted(score.score)
        return odds, least + score.least
    if score is not margin and score is not log_odds:
        raise TypeError(f"trees are searched for a margin or log-odds, got {score!r}")
    return score is log_odds, 0.0


class Search:
    """The search towards one target."""

    def __init__(self, board: Board, world: tuple[NDArray[Any], ...], people: Cells) -> None:
        from holdfast.search import tree_kernels

        self.board, self.world = board, world
        enough = tree_kernels.scores_of(people, self.world) >= ENOUGH
        self.crowd = tree_kernels.boxes(people[enough], self.world)

    def __call__(self, task: Task, count: int) -> tuple[Tensor, Tensor]:
        """The cheapest points (n, d), and so many others (n, count, d)."""
        from holdfast.search import tree_kernels

        board, origin = self.board, task.origin
        home = board.ensemble.cells_of(board.ensemble.encoding.raw(origin)).astype(np.int64)
        cost, value = board.offers(origin, home, task.norm, task.space)
        first, last = reaches(board, home, cost)
        cells, others = home.copy(), np.repeat(home[:, None], count, axis=1)
        counts = np.zeros(len(home), dtype=np.int64)
        for start in range(0, len(home), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            person = home[some], cost[some], first[some], last[some]
            cells[some], _ = tree_kernels.search(*person, self.crowd, others[some], counts[some], self.world)
        more = [board.written(origin, home, others[:, place], value) for place in range(count)]
        return board.written(origin, home, cells, value), torch.stack([origin, *more], 1)[:, 1:]


def arrays_of(board: Board) -> tuple[NDArray[Any], ...]:
    """What kernels know of trees and cells; what is wanted comes behind it."""
    from holdfast.search.tree_kernels import LEVELS

    ensemble, features = board.ensemble, board.ensemble.features
    order, tree, end = in_order(ensemble)
    is_number = np.array([feature.is_numeric for feature in features])
    place = np.argsort(order)  # of every node among those in order
    feature, split = ensemble.feature[order].astype(np.int64), ensemble.split[order].astype(np.int64)
    kind = np.where(is_number[feature], ensemble.missing_left[order], LEVELS)
    left, right = place[ensemble.left[order]], place[ensemble.right[order]]
    layout = np.zeros((len(features) + 1, 3), dtype=np.int64)
    layout[:, 0], layout[:-1, 1], layout[:-1, 2] = board.offset, is_number, ensemble.arrays[1]
    inner = np.flatnonzero(feature >= 0)
    steps = inner[is_number[feature[inner]]]
    touch_start, nodes = _lists(board.offset[feature[steps]] + split[steps], steps, int(board.offset[-1]))
    return (
        np.stack([feature, split, kind, left, right], axis=1).astype(np.int32),
        ensemble.value[order],
        place[ensemble.roots],
        ensemble.sets,
        layout,
        touch_start,  # which nodes have each threshold, where what is below them ends, and whose tree it is
        np.stack([nodes, end[nodes], tree[nodes]], axis=1),
        *_lists(feature[inner], tree[inner], len(features)),  # which trees use each feature
        ensemble.base,
    )


def reaches(board: Board, home: Cells, cost: NDArray[np.float64]) -> tuple[Cells, Cells]:
    """The first and the last cell that each person can have of each number: (n, f)."""
    first, last = np.zeros_like(home), np.zeros_like(home)
    for number, (feature, _, cells) in enumerate(board.features()):
        if feature.is_numeric:
            finite = np.isfinite(cost[:, cells.start : cells.stop - feature.missing])
            any_ = finite.any(1)
            first[:, number] = np.where(any_, finite.argmax(1), 1)
            last[:, number] = np.where(any_, finite.shape[1] - 1 - finite[:, ::-1].argmax(1), 0)
    return first, last


def _lists(
    keys: NDArray[np.int64], values: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The different values of every key, one list after another: where each begins (count + 1,), and all of them."""
    most = int(values.max(initial=0)) + 1
    key, value = np.divmod(np.unique(keys * most + values), most)
    return np.searchsorted(key, np.arange(count + 1)), value


def _people(ensemble: Ensemble, count: int) -> Cells:
    """The cells of so many people whom the encoding knows."""
    known = ensemble.encoding.known
    if known is None or not len(known):
        return np.zeros((0, len(ensemble.features)), dtype=np.int64)
    some = known.iloc[np.unique(np.linspace(0, len(known) - 1, count).astype(int))]
    return ensemble.cells(some).astype(np.int64)
