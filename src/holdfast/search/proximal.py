"""Iterative shrinkage-thresholding with momentum (Beck and Teboulle 2009): the loop of every elastic-net search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from torch import Tensor

Momentum = Callable[[int], float]


class Step(NamedTuple):
    """One step from where the momentum has led."""

    following: Tensor  # (n, d) the next iterate
    candidate: Tensor  # (n, d) the point that may be an answer
    inside: Tensor  # (n,) whether it has the class


def momentum(step: int) -> float:
    """As the elastic-net attack has it (Chen et al. 2018)."""
    return step / (step + 3)


def accelerated(
    x: Tensor,
    steps: int,
    step_from: Callable[[Tensor, int], Step],
    into: Callable[[Tensor], Tensor],
    momentum: Momentum = momentum,
) -> Iterator[tuple[Tensor, Tensor]]:
    """The candidates of every step and which have the class, from the rows x (n, d).

    ``step_from(ahead, number)`` takes the gradient at ``ahead``; ``into`` brings a point that the momentum has carried
    on back to where gradients may be taken.
    """
    point = ahead = x
    for number in range(steps):
        following, candidate, inside = step_from(ahead, number)
        yield candidate, inside
        ahead = into(following + momentum(number) * (following - point))
        point = following


def falling_rate(rate: float, number: int, steps: int, power: float = 0.5) -> float:
    """A learning rate that falls to zero as (1 − number/steps) to this power."""
    return rate * float((1 - number / steps) ** power)
