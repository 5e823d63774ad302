"""Changes bought one column at a time, where every number between two bounds is possible: many rows at once.

The gradient says which moves of a row look best, and those are tried. First the margin is bought for as little cost as
it can be had for, until the class is reached; then what is not needed is given back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.search.gradients import LEAST_SCORE, slope
from holdfast.search.task import Task

FRACTIONS = (1.0, 0.5, 0.2, 0.05, 0.01)  # of the way to a bound, or back home, that a number is moved
OVERSHOOT = (1.0, 1.03, 1.2)  # of the step that should reach the class by its slope
MOVES_TRIED = 24  # moves of a row that are tried at a time, of those that look best
FEWEST_ROUNDS = 16  # where there are few columns
WORTHWHILE = 0.2  # of the largest gain there is: a move of less is no way to the class, however cheap
TINY = 1e-9

Rank = Callable[[Tensor, Tensor, Tensor], Tensor]  # score now (n,), its change, extra cost (n, t) -> rank (n, t)


def bought(task: Task, hint: Tensor) -> Tensor:
    """Cheap points of a space that is not discrete, bought from home with an eye on the columns of a hint: (n, d)."""
    return _walk(task, _walk(task, task.origin, (hint,), _gain_per_cost, until_reached=True), (), _saving)


def _gain_per_cost(now: Tensor, change: Tensor, extra: Tensor) -> Tensor:
    """Moves that gain, up to enough, by what they gain for their cost."""
    gain = torch.minimum(now[:, None] + change, torch.full_like(change, 2 * LEAST_SCORE)) - now[:, None]
    enough = gain > WORTHWHILE * gain.amax(1, keepdim=True)
    return torch.where((gain > 0) & enough, gain / extra.clamp_min(TINY), -torch.inf)


def _saving(now: Tensor, change: Tensor, extra: Tensor) -> Tensor:
    """Moves that keep what they must, by what they save."""
    return torch.where((now[:, None] + change > LEAST_SCORE) & (extra < -TINY), -extra, -torch.inf)


def _walk(task: Task, point: Tensor, hints: tuple[Tensor, ...], rank: Rank, until_reached: bool = False) -> Tensor:
    """Take the best move of every row, round after round, until none ranks above the others."""
    point, columns = point.clone(), torch.nonzero(task.space.mutable).flatten()
    going = torch.arange(len(point) if len(columns) else 0, device=point.device)
    if until_reached:
        going = going[~task.of(going).enough(point[going])]
    for _ in range(max(FEWEST_ROUNDS, 2 * len(columns))):
        if not len(going):
            break
        moved, better, score = _best_move(task.of(going), point[going], columns, [hint[going] for hint in hints], rank)
        point[going] = moved
        going = going[better & (score <= LEAST_SCORE) if until_reached else better]
    return point


@dataclass(frozen=True)
class _Moves:
    """Moves of every row that look best, and what they cost more than staying."""

    points: Tensor  # (n, t, d) the row after each move
    extra: Tensor  # (n, t)
    real: Tensor  # (n, t) bool; a row with fewer moves than t has some that are none


def _best_move(
    task: Task, point: Tensor, columns: Tensor, hints: list[Tensor], rank: Rank
) -> tuple[Tensor, Tensor, Tensor]:
    """The points after their best move, which of them have one, and their score there."""
    now, gradient = slope(task.score, task.model, point, task.target, task.origin)
    proposals = _proposals(task, point, [*hints, *_newton(task, point, now, gradient)])
    moves = _promising(task, point, columns, proposals, now, gradient, rank)
    after = task.tried(task.score, moves.points)  # (n, t)
    ranked = torch.where(moves.real, rank(now, after - now[:, None], moves.extra), -torch.inf)
    value, best = ranked.max(1)
    better, rows = value > -torch.inf, torch.arange(len(point), device=point.device)
    moved = torch.where(better[:, None], moves.points[rows, best], point)
    return moved, better, torch.where(better, after[rows, best], now)


def _promising(
    task: Task, point: Tensor, columns: Tensor, proposals: Tensor, now: Tensor, gradient: Tensor, rank: Rank
) -> _Moves:
    """Of all moves, one column of one proposal each, those that rank best by the gradient."""
    away = (proposals - point[:, None])[..., columns]  # (n, p, f)
    expected = away * gradient[:, None, columns]
    extra = task.costs(proposals) - task.costs(point[:, None])
    ranked = torch.where(away != 0, rank(now, expected.flatten(1), extra.flatten(1)).view_as(extra), -torch.inf)
    # What the gradient would not take comes last rather than never: a gradient may be wrong.
    ranked = torch.where((away != 0) & ranked.isinf(), expected / (1 + extra.abs()) - 1e12, ranked)
    best = ranked.flatten(1).topk(min(MOVES_TRIED, ranked[0].numel()), dim=1)
    proposal, column = best.indices // len(columns), columns[best.indices % len(columns)]  # (n, t)
    rows = torch.arange(len(point), device=point.device)[:, None]
    moved = torch.nn.functional.one_hot(column, point.shape[1]).bool()
    points = torch.where(moved, proposals[rows, proposal], point[:, None])
    return _Moves(points, extra.flatten(1).gather(1, best.indices), best.values > -torch.inf)


def _newton(task: Task, point: Tensor, now: Tensor, gradient: Tensor) -> list[Tensor]:
    """Points whose every number is where it alone would score just enough, as far as its slope tells."""
    flat = gradient.abs() < TINY
    missing = torch.where(flat, 0, (2 * LEAST_SCORE - now)[:, None] / torch.where(flat, 1, gradient))
    low, high = task.space.bounds(task.origin)
    ways = [torch.minimum(torch.maximum(point + share * missing, low), high) for share in OVERSHOOT]
    return [task.space.snap_apart(way, task.origin) for way in ways]


def _proposals(task: Task, point: Tensor, hints: list[Tensor]) -> Tensor:
    """Points to take columns from: part of the way home and to the bounds, the hints. (n, p, d)"""
    ways = [task.origin, *task.space.bounds(task.origin)]
    part = [task.space.snap_apart(point + share * (end - point), task.origin) for end in ways for share in FRACTIONS]
    return torch.stack([*part, *hints], dim=1)
