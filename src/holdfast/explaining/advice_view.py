"""One view of advice: its counts, rates, warnings and people, each with the words that every rendering of it shows.

The repr, the page of a notebook, the text on a terminal, the report and the letters are made from this value alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.auditing.intervals import upper_limit
from holdfast.explaining.person import (
    ALREADY,
    GIVEN,
    NOT_DURABLE,
    NOTHING,
    STATUS,
    PersonAdvice,
    PersonPlan,
    changes_of,
)
from holdfast.utils import notebook
from holdfast.utils.messages import plain

if TYPE_CHECKING:
    from holdfast.explaining.advice import Advice
    from holdfast.explaining.selection import Answers

WORDS = {  # of one person, and of a number of people
    GIVEN: "with a plan",
    NOT_DURABLE: "without a durable plan",
    ALREADY: "with the class already",
    NOTHING: "without any plan",
}
MOST_NAMED = 8  # people who are named in a warning
PLANS_IN_NOTEBOOK = 5  # that are shown in words


@dataclass(frozen=True)
class KindRate:
    """How many of the plans the audit models of one kind of change invalidate."""

    kind: str
    models: int
    plans: int
    rate: float
    low: float  # 95 % limits
    high: float
    at_most: float  # one-sided 95 % limit
    accepted_by_all: int  # plans that each of these models accepts

    def __str__(self) -> str:
        return (
            f"{self.models} audit models of kind '{self.kind}' invalidate {self.rate:.1%} of the plans on average, at "
            f"most {self.at_most:.1%} at 95 % confidence"
        )


@dataclass(frozen=True)
class AdviceView:
    """What there is to say about advice for a table of people."""

    people: tuple[PersonAdvice, ...]
    plans: int
    method: str
    warnings: tuple[str, ...]
    rates: tuple[KindRate, ...]
    promise: str | None  # its statement, where one was asked for

    @property
    def counts(self) -> Mapping[str, int]:
        """How many people have each STATUS."""
        found = Counter(person.status for person in self.people)
        return {status: found[status] for status in STATUS}

    @property
    def refused(self) -> int:
        return len(self.people) - self.counts[ALREADY]

    @property
    def title(self) -> str:
        return f"Advice for {len(self.people):,} people"

    def counted(self) -> Iterator[str]:
        """How many people have which status, in words."""
        for status, count in self.counts.items():
            if status == GIVEN:
                yield f"{count:,} {WORDS[status]} ({self.plans:,} {'plan' if self.plans == 1 else 'plans'})"
            elif count:
                yield f"{count:,} {WORDS[status]}"

    def sentences(self) -> Iterator[str]:
        """The method, what is promised, and how well the plans hold: one line each."""
        yield f"method: {self.method}"
        if self.promise is not None:
            yield self.promise
        yield from map(str, self.rates)


def view_of(advice: Advice) -> AdviceView:
    return AdviceView(
        people=tuple(_people(advice)),
        plans=len(advice.given),
        method=str(advice.decided["method"]),
        warnings=tuple(_warnings(advice)),
        rates=tuple(_rates(advice)),
        promise=None if advice.promise is None else advice.promise.statement,
    )


def _people(advice: Advice) -> Iterator[PersonAdvice]:
    given, not_durable = (_plans(advice, part) for part in (advice.given, advice.not_durable_plans))
    for row, label in enumerate(advice.people.index):
        yield PersonAdvice(
            plain(label),
            advice.now[row],
            advice.wanted[row],
            tuple(given.get(row, ())),
            tuple(not_durable.get(row, ())),
            advice.why_not[row],
            advice.wishes[row] if advice.wishes else None,
        )


def _plans(advice: Advice, part: Answers) -> dict[int, list[PersonPlan]]:
    """The plans of each person, by the row of the person."""
    names = advice.encoding.schema.names
    people = advice.people.iloc[part.place]
    before, after = (
        [frame[name].tolist() for name in names]
        for frame in (people, part.counterfactuals.to_frame(advice.encoding, people))
    )
    moved = _moved(advice, part)
    costs = part.counterfactuals.cost(advice.norm).double().tolist()
    limits = None if part.audit is None else part.audit.per_row_interval()  # of the share that invalidates
    found: dict[int, list[PersonPlan]] = {}
    for plan, row in enumerate(part.place.tolist()):
        features = np.flatnonzero(moved[plan]).tolist()
        changed = [(names[f], plain(before[f][plan]), plain(after[f][plan])) for f in features]
        parts = moved[plan, features].tolist() if advice.norm == 1 else [None] * len(features)
        changes = changes_of(changed, advice.encoding.schema.relations, parts)
        holding: dict[str, Any] = {}
        if part.audit is not None and part.held is not None and limits is not None:
            low, high = (1 - float(limit[plan]) for limit in reversed(limits))
            holding = {"held": int(part.held[plan]), "members": len(part.audit.kinds), "low": low, "high": high}
        found.setdefault(row, []).append(PersonPlan(int(part.plan[plan]), changes, costs[plan], **holding))
    return found


def _moved(advice: Advice, part: Answers) -> NDArray[np.float64]:
    """How far each plan moves each feature, in the encoded space: (m, features)."""
    answer = part.counterfactuals
    distance = (answer.point.double() - answer.origin.double()).abs().cpu().numpy()
    return np.stack([distance[:, columns].sum(1) for _, columns in advice.encoding.places], axis=1)


def _rates(advice: Advice) -> Iterator[KindRate]:
    if advice.audit is None or not len(advice.given):
        return
    for kind, part in advice.audit.by_kind.items():
        limits = (*part.interval(), upper_limit(part.per_member))
        accepted_by_all = int((part.per_row == 0).sum())
        yield KindRate(kind, len(part.kinds), len(advice.given), part.rate, *limits, accepted_by_all)


def _warnings(advice: Advice) -> Iterator[str]:
    """What a reader must know before anything else."""
    decided = advice.decided
    if not decided.get("retrained"):
        yield "Nobody knows whether this advice holds: there were no retrained models to ask."
    yield from decided.get("warnings", ())
    if decided["model_is_ours"]:
        yield "The model is a network that holdfast trained, not a model of yours."
    if decided["constraints"] == "off":
        yield "Constraints were off: plans may change anything, also what nobody can change."
    elif decided["schema"] != "given":
        yield (
            "Nobody said what people can change. The schema was read off the table, which does not show it: plans may "
            "change what nobody can, such as age or sex."
        )
    if len(advice.problems):
        rows = advice.problems["row"]
        named = ", ".join(map(str, rows[:MOST_NAMED])) + (", …" if len(rows) > MOST_NAMED else "")
        yield (
            f"The same values as another person: {named} ({len(rows)} in all). If that is one person who was entered "
            "twice, delete one row."
        )


# ---- as a notebook shows it ----


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
        for person, plan in plans[:PLANS_IN_NOTEBOOK]
    ]
    names = (advice.id, "plan", "changes", "cost", "does it hold?")
    columns: dict[str, tuple[Any, ...]] = dict(zip(names, zip(*rows, strict=True), strict=True))
    shown = [notebook.table(columns, words=True)]
    if len(plans) > PLANS_IN_NOTEBOOK:
        shown.append(notebook.note(f"The first {PLANS_IN_NOTEBOOK} of {len(plans):,} plans."))
    return shown
