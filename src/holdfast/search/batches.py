"""A search of many rows, some at a time: so that progress is seen, Ctrl-C is heard, and memory does not grow."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals, Method, checked_question, one_after_another
from holdfast.search.plans import Plans, norm_of
from holdfast.search.plans import plans as plans_of
from holdfast.search.stricter import search_stricter
from holdfast.tabular.space import Space
from holdfast.utils.progress import Advance

ROWS_AT_ONCE = 256


def search_in_batches(
    method: Method,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    plans: int,
    advance: Advance | None = None,
    before: Counterfactuals | None = None,
) -> Plans:
    """Up to so many plans for each row. ``advance`` is called with the number of rows that are done.

    ``before`` is what the method has found for these rows with a smaller parameter.
    """
    checked_question(model, x, target, space, gradient=False)  # so that errors name rows of all
    found = []
    for start in range(0, max(1, len(x)), ROWS_AT_ONCE):
        rows = torch.arange(start, min(start + ROWS_AT_ONCE, len(x)), device=x.device)
        question = model, x[rows], target[rows], space.of(rows)
        first = method(*question) if before is None else search_stricter(method, *question, before[rows])
        one_each = Plans((first,), first.cost(norm_of(method))[:, None])
        found.append(plans_of(method, *question, plans, first) if plans > 1 else one_each)
        if advance is not None:
            advance(len(rows))
    ranks = zip(*(batch.answers for batch in found), strict=True)
    answers, cost = tuple(map(one_after_another, ranks)), torch.cat([batch.cost for batch in found])
    return replace(found[0], answers=answers, cost=cost)
