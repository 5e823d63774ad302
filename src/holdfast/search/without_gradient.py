"""The cheapest point of the target class for models that have no gradient: trees, and whatever only predicts."""

from __future__ import annotations

from torch import Tensor

from holdfast.search.believable import believable
from holdfast.search.moves import Task, settle


def cheapest_without_gradient(task: Task) -> Tensor:
    """The cheapest points found that score above 0; where there are none, the row itself: (n, d)."""
    return believable(task, settle(task, task.origin))
