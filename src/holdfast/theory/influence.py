"""Distributional influence: the mean gradient over a neighbourhood (Black et al., ICLR 2022, Def. 4)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from holdfast.models.model import Model, differentiable_logits
from holdfast.models.rows import check_rows, check_target, check_tensor
from holdfast.models.scores import logit
from holdfast.theory.paths import Rule, line
from holdfast.utils.settings import check_number, check_seed, check_whole

POINTS = 1 << 16  # gradients taken at a time, so that memory does not grow with the rows

# model, points (m, d), targets (m,) -> a number for each point (m,); `holdfast.models.scores` has the usual ones
Quantity = Callable[[Model, Tensor, Tensor], Tensor]


class Interest(Protocol):
    """A distribution of interest D_x: which points around a row count, and how much."""

    @property
    def count(self) -> int:
        """How many points each row has."""

    def around(self, x: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        """The points of some of the rows and their weights, which sum to 1: (count, rows, d), (count,)."""


@dataclass(frozen=True, eq=False)
class Line:
    """Uniform on the line from a baseline to the row, by a rule of `holdfast.theory.paths.line`.

    Attributes:
        baseline: one for all rows (d,), or one per row (n, d)

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.influence import Line, influence
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> mean = influence(network, rows, target, Line(torch.zeros(2), count=4))
        >>> change = network(rows)[:, 1] - network(torch.zeros(1, 2))[:, 1]
        >>> torch.equal((mean * rows).sum(1), change)  # on a line the influence is complete
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.3, "Choice of DoI": a uniform distribution
    on the line from zero, as in [Sundararajan et al. 2017](https://arxiv.org/abs/1703.01365).
    """

    baseline: Tensor
    count: int = 50
    rule: Rule = "riemann"

    def __post_init__(self) -> None:
        check_tensor("baseline", self.baseline, "give a point (d,), such as x.mean(0)")
        check_whole("count", self.count, least=1)

    def around(self, x: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        shape = tuple(self.baseline.shape)
        if shape not in ((x.shape[1],), tuple(x.shape)):
            raise ValueError(
                f"the baseline has shape {shape}; expected one point ({x.shape[1]},) for all rows, or {tuple(x.shape)}"
            )
        start = self.baseline if self.baseline.ndim == 1 else self.baseline[rows]
        return line(start, x[rows], self.count, self.rule)


@dataclass(frozen=True)
class Ball:
    """Uniform in the l2 ball of this radius around the row, by ``count`` draws; all rows share the draws.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.influence import Ball, influence
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> influence(network, rows, target, Ball(0.5, count=8)).tolist()  # no unit switches in these balls
        [[1.0, 1.0], [1.0, 0.0]]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: one of the distributions of interest that
    Definition 4 speaks of; the paper itself takes the line (Section 4.3, "Choice of DoI").
    """

    radius: float
    count: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("radius", self.radius)
        check_whole("count", self.count, least=1)
        check_seed("seed", self.seed)
        if not 0 <= self.radius < math.inf:
            raise ValueError(f"radius must be 0 or more and finite, got {self.radius}")

    def around(self, x: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        away = self.radius * in_unit_ball(self.count, x.shape[1], self.seed).to(x)
        return x[rows] + away[:, None], x.new_full((self.count,), 1 / self.count)


def influence(model: Model, x: Tensor, target: Tensor, interest: Interest, quantity: Quantity = logit) -> Tensor:
    r"""The mean gradient of a quantity over a distribution of interest: (n, d).

        χ_c(x) = E_{x' ~ D_x} [∂q_c(x') / ∂x']        (Def. 4; c is each row's target)

    On a line from b it is complete: Σ_j χ_j(x) (x_j − b_j) = q(x) − q(b), up to the rule's error. Draws
    are shared between rows, so that a row's influence does not depend on the other rows; their sampling
    errors are correlated for the same reason.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.influence import Line, influence
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> influence(network, rows, target, Line(torch.zeros(2), count=4)).tolist()
        [[1.0, 1.0], [1.0, 0.0]]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1, Definition 4, which is that of [Leino et
    al. 2018](https://arxiv.org/abs/1802.03788).
    """
    check_rows(x)
    if not callable(getattr(interest, "around", None)):
        raise TypeError(f"interest must be a Line or a Ball, got {interest!r}")
    check_target(target, len(x), differentiable_logits(model, x).shape[1])
    step = max(1, POINTS // interest.count)
    pieces = [slice(first, min(first + step, len(x))) for first in range(0, len(x), step)]
    means = [_mean_gradient(model, x, target[rows], interest, rows, quantity) for rows in pieces]
    return torch.cat(means) if means else torch.zeros_like(x)


def _mean_gradient(
    model: Model, x: Tensor, target: Tensor, interest: Interest, rows: slice, quantity: Quantity
) -> Tensor:
    points, weights = interest.around(x, rows)  # (p, n, d), (p,)
    targets = target.expand(points.shape[:2])
    mean = torch.zeros_like(points[0])
    step = max(1, POINTS // points.shape[1])
    for at, goal, weight in zip(*(torch.split(part, step) for part in (points, targets, weights)), strict=True):
        slope = gradient(model, at.flatten(0, 1), goal.flatten(), quantity).view_as(at)
        mean += torch.einsum("p,pnd->nd", weight, slope)
    return mean


def gradient(model: Model, point: Tensor, target: Tensor, quantity: Quantity = logit) -> Tensor:
    """∂q/∂x at each point: (m, d)."""
    with torch.enable_grad():
        point = point.detach().requires_grad_()
        (slope,) = torch.autograd.grad(quantity(model, point, target).sum(), point)
    return slope


def in_unit_ball(count: int, columns: int, seed: int) -> Tensor:
    """Points drawn uniformly from the l2 unit ball, on the CPU so that a seed means the same everywhere: (count, d).

    A normal vector points anywhere alike, and P(‖u‖ ≤ s) = s^d makes U^(1/d) the length.
    """
    generator = torch.Generator().manual_seed(seed)
    direction = torch.randn(count, columns, generator=generator, dtype=torch.float64)
    length = torch.rand(count, 1, generator=generator, dtype=torch.float64) ** (1 / columns)
    norm: Tensor = torch.linalg.vector_norm(direction, dim=1, keepdim=True)
    return length * direction / norm
