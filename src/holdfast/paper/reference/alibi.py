"""The steps of alibi's CFProto, for the paper's study: see `Prototype.alibi`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from holdfast.models.scores import margin, probability_gap
from holdfast.search.gradients import shrink, slope
from holdfast.search.proximal import Step, accelerated, falling_rate
from holdfast.search.task import Task

STEEPEST = 1000.0  # slope of a column that alibi takes seriously


def iterates(
    task: Task, pull: Callable[[Tensor], Tensor], constant: Tensor, learning_rate: float, beta: float, steps: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Points, and which have the class, step by step.

    Probabilities stand for logits, the rate has no regard for theta, and the threshold is beta whatever the rate. The
    points at which no gradient is taken are the ones that count.
    """
    x, space = task.origin, task.space

    def step_from(ahead: Tensor, number: int) -> Step:
        gap, gradient = slope(probability_gap, task.model, ahead, task.target, x)
        push = torch.where(gap[:, None] > 0, 0, constant[:, None] * gradient)
        descent = (push + pull(ahead)).clamp(-STEEPEST, STEEPEST)
        away = shrink(ahead - x + falling_rate(learning_rate, number, steps) * descent, beta)
        following = space.project(x + away, x)
        return Step(following, following, task.tried(margin, following[:, None])[:, 0] > 0)

    def momentum(number: int) -> float:
        return (number + 1) / (number + 4)

    return accelerated(x, steps, step_from, lambda point: space.project(point, x), momentum)
