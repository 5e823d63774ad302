"""Plans for people: searched, and chosen by models that the search has not seen."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.auditing.audit import Audit
from holdfast.explaining.roles import Roles
from holdfast.families.family import Family
from holdfast.guarantees.promises import Promise, promise
from holdfast.models.abilities import able
from holdfast.models.model import Model
from holdfast.search.batches import search_in_batches
from holdfast.search.counterfactuals import Counterfactuals, Method, assess
from holdfast.search.methods.margin import Margin
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.methods.rehearsed import Rehearsed
from holdfast.search.pipeline import make_method
from holdfast.search.plans import Plans, one_below_another
from holdfast.search.stricter import has_parameter, parameter_of, with_parameter
from holdfast.tabular.space import Space
from holdfast.utils.progress import Advance, bar

LOG = logging.getLogger(__name__)
REHEARSED = "rehearsed"
DUST = 1e-5  # a change by so little of all that a column can be is undone where the model accepts that too


@dataclass(frozen=True, eq=False)
class Answers:
    """One row for each plan of each person."""

    counterfactuals: Counterfactuals  # (m,) all found
    place: NDArray[np.int64]  # (m,) whose it is: the person's number
    plan: NDArray[np.int64]  # (m,) 1 is the person's cheapest
    accepted: NDArray[np.float64]  # (m,) share of the selection models that accept it; NaN where there are none
    audit: Audit | None = None  # what the audit models say of the plans; None where there are none, or not asked yet

    def __len__(self) -> int:
        return len(self.place)

    @cached_property
    def held(self) -> NDArray[np.int64] | None:
        """How many of the audit models accept each plan: (m,)."""
        if self.audit is None:
            return None
        accepted: NDArray[np.int64] = (self.audit.predictions == self.audit.counterfactuals.target).sum(0).cpu().numpy()
        return accepted


@dataclass(frozen=True, eq=False)
class Question:
    """Who asks, and of which model: everybody here lacks the class that they want."""

    model: Model
    x: Tensor  # (n, d)
    target: Tensor  # (n,)
    space: Space
    plans: int
    progress: bool = False

    def search(
        self, method: Method, rows: Tensor, advance: Advance | None = None, before: Counterfactuals | None = None
    ) -> Plans:
        """Up to so many plans for each of some people; ``before`` is what was found with a smaller parameter."""
        question = self.model, self.x[rows], self.target[rows], self.space.of(rows)
        plans = search_in_batches(method, *question, self.plans, advance, before)
        if not able(self.model).has_gradient:  # trees may split between two neighbouring numbers
            return plans
        return replace(plans, answers=tuple(self._without_dust(answer, rows) for answer in plans.answers))

    def _without_dust(self, answer: Counterfactuals, rows: Tensor) -> Counterfactuals:
        """Without changes too small to be any: 29.51 to 29.5099996 is nothing that anybody does."""
        change, wide = (answer.point - answer.origin).abs(), (self.space.upper - self.space.lower).to(answer.point)
        dust = (change > 0) & (change <= DUST * torch.where(wide.isfinite(), wide, 1))
        if not dust.any():
            return answer
        point = torch.where(dust, answer.origin, answer.point)
        still = assess(self.model, answer.origin, point, answer.target, self.space.of(rows)).found
        return replace(answer, point=torch.where((still & answer.found)[:, None], point, answer.point))


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a search gave."""

    given: Answers
    not_durable: Answers  # for people who have no plan: the best there is, which fewer models accept than was asked
    promise: Promise | None = None


# ---- which method ----


def check_method(method: Any) -> None:
    """Raise where a method is none: before models are retrained for it."""
    if isinstance(method, str):
        if method != REHEARSED:
            make_method(method)
    elif method is not None and not callable(method):
        raise TypeError(f"method is {method!r}; give a name, such as 'min-l1+sns', or a method, such as PGD()")


def chosen_method(method: Any, roles: Roles | None, must_hold: bool) -> tuple[Method, str]:
    """The method, and the rule that chose it; ``must_hold`` says whether the advice has to hold."""
    rehearsal = None if roles is None else roles.rehearsal
    if method is None:
        if not must_hold:
            return MinCost(norm=1), "min-l1, the cheapest plan that the deployed model accepts: no hold was asked for"
        if rehearsal is None:
            return Margin(search=MinCost(norm=1)), "margin, since no retrained model was left to rehearse with"
        why = f"rehearsed: the search asks the deployed model and {len(rehearsal)} retrained models"
        return Rehearsed(rehearsal, search=MinCost(norm=1)), why
    if method == REHEARSED:
        if rehearsal is None:
            raise ValueError(
                "method='rehearsed' needs retrained models to ask: give retrain=hf.seeds(96), and leave some to "
                "rehearse with, sizes=Sizes(rehearsal=32)"
            )
        return Rehearsed(rehearsal, search=MinCost(norm=1)), "rehearsed, as asked for"
    if isinstance(method, str):
        return make_method(method), f"{method}, as asked for"
    return method, "a method of the caller"


