"""A search again with the knob turned further, which makes use of what the last one found.

A person for whom the last search found nothing has nothing now. A point that is good enough for this search too is
kept: a stricter search finds none that is cheaper. Only the other people are searched for again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals, Method, assess
from holdfast.tabular.space import Space


@runtime_checkable
class Strict(Protocol):
    """A method with a knob, which says what it asks of a point."""

    def holds(self, model: Model, answer: Counterfactuals) -> Tensor:
        """Which of the points found are good enough: (n,)."""
        ...


def search_stricter(
    method: Method, model: Model, x: Tensor, target: Tensor, space: Space, before: Counterfactuals
) -> Counterfactuals:
    """What a method finds for the rows for whom ``before`` is the answer of the same one with its knob turned less."""
    if not isinstance(method, Strict):
        return method(model, x, target, space)
    holds = before.found & method.holds(model, before)
    rows = torch.nonzero(before.found & ~holds).flatten()
    answer = method(model, x[rows], target[rows], space.of(rows))
    point, found = torch.where(holds[:, None], before.point, x), holds.clone()
    point[rows], found[rows] = answer.point, answer.found
    judged = assess(model, x, point, target, space, also=found)
    return replace(judged, seen=before.seen | answer.seen, calls=answer.calls)
