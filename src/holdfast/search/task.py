"""What is wanted of a search: points of the target's class that cost little, and what else must be true of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.models.scores import Score, margin
from holdfast.search.gradients import LEAST_SCORE, Ball
from holdfast.search.people import people_for
from holdfast.tabular.people import People
from holdfast.tabular.space import Space


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
        moved = self.space.moved(points, self.origin)
        return self.space.per_feature(moved if self.norm == 1 else moved**2)

    def plausible(self, point: Tensor) -> Tensor:
        """Which points (n, d) pass for people, if they must: (n,)."""
        if self.people is None or self.limit is None:
            return torch.ones_like(self.target, dtype=torch.bool)
        return self.people.like(point, self.target, self.limit)

    def near(self, points: Tensor) -> Tensor:
        """Which of the points (n, t, d) are near enough: (n, t)."""
        return torch.ones_like(points[..., 0], dtype=torch.bool) if self.ball is None else self.ball.holds(points)
