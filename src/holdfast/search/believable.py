"""Where a search found a point that nobody is like: the search again, among points that pass for people.

Most of what a search finds passes. For the rest, several ways are tried. From home by moves that all pass, and from the
real people of the class who are nearest: the cheaper point counts. Where neither leads to the class: from home by other
moves, from all those people, and from random points. A point that does not pass stays where nothing else is found, and
`assess` says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from holdfast.models.asked import itself
from holdfast.models.least_sure import LeastSure
from holdfast.models.model import Model
from holdfast.search.gradients import LEAST_SCORE, Ball, by_rows
from holdfast.search.moves import Task, cheaper, last_way, reach, reduce
from holdfast.search.random_points import random_in_hull
from holdfast.tabular.people import People
from holdfast.tabular.space import Space

DONORS = 512  # real people of the class, the nearest, whose values are tried for each row
TRIES = 1000  # random points, where nothing else is left
POINTS = 1 << 16  # that are made and judged at a time
MADE_VALID = 128  # of each row, where there are more
IN_TURN = 16  # of each row that are compared with people at a time


def believable(task: Task, point: Tensor) -> Tensor:
    """The points (n, d), and in the place of those that nobody is like, cheap ones that pass for people."""
    strict = task.guarded
    if strict.people is None:
        return point
    missed = torch.nonzero(~strict.good(point)).flatten()
    if not len(missed):
        return point
    some, hint, point = strict.of(missed), point[missed], point.clone()
    best = _from_everywhere(some, hint, strict.people)
    point[missed] = torch.where(some.good(best)[:, None], best, hint)
    return point


def _from_everywhere(task: Task, hint: Tensor, people: People) -> Tensor:
    trusted = _trusted(task, people)
    best = cheaper(task, _from_home(task, hint), _from_donors(task, trusted))
    lost = torch.nonzero(~task.good(best)).flatten()
    if len(lost) and people.thorough:
        # Of several models that must agree, all are asked about everybody: only of those on whom they agree already.
        whom = trusted if isinstance(itself(task.model), LeastSure) else people
        best[lost] = _by_other_ways(task.of(lost), hint[lost], whom)
    return best


def believable_rows(
    model: Model, x: Tensor, point: Tensor, target: Tensor, space: Space, radius: float | None = None
) -> Tensor:
    """The same for the points of a method that has no task, some rows at a time, within ``radius`` of home."""
    if space.people is None:
        return point

    def search(space: Space, x: Tensor, point: Tensor, target: Tensor) -> Tensor:
        ball = None if radius is None else Ball(x, torch.full_like(x[:, 0], radius))
        return believable(Task(model, x, target, space, ball=ball), point)

    return by_rows(space, search, x, point, target)


def _by_gains(task: Task, hint: Tensor) -> Tensor:
    return last_way(task, task.space.snap(hint, task.origin))


def _from_home(task: Task, hint: Tensor) -> Tensor:
    return reduce(task, reach(task, task.origin, (task.space.snap(hint, task.origin),)))


def _trusted(task: Task, people: People) -> People:
    """Those of the people to whom the model gives the class that they have."""
    kept = [torch.ones(len(rows), dtype=torch.bool, device=rows.device) for rows in people.encoded]
    for label in sorted(set(task.target.tolist())):
        for member in people.members(label):
            rows = people.encoded[member]
            with torch.no_grad():
                right = task.model(rows).argmax(1) == label if len(rows) else kept[member]
            kept[member] = right if bool(right.any()) else kept[member]
    return people.only(kept)


def _from_donors(task: Task, people: People) -> Tensor:
    """From the people of the class who are nearest, with what a person cannot change as it is."""
    start = cheapest(task, people.donors(task.origin, task.target, DONORS))
    return reduced(task, start)


def _by_other_ways(task: Task, hint: Tensor, people: People) -> Tensor:
    """One way after the other, each for those whom none has led anywhere yet."""

    def at_other_prices(own: Task, hint: Tensor) -> Tensor:
        return _from_home(replace(own, norm=3 - own.norm), own.origin)

    def from_anywhere(own: Task, hint: Tensor) -> Tensor:
        return _from_anywhere(own, people)

    best, lost = task.origin.clone(), torch.arange(len(hint), device=hint.device)
    for way in (_by_gains, at_other_prices, from_anywhere):
        own = task.of(lost)
        best[lost] = way(own, hint[lost])
        lost = lost[~own.good(best[lost])]
        if not len(lost):
            break
    return best


def _from_anywhere(task: Task, people: People) -> Tensor:
    """From whoever of the class would do, or else from a random point that does."""
    best = task.origin.clone()
    for label in sorted(set(task.target.tolist())):
        rows, donors = torch.nonzero(task.target == label).flatten(), people.rows(label)
        for some in torch.split(rows, POINTS // len(donors) or 1) if len(donors) else ():
            best[some] = cheapest(task.of(some), donors.expand(len(some), -1, -1), thorough=True)
    lost = torch.nonzero(~task.good(best)).flatten()
    for some in torch.split(lost, POINTS // TRIES):
        own = task.of(some)
        tried = random_in_hull(own.space, own.origin, TRIES).transpose(0, 1)
        best[some] = cheapest(own, _each(own, Space.snap_apart, tried))
    return reduced(task, best)


def reduced(task: Task, point: Tensor) -> Tensor:
    """Cheaper points from those that are good; the others as they are."""
    rows = torch.nonzero(task.good(point)).flatten()
    point = point.clone()
    if len(rows):
        point[rows] = reduce(task.of(rows), point[rows])
    return point


def cheapest(task: Task, points: Tensor, thorough: bool = False) -> Tensor:
    """Of the points (n, t, d), made valid, the cheapest that is all that is wanted; the row itself where none is.

    Those that look best before are made valid and judged, and where none of them will do and it is to be thorough, the
    next, until none is left; of several models that must agree, until none is left that they agree on before.
    """
    best, going = task.origin.clone(), torch.arange(len(points), device=points.device)
    points = torch.where(task.space.changeable[..., None, :], points, task.origin[:, None])
    order, likely = _best_first(task, points)
    several = isinstance(itself(task.model), LeastSure)
    turns = torch.split(order, MADE_VALID, dim=1)
    for number, turn in enumerate(turns if thorough else turns[:1], start=1):
        own = task.of(going)
        best[going] = _cheapest_of(own, points[going[:, None], turn[going]])
        more = likely[going] > number * MADE_VALID if several else torch.ones_like(going, dtype=torch.bool)
        going = going[(best[going] == own.origin).all(1) & more]
        if not len(going):
            break
    return best


def _cheapest_of(task: Task, points: Tensor) -> Tensor:
    """The same of so few points that all of them can be made valid."""
    valid = _each(task, Space.snap, points)
    cost = task.costs_of_columns(valid).sum(2)
    right = task.near(valid) & (task.tried(task.score, valid) > LEAST_SCORE) & (cost > 0)
    cost, order = torch.where(right, cost, torch.inf).sort(1)
    return _first_good(task, valid, cost, order)


def _each(task: Task, snap: Callable[[Space, Tensor, Tensor], Tensor], points: Tensor) -> Tensor:
    """Several points of each row (n, t, d), snapped."""
    people = torch.arange(len(points), device=points.device).repeat_interleave(points.shape[1])
    return snap(task.space.of(people), points.flatten(0, 1), task.origin[people]).view(points.shape)


def _best_first(task: Task, points: Tensor) -> tuple[Tensor, Tensor]:
    """The points (n, t, d) in the order in which to make them valid, which takes long, and how many of them score
    enough as they are: (n, t), (n,)."""
    if points.shape[1] <= MADE_VALID:
        count = torch.full((len(points),), points.shape[1], device=points.device)
        return torch.arange(points.shape[1], device=points.device).expand(len(points), -1), count
    score, cost = task.tried(task.score, points), task.costs_of_columns(points).sum(2)
    enough = score > LEAST_SCORE
    # Those of the class by their cost, then the others by what they lack.
    return torch.where(enough, 1 / (1 + cost), score).argsort(1, descending=True), enough.sum(1)


def _first_good(task: Task, points: Tensor, cost: Tensor, order: Tensor) -> Tensor:
    """The first of the points in their order that is good; the row itself where none is."""
    best, going = task.origin.clone(), torch.nonzero(cost[:, 0] < torch.inf).flatten()
    for start in range(0, points.shape[1], IN_TURN):
        if not len(going):
            break
        turn = order[going, start : start + IN_TURN]
        tried = points[going[:, None], turn]  # (n, turn, d)
        own = task.of(going.repeat_interleave(turn.shape[1]))
        good = own.good(tried.flatten(0, 1)).view(turn.shape) & (cost[going, start : start + IN_TURN] < torch.inf)
        first = good.to(torch.int8).argmax(1)
        some = torch.arange(len(going), device=going.device)
        best[going] = torch.where(good.any(1)[:, None], tried[some, first], best[going])
        more = order.shape[1] > start + IN_TURN
        left = cost[going, start + IN_TURN] < torch.inf if more else torch.zeros_like(going, dtype=torch.bool)
        going = going[~good.any(1) & left]
    return best
