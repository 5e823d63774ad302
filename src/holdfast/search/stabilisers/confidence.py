"""As sure as the model can be nearby: the ablation that SNS must beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from holdfast.models.model import Model
from holdfast.models.scores import log_odds
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.search.stabilisers.ascent import ascend, check_ball
from holdfast.tabular.space import Space


@dataclass(frozen=True)
class Confidence:
    r"""Moves a counterfactual x_c to the nearby point of which the model is surest.

        maximize  log p_target(x) / (1 − p_target(x))   over x in the space with ‖x − x_c‖ ≤ radius

    SNS without its path: the same ball, the same steps, the same rules, so that the two differ in the objective
    alone. The log-odds rise where the probability has long reached 1.
    """

    source: ClassVar[str] = "the ablation of SNS"

    radius: float | Tensor = 2.4
    steps: int = 200
    norm: float = 2  # of the ball: 1, 2 or infinity

    def __post_init__(self) -> None:
        check_ball(self.radius, self.steps, self.norm)

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        """The same rows with those that were found moved to where the model is surer."""
        return ascend(model, start, space, log_odds, self.radius, self.steps, self.norm)
