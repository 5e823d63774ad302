"""From what a search gave to the advice: audited, with a reason for everybody who has no plan, and what was decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.auditing.audit import audit
from holdfast.explaining.advice import Advice
from holdfast.explaining.roles import Roles, excluded_from_audit
from holdfast.explaining.searching import Outcome
from holdfast.explaining.selection import Answers, Question
from holdfast.explaining.wanted import Wanted, Wishes
from holdfast.models.model import Model
from holdfast.search.counterfactuals import assess
from holdfast.search.failures import why_not
from holdfast.search.methods.min_cost import MinCost
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.identifying import twins
from holdfast.tabular.space import Space
from holdfast.utils.messages import plain

REASONS = 5  # people for whom every constraint is taken away in turn; of more, random points tell the reason
ALONE = "explain this person alone to see which constraints are in the way"
POSSIBLE = ("the constraints allow it", "such points exist")  # begin reasons why the deployed model is not in the way
TWIN = "same values as another person"


@dataclass(frozen=True, eq=False)
class ExplainRequest:
    """The people who ask, what they want, and of which model."""

    people: pd.DataFrame  # their labels are the index
    goal: Wanted
    encoding: Encoding
    model: Model  # whose classes are what is wanted
    x: Tensor  # (n, d)
    target: Tensor  # (n,)
    now: Tensor  # (n,) the class that they have
    roles: Roles | None
    space: Space  # what each of them may do
    wishes: Wishes = ()  # of each of them, where somebody has one
    leaks: tuple[str, ...] = ()  # features that give the label away

    @property
    def lacking(self) -> Tensor:
        """Who lacks the class that they want, by number: (m,)."""
        return torch.nonzero(self.now != self.target).flatten()

    def question(self, plans: int, progress: bool) -> Question:
        rows = self.lacking
        return Question(self.model, self.x[rows], self.target[rows], self.space.of(rows), plans, progress)


def advice_of(request: ExplainRequest, outcome: Outcome, norm: int, decided: Mapping[str, Any], polars: bool) -> Advice:
    given, not_durable = (_audited(request, part) for part in (outcome.given, outcome.not_durable))
    return Advice(
        people=request.people,
        encoding=request.encoding,
        goal=request.goal,
        now=tuple(request.goal.names(request.now)),
        wanted=tuple(request.goal.names(request.target)),
        given=given,
        not_durable_plans=not_durable,
        why_not=_reasons(request, outcome),
        decided=decided,
        excluded_from_audit=excluded_from_audit(request.roles),
        norm=norm,
        promise=outcome.promise,
        problems=_problems(request),
        polars=polars,
        wishes=request.wishes,
    )


def _audited(request: ExplainRequest, part: Answers) -> Answers:
    """The plans by the numbers and labels of all people, and what the audit models say of them."""
    person = request.lacking.numpy()[part.place]
    answer, audited = replace(part.counterfactuals, labels=request.people.index[person]), part.audit
    if request.roles is not None:
        answer = replace(answer, seen=answer.seen | request.roles.seen)
        if audited is None and len(answer):
            audited = audit(answer, request.roles.audit)
    audited = None if audited is None else replace(audited, counterfactuals=answer)
    return replace(part, counterfactuals=answer, place=person, audit=audited)


# ---- why people have no plan ----


def _reasons(request: ExplainRequest, outcome: Outcome) -> tuple[str | None, ...]:
    reasons: list[str | None] = [None] * len(request.people)
    for person in torch.nonzero(request.now == request.target).flatten().tolist():
        reasons[person] = f"the deployed model says '{request.goal.name(int(request.target[person]))}' already"
    lacking = request.lacking.numpy()
    for row, accepted in zip(outcome.not_durable.place, outcome.not_durable.accepted, strict=True):
        reasons[lacking[row]] = (
            f"not durable: {accepted:.1%} of the selection models accept the best plan found, and fewer than were "
            "asked for"
        )
    served = np.concatenate([outcome.given.place, outcome.not_durable.place])
    left = np.setdiff1d(np.arange(len(lacking)), served)
    for row, reason in zip(left, _why_nothing(request, lacking[left], outcome), strict=True):
        reasons[lacking[row]] = reason
    return tuple(reasons)


def _why_nothing(request: ExplainRequest, people: NDArray[np.int64], outcome: Outcome) -> list[str]:
    """Of people for whom nothing was found: what stands in the way of the deployed model itself."""
    if not len(people):
        return []
    if outcome.promise is not None and not outcome.promise.promised:
        return ["nothing could be promised"] * len(people)
    rows = torch.from_numpy(people)
    x, target, space = request.x[rows], request.target[rows], request.space.of(rows)
    nobody = torch.zeros(len(rows), dtype=torch.bool)
    missed = assess(request.model, x, x, target, space, also=nobody)
    few, many = (torch.arange(len(rows))[part] for part in (slice(REASONS), slice(REASONS, None)))
    reasons = [
        *why_not(
            request.model,
            missed[few],
            space.of(few),
            encoding=request.encoding,
            method=MinCost(norm=1),
            unnamed=request.leaks,
        )
    ]
    if len(many):
        reasons += [f"{reason}; {ALONE}" for reason in why_not(request.model, missed[many], space.of(many))]
    promised = outcome.promise is not None
    return [_in_words(reason, promised) for reason in reasons]


def _in_words(reason: str | None, promised: bool) -> str:
    if reason is None:
        return "nothing was found"
    if promised and reason.startswith(POSSIBLE):
        return (
            "no plan was found that is safe enough for the promise: too few retrained models would accept what is "
            "within reach; a less safe plan may exist, but nothing can be promised of it"
        )
    return reason


# ---- what a reader should know of the people ----


def _problems(request: ExplainRequest) -> pd.DataFrame:
    """People who equal another person in every feature: two persons, or one who was entered twice."""
    found = twins(request.people, request.encoding.schema.names)
    rows = [
        (plain(row), TWIN, f"every value is that of {plain(of)!r}; if that is the same person, delete one")
        for row, of in found.itertuples(index=False, name=None)
    ]
    return pd.DataFrame(rows, columns=["row", "problem", "detail"], dtype=object)
