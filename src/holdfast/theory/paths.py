"""Points and weights for integrals along straight lines."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast.models.rows import check_tensor
from holdfast.utils.settings import check_whole

Rule = Literal["riemann", "trapezoid"]
RULES = ("riemann", "trapezoid")


def line(start: Tensor, end: Tensor, count: int, rule: Rule = "riemann") -> tuple[Tensor, Tensor]:
    r"""Points on lines from ``start``, (n, d) or (d,), to ``end`` (n, d), and weights that sum to 1: (p, n, d), (p,).

    ∫₀¹ q(start + t (end − start)) dt  ≈  Σ_i weight_i · q(point_i),    p = count

    "riemann"    t = 1/p, 2/p, ..., 1, equal weights: the paper's. Exact for constants; the error is
                 (q(end) − q(start)) / 2p + O(1/p²)
    "trapezoid"  t = 0, 1/(p − 1), ..., 1, the two ends with half a weight. Exact to degree 1; O(1/p²)

    Examples:
        >>> import torch
        >>> from holdfast.theory.paths import line
        >>> points, weights = line(torch.zeros(2), torch.tensor([[4.0, 8.0]]), count=4)
        >>> points[:, 0].tolist(), weights.tolist()
        ([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0], [4.0, 8.0]], [0.25, 0.25, 0.25, 0.25])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.3, below Definition 5, replaces the integral
    by a sum, and Section 5.1 ("Implementation of SNS") takes 10 points.
    """
    check_tensor("end", end)
    check_tensor("start", start)
    if not start.ndim or start.shape[-1] != end.shape[-1] or len(start.shape) > len(end.shape):
        raise ValueError(
            f"start must be one point (d,) or one for each row (n, d), got {tuple(start.shape)} and an end of "
            f"{tuple(end.shape)}"
        )
    parts, weights = nodes(count, rule, end)
    start = start.to(end).expand_as(end)
    return start + parts[:, None, None] * (end - start), weights


def nodes(count: int, rule: Rule, like: Tensor) -> tuple[Tensor, Tensor]:
    """Where on [0, 1] a rule looks and how much each place weighs, in the dtype and device of ``like``: (p,), (p,)."""
    least = 2 if rule == "trapezoid" else 1
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got '{rule}'")
    check_whole("count", count)
    if count < least:
        raise ValueError(f"count must be {least} or more for the rule '{rule}', got {count}")
    if rule == "riemann":
        parts = torch.arange(1, count + 1, device=like.device, dtype=like.dtype) / count
        return parts, torch.full_like(parts, 1 / count)
    parts = torch.arange(count, device=like.device, dtype=like.dtype) / (count - 1)
    weights = torch.full_like(parts, 1 / (count - 1))
    weights[0] = weights[-1] = 0.5 / (count - 1)
    return parts, weights
