"""The elastic-net attack as ART does its arithmetic, for the paper's study: its "minimum cost" is not minimal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals, assess, checked_question
from holdfast.search.engine.search import repaired
from holdfast.search.gradients import by_rows, least_constant
from holdfast.search.proximal import Step, accelerated, falling_rate
from holdfast.search.task import Task
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_settings
from holdfast.utils.threads import one_thread


@dataclass(frozen=True)
class ElasticNetART:
    r"""EAD (Chen et al. 2018) with the arithmetic of the Adversarial Robustness Toolbox 1.20, which the paper called.

    It differs from `MinCost` in that the threshold is β itself, not learning rate × β; that the pull towards the row
    stops with the hinge once the class is reached by ``confidence``; that the l2 term stays for norm 1; and, as the
    paper's authors called it, that probabilities stand for logits, with a margin of 0.5 between them that counts
    (``margin_counts``; ART itself asks for the class alone). ART caps coordinates at 0 and 1 (``capped``). In a
    discrete space the answer is repaired as every method's is. `of_2020` is what ART did when the paper was written.
    """

    norm: int = 2
    learning_rate: float = 0.01
    steps: int = 300
    constants: int = 9
    first: float = 1e-3
    confidence: float = 0.5
    probabilities: bool = True
    margin_counts: bool = True
    capped: bool = False
    hinged: bool = True  # stop pulling once the class is reached by ``confidence``
    decay: float = 0.5  # the rate falls as (1 − step/steps) to this power

    def __post_init__(self) -> None:
        check_settings(
            self,
            numbers="norm learning_rate first confidence decay",
            whole="steps constants",
            flags="probabilities margin_counts capped hinged",
        )
        if self.norm not in (1, 2) or not self.learning_rate > 0 or self.steps < 1 or self.constants < 1:
            raise ValueError(f"norm must be 1 or 2, learning_rate above 0, steps and constants 1 or more, got {self}")

    @classmethod
    def of_2020(cls, norm: int, learning_rate: float) -> Self:
        """ART as it was in 2020: the confidence had no effect, and the rate fell as a square, not as a square root."""
        return cls(norm, learning_rate, margin_counts=False, capped=True, hinged=False, decay=2.0)

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return self

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """One counterfactual for each row of x (n, d) towards its target (n,), in the space; see `Counterfactuals`."""
        model, x, target = checked_question(model, x, target, space)

        def search(space: Space, x: Tensor, target: Tensor) -> Tensor:
            task = Task(model, x, target, space, self.norm)
            iterates = partial(self._iterates, model, x, target, space)
            best = least_constant(iterates, task.cost, x, self.first, self.constants)
            return repaired(task, best)

        with one_thread():
            return assess(model, x, by_rows(space.to(x), search, x, target), target, space)

    def _iterates(
        self, model: Model, x: Tensor, target: Tensor, space: Space, constant: Tensor
    ) -> Iterator[tuple[Tensor, Tensor]]:
        """Points, and which succeed, step by step."""

        def step_from(ahead: Tensor, number: int) -> Step:
            following = self._step(model, x, ahead, target, constant, number, space)
            return Step(following, following, self._succeeds(model, following, target))

        return accelerated(x, self.steps, step_from, lambda point: point)

    def _step(
        self, model: Model, x: Tensor, ahead: Tensor, target: Tensor, constant: Tensor, number: int, space: Space
    ) -> Tensor:
        rate = falling_rate(self.learning_rate, number, self.steps, self.decay)
        gap, gradient = self._gap(model, ahead, target)
        pull = constant[:, None] * gradient + 2 * (ahead - x)
        still = (gap + self.confidence < 0)[:, None] & self.hinged
        z = ahead - rate * torch.where(still, 0, pull)
        threshold = 1.0 if self.norm == 1 else 0.0
        up, down = z - threshold, z + threshold
        if self.capped:
            up, down = up.clamp_max(1), down.clamp_min(0)
        moved = torch.where(z - x > threshold, up, torch.where(z - x < -threshold, down, x))
        return moved if self.capped else space.project(moved, x)

    def _gap(self, model: Model, point: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """By how much the largest other output exceeds the target's, and the gradient of that."""
        with torch.enable_grad():
            point = point.detach().requires_grad_()
            outputs = self._outputs(model, point)
            target_output = outputs.gather(1, target[:, None])[:, 0]
            other = outputs.scatter(1, target[:, None], -torch.inf).amax(1)
            # Each class by itself, as ART does: where a probability is all but 1, their sum loses the smaller one.
            (rising,) = torch.autograd.grad(other.sum(), point, retain_graph=True)
            (falling,) = torch.autograd.grad(target_output.sum(), point)
        return (other - target_output).detach(), rising - falling

    def _succeeds(self, model: Model, point: Tensor, target: Tensor) -> Tensor:
        outputs = self._outputs(model, point)
        if self.margin_counts:
            outputs = outputs.scatter_add(1, target[:, None], torch.full_like(outputs[:, :1], -self.confidence))
        return outputs.argmax(1) == target

    def _outputs(self, model: Model, point: Tensor) -> Tensor:
        logits = model(point)
        return logits.softmax(1) if self.probabilities else logits
