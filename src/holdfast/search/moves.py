"""Searching among points that are really possible, one feature changed at a time, many rows at once.

A gradient walks through the hull of a space, where a person may be a third of a tenant, and rounding where it ends
loses the class or pays many times too much to keep it. Here every point is valid. Features are valid apart from one
another, so a move takes one feature of a point from another valid point, a proposal. The gradient says which moves of a
row look best, and those are tried: `reach` buys the target's margin for as little cost as it can until the class is
there, `reduce` takes back what is not needed, `climb` raises any other score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.models.scores import Score, margin
from holdfast.search.gradients import LEAST_SCORE, Ball, slope
from holdfast.search.people import people_for
from holdfast.tabular.people import People
from holdfast.tabular.space import Space

FRACTIONS = (1.0, 0.5, 0.2, 0.05, 0.01)  # of the way to a bound, or back home, that a number is moved
OVERSHOOT = (1.0, 1.03, 1.2)  # of the step that should reach the class by its slope
TRIED = 24  # moves a row that are tried at a time, of those that look best
COMPLETED = 8  # of them that relations complete at a time,
EACH = 2  # of one feature, if others have any,
MOST_COMPLETED = 16  # and in all
JUDGED = 6  # moves a row that are compared with people, where points must resemble some
TINY = 1e-9
FEWEST = 16  # rounds, where there are few features
WORTHWHILE = 0.2  # of the largest gain there is: a move of less is no way to the class, however cheap


@dataclass(frozen=True)
class Task:
    """Rows at ``origin`` who want ``target``: wanted are valid points that score above 0, and cheap ones.

    A point costs the sum over columns of (weight · |moved|)^norm, and lies in the ball if there is one.
    """

    model: Model
    origin: Tensor  # (n, d)
    target: Tensor  # (n,)
    space: Space
    norm: int = 2
    score: Score = margin
    ball: Ball | None = None
    guard: Score | None = None  # another score that may not fall
    floor: Tensor | None = None  # below this (n,)
    people: People | None = None  # whom every point must resemble
    limit: Tensor | None = None  # at least so much (n,); see `People.unlikeness`

    def of(self, rows: Tensor) -> Task:
        """The same for some rows."""
        return replace(
            self,
            origin=self.origin[rows],
            target=self.target[rows],
            space=self.space.of(rows),
            ball=None if self.ball is None else self.ball.of(rows),
            floor=None if self.floor is None else self.floor[rows],
            limit=None if self.limit is None else self.limit[rows],
        )

    @property
    def guarded(self) -> Task:
        """The same where every point must pass for a person of the target's class, if the space asks for that."""
        people = people_for(self.model, self.space)
        if people is None or self.limit is not None:
            return self
        return replace(self, people=people, limit=people.limits(self.origin, self.target))

    def tried(self, score: Score, points: Tensor) -> Tensor:
        """The scores of t points of each row (n, t, d): (n, t)."""
        with torch.no_grad():
            count = points.shape[1]
            target, origin = self.target.repeat_interleave(count), self.origin.repeat_interleave(count, 0)
            return score(self.model, points.flatten(0, 1), target, origin).view(points.shape[:2])

    def enough(self, point: Tensor) -> Tensor:
        """Which points (n, d) score above 0: (n,)."""
        return self.tried(self.score, point[:, None])[:, 0] > LEAST_SCORE

    def cost(self, point: Tensor) -> Tensor:
        """What the points (n, d) cost, or t points of each row (n, t, d): (n,) or (n, t)."""
        moved = self.space.moved(point, self.origin)
        return (moved if self.norm == 1 else moved**2).sum(-1)

    def costs(self, points: Tensor) -> Tensor:
        """What each feature of points (n, t, d) costs: (n, t, f)."""
        return self.space.per_feature(self.costs_of_columns(points))

    def costs_of_columns(self, points: Tensor) -> Tensor:
        """What each column of points (n, t, d) costs: (n, t, d)."""
        moved = self.space.moved(points, self.origin)
        return moved if self.norm == 1 else moved**2

    def allowed(self, points: Tensor) -> Tensor:
        """Which of the points (n, t, d) are near enough and keep the guard: (n, t)."""
        near = self.near(points)
        if self.guard is None or self.floor is None:
            return near
        return near & (self.tried(self.guard, points) >= self.floor[:, None])

    def plausible(self, point: Tensor) -> Tensor:
        """Which points (n, d) pass for people, if they must: (n,)."""
        if self.people is None or self.limit is None:
            return torch.ones_like(self.target, dtype=torch.bool)
        return self.people.like(point, self.target, self.limit)

    def good(self, point: Tensor) -> Tensor:
        """Which points (n, d) are all that is wanted: (n,)."""
        return self.near(point[:, None])[:, 0] & self.enough(point) & self.plausible(point)

    def near(self, points: Tensor) -> Tensor:
        """Which of the points (n, t, d) are near enough: (n, t)."""
        return torch.ones_like(points[..., 0], dtype=torch.bool) if self.ball is None else self.ball.holds(points)


