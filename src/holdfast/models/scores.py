"""How sure a model is of a class, in the units that searches and the theory use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.models.model import Model

# model, points (n, d), targets (n,), where the rows started (n, d) -> a number per point (n,): the higher, the better
Score = Callable[[Model, Tensor, Tensor, Tensor], Tensor]


def logit(model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
    """f_target(x): (n,)."""
    return model(point).gather(1, target[:, None])[:, 0]


def probability(model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
    """softmax(f(x))_target: (n,)."""
    return model(point).softmax(1).gather(1, target[:, None])[:, 0]


def margin(model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
    """f_target(x) − max over the other classes of f(x): (n,); above 0 where the class is the target's."""
    of_target, others = _apart(model(point), target)
    return of_target - others.amax(1)


def log_odds(model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
    """log p/(1 − p) of the target's probability p: (n,). For two classes the same as `margin`."""
    of_target, others = _apart(model(point), target)
    return of_target - others.logsumexp(1)


@dataclass(frozen=True)
class AtLeast:
    """By how much a score exceeds what is asked of it."""

    score: Score
    least: float

    def __call__(self, model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
        return self.score(model, point, target, point if origin is None else origin) - self.least


def probability_gap(model: Model, point: Tensor, target: Tensor, origin: Tensor | None = None) -> Tensor:
    """By how much the target's probability exceeds every other: (n,)."""
    of_target, others = _apart(model(point).softmax(1), target)
    return of_target - others.amax(1)


def _apart(outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The target's output (n,), and all outputs with the target's at minus infinity (n, c)."""
    return outputs.gather(1, target[:, None])[:, 0], outputs.scatter(1, target[:, None], -torch.inf)
