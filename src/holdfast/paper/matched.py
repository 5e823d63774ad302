"""A margin at another method's price: is what SNS buys worth what it costs?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.models.scores import log_odds
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.search.gradients import Ball
from holdfast.search.stabilisers.ascent import walk, with_found_moved
from holdfast.search.task import Task
from holdfast.tabular.space import Space


@dataclass(frozen=True)
class SamePrice:
    """For each row the point of which the model is surest among those that cost no more than the counterfactual found.

        maximize  log p_target(x) / (1 − p_target(x))   over x in the space with ‖x − origin‖₂ ≤ ‖x_c − origin‖₂

    That is `Margin` with a level of its own for each row: the one that this row's price buys. Searched for from the row
    and from the counterfactual, which is kept where nothing surer is found: the same rows, at no higher cost.
    """

    steps: int = 200

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        return with_found_moved(model, start, space, partial(self._surest, model))

    def _surest(self, model: Model, space: Space, point: Tensor, origin: Tensor, target: Tensor) -> Tensor:
        ball = Ball(origin, torch.linalg.vector_norm(point - origin, dim=1))
        task = Task(model, origin, target, space, ball=ball)
        fresh, moved = (walk(task, ball, log_odds, self.steps, start=start) for start in (origin, point))
        surer = task.enough(fresh) & (log_odds(model, fresh, target) > log_odds(model, moved, target))
        return torch.where(surer[:, None], fresh, moved)
