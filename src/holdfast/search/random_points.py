"""Valid points at random: what a person could become, whether a search would find it or not."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.tabular.space import Space
from holdfast.utils.draws import uniform


def random_points(space: Space, origin: Tensor, tries: int, seed: int = 0) -> Tensor:
    """Valid points of every row, features drawn evenly from what they may be, alike for all rows: (tries, n, d)."""
    low, high = space.bounds(origin)
    drawn = uniform((tries, 1, origin.shape[1]), torch.Generator().manual_seed(seed)).to(origin)
    points = low + drawn * (high - low)
    people = torch.arange(len(origin), device=origin.device).repeat(tries)
    return space.of(people).snap(points.flatten(0, 1), origin[people]).view(points.shape)
