"""Gradients, balls and the search for a constant: small pure functions that searches share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.models.checked import leading
from holdfast.models.model import Model
from holdfast.models.scores import Score
from holdfast.tabular.space import Space

LEAST_SCORE = 1e-4  # by which a score must exceed 0, so that the last bit of a product decides nothing
ROWS_AT_ONCE = 2048  # searched together, so that memory does not grow with their number;
ROWS_AT_ONCE_ON_DEVICE = 16 * ROWS_AT_ONCE  # a GPU has room for more, and takes no longer for them

# constants (n,) -> the points of a search step by step (n, d), and which are inside the class (n,)
Iterates = Callable[[Tensor], Iterable[tuple[Tensor, Tensor]]]


def unit(direction: Tensor) -> Tensor:
    """Rows scaled to length one; a zero row stays zero."""
    length = torch.linalg.vector_norm(direction, dim=1, keepdim=True)
    return torch.where(length > 0, direction / length.clamp_min(torch.finfo(direction.dtype).tiny), 0)


@dataclass(frozen=True)
class Ball:
    """One ball per row; a norm, its projection and its steepest direction kept together."""

    center: Tensor  # (n, d)
    radius: Tensor  # (n,)
    norm: float = 2  # 1, 2 or infinity

    def of(self, rows: Tensor) -> Ball:
        """The balls of some rows."""
        return replace(self, center=self.center[rows], radius=self.radius[rows])

    def into(self, point: Tensor) -> Tensor:
        """The nearest point (l2) of each row's ball: (n, d)."""
        away, radius = point - self.center, self.radius[:, None]
        if self.norm == torch.inf:
            inside = torch.minimum(torch.maximum(away, -radius), radius)
        elif self.norm == 1:
            inside = shrink(away, _threshold(away.abs(), radius))
        else:
            inside = away * (radius / torch.linalg.vector_norm(away, dim=1, keepdim=True))
        outside = torch.linalg.vector_norm(away, self.norm, dim=1) > self.radius
        return torch.where(outside[:, None], self.center + inside, point)

    def holds(self, points: Tensor) -> Tensor:
        """Which of t points of each row (n, t, d) lie in its ball, up to rounding: (n, t)."""
        far: Tensor = torch.linalg.vector_norm(points - self.center[:, None], self.norm, dim=-1)
        return far <= self.radius[:, None] * (1 + 1e-6)

    def steepest(self, gradient: Tensor) -> Tensor:
        """A step uphill of the ball's own size: every column in l∞, all together in l2, the largest of them in l1.

        In l1 the steepest way is a single column, but that one may be at its bound.
        """
        if self.norm == torch.inf:
            return gradient.sign()
        if self.norm == 1:
            return gradient / gradient.abs().amax(1, keepdim=True).clamp_min(torch.finfo(gradient.dtype).tiny)
        return unit(gradient)


def _threshold(size: Tensor, radius: Tensor) -> Tensor:
    """By how much every column must shrink for their sum to be the radius: (n, 1).

    The sum falls piecewise linearly in the threshold with kinks at the sizes, so one sort finds it.
    """
    ordered = size.sort(dim=1, descending=True).values
    count = torch.arange(1, size.shape[1] + 1, device=size.device)
    if_so_many = (ordered.cumsum(1) - radius) / count
    last = (ordered > if_so_many).sum(1, keepdim=True).clamp_min(1) - 1
    return if_so_many.gather(1, last)


def slope(score: Score, model: Model, point: Tensor, target: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
    """The score of each point, and its gradient: (n,), (n, d). A model without one is led by its surrogate's."""
    leads = leading(model)
    with torch.enable_grad():
        point = point.detach().requires_grad_()
        value = score(leads, point, target, origin)
        (gradient,) = torch.autograd.grad(value.sum(), point)
    if leads is not model:
        with torch.no_grad():
            value = score(model, point.detach(), target, origin)
    return value.detach(), gradient


def shrink(away: Tensor, threshold: float | Tensor) -> Tensor:
    """Every column nearer to 0 by the threshold, and none beyond it."""
    return away.sign() * (away.abs() - threshold).clamp_min(0)


def least_constant(iterates: Iterates, cost: Callable[[Tensor], Tensor], x: Tensor, first: float, tries: int) -> Tensor:
    """The cheapest iterate inside the class while a binary search looks for the least constant that works, row by row.

    The constant weighs the class against the cost. Where no iterate is inside, the row itself: (n, d).
    """
    best, best_cost = x, torch.full_like(x[:, 0], torch.inf)
    low, high = torch.zeros_like(best_cost), best_cost
    constant = torch.full_like(best_cost, first)
    for _ in range(tries):
        reached = torch.zeros_like(best_cost, dtype=torch.bool)
        for point, inside in iterates(constant):
            spent = cost(point)
            better = inside & (spent < best_cost)
            best, best_cost = torch.where(better[:, None], point, best), torch.where(better, spent, best_cost)
            reached |= inside
        low, high = torch.where(reached, low, constant), torch.where(reached, constant, high)
        constant = torch.where(high.isinf(), 10 * constant, (low + high) / 2)
    return best


def by_rows(space: Space, search: Callable[..., Tensor], *rows: Tensor) -> Tensor:
    """Search some rows at a time, ``search(space, *rows)``, and join what is found: (n, d)."""
    most = ROWS_AT_ONCE if rows[0].device.type == "cpu" else ROWS_AT_ONCE_ON_DEVICE
    if len(rows[0]) <= most:
        return search(space, *rows)
    pieces = [slice(start, start + most) for start in range(0, len(rows[0]), most)]
    return torch.cat([search(space.of(piece), *(tensor[piece] for tensor in rows)) for piece in pieces])
