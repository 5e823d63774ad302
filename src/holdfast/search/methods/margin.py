"""The cheapest point of which the model is sure enough: the baseline that every stabiliser has to beat."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.models.scores import AtLeast, log_odds
from holdfast.search.counterfactuals import Counterfactuals, assess, checked_question, counted
from holdfast.search.methods.min_cost import MinCost
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_settings
from holdfast.utils.threads import one_thread


@dataclass(frozen=True)
class Margin:
    r"""The cheapest point at which the model gives the target at least the probability ``level``.

    `MinCost` with log p/(1 − p) − log level/(1 − level) in place of the margin between logits. A row is found only if
    a valid point reaches the level.
    """

    source: ClassVar[str] = "a baseline of ours"

    level: float = 0.75
    search: MinCost = field(default_factory=MinCost)

    def __post_init__(self) -> None:
        check_settings(self, numbers="level")
        if not isinstance(self.search, MinCost):
            raise TypeError(f"search must be a MinCost, such as MinCost(norm=1), got {self.search!r}")
        if not 0 < self.level < 1:
            raise ValueError(f"level must be a probability between 0 and 1, got {self.level}")

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return self

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """The cheapest point found for each row of x (n, d) towards its target (n,), in the space."""
        model, x, target = checked_question(model, x, target, space, gradient=False)
        sure_enough = AtLeast(log_odds, math.log(self.level / (1 - self.level)))
        with one_thread():
            point = space.snap(self.search.cheapest(model, x, target, space.to(x), sure_enough), x)
            with torch.no_grad():
                reached = sure_enough(model, point, target) >= 0
            return counted(model, assess(model, x, point, target, space, also=reached))
