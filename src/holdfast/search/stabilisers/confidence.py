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
    """Moves a counterfactual x_c to the nearby point of which the model is surest.

    Over x in the space with ‖x − x_c‖ ≤ radius it maximises

        log p_target(x) / (1 − p_target(x))

    This is SNS without its path: the same ball, the same steps, the same rules, so that the two differ in the objective
    alone. The log-odds rise where the probability has long reached 1.

    Args:
        radius: How far a point may move: one number for all rows, or one per row (n,).
        steps: How many gradient steps.
        norm: The norm of the ball: 1, 2 or infinity.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> found = hf.MinCost(norm=2)(model, x, target, space)
        >>> sure = hf.Confidence(radius=0.5)(model, found, space)
        >>> print(f"{model(sure.point).softmax(1)[0, 1].item():.2f}")  # it was 0.50
        0.92

    Paper: the first term of Eq. 5 (Section 4.3) of [Black et al. 2022](https://arxiv.org/abs/2110.03109), which its
    Definition 5 drops.
    """

    source: ClassVar[str] = "the ablation of SNS"

    radius: float | Tensor = 2.4
    steps: int = 200
    norm: float = 2

    def __post_init__(self) -> None:
        check_ball(self.radius, self.steps, self.norm)

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        """The same rows with those that were found moved to where the model is surer."""
        return ascend(model, start, space, log_odds, self.radius, self.steps, self.norm)