def reach(task: Task, point: Tensor, hints: tuple[Tensor, ...] = (), rounds: int | None = None) -> Tensor:
    """From valid points towards the class: in every round the move that gains most margin for its cost.

    ``hints`` are valid points of the same rows whose features are worth trying, such as what a relaxed search found.
    """

    def gain_per_cost(now: Tensor, change: Tensor, extra: Tensor) -> Tensor:
        gain = torch.minimum(now[:, None] + change, torch.full_like(change, 2 * LEAST_SCORE)) - now[:, None]
        enough = gain > WORTHWHILE * gain.amax(1, keepdim=True)
        return torch.where((gain > 0) & enough, gain / extra.clamp_min(TINY), -torch.inf)

    return _walk(task, task.score, point, hints, gain_per_cost, rounds, until=LEAST_SCORE)


def reduce(task: Task, point: Tensor, rounds: int | None = None) -> Tensor:
    """From points that score enough to cheaper ones: in every round the move that saves most and keeps the score."""
    return _walk(task, task.score, point, (), _saving, rounds)


def climb(task: Task, score: Score, point: Tensor, hints: tuple[Tensor, ...] = (), rounds: int | None = None) -> Tensor:
    """From points that score enough to others that do, and for which another score is higher."""
    return _walk(task, score, point, hints, _rising, rounds)


def prune(task: Task, point: Tensor) -> Tensor:
    """Take back whole features that the points need not change, dearest first, as long as they score enough."""
    return _walk(task, task.score, point, (task.origin,), _saving, None, fractions=())


def repair(task: Task, point: Tensor) -> Tensor:
    """The nearest valid points, and where those have lost the class, valid ones that `reach` finds from there."""
    snapped = task.space.snap(point, task.origin)
    near = task.near(snapped[:, None])[:, 0]
    start = torch.where(near[:, None], snapped, task.origin)
    return torch.where((near & task.enough(snapped))[:, None], snapped, reach(task, start, (snapped,)))


def settle(task: Task, point: Tensor) -> Tensor:
    """Cheap valid points for what a relaxed search found: from where it ended and from home, the cheaper one.

    Where neither way leads to the class, the nearest valid point.
    """
    snapped = task.space.snap(point, task.origin)
    near = reach(task, snapped, (snapped,))
    # From home at l1 prices in either norm: squares favour many small moves, which the other start has already.
    afar = reach(replace(task, norm=1), task.origin, (snapped,))
    best = cheaper(task, reduce(task, near), reduce(task, afar))
    lost = torch.nonzero(~task.enough(best)).flatten()
    if len(lost):
        best[lost] = last_way(task.of(lost), snapped[lost])
    return best


def cheaper(task: Task, one: Tensor, other: Tensor) -> Tensor:
    """The cheaper of two points of each row, of those that are all that is wanted."""
    costs = [torch.where(task.good(point), task.cost(point), torch.inf) for point in (one, other)]
    return torch.where((costs[1] < costs[0])[:, None], other, one)


def last_way(task: Task, snapped: Tensor) -> Tensor:
    """From home by the largest gains, whatever they cost; the nearest valid point if that does not lead there."""
    end = reduce(task, _walk(task, task.score, task.origin, (snapped,), _rising, None, until=LEAST_SCORE))
    return torch.where(task.enough(end)[:, None], end, snapped)


Rank = Callable[[Tensor, Tensor, Tensor], Tensor]  # score now (n,), its change, extra cost (n, t) -> rank (n, t)


def _saving(now: Tensor, change: Tensor, extra: Tensor) -> Tensor:
    """Moves that keep what they must, by what they save."""
    return torch.where((now[:, None] + change > LEAST_SCORE) & (extra < -TINY), -extra, -torch.inf)


def _rising(now: Tensor, change: Tensor, extra: Tensor) -> Tensor:
    """Moves by how much they gain."""
    return torch.where(change > TINY, change, -torch.inf)


