"""The people as the page's script reads them: values are places in lists of words, so that 10,000 people stay small."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.explaining.advice import STATUS, Advice, Audited
from holdfast.explaining.person import Change, in_words
from holdfast.reporting.groups import Grouping
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature, Level
from holdfast.tabular.wishes import Wish
from holdfast.utils.messages import plain, printable

DIGITS = 3  # of a cost: those that `Advice.of` prints, so that both say the same


class _Words:
    """Each word once: a person's values are places in this list."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        return self.places.setdefault(word(value), len(self.places))

    @property
    def list(self) -> list[str]:
        return list(self.places)


def word(value: Any) -> str:
    """A value as a card shows it."""
    return printable(in_words(plain(value)))


def called(name: str) -> str:
    """The name of a feature as a card shows it."""
    return printable(name.replace("_", " "))


def rule(feature: Feature) -> str:
    """What a person may do about a feature."""
    if not feature.mutable:
        return "never"
    return {"any": "any", "rise": "up", "fall": "down"}[feature.direction]


def cards(advice: Advice, groupings: Sequence[Grouping]) -> dict[str, Any]:
    """All that the cards show."""
    schema = advice.encoding.schema
    words = [_Words() for _ in schema.features]
    classes, reasons, wishes = _Words(), _Words(), _Words()
    values = [
        [own.place(value) for value in advice.people[feature.name].tolist()]
        for own, feature in zip(words, schema.features, strict=True)
    ]
    given = _plans(advice, advice.given, advice.changes_given, words)
    apart = _plans(advice, advice.apart, advice.changes_apart, words)
    places = {name: number for number, name in enumerate(STATUS)}
    people = [
        [
            printable(str(plain(label))),
            places[status],
            classes.place(advice.now[row]),
            classes.place(advice.wanted[row]),
            [column[row] for column in values],
            given.get(row, []),
            apart.get(row, []),
            _place(advice.why_not[row], reasons),
            _place(_limits(advice, row), wishes),
        ]
        for row, (label, status) in enumerate(advice.status.items())
    ]
    return {
        "features": [[called(feature.name), rule(feature)] for feature in schema.features],
        "words": [own.list for own in words],
        "classes": classes.list,
        "reasons": reasons.list,
        "wishes": wishes.list,
        "hold": advice.decided.get("hold"),
        "kinds": [] if advice.audit is None else list(advice.audit.by_kind),
        "members": 0 if advice.audit is None else len(advice.audit.kinds),
        "groups": [
            {
                "column": called(one.column),
                "names": [printable(group.name) for group in one.groups],
                "member": one.member.tolist(),
            }
            for one in groupings
        ],
        "people": people,
    }


def _limits(advice: Advice, row: int) -> str | None:
    wish = advice.wishes[row] if advice.wishes else None
    return None if wish is None else in_limits(wish, advice.encoding)


def _plans(
    advice: Advice, part: Audited, changes: list[tuple[Change, ...]], words: Sequence[_Words]
) -> dict[int, list[Any]]:
    """The plans of each person: cost, held, low, high, and the changes: feature, then, follows, part of the cost."""
    names = {name: place for place, name in enumerate(advice.encoding.schema.names)}
    costs, parts = part.answers.counterfactuals.cost(advice.norm).double().tolist(), _cost_parts(advice, part)
    _, low, high = part.limits
    told: dict[int, list[Any]] = {}
    for row, (place, own) in enumerate(zip(part.answers.place.tolist(), changes, strict=True)):
        places = [names[one.feature] for one in own]
        moved = [
            [place_of, words[place_of].place(one.after), int(one.follows), parts[row][place_of]]
            for place_of, one in zip(places, own, strict=True)
        ]
        held = [None] * 3 if part.held is None else [int(part.held[row]), _round(low[row]), _round(high[row])]
        told.setdefault(place, []).append([_significant(costs[row]), *held, moved])
    return told


def _cost_parts(advice: Advice, part: Audited) -> list[list[float | None]]:
    """What each feature adds to the cost of each plan: (m, features); None where a cost is no sum (l2)."""
    answer = part.answers.counterfactuals
    if advice.norm != 1:
        return [[None] * len(advice.encoding.schema.names)] * len(part)
    moved = (answer.point - answer.origin).abs().double().cpu().numpy()
    each = np.stack([moved[:, place].sum(1) for _, place in advice.encoding.places], axis=1)
    return [[_significant(value) for value in row] for row in each.tolist()]


def in_limits(wish: Wish, encoding: Encoding) -> str:
    """What one person asked for, as a card says it; a range within what the schema allows."""
    told = [f"{called(name)} {word(low)} to {word(high)}" for name, low, high in _ranges(wish, encoding)]
    if wish.keep:
        told.append(f"keeps {', '.join(map(called, wish.keep))}")
    if wish.prefer:
        told.append(f"would rather change {', '.join(map(called, wish.prefer))}")
    return "; ".join(told)


def _ranges(wish: Wish, encoding: Encoding) -> Iterable[tuple[str, Level, Level]]:
    places = {feature.name: (feature, place.start) for feature, place in encoding.places}
    for name, (low, high) in wish.ranges.items():
        feature, column = places[name]
        if not feature.is_numeric:
            yield name, low, high
            continue
        least, most = max(float(low), float(encoding.lower[column])), min(float(high), float(encoding.upper[column]))
        yield (name, math.ceil(least), math.floor(most)) if feature.kind == "integer" else (name, least, most)


def _place(told: object | None, words: _Words) -> int:
    """The place of what is told among the words; -1 where nothing is."""
    return -1 if told is None else words.place(str(told))


def _significant(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def _round(share: np.float64) -> float:
    return round(float(share), 4)


def as_json(value: Mapping[str, Any] | Iterable[Any]) -> str:
    """JSON that may stand in a page: no character of it ends the script that it stands in."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
