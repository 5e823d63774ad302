"""Plans for people: by which method they are searched, and how carefully."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from holdfast.explaining.roles import Roles
from holdfast.explaining.selection import Answers, Question, SelectedPlans
from holdfast.families.family import Family
from holdfast.guarantees.promises import Promise, promise
from holdfast.search.counterfactuals import Counterfactuals, Method, assess
from holdfast.search.methods.margin import Margin
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.methods.rehearsed import Rehearsed
from holdfast.search.pipeline import make_method
from holdfast.search.plans import one_below_another
from holdfast.search.stricter import has_parameter, parameter_of, with_parameter
from holdfast.utils.progress import bar

LOG = logging.getLogger(__name__)
REHEARSED = "rehearsed"


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
    selected = SelectedPlans(question, math.ceil(hold * len(selection) - 1e-9), len(selection))
    todo, people, before = torch.arange(len(question.x)), len(question.x), None
    for value, candidate in _ladder(method, hold):
        if not len(todo):
            break
        LOG.info("searching plans for %d people with %r", len(todo), candidate)
        with bar(
            f"searching {counted_people(len(todo))}, {_setting(candidate, value)}", len(todo), question.progress
        ) as advance:
            found = question.search(candidate, todo, advance, before)
            again = selected.take(found, todo, selection)
            before, todo = found.answers[0][torch.isin(todo, again)], again
            advance(
                0, f"with a plan that holds {selected.people_with_plans} of {people}, to be searched again {len(todo)}"
            )
    selected.fall_back(selection)
    return Outcome(selected.given(), selected.not_durable())


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


def _answers(plans: Sequence[Counterfactuals]) -> Answers:
    joined, person, plan = one_below_another(plans)
    return Answers(joined, person, plan, np.full(len(person), np.nan))


def _nothing(question: Question) -> Answers:
    nobody = torch.zeros(0, dtype=torch.int64)
    answer = assess(question.model, question.x[:0], question.x[:0], question.target[:0], question.space.of(nobody))
    none = np.zeros(0, np.int64)
    return Answers(answer, none, none, np.zeros(0))
