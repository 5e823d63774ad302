"""Why nothing was found for a row, as far as the search itself and valid points tried at random can tell."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.models.asked import asked
from holdfast.models.model import Model
from holdfast.models.model import answer as answer_of
from holdfast.models.rows import check_target
from holdfast.search.counterfactuals import Counterfactuals, check_answer, check_space
from holdfast.search.random_points import random_points
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_seed, check_whole

ROWS_AT_ONCE = 64


def why_not(
    model: Model, answer: Counterfactuals, space: Space, tries: int = 2000, seed: int = 0
) -> tuple[str | None, ...]:
    """A sentence for each row that was not found, None for the others."""
    check_answer(answer)
    check_space(space, answer.origin)
    check_whole("tries", tries, least=1)
    check_seed("seed", seed)
    model = asked(model)
    check_target(answer.target, len(answer), answer_of(model.model, answer.origin).shape[1])
    reasons: list[str | None] = [_unlike(answer, row) for row in range(len(answer))]
    untold = torch.tensor([reason is None for reason in reasons], dtype=torch.bool, device=answer.found.device)
    missed = torch.nonzero(~answer.found & untold).flatten()
    for rows in torch.split(missed, ROWS_AT_ONCE) if len(missed) else ():
        own = space.to(answer.origin).of(rows)
        told = _reasons(model, answer.origin[rows], answer.target[rows], own, tries, seed)
        for row, reason in zip(rows.tolist(), told, strict=True):
            reasons[row] = reason
    return tuple(reasons)


def _unlike(answer: Counterfactuals, row: int) -> str | None:
    """A sentence where all that was found is a point of the class that nobody is like."""
    if answer.found[row] or answer.implausible is None or answer.unlikeness is None or not answer.implausible[row]:
        return None
    now, there = answer.unlikeness[row].tolist()
    told = (
        f"only a point that nobody is like has the target class: it is {there:.3g} times as far from people of that "
        "class as the limit; the point is in answer.point"
    )
    return f"{told}. As they are, they are already {now:.3g} times as far from them as the limit" if now > 1 else told


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
