"""`holdfast letter`."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.inputs import RESULTS, TABLES, JsonOption, QuietOption, file, option, show
from holdfast.cli.options import errors_as_sentences, writing_to

if TYPE_CHECKING:
    from holdfast.reporting.letters.cases import AdviceFolder
    from holdfast.reporting.letters.letter import Letter

LETTER = "Letter"  # a heading of --help
PERSON = "Whom to write to, by the label of their row; repeat the option for several."
SCHEMA = "The schema with the phrases for the letter; by default, schema.toml in the folder."
TEMPLATE = "eu, us, or the folder of a template of your own."
FIELDS = "What only the bank knows, .toml: for all letters, and in a table person.LABEL for one."
OUT = "The letter's file, .html or .txt; of several letters, the folder. By default, the text is printed."
LONGEST_NAME = 80  # letters of a label in the name of its file


def letter(
    folder: Annotated[Path, typer.Argument(help="The folder of advice that holdfast explain has written.")],
    person: Annotated[list[str] | None, option(TABLES, "--person", PERSON, "LABEL")] = None,
    everybody: Annotated[bool, option(TABLES, "--all", "Write to everybody who has a plan.")] = False,
    schema: Annotated[Path | None, file(TABLES, "--schema", SCHEMA)] = None,
    template: Annotated[str, option(LETTER, "--template", TEMPLATE, "NAME")] = "eu",
    language: Annotated[str, option(LETTER, "--language", "The letter's language: en, de.", "CODE")] = "en",
    fields: Annotated[Path | None, file(LETTER, "--fields", FIELDS)] = None,
    out: Annotated[Path | None, option(RESULTS, "--out", OUT, "PATH")] = None,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a letter to an applicant: what would have led to a different result.

    It names up to three plans in plain words, what must not change
    meanwhile, until when the statement is good and how sure it is.
    For example:

    holdfast letter advice --person 8004 --language de --fields bank.toml
      --out letter.html

    holdfast gives no legal advice: have the letter checked before it is sent.
    """
    with errors_as_sentences():
        from holdfast.reporting.letters.cases import AdviceFolder

        _check(person, everybody, out)
        advice = AdviceFolder.read(folder, schema)
        people = list(advice.with_a_plan if everybody else dict.fromkeys(person or ()))
        if not people:
            raise ValueError(
                f"nobody in {folder} has a plan, so there is no letter; --person LABEL writes that there is none"
            )
        letters = _letters(advice, people, template, language, _fields(fields))
        files = _written(letters, out)
        count = "1 letter" if len(letters) == 1 else f"{len(letters)} letters"
        text = count if out else "\n".join(written.text for written in letters.values())
        show({"letters": len(letters), "people": people}, text, files, as_json=json, quiet=quiet)


def _check(person: list[str] | None, everybody: bool, out: Path | None) -> None:
    if bool(person) == everybody:
        given = "both --person and --all were given" if everybody else "nobody is named"
        raise ValueError(f"{given}; name people (--person LABEL), or write to everybody who has a plan (--all)")
    if everybody and out is None:
        raise ValueError("--all writes many letters; name a folder for them: --out FOLDER")


def _letters(
    advice: AdviceFolder, people: Iterable[str], template: str, language: str, fields: Mapping[str, Any]
) -> dict[str, Letter]:
    """The letter of each person, all of them or an error that names the person."""
    from holdfast.reporting.letters.letter import letter_about
    from holdfast.reporting.letters.templates import template_of

    kind, letters = template_of(template), {}
    for person in people:
        banks = {**fields, **fields.get("person", {}).get(person, {})}
        banks.pop("person", None)
        reasons = banks.pop("reasons", None)
        try:
            letters[person] = letter_about(advice.case(person), kind, language, banks, reasons)
        except (TypeError, ValueError) as error:  # what a file of fields has wrong is a mistake of the user's
            raise ValueError(f"the letter to {person}: {error}") from error
    return letters


def _fields(path: Path | None) -> dict[str, Any]:
    """What the file of fields says: fields, and those of single people in [person.LABEL]."""
    import tomllib

    if path is None:
        return {}
    if not path.is_file():
        raise ValueError(f"there is no file {path} of fields; write one, such as bank.toml: docs/howto/letter.md")
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    people = found.get("person", {})
    if not isinstance(people, dict) or not all(isinstance(fields, dict) for fields in people.values()):
        raise ValueError(f"{path}: person is {people!r}; write a table for each person, such as [person.8004]")
    return found


def _written(letters: Mapping[str, Letter], out: Path | None) -> list[Path]:
    from holdfast.utils.files import all_or_none

    if out is None:
        return []
    if len(letters) == 1 and out.suffix and not out.is_dir():
        return [letter.save(out) for letter in letters.values()]
    if out.suffix.lower() in (".html", ".htm", ".txt"):
        raise ValueError(f"--out {out} names one file for {len(letters)} letters; name a folder")
    names = _file_names(letters)
    with writing_to(out), all_or_none(out) as parts:
        for person, letter in letters.items():
            letter.save(parts / names[person])
    return [out / name for name in names.values()]


def _file_names(people: Iterable[str]) -> dict[str, str]:
    """A name for each person's file: their label where it is a name on every disk, or else what it has of letters and
    figures and a digest. No two are one file, also where a disk minds no capitals: no label that is a name has a ~."""
    names = {person: re.sub(r"[^A-Za-z0-9_.-]+", "_", person)[:LONGEST_NAME] for person in people}
    taken = Counter(name.lower() for person, name in names.items() if name == person)
    for person, name in names.items():
        if name != person or taken[name.lower()] > 1:
            names[person] = f"{name}~{hashlib.sha256(person.encode(errors='surrogatepass')).hexdigest()[:12]}"
    return {person: f"letter-{name}.html" for person, name in names.items()}
