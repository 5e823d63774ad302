"""Stable Neighbor Search, the paper's cure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.counterfactuals import Counterfactuals, assess, check_question
from holdfast.models import Model, predict
from holdfast.search import into_ball, unit
from holdfast.space import Space
from holdfast.threads import one_thread


@dataclass(frozen=True)
class SNS:
    r"""Stable Neighbor Search (Black et al., ICLR 2022, Eq. 5).

    Moves a counterfactual x_c to a nearby point whose target probability is high along the whole straight
    line from a baseline b, so that a retrained network is likely to agree:

        maximize  ∫₀¹ p_target(b + t (x − b)) dt   over x in the space with ‖x − x_c‖₂ ≤ radius

    by ``steps`` unit-gradient steps; the integral is the mean over ``points`` equal parts of the line, its end
    included. The best iterate counts, judged after snapping: it keeps the target class, the ball and the
    space, so the result is never worse than the start. Rows whose search found nothing pass through unchanged.
    """

    radius: float = 2.4
    steps: int = 200
    points: int = 10
    baseline: Tensor | None = None  # (d,) in encoded units; None: the zero vector

    def __post_init__(self) -> None:
        if not 0 < float(self.radius) < math.inf or self.steps < 1 or self.points < 1:
            raise ValueError(f"radius must be above 0 and finite, steps and points 1 or more, got {self}")

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        """The same rows with those that were found moved to where they hold better."""
        check_question(model, start.origin, start.target, space)
        space, rows, point = space.to(start.origin), torch.nonzero(start.found).flatten(), start.point.clone()
        with one_thread(self.points * point.numel()):
            if len(rows):
                point[rows] = self._climb(model, start.point[rows], start.origin[rows], start.target[rows], space)
        moved = assess(model, start.origin, point, start.target, space)
        return replace(moved, found=moved.found & start.found, seen=moved.seen | start.seen)

    def _climb(self, model: Model, center: Tensor, origin: Tensor, target: Tensor, space: Space) -> Tensor:
        size = 2 * self.radius / self.steps
        point, best = center, center
        best_value = self.objective(model, center, target)
        for _ in range(self.steps):
            slope = self._slope(model, point, target)
            point = space.project(into_ball(point + size * unit(slope), center, self.radius), origin)
            snapped = space.snap(point, origin)
            value = self.objective(model, snapped, target)
            inside = torch.linalg.vector_norm(snapped - center, dim=1) <= self.radius * (1 + 1e-6)
            better = inside & (value > best_value) & (predict(model, snapped) == target)
            best = torch.where(better[:, None], snapped, best)
            best_value = torch.where(better, value, best_value)
        return best

    def objective(self, model: Model, point: Tensor, target: Tensor) -> Tensor:
        """The path integral of the target's probability: (n,)."""
        with torch.no_grad():
            return self._integral(model, point, target)

    def _slope(self, model: Model, point: Tensor, target: Tensor) -> Tensor:
        with torch.enable_grad():
            point = point.detach().requires_grad_()
            return torch.autograd.grad(self._integral(model, point, target).sum(), point)[0]

    def _integral(self, model: Model, point: Tensor, target: Tensor) -> Tensor:
        baseline = torch.zeros_like(point[0]) if self.baseline is None else self.baseline.to(point)
        parts = torch.arange(1, self.points + 1, device=point.device, dtype=point.dtype) / self.points
        line = baseline + parts[:, None, None] * (point - baseline)  # (points, n, d)
        probability = model(line.flatten(0, 1)).softmax(-1).view(len(parts), len(point), -1)  # (points, n, c)
        return probability.gather(-1, target.expand(len(parts), -1)[..., None]).mean((0, 2))
