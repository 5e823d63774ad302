"""Fewer changes for the same end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from torch import Tensor

from holdfast.models.checked import checked_model
from holdfast.models.model import Model
from holdfast.models.scores import Score
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.search.engine.search import pruned
from holdfast.search.stabilisers.ascent import with_found_moved
from holdfast.search.task import Task
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_settings


@dataclass(frozen=True)
class Sparse:
    """Takes back changes that are not needed, feature by feature, dearest first; the class is kept.

    After another stabiliser its objective should be kept as well: ``Sparse(objective=sns.value)``.

    Args:
        objective: What must not get worse, such as ``SNS().value``; the class alone where left out.
        tolerance: How much of the objective may be given up.
        norm: The norm that says which change is dear: 1 or 2.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> found = hf.assess(model, x, torch.tensor([[0.1, 2.0]]), target, space)
        >>> hf.Sparse()(model, found, space).point  # the first column need not change
        tensor([[0., 2.]])

    Paper: a step like this ends the searches of DiCE, [Mothilal et al. 2020](https://arxiv.org/abs/1905.07697).
    """

    source: ClassVar[str] = "a tool of ours"

    objective: Score | None = field(default=None, repr=False)
    tolerance: float = 0.01
    norm: int = 1

    def __post_init__(self) -> None:
        check_settings(self, numbers="norm tolerance")
        if self.objective is not None and not callable(self.objective):
            raise TypeError(f"objective must be a score such as SNS().value, got {self.objective!r}")
        if self.norm not in (1, 2) or not self.tolerance >= 0:
            raise ValueError(f"norm must be 1 or 2 and tolerance 0 or more, got {self}")

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        """The same rows with those that were found changed in fewer features."""
        model = checked_model(model)

        def search(space: Space, point: Tensor, origin: Tensor, target: Tensor) -> Tensor:
            task = Task(model, origin, target, space, self.norm)
            if self.objective is not None:
                floor = task.tried(self.objective, point[:, None])[:, 0] - self.tolerance
                task = replace(task, guard=self.objective, floor=floor)
            return pruned(task, point)

        return with_found_moved(model, start, space, search)
