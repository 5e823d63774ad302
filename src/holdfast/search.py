"""Small pure pieces that gradient searches share."""

from __future__ import annotations

import torch
from torch import Tensor


def unit(direction: Tensor) -> Tensor:
    """Rows scaled to length one; a zero row stays zero."""
    length = torch.linalg.vector_norm(direction, dim=1, keepdim=True)
    return torch.where(length > 0, direction / length.clamp_min(torch.finfo(direction.dtype).tiny), 0)


def into_ball(point: Tensor, center: Tensor, radius: float) -> Tensor:
    """The nearest point of the l2 ball, row by row."""
    away = point - center
    length = torch.linalg.vector_norm(away, dim=1, keepdim=True)
    return torch.where(length > radius, center + away * (radius / length), point)
