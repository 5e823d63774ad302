"""Sentences in the words of a language, with numbers and dates as Babel writes them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from babel import Locale, UnknownLocaleError
from babel.dates import format_date
from babel.lists import format_list
from babel.numbers import format_decimal, format_percent

from holdfast.tabular.phrases import placeholders
from holdfast.utils.messages import printable


@dataclass(frozen=True)
class Language:
    """The words of one language, by key, and the locale in which it writes numbers and dates."""

    code: str
    words: Mapping[str, str]
    locale: Locale

    def say(self, key: str, **values: Any) -> str:
        """The sentence of this key with values in its places."""
        if key not in self.words:
            raise ValueError(f"the language {self.code!r} has no words for {key!r}; add them to its file")
        return filled(self.words[key], {name: str(value) for name, value in values.items()}, f"{self.code}.{key}")

    def number(self, value: float) -> str:
        if isinstance(value, float) and not value.is_integer():
            value = float(f"{value:.6g}")
        return format_decimal(value, locale=self.locale, decimal_quantization=False)

    def share(self, value: float) -> str:
        return format_percent(round(value, 3), locale=self.locale, decimal_quantization=False)

    def day(self, day: datetime.date) -> str:
        return format_date(day, "long", self.locale)

    def listed(self, parts: Sequence[str]) -> str:
        """a, b and c."""
        return format_list(parts, locale=self.locale)


def filled(text: str, values: Mapping[str, str], where: str) -> str:
    """The text with values for the names in braces; values are never read as text with braces themselves."""
    unknown = [name for name in placeholders(text) if name not in values]
    if unknown:
        there = ", ".join(f"{{{name}}}" for name in values) or "none"
        raise ValueError(f"{where} has {{{unknown[0]}}}, for which there is no value; there are: {there}")
    return text.format_map(values)


def language_of(code: str, given: Mapping[str, Any], where: str) -> Language:
    """A language from what its files say."""
    for key, value in given.items():
        if not isinstance(value, str):
            raise ValueError(f"{where}: {key} is {value!r}; expected text")
        try:
            placeholders(value)
        except ValueError as error:
            raise ValueError(f"{where}: {key} has {error}") from None
    name = given.get("locale", code)
    try:
        locale = Locale.parse(name.replace("-", "_"))
    except (UnknownLocaleError, ValueError) as error:
        raise ValueError(f"{where}: Babel knows no locale {name!r}; write one, such as locale = 'fr_CA'") from error
    return Language(code, {key: value for key, value in given.items() if key != "locale"}, locale)


def one_line(text: object) -> str:
    """Text of a table for the middle of a sentence: what a terminal or a page would obey is shown as a code."""
    return " ".join(printable(str(text)).split())
