"""The people as the page's script reads them: words are numbers in one list, so that 10,000 people stay small."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.explaining.advice import Advice
from holdfast.explaining.advice_view import WORDS
from holdfast.explaining.person import STATUS, PersonAdvice, PersonPlan, in_words
from holdfast.reporting.groups import Grouping
from holdfast.reporting.html.constraints import may_change
from holdfast.utils.messages import printable

DIGITS = 3  # of a cost: those that `Advice.of` prints, so that both say the same


class Words:
    """Each word once: a person's words are numbers in this list."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def number(self, word: Any) -> int:
        """The number of a word or a value in the list; -1 of None."""
        return -1 if word is None else self.numbers.setdefault(printable(str(word)), len(self.numbers))


def cards(advice: Advice, groupings: Sequence[Grouping]) -> dict[str, Any]:
    """All that the cards show."""
    schema, words = advice.encoding.schema, Words()
    columns = [[words.number(in_words(value)) for value in advice.people[name]] for name in schema.names]
    values = zip(*columns, strict=True)
    names = {name: number for number, name in enumerate(schema.names)}
    people = [_person(person, list(now), words, names) for person, now in zip(advice.view.people, values, strict=True)]
    return {
        "features": [[name_of(feature.name), may_change(feature)] for feature in schema.features],
        "words": list(words.numbers),
        "statuses": [[status.replace(" ", "-"), WORDS[status]] for status in STATUS],
        "hold": advice.decided.get("hold"),
        "kinds": [rate.kind for rate in advice.view.rates],
        "members": 0 if advice.audit is None else len(advice.audit.kinds),
        "groups": [grouping.member.tolist() for grouping in groupings],
        "people": people,
    }


def _person(person: PersonAdvice, now: list[int], words: Words, names: Mapping[str, int]) -> list[Any]:
    return [
        printable(str(person.person)),
        STATUS.index(person.status),
        words.number(person.now),
        words.number(person.wanted),
        now,
        [_plan(plan, words, names) for plan in person.plans],
        [_plan(plan, words, names) for plan in person.not_durable],
        words.number(person.why_not),
        words.number(person.wish),
    ]


def _plan(plan: PersonPlan, words: Words, names: Mapping[str, int]) -> list[Any]:
    """Cost, models that accept it, that as a sentence, and the changes: feature, then, follows, part of the cost."""
    changes = [
        [names[change.feature], words.number(in_words(change.after)), int(change.follows), _significant(change.cost)]
        for change in plan.changes
    ]
    return [_significant(plan.cost), plan.held, words.number(plan.holding), changes]


def name_of(feature: str) -> str:
    """The name of a feature as a card shows it."""
    return printable(feature.replace("_", " "))


def _significant(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.{DIGITS}g}")


def as_json(value: Mapping[str, Any] | Iterable[Any]) -> str:
    """JSON that may stand in a page: no character of it ends the script that it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
