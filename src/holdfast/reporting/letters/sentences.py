"""A plan in plain words: what to do, what follows by itself, and what stays as it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.explaining.person import Change, PersonPlan
from holdfast.reporting.letters.cases import Case
from holdfast.reporting.letters.languages import Language, filled, one_line
from holdfast.tabular.feature import Feature
from holdfast.tabular.phrases import ANY, Phrase

MOST_NAMED = 30  # things that stay as they are; more do not fit a page


@dataclass(frozen=True)
class ToldPlan:
    """One plan as the letter has it."""

    number: int
    steps: tuple[str, ...]  # what to do
    follows: tuple[str, ...]  # what changes by itself then
    sure: tuple[str, ...]  # what the retrained models say


def told_plans(case: Case, language: Language) -> list[ToldPlan]:
    return [_told(plan, number, case, language) for number, plan in enumerate(case.plans, start=1)]


def _told(plan: PersonPlan, number: int, case: Case, language: Language) -> ToldPlan:
    own = [change for change in plan.changes if not change.follows] or plan.changes
    steps = tuple(_capital(step_of(change, case.schema[change.feature], language)) for change in own)
    follows = tuple(
        _consequence(change, case.schema[change.feature], language) for change in plan.changes if change not in own
    )
    return ToldPlan(number, steps, follows, tuple(_sure(plan, case.audited, language)))


def step_of(change: Change, feature: Feature, language: Language) -> str:
    """A change as something to do: "shorten the loan from 24 to 18 months"."""
    phrase = phrase_in(feature, language)
    values = {"now": value_of(change.before, feature, language), "then": value_of(change.after, feature, language)}
    own = getattr(phrase, _way(change, feature)) or phrase.change
    if own:
        return filled(one_line(own), values, f"the phrase of {feature.name!r}")
    return language.say("change", name=name_of(feature, language), **values)


def _consequence(change: Change, feature: Feature, language: Language) -> str:
    values = {"now": value_of(change.before, feature, language), "then": value_of(change.after, feature, language)}
    return language.say("consequence", name=name_of(feature, language), **values)


def _sure(plan: PersonPlan, audited: bool, language: Language) -> Iterable[str]:
    """What the audit models say; the limit is that of `Advice.of`, two-sided at 95 %, so that one side is surer."""
    if not audited or not plan.members or plan.held is None or plan.low is None:
        yield language.say("not_known")
        return
    held, members = language.number(plan.held), language.number(plan.members)
    yield language.say("sure", held=held, members=members, low=language.share(plan.low))
    if 2 * plan.held < plan.members:
        yield language.say("unlikely")


def kept(case: Case, language: Language) -> list[str]:
    """The names of what no plan changes."""
    changed = {change.feature for plan in case.plans for change in plan.changes}
    names = [name_of(feature, language) for feature in case.schema.features if feature.name not in changed]
    if len(names) <= MOST_NAMED:
        return names
    more = len(names) - MOST_NAMED + 1
    return [*names[: MOST_NAMED - 1], language.say("others", count=language.number(more))]


def phrase_in(feature: Feature, language: Language) -> Phrase:
    own = dict(feature.phrase)
    return own.get(language.code) or own.get(ANY) or Phrase()


def name_of(feature: Feature, language: Language) -> str:
    return one_line(phrase_in(feature, language).name or feature.name.replace("_", " "))


def value_of(value: Any, feature: Feature, language: Language) -> str:
    if value is None or value != value:
        return language.say("unknown")
    called = dict(phrase_in(feature, language).levels).get(str(value))
    if called is None and feature.is_numeric:
        return language.number(value)
    return one_line(value if called is None else called)


def _way(change: Change, feature: Feature) -> str:
    """Whether the value rises or falls; "change" where it has no order."""
    before, after = (_place(value, feature) for value in (change.before, change.after))
    if before is None or after is None or not feature.is_ordered:
        return "change"
    return "rise" if after > before else "fall"


def _place(value: Any, feature: Feature) -> float | None:
    if feature.is_numeric:
        return None if value is None or value != value else float(value)
    return feature.values.index(value) if value in feature.values else None


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
