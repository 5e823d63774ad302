"""What the bank says in a letter: checked against what the template needs, with an error that says what to write."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from holdfast.reporting.letters.languages import Language
from holdfast.reporting.letters.templates import Field, Template
from holdfast.utils.messages import did_you_mean, printable

DATE, GOOD_UNTIL = "date", "good_until"


def checked(
    given: Mapping[str, Any] | None, template: Template, language: Language, with_reasons: bool
) -> dict[str, str]:
    """The text of every field of the template; of one that may be left out and is, nothing. The date is today's where
    it is not given."""
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise TypeError(f"fields is a {type(given).__name__}; give a dictionary: {_needed(template)}")
    known = {field.name: field for field in template.fields}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(
            f"the template {template.name!r} has no field {unknown[0]!r}{did_you_mean(unknown[0], known)}; it has "
            f"{', '.join(known)}"
        )
    today = {DATE: datetime.date.today()} if DATE in known and given.get(DATE) is None else {}
    found = {**given, **today}
    texts = {
        field.name: _text(found.get(field.name), field, template, language, with_reasons) for field in known.values()
    }
    _check_dates(found)
    return texts


def _text(value: Any, field: Field, template: Template, language: Language, with_reasons: bool) -> str:
    if isinstance(value, datetime.date):
        return language.day(value)
    if value is not None and not isinstance(value, str):
        raise TypeError(f"field {field.name!r} is {value!r} ({type(value).__name__}); write text, or a date")
    text = printable(value or "").replace("\t", " ").strip()
    needed = field.needed == "always" or (field.needed == "without reasons" and not with_reasons)
    if text or not needed:
        return text
    rule, state = f" ({field.rule})" if field.rule else "", "missing" if value is None else "empty"
    instead = ", or give reasons=" if field.needed == "without reasons" else ""
    raise ValueError(
        f"the template {template.name!r} needs the field {field.name!r}, which is {state}: "
        f"{field.what}{rule}. Write, for example, {field.name} = {field.write!r}{instead}"
    )


def _check_dates(found: Mapping[str, Any]) -> None:
    date, until = found.get(DATE), found.get(GOOD_UNTIL)
    if isinstance(date, datetime.date) and isinstance(until, datetime.date) and str(until)[:10] < str(date)[:10]:
        raise ValueError(f"good_until is {until}, which is before the date of the letter, {date}; give a later day")


def _needed(template: Template) -> str:
    return ", ".join(field.name for field in template.fields if field.needed == "always")
