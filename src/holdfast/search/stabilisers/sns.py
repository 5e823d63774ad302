"""Stable Neighbor Search, the paper's cure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.models.rows import check_tensor
from holdfast.models.scores import probability
from holdfast.search.counterfactuals import Counterfactuals, check_answer
from holdfast.search.stabilisers.ascent import ascend, check_ball
from holdfast.tabular.space import Space
from holdfast.theory.paths import line
from holdfast.utils.settings import check_whole

Objective = Literal["integral", "confidence+integral", "slope", "gradient"]
OBJECTIVES = ("integral", "confidence+integral", "slope", "gradient")


@dataclass(frozen=True)
class SNS:
    """Stable Neighbor Search (Black et al., ICLR 2022, Def. 5).

    It moves a counterfactual x_c to a nearby point whose target probability is high along the whole straight line from
    a baseline b, so that a retrained network is likely to agree. Over x in the space with ‖x − x_c‖ ≤ radius it
    maximises

        ∫₀¹ p_target(b + t (x − b)) dt

    by ``steps`` unit-gradient steps. The integral is the mean over ``points`` equal parts of the line, its end
    included. The best iterate counts, judged after snapping: it keeps the target class, the ball and the space, so the
    result is never worse than the start. Rows whose search found nothing pass through unchanged.

    ``objective`` goes back along the paper's derivation, with p(t) the probability at b + t (x − b):

    | objective | what is maximised | in the paper |
    |---|---|---|
    | `"gradient"` | p(1) − max over t of ‖∇p‖ at the points of the line; second derivatives | Eq. 3 |
    | `"slope"` | p(1) − max over t of dp(t)/dt | Eq. 4 |
    | `"confidence+integral"` | p(1) + ∫ p(t) dt | Eq. 5 |
    | `"integral"` | ∫ p(t) dt | Def. 5 |

    Args:
        radius: How far a point may move: one number for all rows, or one per row (n,).
        steps: How many gradient steps.
        points: How many points on the line.
        baseline: Where the line begins: ``"zero"``, ``"origin"`` (the row itself), or a point (d,) in encoded units,
            such as ``x.mean(0)``.
        objective: What is maximised; see above.
        norm: The norm of the ball: 1, 2 or infinity.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> found = hf.MinCost(norm=2)(model, x, target, space)
        >>> stable = hf.SNS(radius=0.5)(model, found, space)
        >>> print(f"cost {found.cost().item():.1f}, then {stable.cost().item():.1f}")
        cost 1.0, then 1.5

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.3, Definition 5, with the settings of
    Appendix B.3.
    """

    source: ClassVar[str] = "Black et al. 2022"

    radius: float | Tensor = 2.4
    steps: int = 200
    points: int = 10
    baseline: Tensor | Literal["zero", "origin"] = "zero"
    objective: Objective = "integral"
    norm: float = 2

    def __post_init__(self) -> None:
        check_ball(self.radius, self.steps, self.norm)
        check_whole("points", self.points, least=1)
        if self.objective not in OBJECTIVES:
            raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got '{self.objective}'")
        if isinstance(self.baseline, Tensor):
            check_tensor("baseline", self.baseline)
            if not self.baseline.is_floating_point() or not self.baseline.isfinite().all():
                raise ValueError(
                    f"a baseline must be a point (d,) of finite numbers, got {self.baseline.dtype}; x.mean(0) is one"
                )
        elif not isinstance(self.baseline, str) or self.baseline not in ("zero", "origin"):
            raise ValueError(
                f"baseline must be 'zero', 'origin' or a tensor (d,) in encoded units, such as x.mean(0), "
                f"got {self.baseline!r}"
            )

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        """The same rows with those that were found moved to where they hold better."""
        check_answer(start)
        self._check_baseline(start.origin)
        return ascend(model, start, space, self.value, self.radius, self.steps, self.norm)

    def value(self, model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
        """What is maximised, for each point: (n,). ``origin`` is where the rows were, for lines that begin there."""
        baseline = self._baseline(point, origin)
        path, _ = line(baseline, point, self.points)  # (points, n, d), all of the same weight
        if self.objective == "gradient":
            steepest = _gradient_norm(model, path, target).amax(0)
            return _probability(model, point[None], target)[0] - steepest
        along = _probability(model, path, target)  # (points, n)
        if self.objective == "integral":
            return along.mean(0)
        if self.objective == "confidence+integral":
            return along[-1] + along.mean(0)
        before = _probability(model, baseline[None], target)
        return along[-1] - (torch.cat([before, along]).diff(dim=0) * self.points).amax(0)

    def _check_baseline(self, x: Tensor) -> None:
        if isinstance(self.baseline, Tensor) and tuple(self.baseline.shape) not in ((x.shape[1],), (1, x.shape[1])):
            raise ValueError(
                f"the baseline has shape {tuple(self.baseline.shape)}; expected one point ({x.shape[1]},) for all rows"
            )

    def _baseline(self, point: Tensor, origin: Tensor | None) -> Tensor:
        if isinstance(self.baseline, Tensor):
            return self.baseline.to(point).expand_as(point)
        if self.baseline == "zero":
            return torch.zeros_like(point)
        if origin is None:
            raise ValueError("the line begins at the origin; say where the rows were, value(..., origin=x)")
        return origin


def _probability(model: Model, line: Tensor, target: Tensor) -> Tensor:
    """The target's probability at every point of the lines (p, n, d): (p, n)."""
    return probability(model, line.flatten(0, 1), target.repeat(len(line))).view(line.shape[:2])


def _gradient_norm(model: Model, line: Tensor, target: Tensor) -> Tensor:
    """‖∇p_target‖₂ at every point of the lines: (p, n), differentiable where gradients are asked for."""
    with torch.enable_grad():
        at = line if line.requires_grad else line.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(_probability(model, at, target).sum(), at, create_graph=line.requires_grad)
    norm: Tensor = torch.linalg.vector_norm(gradient, dim=-1)
    return norm
