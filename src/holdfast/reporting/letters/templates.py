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
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from holdfast.reporting.letters.languages import Language, language_of
from holdfast.utils.files import as_path
from holdfast.utils.messages import did_you_mean

FOLDER = Path(__file__).parent / "templates"
SHARED, WORDS = FOLDER / "shared", FOLDER / "words"
SHIPPED = ("eu", "us")
HEADER = "letter.toml"
RESERVED = ("person", "reasons")  # what a file of fields has beside them
NEEDED = ("always", "without reasons", "optional")


@dataclass(frozen=True)
class Field:
    """Something that the bank says in the letter."""

    name: str
    what: str  # it is for
    write: str  # an example
    rule: str = ""  # that names it
    needed: str = "always"  # one of NEEDED


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
        raise ValueError(f"{where} has {unknown[0]!r}{did_you_mean(unknown[0], known)}; it may have {', '.join(known)}")


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:  # also of text that is not UTF-8
        raise ValueError(f"{path} is not valid TOML: {error}") from error
