"""Which plans are given: those that hold, by the selection models, which the search has not asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.auditing.audit import Audit
from holdfast.families.family import Family
from holdfast.models.abilities import able
from holdfast.models.model import Model
from holdfast.search.batches import search_in_batches
from holdfast.search.counterfactuals import Counterfactuals, Method, assess
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.plans import Plans
from holdfast.tabular.space import Space
from holdfast.utils.progress import Advance

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


class SelectedPlans:
    """The plans of each person that hold, as far as they were found, and the best of those that do not."""

    def __init__(self, question: Question, votes_needed: int, models: int) -> None:
        people, count = len(question.x), question.plans
        self.question, self.votes_needed, self.models = question, votes_needed, models
        self.point = question.x[:, None].repeat(1, count, 1)  # (n, k, d)
        self.votes = torch.zeros(people, count, dtype=torch.int64)
        self.have = torch.zeros(people, dtype=torch.int64)
        self.spare = question.x.clone()  # (n, d) the best that does not hold
        self.spare_votes = torch.full((people,), -1)
        self.spare_cost = torch.full((people,), torch.inf)
        self.seen: frozenset[str] = frozenset()

    @property
    def people_with_plans(self) -> int:
        return int((self.have > 0).sum())

    def take(self, found: Plans, rows: Tensor, selection: Family) -> Tensor:
        """Take over what is better than before, and say who is to be searched again."""
        there = torch.stack([answer.found for answer in found.answers], dim=1)  # (m, k)
        votes = self._votes(found, there, selection)
        holds = there & (votes >= self.votes_needed)
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
        """For whoever has nothing, the cheapest plan that the deployed model accepts: given if it holds, else kept as
        one that is not durable."""
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
