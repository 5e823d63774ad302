"""Advice as a notebook shows it: who has a plan, how well plans hold, what to know, and the first plans in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.explaining.person import PersonPlan
from holdfast.utils import notebook
from holdfast.utils.messages import plain

if TYPE_CHECKING:
    from holdfast.explaining.advice import Advice

SHOWN = 5  # plans that are shown in words
COUNTS = {
    "with_a_plan": "with a plan",
    "not_durable": "without a plan that holds as asked: advice.not_durable() has the best there is",
    "have_the_class": "with the class already",
    "nothing_found": "without any plan: advice.wide() says why",
}


def as_html(advice: Advice) -> str:
    summary = advice.summary()
    counts = [f"{summary[name]:,} {words}" for name, words in COUNTS.items() if summary[name]]
    return notebook.page(
        notebook.heading(f"Advice for {len(advice):,} people"),
        notebook.sentence(f"{'; '.join(counts)}. Method: {advice.decided['method']}."),
        *(notebook.sentence(f"Warning: {warning}") for warning in advice.decided.get("warnings", ())),
        *([] if advice.promise is None else [notebook.sentence(advice.promise.statement)]),
        *_holding(advice),
        *_first(advice),
        notebook.note("advice.table() has one row per change, advice.wide() one per plan, advice.of(label) the words."),
    )


def _holding(advice: Advice) -> Iterator[str]:
    if not len(advice.given):
        return
    if advice.audit is None:
        yield notebook.sentence("There are no retrained models, so whether the plans hold is not known.")
        return
    parts = advice.audit.by_kind
    limits = [part.interval() for part in parts.values()]
    columns: dict[str, list[Any]] = {
        "retrained models that chose nothing": list(parts),
        "models": [len(part.kinds) for part in parts.values()],
        "plans": [len(advice.given)] * len(parts),
        "invalidated": [part.rate for part in parts.values()],
        "95 % interval from": [low for low, _ in limits],
        "to": [high for _, high in limits],
    }
    yield notebook.table(columns)


def _first(advice: Advice) -> Iterator[str]:
    """The first plans, in the order of the people."""
    places = sorted(set(advice.given.answers.place.tolist()))[:SHOWN]
    labels = [advice.people.index[place] for place in places]
    told = [(plain(label), plan) for label in labels for plan in advice.of(label).plans][:SHOWN]
    if not told:
        return
    plans = [plan for _, plan in told]
    columns: dict[str, list[Any]] = {
        advice.id: [str(label) for label, _ in told],
        "plan": [plan.plan for plan in plans],
        "changes": ["; ".join(map(str, plan.changes)) for plan in plans],
        "cost": [f"{plan.cost:.3g}" for plan in plans],
        "accepted by audit models": [_accepted(plan) for plan in plans],
    }
    yield notebook.table(columns, words=True)
    if len(told) < len(advice.given):
        yield notebook.note(f"The first {len(told)} of {len(advice.given):,} plans.")


def _accepted(plan: PersonPlan) -> str:
    if not plan.members:
        return "not known"
    return f"{plan.held} of {plan.members} ({plan.low:.0%} to {plan.high:.0%})"
