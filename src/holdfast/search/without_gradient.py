"""The cheapest point of the target class for models that have no gradient: trees, and whatever only predicts."""

from __future__ import annotations

from torch import Tensor

from holdfast.models.asked import itself
from holdfast.models.deployed import ensemble_of
from holdfast.search.black_boxes import CALLS, cheapest_of_black_box
from holdfast.search.moves import Task
from holdfast.search.trees import cheapest_of_trees


def cheapest_without_gradient(task: Task, calls: int = CALLS) -> Tensor:
    """The cheapest points found that score above 0; where there are none, the row itself: (n, d).

    A black box is asked about at most ``calls`` rows for each person.
    """
    ensemble = ensemble_of(itself(task.model))
    return cheapest_of_black_box(task, calls) if ensemble is None else cheapest_of_trees(task, ensemble)
