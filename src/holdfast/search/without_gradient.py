"""The cheapest point of the target class for models that have no gradient: trees, and whatever only predicts."""

from __future__ import annotations

from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.asked import itself
from holdfast.search.black_boxes import CALLS, cheapest_of_black_box
from holdfast.search.moves import Task
from holdfast.search.trees import cheapest_of_trees, searches


def cheapest_without_gradient(task: Task, calls: int = CALLS) -> Tensor:
    """The cheapest points found that score above 0; where there are none, the row itself: (n, d).

    A black box is asked about at most ``calls`` rows for each person.
    """
    trees = able(itself(task.model)).trees
    if trees is None or not searches(trees, task.score):
        return cheapest_of_black_box(task, calls)
    return cheapest_of_trees(task, trees)
