"""What the page says beside the view of the advice: what its figures come to, so that no reader has to compare them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from holdfast.explaining.advice import Advice
from holdfast.explaining.advice_view import KindRate
from holdfast.explaining.person import NOTHING
from holdfast.reporting.groups import Grouping
from holdfast.reporting.plots.advice import CostGroup
from holdfast.reporting.templates import exact_percent

MOST_REASONS = 8
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?")


def holding(advice: Advice) -> list[str]:
    """What was measured for each kind of change, and what that says of the promise, where there is one."""
    promise = advice.promise
    if promise is None or not promise.promised:
        return [f"{rate}." for rate in advice.view.rates]
    return [f"{rate}. {promise_kept(rate, promise.rate)}" for rate in advice.view.rates]


def promise_kept(measured: KindRate, promised: float) -> str:
    promise = f"Promised was at most {exact_percent(promised)} on average"
    if measured.at_most <= promised:
        return f"{promise}: these models confirm it."
    if measured.low > promised:
        return f"{promise}: these models contradict it."
    if measured.rate <= promised:
        return f"{promise}: this agrees with the promise but does not prove it."
    return f"{promise}: this does not agree with the promise but does not disprove it."


def held_as_asked(advice: Advice) -> tuple[int, int] | None:
    """Of all plans, how many at least the share asked for of the audit models accept: that is `hold`, judged by models
    that did not select."""
    hold, held = advice.decided.get("hold"), advice.given.held
    if hold is None or held is None or advice.audit is None:
        return None
    return int((held >= np.ceil(hold * len(advice.audit.kinds) - 1e-9)).sum()), len(held)


def cost_ends(advice: Advice) -> list[float]:
    """Least, quarter, middle, three quarters and greatest cost of a person's cheapest plan; nothing without plans."""
    costs = [person.plans[0].cost for person in advice.view.people if person.plans]
    return np.quantile(costs, (0, 0.25, 0.5, 0.75, 1)).tolist() if costs else []


def reasons(advice: Advice) -> list[tuple[str, int]]:
    """Why people have no plan, the commonest first. Reasons that differ in their numbers alone are one."""
    alike: dict[str, list[str]] = {}
    for person in advice.view.people:
        if person.status == NOTHING and person.why_not is not None:
            alike.setdefault(NUMBER.sub("…", person.why_not), []).append(person.why_not)
    counted = [(shared if len(set(each)) > 1 else each[0], len(each)) for shared, each in alike.items()]
    return sorted(counted, key=lambda reason: -reason[1])[:MOST_REASONS]


def comparing(groupings: Sequence[Grouping]) -> str:
    """Whether any group's plans break more or less often than those of the others."""
    different = [
        f"{group.name} ({grouping.column.replace('_', ' ')}), {'more' if group.beyond[0] > 0 else 'less'} often"
        for grouping in groupings
        for group in grouping.groups
        if group.beyond is not None and (group.beyond[1] > 0 or group.beyond[2] < 0)
    ]
    if different:
        return f"Groups whose plans are invalidated more or less often than chance explains: {'; '.join(different)}."
    return (
        "No group's plans are invalidated more or less often than chance can explain. Where groups are small, the "
        "limits are wide, and a real difference can be missed."
    )


def dearer(groups: Sequence[CostGroup]) -> str:
    """Whether dearer plans hold better."""
    if len(groups) < 2:
        return "There are too few plans to say."
    cheapest, dearest = groups[0], groups[-1]
    if dearest.high < cheapest.low:
        return "Yes: the dearest plans are invalidated less often than the cheapest, by more than chance explains."
    if dearest.low > cheapest.high:
        return "No: the dearest plans are invalidated more often than the cheapest, by more than chance explains."
    return "These plans show no clear difference: the limits of the cheapest and of the dearest plans overlap."
