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
        >>> own = influence(network, rows, target, Line(torch.zeros(2), count=4))
        >>> change = network(rows)[:, 1] - network(torch.zeros(1, 2))[:, 1]
        >>> torch.equal((own * rows).sum(1), change)  # on a line the influence is complete
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.3, "Choice of DoI": a uniform distribution
    on the line from zero, as in [Sundararajan et al. 2017](https://arxiv.org/abs/1703.01365).
    """

    baseline: Tensor
    count: int = 50
    rule: Rule = "riemann"

    def __post_init__(self) -> None:
        check_tensor("baseline", self.baseline, "give a point (d,), such as x.mean(0)")
        check_whole("count", self.count)

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
        _check("radius", self.radius, self.count)
        check_seed("seed", self.seed)

    def around(self, x: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        return _drawn(x[rows], self.radius * in_unit_ball(self.count, x.shape[1], self.seed))


@dataclass(frozen=True)
class Gaussian:
    """Normal around the row with this standard deviation in every column; all rows share the draws.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.influence import Gaussian, influence
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> influence(network, rows, target, Gaussian(0.01, count=8)).shape
        torch.Size([2, 2])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: one of the distributions of interest that
    Definition 4 speaks of; the paper itself takes the line (Section 4.3, "Choice of DoI").
    """

    scale: float
    count: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        _check("scale", self.scale, self.count)
        check_seed("seed", self.seed)

    def around(self, x: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        return _drawn(x[rows], self.scale * _normal(self.count, x.shape[1], torch.Generator().manual_seed(self.seed)))


@dataclass(frozen=True, eq=False)
class Data:
    """Uniform on given points (m, d): all of them, or the ``nearest`` so many (l2) to each row.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.theory.influence import Data, influence
        >>> from holdfast.families.perceptron import Network
        >>> layers = torch.eye(2), torch.tensor([[0.0, 1.0], [0.0, 1.0]])  # logits: 1 and relu(x₁) + relu(x₂)
        >>> network = Network(layers, (torch.zeros(2), torch.tensor([1.0, 0.0])), hf.Retraining())
        >>> rows, target = torch.tensor([[1.0, 1.0], [2.0, -1.0]]), torch.tensor([1, 1])
        >>> influence(network, rows, target, Data(rows)).tolist()  # the mean of the gradients at both rows, for each
        [[1.0, 0.5], [1.0, 0.5]]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.1: one of the distributions of interest that
    Definition 4 speaks of; the paper itself takes the line (Section 4.3, "Choice of DoI").
    """

    points: Tensor
    nearest: int | None = None

    def __post_init__(self) -> None:
        check_rows(self.points, "points")
        if self.nearest is not None:
            check_whole("nearest", self.nearest, least=1)

    @property
    def count(self) -> int:
        return len(self.points) if self.nearest is None else min(self.nearest, len(self.points))

    def around(self, x: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
        if self.points.shape[1] != x.shape[1]:
            raise ValueError(
                f"the points have {self.points.shape[1]} columns but the rows {x.shape[1]}; use one Encoding"
            )
        given, some = self.points.to(x), x[rows]
        weights = x.new_full((self.count,), 1 / self.count)
        if self.nearest is None:
            return given[:, None].expand(-1, len(some), -1), weights
        nearest = torch.cdist(some, given).topk(self.count, largest=False).indices  # (n, count)
        return given[nearest].transpose(0, 1), weights


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
    check_tensor("target", target)
    if target.shape != x.shape[:1]:
        raise ValueError(f"expected target (n,), one target a row of {len(x)}, got {tuple(target.shape)}")
    if not callable(getattr(interest, "around", None)):
        raise TypeError(f"interest must be a Line, Ball, Gaussian or Data, got {interest!r}")
    check_target(target, len(x), differentiable_logits(model, x).shape[1])
    if interest.count < 1:
        raise ValueError("the distribution of interest has no points; give it a count of 1 or more")
    if isinstance(interest, Data) and interest.nearest is None and len(x):
        # The same points for every row: rows of one class share one answer.
        answer = torch.zeros_like(x)
        for one in torch.unique(target):
            answer[target == one] = _mean_gradient(model, x, one[None], interest, slice(0, 1), quantity)
        return answer
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
    for some, goal, weight in zip(*(torch.split(part, step) for part in (points, targets, weights)), strict=True):
        slope = gradient(model, some.flatten(0, 1), goal.flatten(), quantity).view_as(some)
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
    direction = _normal(count, columns, generator)
    length = torch.rand(count, 1, generator=generator, dtype=torch.float64) ** (1 / columns)
    norm: Tensor = torch.linalg.vector_norm(direction, dim=1, keepdim=True)
    return length * direction / norm


def _check(name: str, size: float, count: int) -> None:
    check_number(name, size)
    check_whole("count", count)
    if not 0 <= size < math.inf or count < 1:
        raise ValueError(f"{name} must be 0 or more and finite and count 1 or more, got {size} and {count}")


def _normal(count: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.randn(count, columns, generator=generator, dtype=torch.float64)


def _drawn(x: Tensor, away: Tensor) -> tuple[Tensor, Tensor]:
    return x + away.to(x)[:, None], x.new_full((len(away),), 1 / len(away))
