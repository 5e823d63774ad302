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
class PlanWords:
    """One plan as the letter has it."""

    number: int
    steps: list[str]  # what to do
    follows: list[str]  # what changes by itself then
    sure: list[str]  # what the audit models say


def words_of_plan(plan: PersonPlan, number: int, case: Case, language: Language) -> PlanWords:
    steps = [change for change in plan.changes if not change.follows] or list(plan.changes)
    follows = [change for change in plan.changes if change not in steps]
    return PlanWords(
        number,
        [_capital(_step(change, case.schema[change.feature], language)) for change in steps],
        [_said_of(change, case.schema[change.feature], language, "consequence") for change in follows],
        list(_sure(plan, case.audited, language)),
    )


def _step(change: Change, feature: Feature, language: Language) -> str:
    """A change as something to do: "shorten the loan from 24 to 18 months"."""
    phrase = phrase_in(feature, language)
    words = getattr(phrase, _direction(change, feature)) or phrase.change
    if not words:
        return _said_of(change, feature, language, "change")
    return filled(one_line(words), _values(change, feature, language), f"the phrase of {feature.name!r}")


def _said_of(change: Change, feature: Feature, language: Language, key: str) -> str:
    return language.say(key, name=name_of(feature, language), **_values(change, feature, language))


def _values(change: Change, feature: Feature, language: Language) -> dict[str, str]:
    return {"now": value_of(change.before, feature, language), "then": value_of(change.after, feature, language)}


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
    phrases = dict(feature.phrase)
    return phrases.get(language.code) or phrases.get(ANY) or Phrase()


def name_of(feature: Feature, language: Language) -> str:
    return one_line(phrase_in(feature, language).name or feature.name.replace("_", " "))


def value_of(value: Any, feature: Feature, language: Language) -> str:
    if value is None or value != value:
        return language.say("unknown")
    level = dict(phrase_in(feature, language).levels).get(str(value))
    if level is None and feature.is_numeric:
        return language.number(value)
    return one_line(value if level is None else level)


def _direction(change: Change, feature: Feature) -> str:
    """Whether the value rises or falls; "change" where it has no order, or is not known."""
    values = (change.before, change.after)
    if not feature.is_ordered or any(value is None or value != value for value in values):
        return "change"
    before, after = map(float if feature.is_numeric else feature.values.index, values)
    return "rise" if after > before else "fall"


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