# ---- plain, held, promised ----


def searched(
    question: Question,
    method: Method,
    roles: Roles | None,
    hold: float | None,
    rate: float | None,
    parameter_values: Sequence[float] | None,
) -> Outcome:
    """Plans that hold, plans with a promised rate, or the method's plans, whatever was asked for."""
    if not len(question.x):  # everybody has the class already
        return Outcome(_nothing(question), _nothing(question))
    if rate is not None and roles is not None:
        return _search_promised(question, method, roles, rate, parameter_values)
    if hold is not None and roles is not None:
        return search_held(question, method, roles.selection, hold)
    return _search_plain(question, method)


def _search_plain(question: Question, method: Method) -> Outcome:
    """What the method finds, whoever accepts it."""
    rows = torch.arange(len(question.x))
    with bar(f"searching {counted_people(len(rows))}", len(rows), question.progress) as advance:
        found = question.search(method, rows, advance)
        advance(0, f"with a plan {int(found.answers[0].found.sum())} of {len(rows)}")
    return Outcome(_answers(found.answers), _nothing(question))


def search_held(question: Question, method: Method, selection: Family, hold: float) -> Outcome:
    """For each person the cheapest plans that at least the share ``hold`` of the selection models accept.

    The parameter of a method, if it has one, is raised for the people whose plans are accepted by fewer, until all of
    them hold, or nothing is found any more.
    """
    best = _Best(question, math.ceil(hold * len(selection) - 1e-9), len(selection))
    todo, people, before = torch.arange(len(question.x)), len(question.x), None
    for value, candidate in _ladder(method, hold):
        if not len(todo):
            break
        LOG.info("searching plans for %d people with %r", len(todo), candidate)
        with bar(
            f"searching {counted_people(len(todo))}, {_setting(candidate, value)}", len(todo), question.progress
        ) as advance:
            found = question.search(candidate, todo, advance, before)
            again = best.take(found, todo, selection)
            before, todo = found.answers[0][torch.isin(todo, again)], again
            advance(0, f"with a plan that holds {best.held} of {people}, to be searched again {len(todo)}")
    best.fall_back(selection)
    return Outcome(best.given(), best.not_durable())


def counted_people(count: int) -> str:
    return "1 person" if count == 1 else f"{count} people"


def _setting(method: Any, value: float) -> str:
    return "once" if math.isnan(value) else f"{parameter_of(method)} {value:g}"


def _search_promised(
    question: Question, method: Method, roles: Roles, rate: float, parameter_values: Sequence[float] | None
) -> Outcome:
    """The plans of everybody at the value of the parameter that the selection models choose for the rate."""
    result = promise(
        method,
        question.model,
        question.x,
        question.target,
        question.space,
        roles.selection,
        rate=rate,
        audit=roles.audit,
        parameter_values=parameter_values,
        plans=question.plans,
        progress=question.progress,
    )
    if result.counterfactuals is None:
        return Outcome(_nothing(question), _nothing(question), result)
    plans = (result.counterfactuals,) if result.plans is None else result.plans.answers
    return Outcome(replace(_answers(plans), audit=result.audit), _nothing(question), result)


def _ladder(method: Any, hold: float) -> list[tuple[float, Method]]:
    """The method at each value of its parameter at which so many models may accept; by itself where it has none."""
    if not has_parameter(method):
        return [(math.nan, method)]
    values = [value for value in getattr(method, "parameter_values", ()) if value >= hold - 1]
    careful = [value for value in values if value > 0]
    # Every second of the careful ones: they lie so close that few people gain by the others, and each takes a search.
    tried = values[:1] + [value for value in careful[1::2] or careful if value not in values[:1]]
    return [(value, with_parameter(method, value)) for value in tried] or [(math.nan, method)]