def _walk(
    task: Task,
    score: Score,
    point: Tensor,
    hints: tuple[Tensor, ...],
    rank: Rank,
    rounds: int | None,
    until: float | None = None,
    fractions: tuple[float, ...] = FRACTIONS,
) -> Tensor:
    """Take the best move of every row, round after round, until none ranks above the others."""
    point = point.clone()
    going = torch.arange(len(point) if len(task.space.features) else 0, device=point.device)
    if until is not None:
        going = going[task.of(going).tried(score, point[going][:, None])[:, 0] <= until]
    for _ in range(max(FEWEST, 2 * len(task.space.features)) if rounds is None else rounds):
        if not len(going):
            break
        some, own_hints = task.of(going), [hint[going] for hint in hints]
        moved, better, reached = _best_move(some, score, point[going], own_hints, rank, fractions)
        point[going] = moved
        going = going[better if until is None else better & (reached <= until)]
    return point


# ---- one round: propose, choose what looks best, try it, take the best ----


@dataclass(frozen=True)
class _Moves:
    """Moves of every row that look best, one feature each, and what they cost more than staying."""

    points: Tensor  # (n, t, d) the row after each move
    moved: Tensor  # (n, t, d) bool, the columns of the feature
    extra: Tensor  # (n, t)
    real: Tensor  # (n, t) bool; a row with fewer moves than t has some that are none

    def of(self, rows: Tensor, places: Tensor) -> _Moves:
        """Some moves (m, s) of some rows (m, 1)."""
        parts = (self.points, self.moved, self.extra, self.real)
        return _Moves(*(part[rows, places] for part in parts))


def _best_move(
    task: Task, score: Score, point: Tensor, hints: list[Tensor], rank: Rank, fractions: tuple[float, ...]
) -> tuple[Tensor, Tensor, Tensor]:
    """The points after their best move, which of them have one, and their score there."""
    now, gradient = slope(score, task.model, point, task.target, task.origin)
    if fractions and score is task.score:
        hints = [*hints, *_newton(task, point, now, gradient)]
    moves = _promising(task, point, _proposals(task, point, hints, fractions), now, gradient, rank)
    take = _taken if task.space.related is None else _taken_whole
    return take(task, score, point, now, moves, rank)


def _taken(
    task: Task, score: Score, point: Tensor, now: Tensor, moves: _Moves, rank: Rank
) -> tuple[Tensor, Tensor, Tensor]:
    """The points after the best of their moves, which of them have one, and their score there."""
    after = task.tried(score, moves.points)  # (n, t)
    allowed = moves.real & task.allowed(moves.points)
    if score is not task.score:
        allowed &= task.tried(task.score, moves.points) > LEAST_SCORE
    final = torch.where(allowed, rank(now, after - now[:, None], moves.extra), -torch.inf)
    better, place = _best_plausible(task, moves.points, final)
    rows = torch.arange(len(point), device=point.device)
    moved = torch.where(better[:, None], moves.points[rows, place], point)
    return moved, better, torch.where(better, after[rows, place], now)


def _taken_whole(
    task: Task, score: Score, point: Tensor, now: Tensor, moves: _Moves, rank: Rank
) -> tuple[Tensor, Tensor, Tensor]:
    """The same where relations complete every move.

    That takes long, so a few moves that rank best by themselves come first, and others only where none of these will do
    when it is complete. What is no use by itself is not completed.
    """
    ranked = rank(now, task.tried(score, moves.points) - now[:, None], moves.extra)
    ranked, order = _in_turns(torch.where(moves.real, ranked, -torch.inf), moves)
    moved, better, reached = point.clone(), torch.zeros_like(now, dtype=torch.bool), now.clone()
    going = torch.arange(len(point), device=point.device)
    for start in range(0, min(MOST_COMPLETED, order.shape[1]), COMPLETED):
        going = going[~better[going] & (ranked[going, start] > -torch.inf)]
        if not len(going):
            break
        places, some = order[going, start : start + COMPLETED], task.of(going)
        whole = _completed(some, point[going], moves.of(going[:, None], places))
        moved[going], better[going], reached[going] = _taken(some, score, point[going], now[going], whole, rank)
    return moved, better, reached


