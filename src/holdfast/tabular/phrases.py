"""How a letter speaks of a feature: what it is called, what its levels are called, and what changing it is called.

Words alone: they change neither what a feature may hold nor how it is encoded. So features that differ by them are
equal, and models that were trained before stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from string import Formatter
from typing import Any

from holdfast.utils.messages import did_you_mean

ANY = ""  # stands for every language that has no phrase of its own
PLACES = ("now", "then")  # what a sentence about a change may have between braces
EXAMPLE = '{"en": "shorten the loan from {now} to {then} months"}'
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


@dataclass(frozen=True)
class Phrase:
    """The words of one language. What is empty has a plain default.

    name            the feature in a list: "duration of the loan"
    change          what to do: "change the loan's duration from {now} to {then} months"
    rise, fall      the same where the value rises or falls, and another verb is needed
    levels          what the levels are called, by level
    """

    name: str = ""
    change: str = ""
    rise: str = ""
    fall: str = ""
    levels: tuple[tuple[str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        words: dict[str, Any] = {name: getattr(self, name) for name in (*TEXTS, "levels") if getattr(self, name)}
        return words | ({"levels": dict(self.levels)} if self.levels else {})


TEXTS = ("name", "change", "rise", "fall")
KEYS = tuple(field.name for field in fields(Phrase))
Phrases = tuple[tuple[str, Phrase], ...]  # by language


def phrases_of(given: Any) -> Phrases:
    """What somebody wrote, by language: a text for all of them, or a text or a table of texts for each."""
    if isinstance(given, str):
        return ((ANY, _phrase(given, "phrase")),) if given else ()
    if isinstance(given, tuple) and all(_is_read(part) for part in given):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"phrase is {given!r}; give a text, or texts by language, such as {EXAMPLE}")
    return tuple((_language(language), _phrase(words, f"phrase.{language}")) for language, words in given.items())


def phrases_to_dict(phrases: Phrases) -> dict[str, Any] | str:
    """As a file has it."""
    texts = {language: phrase.to_dict() for language, phrase in phrases}
    if list(texts) == [ANY]:
        return str(texts[ANY]["change"])
    return {language: phrase["change"] if list(phrase) == ["change"] else phrase for language, phrase in texts.items()}


def problems(phrases: Phrases, levels: Iterable[Any], ordered: bool) -> Iterable[str]:
    """What does not fit the feature, whose levels these are."""
    known = [str(level) for level in levels]
    for language, phrase in phrases:
        if (phrase.rise or phrase.fall) and not ordered:
            yield f"phrase.{language} has words for rise or fall, but the levels have no order; use change"
        for level, _ in phrase.levels:
            if level not in known:
                there_are = f"its levels are {', '.join(map(repr, known))}" if known else "a number has none"
                yield f"phrase.{language}.levels names {level!r}{did_you_mean(level, known)}; {there_are}"


def placeholders(text: str) -> list[str]:
    """The names between braces; a ValueError where there is anything else between them."""
    names = []
    for _, name, spec, conversion in Formatter().parse(text):
        if name is None:
            continue
        if spec or conversion or not name.isidentifier():
            raise ValueError(f"'{{{name}}}' with anything but a name between the braces")
        names.append(name)
    return names


def _is_read(part: Any) -> bool:
    return isinstance(part, tuple) and len(part) == 2 and isinstance(part[1], Phrase)


def _language(given: Any) -> str:
    if not isinstance(given, str) or not _LANGUAGE.fullmatch(given):
        raise ValueError(f"phrase has the language {given!r}; expected a code such as 'en', 'de' or 'fr'")
    return given


def _phrase(given: Any, where: str) -> Phrase:
    if isinstance(given, Phrase):
        return given
    words = {"change": given} if isinstance(given, str) else given
    if not isinstance(words, Mapping):
        raise TypeError(f"{where} is {given!r}; give a text, or a table with {', '.join(KEYS)}")
    unknown = [key for key in words if key not in KEYS]
    if unknown:
        raise ValueError(f"{where} has {unknown[0]!r}{did_you_mean(unknown[0], KEYS)}; it may have {', '.join(KEYS)}")
    texts = {key: _text(value, key, f"{where}.{key}") for key, value in words.items() if key != "levels"}
    return Phrase(**texts, levels=_levels(words.get("levels", {}), f"{where}.levels"))


def _text(given: Any, key: str, where: str) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError(f"{where} is {given!r}; write some text, or leave it out")
    if key == "name":
        return given
    try:
        found = placeholders(given)
    except ValueError as error:
        raise ValueError(f"{where} is {given!r}, which is no sentence with {_PLACES}: {error}") from None
    unknown = [name for name in found if name not in PLACES]
    if unknown:
        raise ValueError(f"{where} has {{{unknown[0]}}}{did_you_mean(unknown[0], PLACES)}; there are {_PLACES}")
    return given


_PLACES = " and ".join(f"{{{name}}}" for name in PLACES)


def _levels(given: Any, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{where} is {given!r}; give what each level is called, such as {{'own': 'owned'}}")
    for level, called in given.items():
        if not isinstance(called, str) or not called.strip():
            raise ValueError(f"{where} calls {level!r} {called!r}; write some text")
    return tuple((str(level), called) for level, called in given.items())
