"""Methods with a parameter that trades cost for safety, and a stricter search that goes on from the last one.

A person for whom the last search found nothing has nothing now. A point that is good enough for this search too is
kept: a stricter search finds none that is cheaper. Only the other people are searched for again.
"""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, Protocol, cast, runtime_checkable

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals, Method, assess
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_number


@runtime_checkable
class Strict(Protocol):
    """A method with a parameter, which says what it asks of a point."""

    def holds(self, model: Model, answer: Counterfactuals) -> Tensor:
        """Which of the points found are good enough: (n,)."""
        ...


def search_stricter(
    method: Method, model: Model, x: Tensor, target: Tensor, space: Space, before: Counterfactuals
) -> Counterfactuals:
    """What a method finds for the rows for whom ``before`` is the answer of the same one with a smaller parameter."""
    if not isinstance(method, Strict):
        return method(model, x, target, space)
    holds = before.found & method.holds(model, before)
    rows = torch.nonzero(before.found & ~holds).flatten()
    answer = method(model, x[rows], target[rows], space.of(rows))
    point, found = torch.where(holds[:, None], before.point, x), holds.clone()
    point[rows], found[rows] = answer.point, answer.found
    judged = assess(model, x, point, target, space, also=found)
    return replace(judged, seen=before.seen | answer.seen, calls=answer.calls)


def has_parameter(method: Any) -> bool:
    """Whether the class attribute ``parameter`` names a field of the method, or what its `with_parameter` sets."""
    name = getattr(type(method), "parameter", None)
    fields_of = {field.name for field in fields(method)} if is_dataclass(method) else set()
    settable = hasattr(method, "with_parameter") or name in fields_of
    return isinstance(name, str) and not isinstance(method, type) and settable


def parameter_of(method: Any) -> str:
    """The name of the parameter that `promise` chooses."""
    return str(type(method).parameter)


def with_parameter(method: Any, value: float) -> Method:
    """The method with its parameter at a value."""
    setter = getattr(method, "with_parameter", None)
    return cast(Method, replace(method, **{parameter_of(method): value}) if setter is None else setter(value))


def checked_values(parameter_values: Any) -> list[float]:
    """The values of a parameter, if they are rising numbers."""
    try:
        values = list(parameter_values)
    except TypeError as error:
        raise TypeError(
            f"parameter_values must be rising numbers, such as (0, 1, 2, 4), got {parameter_values!r}"
        ) from error
    for value in values:
        check_number("each of the parameter_values", value)
    rising = all(low < high for low, high in pairwise(values))
    if not values or not rising or not all(math.isfinite(value) for value in values):
        raise ValueError(
            "parameter_values must be one or more rising, finite numbers, such as (0, 1, 2, 4), got "
            f"{parameter_values!r}"
        )
    return [float(value) for value in values]
