"""Fewer changes for the same end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from torch import Tensor

from holdfast.models.asked import asked
from holdfast.models.model import Model
from holdfast.models.scores import Score
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.search.moves import Task, prune
from holdfast.search.stabilisers.ascent import with_found_moved
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_settings


@dataclass(frozen=True)
class Sparse:
    """Takes back changes that are not needed, feature by feature, dearest first; the class is kept.

    After a stabiliser its objective should be kept as well: with ``objective=sns.value`` no more than
    ``tolerance`` of it is given up.
    """

    source: ClassVar[str] = "a tool of ours"

    objective: Score | None = field(default=None, repr=False)
    tolerance: float = 0.01
    norm: int = 1  # by which a change is dear

    def __post_init__(self) -> None:
        check_settings(self, numbers="norm tolerance")
        if self.objective is not None and not callable(self.objective):
            raise TypeError(f"objective must be a score such as SNS().value, got {self.objective!r}")
        if self.norm not in (1, 2) or not self.tolerance >= 0:
            raise ValueError(f"norm must be 1 or 2 and tolerance 0 or more, got {self}")

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        """The same rows with those that were found changed in fewer features."""
        model = asked(model)

        def search(space: Space, point: Tensor, origin: Tensor, target: Tensor) -> Tensor:
            task = Task(model, origin, target, space, self.norm).guarded
            if self.objective is not None:
                floor = task.tried(self.objective, point[:, None])[:, 0] - self.tolerance
                task = replace(task, guard=self.objective, floor=floor)
            return prune(task, point)

        return with_found_moved(model, start, space, search)
