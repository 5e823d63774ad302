"""Numbers, dates and sentences as a language writes them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.tabular.phrases import placeholders
from holdfast.utils.messages import printable

FORMAT = ("decimal", "thousands", "percent", "date", "months")  # what a language's file says in [format]


@dataclass(frozen=True)
class Language:
    """The words of one language, by key, and how it writes numbers and dates."""

    code: str
    words: Mapping[str, str]
    decimal: str
    thousands: str
    percent: str  # "{number} %"
    date: str  # "{day} {month} {year}"
    months: tuple[str, ...]

    def say(self, key: str, **values: Any) -> str:
        """The sentence of this key with values in its places."""
        if key not in self.words:
            raise ValueError(f"the language {self.code!r} has no words for {key!r}; add them to its file")
        return filled(self.words[key], {name: str(value) for name, value in values.items()}, f"{self.code}.{key}")

    def number(self, value: float) -> str:
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            value = int(value)
        text = f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
        return text.translate({ord(","): self.thousands, ord("."): self.decimal})

    def share(self, value: float) -> str:
        digits = f"{100 * value:.1f}".removesuffix(".0")
        return self.percent.replace("{number}", digits.replace(".", self.decimal))

    def day(self, day: datetime.date) -> str:
        return filled(
            self.date, {"day": str(day.day), "month": self.months[day.month - 1], "year": str(day.year)}, "date"
        )

    def listed(self, parts: list[str]) -> str:
        """a, b and c."""
        if len(parts) < 2:
            return "".join(parts)
        return f"{', '.join(parts[:-1])} {self.say('and')} {parts[-1]}"


def filled(text: str, values: Mapping[str, str], where: str) -> str:
    """The text with values for the names in braces; values are never read as text with braces themselves."""
    unknown = [name for name in placeholders(text) if name not in values]
    if unknown:
        there = ", ".join(f"{{{name}}}" for name in values) or "none"
        raise ValueError(f"{where} has {{{unknown[0]}}}, for which there is no value; there are: {there}")
    return text.format_map(values)


def language_of(code: str, given: Mapping[str, Any], where: str) -> Language:
    """A language from what its files say."""
    form = given.get("format", {})
    missing = [name for name in FORMAT if name not in form]
    if missing:
        raise ValueError(f"{where}: [format] has no {missing[0]!r}; it needs {', '.join(FORMAT)}")
    if len(form["months"]) != 12:
        raise ValueError(f"{where}: format.months has {len(form['months'])} names; expected 12")
    words = {key: value for key, value in given.items() if key != "format"}
    for key, value in words.items():
        if not isinstance(value, str):
            raise ValueError(f"{where}: {key} is {value!r}; expected text")
        try:
            placeholders(value)
        except ValueError as error:
            raise ValueError(f"{where}: {key} has {error}") from None
    own = {name: str(form[name]) for name in FORMAT if name != "months"}
    return Language(code, words, **own, months=tuple(map(str, form["months"])))


def one_line(text: object) -> str:
    """Text of a table for the middle of a sentence: what a terminal or a page would obey is shown as a code."""
    return " ".join(printable(str(text)).split())
