"""Small pure pieces that searches share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from holdfast.models import Model

SURE = 1e-4  # logits by which a margin must exceed 0, so that the last bit of a product decides nothing
ROWS = 2048  # searched at a time, so that memory does not grow with their number

# model, points (n, d), targets (n,), where the rows started (n, d) -> what the points are worth (n,)
Aim = Callable[[Model, Tensor, Tensor, Tensor], Tensor]


def unit(direction: Tensor) -> Tensor:
    """Rows scaled to length one; a zero row stays zero."""
    length = torch.linalg.vector_norm(direction, dim=1, keepdim=True)
    return torch.where(length > 0, direction / length.clamp_min(torch.finfo(direction.dtype).tiny), 0)


def into_ball(point: Tensor, center: Tensor, radius: float | Tensor) -> Tensor:
    """The nearest point of the l2 ball, row by row; ``radius`` is one for all rows or one a row (n,)."""
    away = point - center
    length = torch.linalg.vector_norm(away, dim=1, keepdim=True)
    radius = radius[:, None] if isinstance(radius, Tensor) else radius
    return torch.where(length > radius, center + away * (radius / length), point)


def margin(model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
    """By how much the target's logit exceeds every other: (n,); above 0 where the class is the target's."""
    own, others = _apart(model, point, target)
    return own - others.amax(1)


def log_odds(model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
    """log p/(1 − p) of the target's probability p: (n,). For two classes the same as `margin`."""
    own, others = _apart(model, point, target)
    return own - others.logsumexp(1)


def _apart(model: Model, point: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The target's logit (n,), and all logits with the target's at minus infinity (n, c)."""
    logits = model(point)
    return logits.gather(1, target[:, None])[:, 0], logits.scatter(1, target[:, None], -torch.inf)


def slope(aim: Aim, model: Model, point: Tensor, target: Tensor, origin: Tensor) -> tuple[Tensor, Tensor]:
    """What each point is worth, and the gradient of that: (n,), (n, d)."""
    with torch.enable_grad():
        point = point.detach().requires_grad_()
        worth = aim(model, point, target, origin)
        (gradient,) = torch.autograd.grad(worth.sum(), point)
    return worth.detach(), gradient


def by_rows(search: Callable[..., Tensor], *rows: Tensor) -> Tensor:
    """Search some rows at a time and join what is found: (n, d)."""
    if len(rows[0]) <= ROWS:
        return search(*rows)
    pieces = zip(*(torch.split(tensor, ROWS) for tensor in rows), strict=True)
    return torch.cat([search(*piece) for piece in pieces])
