"""A margin at another method's price: is what SNS buys worth what it costs?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

from torch import Tensor

from holdfast.counterfactuals import Counterfactuals, Method
from holdfast.methods.margin import Margin
from holdfast.models import Model
from holdfast.space import Space

HIGHEST = 34.0  # log-odds; double precision still tells such a probability from 1


@dataclass(frozen=True)
class MatchedMargin:
    """`Margin` with the level at which its counterfactuals cost, on average, what another method's do (l2).

    One level for all rows, found by bisection of its log-odds. Costs are compared on the rows that both find: a higher
    level costs more.
    """

    like: Method
    tries: int = 9

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return replace(self, like=self.like.fit(x, y, space, seed))

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """One counterfactual for each row of x (n, d) towards its target (n,), in the space; see `Counterfactuals`."""
        other = self.like(model, x, target, space)
        low, high = 0.0, HIGHEST
        best, least = other, math.inf
        for _ in range(self.tries):
            middle = (low + high) / 2
            answer = Margin(level=1 / (1 + math.exp(-middle)))(model, x, target, space)
            excess = _excess(answer, other)
            if abs(excess) < least:
                best, least = answer, abs(excess)
            low, high = (low, middle) if excess > 0 else (middle, high)
        return best


def _excess(answer: Counterfactuals, other: Counterfactuals) -> float:
    """By how much the one costs more than the other, on average over the rows that both found.

    Where none is common the level asks for too much.
    """
    common = answer.found & other.found
    return float((answer.cost(2) - other.cost(2))[common].mean()) if bool(common.any()) else math.inf
