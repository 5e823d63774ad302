"""Letters as folders: letter.toml (which fields it needs, and what for), letter.html, letter.txt, and the words of each
language in a file such as en.toml.

Those that ship are beside this file. A bank's own is a folder of the same kind; its files come before the shipped ones
of the same name in templates/shared and templates/words, so it may be as small as a letter.toml and an en.toml.
Templates are rendered in Jinja2's sandbox: whatever one says, it can only read what a letter is made of.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from holdfast.reporting.letters.languages import Language, language_of
from holdfast.utils.files import as_path
from holdfast.utils.messages import did_you_mean

FOLDER = Path(__file__).parent / "templates"
SHARED, WORDS = FOLDER / "shared", FOLDER / "words"
SHIPPED = ("eu", "us")
HEADER = "letter.toml"
RESERVED = ("person", "reasons")  # what a file of fields has beside them
Needed = Literal["always", "without reasons", "optional"]


@dataclass(frozen=True)
class Field:
    """Something that the bank says in the letter."""

    name: str
    what: str  # it is for
    write: str  # an example
    rule: str = ""  # that names it
    needed: Needed = "always"


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
            shared, own = WORDS / f"{code}.toml", self.folder / f"{code}.toml"
            words = (_read(shared) if shared.is_file() else {}) | _read(own)
            self._read_languages[code] = language_of(code, words, str(own))
        return self._read_languages[code]

    @cached_property
    def _read_languages(self) -> dict[str, Language]:
        """Read once: a bank writes thousands of letters with one template."""
        return {}

    def render(self, name: str, values: Mapping[str, Any]) -> str:
        """The text of letter.html or letter.txt."""
        try:
            return self._environment.get_template(name).render(**values)
        except ValueError:
            raise
        except Exception as error:  # whatever a template may do wrong
            raise ValueError(f"{self.folder / name}: {_told(error)}") from error

    @cached_property
    def _environment(self) -> ImmutableSandboxedEnvironment:
        return ImmutableSandboxedEnvironment(
            loader=FileSystemLoader([self.folder, SHARED]),
            autoescape=lambda name: name is None or name.endswith(".html"),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )


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
    about = _read(folder / HEADER)
    unknown = [key for key in about if key not in ("fields", "page", "notes")]
    if unknown:
        raise ValueError(f"{folder / HEADER} has {unknown[0]!r}; it may have notes, page and fields")
    fields = about.get("fields", {})
    if not isinstance(fields, Mapping):
        raise ValueError(f"{folder / HEADER}: fields is {fields!r}; write one table for each, such as [fields.contact]")
    return Template(
        folder,
        tuple(_field(str(name), own, folder / HEADER) for name, own in fields.items()),
        str(about.get("page", "A4")),
    )


def _field(name: str, own: Any, path: Path) -> Field:
    where = f"{path}: [fields.{name}]"
    if name in RESERVED:
        raise ValueError(f"{where}: this name means something else in a file of fields; choose another")
    if not isinstance(own, Mapping) or not name.isidentifier():
        raise ValueError(f"{where}: expected a name of letters and underscores, and a table with what and write")
    known = ("what", "write", "rule", "needed")
    unknown = [key for key in own if key not in known]
    if unknown:
        raise ValueError(f"{where} has {unknown[0]!r}{did_you_mean(unknown[0], known)}; it may have {', '.join(known)}")
    missing = [key for key in ("what", "write") if not own.get(key)]
    if missing:
        raise ValueError(f"{where} does not say {missing[0]!r}; say what the field is for, and an example of it")
    needed = own.get("needed", "always")
    if needed not in get_args(Needed):
        raise ValueError(f"{where}: needed is {needed!r}; choose one of {', '.join(map(repr, get_args(Needed)))}")
    return Field(name, str(own["what"]), str(own["write"]), str(own.get("rule", "")), needed)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:  # also of text that is not UTF-8
        raise ValueError(f"{path} is not valid TOML: {error}") from error


def _told(error: Exception) -> str:
    told = error.message if isinstance(error, TemplateError) and error.message else str(error)
    return f"line {error.lineno}: {told}" if isinstance(error, TemplateSyntaxError) else told
