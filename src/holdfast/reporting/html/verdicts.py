"""What the figures of the page come to, in sentences: a reader should not have to compare them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.explaining.advice import Advice
from holdfast.reporting.groups import Grouping
from holdfast.reporting.html.summary import Kept, kept
from holdfast.reporting.plots.advice import CostGroup
from holdfast.reporting.templates import asked, percent


def holding(advice: Advice) -> list[str]:
    """What was asked for, what was measured, and what the one says of the other, for each kind of change."""
    if advice.promise is not None and advice.promise.promised:
        return [f"{_measured(one)} {_promise_kept(one, advice.promise.rate)}" for one in kept(advice)]
    return [_measured(one) for one in kept(advice)]


def _measured(one: Kept) -> str:
    return (
        f"{one.models} retrained models of kind “{one.kind}”, which had no say in choosing the plans, invalidate "
        f"{percent(one.rate)} of them; at 95 % confidence, such models invalidate at most {percent(one.most)} on "
        "average."
    )


def _promise_kept(one: Kept, rate: float) -> str:
    if one.most <= rate:
        return f"Promised was at most {asked(rate)}: these models confirm it."
    if one.low > rate:
        return f"Promised was at most {asked(rate)}: these models contradict it."
    fits = "fits" if one.rate <= rate else "does not fit"
    said = f"this {fits} the promise, but {one.models} models prove neither"
    return f"Promised was at most {asked(rate)} on average: {said}."


def comparing(groupings: Sequence[Grouping]) -> str:
    """Whether any group's plans break more or less often than those of the others."""
    told = [
        f"{group.name} ({one.column.replace('_', ' ')}), {'more' if group.beyond[0] > 0 else 'less'} often"
        for one in groupings
        for group in one.groups
        if group.beyond is not None and (group.beyond[1] > 0 or group.beyond[2] < 0)
    ]
    if told:
        return f"Groups whose plans are invalidated more or less often than chance explains: {'; '.join(told)}."
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
    return "Not that these plans show it: the limits of the cheapest and of the dearest plans overlap."
