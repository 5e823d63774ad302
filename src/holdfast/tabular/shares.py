"""How many people have less: the share of a table's people below a value, from the 0, 1, ..., 100 % quantiles."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

PARTS = 100
Matrix = NDArray[np.float64]


def quantiles_of(values: Matrix) -> Matrix:
    """Of one column, missing values aside: (101,). All are values that some row has, so that ties are seen as such."""
    return np.quantile(values[~np.isnan(values)], np.linspace(0, 1, PARTS + 1), method="inverted_cdf")


def share_below(values: Tensor, quantiles: Tensor) -> Tensor:
    """The share of people below each value (..., d), by the quantiles of each column (101, d); who ties counts half.

    Beyond the lowest and the highest quantile the share goes on below 0 and above 1, by 1 for each width of the column,
    so that going further always counts more.
    """
    knots, flat = quantiles.T.contiguous(), values.reshape(-1, values.shape[-1]).T.contiguous()  # (d, 101), (d, m)
    first, after = torch.searchsorted(knots, flat), torch.searchsorted(knots, flat, right=True)
    low, high = knots.gather(1, (first - 1).clamp_min(0)), knots.gather(1, first.clamp_max(PARTS))
    gap = torch.where(high > low, high - low, 1)
    between = (first - 1 + (flat - low) / gap) / PARTS
    ties = (first + after - 1) / (2 * PARTS)
    width = knots[:, -1:] - knots[:, :1]
    beyond = (flat - torch.where(first == 0, knots[:, :1], knots[:, -1:])) / torch.where(width > 0, width, 1)
    outside = (first == after) & ((first == 0) | (first > PARTS))
    share = torch.where(outside, (first > PARTS) + beyond, torch.where(first < after, ties, between))
    return share.T.reshape(values.shape).to(values)
