"""Advice as a notebook shows it: who has a plan, how well plans hold, what to know, and the first plans in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.utils import notebook

if TYPE_CHECKING:
    from holdfast.explaining.advice import Advice

MOST_PLANS = 5  # that are shown in words


def as_html(advice: Advice) -> str:
    view = advice.view
    audited = [] if advice.audit is None else [notebook.table(advice.audit.summary().to_dict("list"))]
    return notebook.page(
        notebook.heading(view.title),
        notebook.sentence("; ".join(view.counted())),
        *map(notebook.sentence, view.sentences()),
        *(notebook.sentence(f"Warning: {warning}") for warning in view.warnings),
        *(audited if view.plans else []),
        *_first_plans(advice),
        notebook.note("advice.table() has one row per change, advice.wide() one per plan, advice.of(label) the words."),
    )


def _first_plans(advice: Advice) -> list[str]:
    plans = [(person, plan) for person in advice.view.people for plan in person.plans]
    if not plans:
        return []
    rows = [
        (str(person.person), plan.plan, "; ".join(map(str, plan.changes)), f"{plan.cost:.3g}", plan.holding)
        for person, plan in plans[:MOST_PLANS]
    ]
    names = (advice.id, "plan", "changes", "cost", "does it hold?")
    columns: dict[str, tuple[Any, ...]] = dict(zip(names, zip(*rows, strict=True), strict=True))
    shown = [notebook.table(columns, words=True)]
    if len(plans) > MOST_PLANS:
        shown.append(notebook.note(f"The first {MOST_PLANS} of {len(plans):,} plans."))
    return shown