class _Best:
    """The plans of each person that hold, as far as they were found, and the best of those that do not."""

    def __init__(self, question: Question, needed: int, models: int) -> None:
        people, count = len(question.x), question.plans
        self.question, self.needed, self.models = question, needed, models
        self.point = question.x[:, None].repeat(1, count, 1)  # (n, k, d)
        self.votes = torch.zeros(people, count, dtype=torch.int64)
        self.have = torch.zeros(people, dtype=torch.int64)
        self.spare = question.x.clone()  # (n, d) the best that does not hold
        self.spare_votes = torch.full((people,), -1)
        self.spare_cost = torch.full((people,), torch.inf)
        self.seen: frozenset[str] = frozenset()

    @property
    def held(self) -> int:
        return int((self.have > 0).sum())

    def take(self, found: Plans, rows: Tensor, selection: Family) -> Tensor:
        """Take over what is better than before, and say who is to be searched again."""
        there = torch.stack([answer.found for answer in found.answers], dim=1)  # (m, k)
        votes = self._votes(found, there, selection)
        holds = there & (votes >= self.needed)
        self._keep_spares(found, rows, there & ~holds, votes)
        better = torch.nonzero(holds.sum(1) > self.have[rows]).flatten()
        # Plans that hold come first, in the order of their cost.
        order = (~holds).to(torch.int8).argsort(dim=1, stable=True)[better]
        points = torch.stack([answer.point for answer in found.answers], dim=1)[better[:, None], order]
        improved = rows[better]
        self.point[improved], self.votes[improved] = points, votes[better[:, None], order]
        self.have[improved] = holds.sum(1)[better]
        self.seen |= found.answers[0].seen
        # Who finds nothing here finds nothing at a more careful value either.
        again = there.any(1) & (there & ~holds).any(1)
        return rows[again]

    def _votes(self, found: Plans, there: Tensor, selection: Family) -> Tensor:
        """How many of the selection models accept each plan: (m, k)."""
        votes = torch.zeros_like(there, dtype=torch.int64)
        for rank, answer in enumerate(found.answers):
            found_here = there[:, rank]
            if found_here.any():
                classes = selection.predict(answer.point[found_here])
                votes[found_here, rank] = (classes == answer.target[found_here]).sum(0).cpu()
        return votes

    def _keep_spares(self, found: Plans, rows: Tensor, fails: Tensor, votes: Tensor) -> None:
        for rank, answer in enumerate(found.answers):
            cost = found.cost[:, rank].to(self.spare_cost)
            more = votes[:, rank] > self.spare_votes[rows]
            as_many = (votes[:, rank] == self.spare_votes[rows]) & (cost < self.spare_cost[rows])
            better = torch.nonzero(fails[:, rank] & (more | as_many)).flatten()
            improved = rows[better]
            self.spare[improved], self.spare_cost[improved] = answer.point[better], cost[better]
            self.spare_votes[improved] = votes[better, rank]

    def fall_back(self, selection: Family) -> None:
        """Whoever has nothing yet is told the cheapest plan that the deployed model accepts, though it may not hold."""
        rows = torch.nonzero((self.have == 0) & (self.spare_votes < 0)).flatten()
        if len(rows):
            single_plan = replace(self.question, plans=1)
            self.take(single_plan.search(MinCost(norm=1), rows), rows, selection)

    def given(self) -> Answers:
        people, rank = torch.nonzero(torch.arange(self.point.shape[1]) < self.have[:, None]).unbind(1)
        plan = (rank + 1).numpy()
        return self._answers(people, self.point[people, rank], plan, self.votes[people, rank])

    def not_durable(self) -> Answers:
        people = torch.nonzero((self.have == 0) & (self.spare_votes >= 0)).flatten()
        return self._answers(people, self.spare[people], np.ones(len(people), np.int64), self.spare_votes[people])

    def _answers(self, people: Tensor, point: Tensor, plan: NDArray[np.int64], votes: Tensor) -> Answers:
        question, space = self.question, self.question.space.of(people)
        answer = assess(question.model, question.x[people], point, question.target[people], space)
        answer = replace(answer, seen=answer.seen | self.seen)
        return Answers(answer, people.numpy(), plan, votes.double().numpy() / self.models)


def _answers(plans: Sequence[Counterfactuals]) -> Answers:
    joined, person, plan = one_below_another(plans)
    return Answers(joined, person, plan, np.full(len(person), np.nan))


def _nothing(question: Question) -> Answers:
    nobody = torch.zeros(0, dtype=torch.int64)
    answer = assess(question.model, question.x[:0], question.x[:0], question.target[:0], question.space.of(nobody))
    none = np.zeros(0, np.int64)
    return Answers(answer, none, none, np.zeros(0))
