"""Letters as folders: letter.toml (which fields it needs, and what for), letter.html, letter.txt, and the words of each
language in a file such as en.toml.

Those that ship are beside this file. A bank's own is a folder of the same kind; its files come before the shipped ones
of the same name in templates/shared and templates/words, so it may be as small as a letter.toml and an en.toml.
Templates are rendered in Jinja2's sandbox: whatever one says, it can only read what a letter is made of.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment, TemplateSyntaxError

from holdfast.reporting.letters.languages import Language, language_of
from holdfast.reporting.templates import environment
from holdfast.utils.files import as_path
from holdfast.utils.messages import did_you_mean, printable

FOLDER = Path(__file__).parent / "templates"
SHARED, WORDS = FOLDER / "shared", FOLDER / "words"
SHIPPED = ("eu", "us")
HEADER = "letter.toml"
RESERVED = ("person", "reasons")  # what a file of fields has beside them
DATE, GOOD_UNTIL = "date", "good_until"
NEEDED = ("always", "without reasons", "optional")


@dataclass(frozen=True)
class Field:
    """Something that the bank says in the letter."""

    name: str
    what: str  # it is for
    write: str  # an example
    rule: str = ""  # that names it
    needed: str = "always"  # one of NEEDED

    def text(self, value: Any, template: str, language: Language, with_reasons: bool) -> str:
        """What the letter has in its place; an error that says what to write where it is needed and missing."""
        if isinstance(value, datetime.date):
            return language.day(value)
        if value is not None and not isinstance(value, str):
            raise TypeError(f"field {self.name!r} is {value!r} ({type(value).__name__}); write text, or a date")
        text = printable(value or "").replace("\t", " ").strip()
        if text or self.needed == "optional" or (self.needed == "without reasons" and with_reasons):
            return text
        rule, state = f" ({self.rule})" if self.rule else "", "missing" if value is None else "empty"
        instead = ", or give reasons=" if self.needed == "without reasons" else ""
        raise ValueError(
            f"the template {template!r} needs the field {self.name!r}, which is {state}: {self.what}{rule}. Write, for "
            f"example, {self.name} = {self.write!r}{instead}"
        )


@dataclass(frozen=True)
class Template:
    """A kind of letter: the fields that it needs, and the folder with its texts."""

    folder: Path
    fields: tuple[Field, ...]
    page: str = "A4"

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted(path.stem for path in self.folder.glob("*.toml") if path.name != HEADER))

    def language(self, code: str) -> Language:
        if code not in self.languages:
            raise ValueError(
                f"the template {self.name!r} has no language {code!r}{did_you_mean(code, self.languages)}; it has "
                f"{', '.join(self.languages)}. A bank's own template may have more: docs/howto/letter.md"
            )
        if code not in self._read_languages:
            shared, file = WORDS / f"{code}.toml", self.folder / f"{code}.toml"
            words = (_read(shared) if shared.is_file() else {}) | _read(file)
            self._read_languages[code] = language_of(code, words, str(file))
        return self._read_languages[code]

    @cached_property
    def _read_languages(self) -> dict[str, Language]:
        """Read once: a bank writes thousands of letters with one template."""
        return {}

    def texts(self, given: Mapping[str, Any] | None, language: Language, with_reasons: bool) -> dict[str, str]:
        """The text of every field; of one that may be left out and is, nothing. The date is today's where it is not
        given."""
        if not isinstance(given, Mapping | None):
            needed = ", ".join(field.name for field in self.fields if field.needed == "always")
            raise TypeError(f"fields is a {type(given).__name__}; give a dictionary: {needed}")
        known = {field.name: field for field in self.fields}
        _check_keys(given or {}, tuple(known), f"the fields of the template {self.name!r}")
        found = dict(given or {})
        if DATE in known and found.get(DATE) is None:
            found[DATE] = datetime.date.today()
        texts = {name: field.text(found.get(name), self.name, language, with_reasons) for name, field in known.items()}
        date, until = found.get(DATE), found.get(GOOD_UNTIL)
        if isinstance(date, datetime.date) and isinstance(until, datetime.date) and str(until)[:10] < str(date)[:10]:
            raise ValueError(f"good_until is {until}, which is before the date of the letter, {date}; give a later day")
        return texts

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """The text of letter.html or letter.txt."""
        try:
            return self._environment.get_template(name).render(**values)
        except ValueError:
            raise
        except Exception as error:  # whatever a template may do wrong
            line = f"line {error.lineno}: " if isinstance(error, TemplateSyntaxError) else ""
            raise ValueError(f"{self.folder / name}: {line}{getattr(error, 'message', error)}") from error

    @cached_property
    def _environment(self) -> Environment:
        return environment(self.folder, SHARED)


def template_of(given: str | Path) -> Template:
    """A template that ships, by its name, or the folder of one's own."""
    folder = (
        FOLDER / given if isinstance(given, str) and given in SHIPPED else as_path(given, "a template or its folder")
    )
    if not (folder / HEADER).is_file():
        raise ValueError(
            f"{given!s} is no template: there is no {folder / HEADER}; choose {' or '.join(SHIPPED)}, or name the "
            "folder of your own, with letter.toml and the words of a language: docs/howto/letter.md"
        )
    header = _read(folder / HEADER)
    _check_keys(header, ("notes", "page", "fields"), str(folder / HEADER))
    fields = header.get("fields", {})
    if not isinstance(fields, Mapping):
        raise ValueError(f"{folder / HEADER}: fields is {fields!r}; write one table for each, such as [fields.contact]")
    known = tuple(_field(name, given, f"{folder / HEADER}: [fields.{name}]") for name, given in fields.items())
    return Template(folder, known, str(header.get("page", "A4")))


def _field(name: str, given: Any, where: str) -> Field:
    if name in RESERVED:
        raise ValueError(f"{where}: this name means something else in a file of fields; choose another")
    if not isinstance(given, Mapping) or not name.isidentifier():
        raise ValueError(f"{where}: expected a name of letters and underscores, and a table with what and write")
    _check_keys(given, ("what", "write", "rule", "needed"), where)
    missing = [key for key in ("what", "write") if not given.get(key)]
    if missing:
        raise ValueError(f"{where} does not say {missing[0]!r}; say what the field is for, and an example of it")
    if given.get("needed", "always") not in NEEDED:
        raise ValueError(f"{where}: needed is {given['needed']!r}; choose one of {', '.join(map(repr, NEEDED))}")
    return Field(name, **{key: str(value) for key, value in given.items()})


def _check_keys(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        raise ValueError(
            f"{where}: unknown name {unknown[0]!r}{did_you_mean(unknown[0], known)}; there are {', '.join(known)}"
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:  # also of text that is not UTF-8
        raise ValueError(f"{path} is not valid TOML: {error}") from error
