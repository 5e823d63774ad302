"""What a letter is about: one person, the plans that may be told, and what is known of them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.explaining.advice import Advice
from holdfast.explaining.person import PersonPlan
from holdfast.tabular.schema import Schema

MOST_PLANS = 3  # a letter is one page


@dataclass(frozen=True)
class Case:
    """One person's advice as a letter tells it. Plans that do not hold as was asked are not in it."""

    person: Hashable
    schema: Schema
    plans: tuple[PersonPlan, ...]
    not_durable: bool = False  # something was found, but it does not hold as was asked
    audited: bool = True  # False: what the retrained models say tells nothing, and is not told
    sample: bool = False  # the model is one that decides about nobody


def case_of(advice: Advice, person: Hashable) -> Case:
    """The case of one person, by the label of their row."""
    told = advice.of(person)  # a KeyError for somebody unknown
    already = not told.plans and told.now == told.wanted
    return case(person, told.plans, advice.encoding.schema, advice.decided, already, bool(told.not_durable))


def case(
    person: Hashable,
    plans: tuple[PersonPlan, ...],
    schema: Schema,
    decided: Mapping[str, Any],
    already: bool,
    not_durable: bool,
) -> Case:
    """Raise where there is nothing to write, or where it must not be written; else what is written about."""
    if already:
        raise ValueError(
            f"{person!r} has the class that was wanted already, so there is nothing to change and no letter to write"
        )
    if decided.get("constraints") == "off":
        raise ValueError(
            "this advice was made without the schema's constraints, so it may tell people to change what nobody can; "
            "make it again with them (constrained=True, or without --unconstrained)"
        )
    if decided.get("schema") == "read off the table":
        warnings.warn(
            "the schema was read off the table, so the letter may tell people to change what nobody can change; write "
            "a schema first: docs/howto/schema.md",
            stacklevel=4,
        )
    doubted = bool(decided.get("warnings"))
    sample = bool(decided.get("model_is_ours"))
    return Case(person, schema, plans[:MOST_PLANS], not_durable, audited=not doubted, sample=sample)
