"""alibi's CFProto as alibi does its arithmetic, for the paper's study."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.models.scores import margin, probability_gap
from holdfast.search.gradients import shrink, slope
from holdfast.search.methods.prototype import Iterates, Prototype, pull
from holdfast.search.proximal import Step, accelerated, falling_rate
from holdfast.search.task import Task

STEEPEST = 1000.0  # slope of a column that alibi takes seriously


@dataclass(frozen=True)
class AlibiPrototype(Prototype):
    """What alibi 0.9.6 computes for two classes and logits z with its outputs softmax(z), many rows at once.

    It differs from `Prototype` in its steps: probabilities stand for logits, the rate has no regard for theta, and the
    threshold is beta whatever the rate. The points at which no gradient is taken are the ones that count.

    Each step takes beta off every column though the rate falls, so the iterates run past the prototype at first and
    come home in the end, column by column: sparser and dearer points than the loss asks for.
    """

    steps: int = 100
    constants: int = 10

    def _iterates(self, task: Task, guide: Tensor, square: Tensor | None, constant: Tensor) -> Iterates:
        """Points, and which have the class, step by step."""
        x, space = task.origin, task.space

        def step_from(ahead: Tensor, number: int) -> Step:
            gap, gradient = slope(probability_gap, task.model, ahead, task.target, x)
            push = torch.where(gap[:, None] > 0, 0, constant[:, None] * gradient)
            descent = (push + pull(ahead, x, guide, square, self.theta)).clamp(-STEEPEST, STEEPEST)
            rate = falling_rate(self.learning_rate, number, self.steps)
            following = space.project(x + shrink(ahead - x + rate * descent, self.beta), x)
            return Step(following, following, task.tried(margin, following[:, None])[:, 0] > 0)

        def momentum(number: int) -> float:
            return (number + 1) / (number + 4)

        return accelerated(x, self.steps, step_from, lambda point: space.project(point, x), momentum)
