"""Points and weights for integrals along straight lines."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Rule = Literal["riemann", "trapezoid"]
RULES = ("riemann", "trapezoid")


def line(start: Tensor, end: Tensor, count: int, rule: Rule = "riemann") -> tuple[Tensor, Tensor]:
    r"""Points on lines from ``start``, (n, d) or (d,), to ``end`` (n, d), and weights that sum to 1: (p, n, d), (p,).

    ∫₀¹ q(start + t (end − start)) dt  ≈  Σ_i weight_i · q(point_i),    p = count

    "riemann"    t = 1/p, 2/p, ..., 1, equal weights: the paper's. Exact for constants; the error is
                 (q(end) − q(start)) / 2p + O(1/p²)
    "trapezoid"  t = 0, 1/(p − 1), ..., 1, the two ends with half a weight. Exact to degree 1; O(1/p²)
    """
    parts, weights = nodes(count, rule, end)
    start = start.to(end).expand_as(end)
    return start + parts[:, None, None] * (end - start), weights


def nodes(count: int, rule: Rule, like: Tensor) -> tuple[Tensor, Tensor]:
    """Where on [0, 1] a rule looks and how much each place weighs, in the dtype and device of ``like``: (p,), (p,)."""
    least = 2 if rule == "trapezoid" else 1
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, got '{rule}'")
    if count < least:
        raise ValueError(f"count must be {least} or more for the rule '{rule}', got {count}")
    if rule == "riemann":
        parts = torch.arange(1, count + 1, device=like.device, dtype=like.dtype) / count
        return parts, torch.full_like(parts, 1 / count)
    parts = torch.arange(count, device=like.device, dtype=like.dtype) / (count - 1)
    weights = torch.full_like(parts, 1 / (count - 1))
    weights[0] = weights[-1] = 0.5 / (count - 1)
    return parts, weights
