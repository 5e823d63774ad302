"""The cheapest point of which the model is sure enough: the baseline that every stabiliser has to beat."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self, cast

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.models.scores import AtLeast, log_odds
from holdfast.search.counterfactuals import Counterfactuals, assess, checked_question, counted
from holdfast.search.methods.min_cost import MinCost
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_settings
from holdfast.utils.threads import one_thread

LEVEL = 0.75


@dataclass(frozen=True, repr=False)
class Margin:
    """The cheapest point at which the model gives the target at least the probability ``level``.

    `MinCost` with log p/(1 − p) − log level/(1 − level) in place of the margin between logits. A row is found only if a
    valid point reaches the level. A higher level holds better and costs more. `promise` can choose it.

    Args:
        level: The probability that the model must give the target class; 0.75 if not given.
        search: The search for the cheapest such point.
        log_odds: Ask for log p/(1 − p) itself, in the place of a level: 4 is a level of 0.982. Beyond 16 a probability
            in float32 has no digits left, while log-odds have all of theirs.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> found = hf.Margin(level=0.9)(model, x, target, space)
        >>> print(f"{model(found.point).softmax(1)[0, 1].item():.2f}")  # as asked
        0.90

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 4.2, says that confidence helps; the search is
    that of [Chen et al. 2018](https://arxiv.org/abs/1709.04114).
    """

    source: ClassVar[str] = "a baseline of ours"
    parameter: ClassVar[str] = "log_odds"  # that `promise` chooses
    # From "valid at all" to where a probability has long been 1.
    parameter_values: ClassVar[tuple[float, ...]] = (0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32)

    level: float | None = LEVEL  # None where log_odds is given
    search: MinCost = field(default_factory=MinCost)
    log_odds: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.search, MinCost):
            raise TypeError(f"search must be a MinCost, such as MinCost(norm=1), got {self.search!r}")
        if self.log_odds is None:
            check_settings(self, numbers="level")
            if not 0 < cast(float, self.level) < 1:
                raise ValueError(f"level must be a probability between 0 and 1, got {self.level}")
            return
        check_settings(self, numbers="log_odds")
        if not math.isfinite(self.log_odds):
            raise ValueError(f"log_odds must be finite, such as 4.0 for a probability of 0.982, got {self.log_odds}")
        if self.level not in (None, LEVEL):  # the default is as good as not given: so `replace` can set log_odds
            raise ValueError(
                f"give a level or log_odds, not both, got level={self.level!r} and log_odds={self.log_odds!r}; a level "
                "p is log_odds of log(p / (1 - p))"
            )
        object.__setattr__(self, "level", None)

    @property
    def least(self) -> float:
        """The log-odds that a point must reach: ``log_odds``, or those of the level."""
        if self.log_odds is not None:
            return self.log_odds
        level = cast(float, self.level)
        return math.log(level / (1 - level))

    def __repr__(self) -> str:
        requirement = f"level={self.level!r}" if self.log_odds is None else f"log_odds={self.log_odds!r}"
        return f"Margin({requirement}, search={self.search!r})"

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return self

    @property
    def _score(self) -> AtLeast:
        """Above 0 where the model is sure enough."""
        return AtLeast(log_odds, self.least)

    def holds(self, model: Model, answer: Counterfactuals) -> Tensor:
        """Which of the points found the model is sure enough of: (n,)."""
        with torch.no_grad():
            return answer.found & (self._score(model, answer.point, answer.target) >= 0)

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """The cheapest point found for each row of x (n, d) towards its target (n,), in the space."""
        model, x, target = checked_question(model, x, target, space, gradient=False)
        with one_thread():
            point = space.snap(self.search.cheapest(model, x, target, space.to(x), self._score), x)
            with torch.no_grad():
                reached = self._score(model, point, target) >= 0
            return counted(model, assess(model, x, point, target, space, also=reached))
