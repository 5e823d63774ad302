"""What the page says above the cards: counts, rates, groups, models and how it was made."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.auditing.intervals import upper_limit
from holdfast.explaining.advice import ALREADY, GIVEN, NOT_DURABLE, NOTHING, Advice

SHOWN = 8  # of a long list
NUMBER = re.compile(r"\d[\d,]*(\.\d+)?")
ROLES = {
    "rehearsal": "rehearse: the search asks them, and looks for plans that they accept too",
    "selection": "select: they decide which plans are given, or how cautious a promise must be",
    "audit": "audit: they chose nothing; all shares of invalidated plans in tables and on cards come from them",
}


@dataclass(frozen=True)
class Counts:
    """What became of the people."""

    people: int
    refused: int
    planned: int
    plans: int
    not_durable: int
    nothing: int
    already: int
    problems: int


def counts(advice: Advice) -> Counts:
    each = advice.status.value_counts()
    already = int(each.get(ALREADY, 0))
    return Counts(
        people=len(advice),
        refused=len(advice) - already,
        planned=int(each.get(GIVEN, 0)),
        plans=len(advice.given),
        not_durable=int(each.get(NOT_DURABLE, 0)),
        nothing=int(each.get(NOTHING, 0)),
        already=already,
        problems=len(advice.problems),
    )


@dataclass(frozen=True)
class Kept:
    """How well the plans hold under one kind of change, by the audit models."""

    kind: str
    models: int
    rate: float
    low: float
    high: float
    most: float  # one-sided limit
    every: int  # plans that all these models accept


def kept(advice: Advice) -> list[Kept]:
    if advice.audit is None or not len(advice.given):
        return []
    told = []
    for kind, part in advice.audit.by_kind.items():
        limits = (*part.interval(), upper_limit(part.per_member))
        told.append(Kept(kind, len(part.kinds), part.rate, *limits, every=int((part.per_row == 0).sum())))
    return told


def doubts(advice: Advice) -> list[str]:
    """What a reader must know before anything else."""
    decided, told = advice.decided, list(advice.decided.get("warnings", ()))
    if not decided.get("retrained"):
        told.insert(0, "Nobody knows whether this advice holds: there were no retrained models to ask.")
    if decided["model_is_ours"]:
        told.append("The model is a network that holdfast trained, not a model of yours.")
    if decided["constraints"] == "off":
        told.append("Constraints were off: plans may change anything, also what nobody can change.")
    elif decided["schema"] != "given":
        told.append(
            "Nobody said what people can change. The schema was read off the table, which does not show it: plans may "
            "change what nobody can, such as age or sex."
        )
    if len(advice.problems):
        alike = ", ".join(map(str, advice.problems["row"][:SHOWN])) + (", …" if len(advice.problems) > SHOWN else "")
        told.append(
            f"The same values as another person: {alike} ({len(advice.problems)} in all). If that is one person who "
            "was entered twice, delete one row."
        )
    return told


def as_asked(advice: Advice) -> tuple[int, int] | None:
    """Of all plans, how many at least the share asked for of the audit models accept: that is `hold`, judged by models
    that did not select."""
    hold = advice.decided.get("hold")
    if hold is None or advice.given.held is None or advice.audit is None:
        return None
    needed = np.ceil(hold * len(advice.audit.kinds) - 1e-9)
    return int((advice.given.held >= needed).sum()), len(advice.given)


def cost_ends(advice: Advice) -> tuple[float, float, float, float, float] | None:
    """Least, quarter, middle, three quarters and greatest cost of a person's cheapest plan."""
    costs = advice.counterfactuals.cost(advice.norm).double().cpu().numpy()[advice.given.answers.plan == 1]
    if not len(costs):
        return None
    least, quarter, middle, most, last = np.quantile(costs, (0, 0.25, 0.5, 0.75, 1)).tolist()
    return least, quarter, middle, most, last


def role_rows(retrained: dict[str, dict[str, int]]) -> list[dict[str, Any]]:
    """One row per role: what its models do, and how many of each kind there are."""
    return [{"does": does, "kinds": retrained.get(role, {})} for role, does in ROLES.items()]


def reasons(advice: Advice, most: int = SHOWN) -> Sequence[tuple[str, int]]:
    """Why people have no plan, the commonest first. Reasons that differ in their numbers alone are one."""
    told: dict[str, list[str]] = {}
    for reason, status in zip(advice.why_not, advice.status, strict=True):
        if reason is not None and status == NOTHING:
            told.setdefault(NUMBER.sub("…", reason), []).append(reason)
    each = [(one if len(set(own)) > 1 else own[0], len(own)) for one, own in told.items()]
    return sorted(each, key=lambda reason: -reason[1])[:most]