def _in_turns(ranked: Tensor, moves: _Moves) -> tuple[Tensor, Tensor]:
    """The ranks of the moves in order, and which they are: (n, t) both; ``EACH`` of every feature, then as many again.

    What a move costs when it is complete may be far more than by itself, so no feature takes all turns.
    """
    ranked, order = ranked.sort(1, descending=True)
    first = moves.moved.to(torch.int8).argmax(2).gather(1, order)  # a column says which feature
    same = (first[:, :, None] == first[:, None]) & (ranked[:, None] > -torch.inf)
    before = torch.tril(same, diagonal=-1).sum(2)
    turn = torch.where(ranked > -torch.inf, before // EACH, ranked.shape[1]).argsort(dim=1, stable=True)
    return ranked.gather(1, turn), order.gather(1, turn)


def _best_plausible(task: Task, points: Tensor, ranks: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows have a point among (n, t, d) that ranks above minus infinity and passes for a person, and which one.

    To compare with all people takes long, so points are judged in the order of their ranks, ``JUDGED`` at most.
    """
    value, place = ranks.max(1)
    better = value > -torch.inf
    if task.limit is None:
        return better, place
    ranks, going = ranks.clone(), torch.nonzero(better).flatten()
    for _ in range(JUDGED):
        if not len(going):
            break
        passes = task.of(going).plausible(points[going, place[going]])
        ranks[going, place[going]] = -torch.inf
        going = going[~passes]
        value, following = ranks[going].max(1)
        place[going], better[going] = following, value > -torch.inf
        going = going[value > -torch.inf]
    better[going] = False  # not judged to the end
    return better, place


def _promising(task: Task, point: Tensor, proposals: Tensor, now: Tensor, gradient: Tensor, rank: Rank) -> _Moves:
    """Of all moves, one feature (f) of one proposal (p) each, those that rank best by the gradient."""
    expected = task.space.per_feature((proposals - point[:, None]) * gradient[:, None])  # (n, p, f)
    extra = task.costs(proposals) - task.costs(point[:, None])  # (n, p, f)
    changed = task.space.per_feature((proposals != point[:, None]).to(point)) > 0
    ranked = torch.where(changed, rank(now, expected.flatten(1), extra.flatten(1)).view_as(extra), -torch.inf)
    # What the gradient would not take comes last rather than never: a gradient may be wrong.
    ranked = torch.where(changed & ranked.isinf(), expected / (1 + extra.abs()) - 1e12, ranked)
    best = ranked.flatten(1).topk(min(TRIED, ranked[0].numel()), dim=1)
    moved, points = _applied(point, proposals, task.space.features, best.indices)
    return _Moves(points, moved, extra.flatten(1).gather(1, best.indices), best.values > -torch.inf)


def _applied(point: Tensor, proposals: Tensor, features: Tensor, moves: Tensor) -> tuple[Tensor, Tensor]:
    """The columns that each of the moves (n, t) changes, and the points after it: (n, t, d) both.

    A move is proposal · f + feature.
    """
    proposal, feature = moves // len(features), moves % len(features)
    rows = torch.arange(len(point), device=point.device)[:, None]
    return features[feature], torch.where(features[feature], proposals[rows, proposal], point[:, None])


def _completed(task: Task, point: Tensor, moves: _Moves) -> _Moves:
    """The moves with what relations demand beside the columns they move; those for which that cannot be are none."""
    assert task.space.related is not None
    joined = (moves.moved & task.space.related.parts.any(0)).any(2) & moves.real  # others stay as they are
    people, _ = torch.nonzero(joined, as_tuple=True)
    space, home = task.space.of(people), task.space.values(task.origin)
    whole, valid = space.completed(moves.points[joined], task.origin[people], moves.moved[joined], home[people])
    points, real = moves.points.clone(), moves.real.clone()
    points[joined], real[joined] = whole, valid & (whole != point[people]).any(1)
    extra = task.costs_of_columns(points).sum(2) - task.costs_of_columns(point[:, None]).sum(2)
    return _Moves(points, moves.moved, extra, real)


def _newton(task: Task, point: Tensor, now: Tensor, gradient: Tensor) -> list[Tensor]:
    """Valid points whose every number is where it alone would score just enough, as far as its slope tells."""
    flat = gradient.abs() < TINY
    missing = torch.where(flat, 0, (2 * LEAST_SCORE - now)[:, None] / torch.where(flat, 1, gradient))
    low, high = task.space.bounds(task.origin)
    return [
        task.space.snap_apart(torch.minimum(torch.maximum(point + share * missing, low), high), task.origin)
        for share in OVERSHOOT
    ]


def _proposals(task: Task, point: Tensor, hints: list[Tensor], fractions: tuple[float, ...]) -> Tensor:
    """Valid points to take features from: part of the way home and to the bounds, every level, the hints. (n, p, d)"""
    if not fractions:
        return torch.stack(hints, dim=1)
    space, origin = task.space, task.origin
    ways = [origin, *space.bounds(origin)]
    part = [space.snap_apart(point + share * (end - point), origin) for end in ways for share in fractions]
    return torch.stack([*part, *space.levels(point, origin), *hints], dim=1)
