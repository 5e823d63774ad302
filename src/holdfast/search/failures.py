"""Why nothing was found for a row, as far as trying can tell: random valid points, or fewer constraints."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from holdfast.models.checked import checked_model
from holdfast.models.model import Model
from holdfast.models.model import answer as answer_of
from holdfast.models.rows import check_target
from holdfast.search.counterfactuals import Counterfactuals, Method, check_answer, check_encoding, check_space
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.random_points import random_points
from holdfast.search.relaxing import Relaxing, relaxations, ways_out
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_seed, check_whole

ROWS_AT_ONCE = 64


def why_not(
    model: Model,
    answer: Counterfactuals,
    space: Space,
    tries: int = 2000,
    seed: int = 0,
    encoding: Encoding | None = None,
    method: Method | None = None,
    unnamed: Collection[str] = (),
) -> tuple[str | None, ...]:
    """Say why nothing was found: a sentence for each such row, None for the others, in the order of the rows.

    Without an ``encoding``, it tries ``tries`` random valid points and says what they show. Given the encoding, it
    names the constraints that stand in the way instead: each is taken away, and the rows are searched again by
    ``method``. The five cheapest that help are named; where no single one does, a set of which none can be left out.
    Bounds are widened to what the data has and by the width of that beyond.

    Args:
        model: The deployed model.
        answer: What the search found.
        space: The space that was searched.
        tries: How many random points.
        seed: The seed of the random points.
        encoding: What names the constraints; `Encoding.fit` makes it.
        method: Searches again without a constraint; `MinCost` in l1 where left out.
        unnamed: Features that stay fixed and are named in no sentence, such as one that gives the label away.

    Examples:
        >>> import pandas as pd
        >>> import torch
        >>> import holdfast as hf
        >>> rows = [(20, 9, "no"), (30, 6, "no"), (40, 3, "yes"), (50, 0, "yes")]
        >>> table = pd.DataFrame(rows, columns=["income", "debt", "paid"])
        >>> income = hf.Feature("income", "integer", upper=30)
        >>> features = (income, hf.Feature("debt", "integer"))
        >>> schema = hf.Schema(features, "paid", classes=("no", "yes"))
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> # A model that gives "yes" where the income is above its mean, 35.
        >>> model = lambda x: torch.stack([-x[:, 0], x[:, 0]], dim=1)
        >>> x, target = encoding.encode(table[:1]), encoding.target("yes", 1)
        >>> found = hf.MinCost(norm=1)(model, x, target, encoding.space)
        >>> hf.why_not(model, found, encoding.space, encoding=encoding)
        ("possible if 'income' may rise above 30",)

    Paper: when there is no way to the class is the question of [Ustun et al. 2019](https://arxiv.org/abs/1809.06514).
    """
    check_answer(answer)
    check_space(space, answer.origin)
    check_whole("tries", tries, least=1)
    check_seed("seed", seed)
    model = checked_model(model)
    check_target(answer.target, len(answer), answer_of(model.model, answer.origin).shape[1])
    _check_way(encoding, method, space)
    reasons: list[str | None] = [_unlike(answer, row) for row in range(len(answer))]
    unexplained = torch.tensor([reason is None for reason in reasons], dtype=torch.bool, device=answer.found.device)
    missed = torch.nonzero(~answer.found & (unexplained if encoding is None else True)).flatten()
    search = MinCost(norm=1) if method is None else method
    for rows in torch.split(missed, ROWS_AT_ONCE) if len(missed) else ():
        row_space, origin, target = space.to(answer.origin).of(rows), answer.origin[rows], answer.target[rows]
        if encoding is None:
            sentences = _reasons(model, origin, target, row_space, tries, seed)
        else:
            choices = relaxations(row_space, encoding, unnamed)
            sentences = ways_out(Relaxing(search, model.model, row_space, encoding, origin, target, choices))
        for row, reason in zip(rows.tolist(), sentences, strict=True):
            reasons[row] = reason if reasons[row] is None else f"{reasons[row]}; {reason}"
    return tuple(reasons)


def _check_way(encoding: Any, method: Any, space: Space) -> None:
    if encoding is not None:
        check_encoding(encoding)
        if encoding.width != space.width:
            raise ValueError(
                f"the encoding has {encoding.width} columns but the space has {space.width}; use encoding.space"
            )
    if method is not None and not callable(method):
        raise TypeError(f"expected a method, such as MinCost(norm=1), got {method!r}")
    if method is not None and encoding is None:
        raise ValueError("a method searches without some constraints, which an encoding names: pass encoding= too")


def _unlike(answer: Counterfactuals, row: int) -> str | None:
    """A sentence where all that was found is a point of the class that nobody is like."""
    if answer.found[row] or answer.implausible is None or answer.unlikeness is None or not answer.implausible[row]:
        return None
    now, there = answer.unlikeness[row].tolist()
    reason = (
        f"only a point that nobody is like has the target class: it is {there:.3g} times as far from people of that "
        "class as the limit; the point is in answer.point"
    )
    if now > 1:
        reason += f". As they are, they are already {now:.3g} times as far from them as the limit"
    return reason


def _reasons(model: Model, origin: Tensor, target: Tensor, space: Space, tries: int, seed: int) -> list[str]:
    points = random_points(space, origin, tries, seed)
    with torch.no_grad():
        logits = model(points.flatten(0, 1)).view(*points.shape[:2], -1)
    wanted = logits.argmax(-1) == target  # (tries, n)
    away = torch.linalg.vector_norm(points - origin, dim=-1)
    nearest = torch.where(wanted, away, torch.inf).amin(0)
    still, same = (away == 0).all(0), (logits == logits[:1]).all((0, 2))
    return [_sentence(*row, tries) for row in zip(still.tolist(), same.tolist(), nearest.tolist(), strict=True)]


def _sentence(still: bool, same: bool, nearest: float, tries: int) -> str:
    if still:
        return "the constraints allow no change at all"
    if same:
        return f"the model answers the same for {tries:,} valid points: it does not depend on what may change"
    if nearest == float("inf"):
        return f"none of {tries:,} random valid points has the target class: the constraints may allow none"
    return (
        f"such points exist, the nearest of {tries:,} random ones at distance {nearest:.3g}: allow a larger radius or "
        "more steps"
    )
