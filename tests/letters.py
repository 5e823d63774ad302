"""What the tests of letters write: fields of an imaginary bank, and cases with as many changes as one likes."""

from __future__ import annotations

import datetime

from holdfast.datasets.german import CARD
from holdfast.explaining.person import Change, PersonAdvice, PersonPlan
from holdfast.reporting.letters.cases import Case

EU = {
    "bank": "Example Bank\nMain Street 1\n10115 Berlin",
    "applicant": "Alex Example\nSide Street 2\n10117 Berlin",
    "decision": "On 2 November 2026 we declined your application no. 4711.",
    "good_until": datetime.date(2027, 2, 1),
    "contact": "Credit desk, +49 30 5550100",
    "authority": "Data Protection Authority, Berlin",
    "date": datetime.date(2026, 11, 16),
}
US = {name: EU[name] for name in ("bank", "applicant", "decision", "good_until", "date")} | {
    "agency": "Bureau of Consumer Financial Protection, 1700 G Street NW, Washington, DC 20552"
}
REASONS = ["Length of the loan", "Too little savings"]


def changes(count: int, start: int = 0) -> tuple[Change, ...]:
    """Changes of so many features of German Credit."""
    features = CARD.schema.features * 2
    return tuple(
        Change(one.name, *((36.0, 17.0) if one.is_numeric else one.values[:2]))
        for one in features[start : start + count]
    )


def told(*plans: PersonPlan, not_durable: bool = False) -> PersonAdvice:
    """What one person is told: plans, or the best there is, which does not hold."""
    return PersonAdvice(8004, "bad", "good", plans, (PersonPlan(1, changes(1), 1.0),) if not_durable else ())


def german(plans: int = 1, count: int = 2, *, not_durable: bool = False, **settings) -> Case:
    """A case of German Credit with so many plans of so many changes."""
    each = (PersonPlan(k + 1, changes(count, 4 * k), 1.0, 32, 32, 0.8911, 1.0) for k in range(plans))
    return Case(told(*each, not_durable=not_durable), CARD.schema, **settings)
