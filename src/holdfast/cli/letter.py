"""`holdfast letter`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.inputs import RESULTS, TABLES, JsonOption, QuietOption, show
from holdfast.cli.options import errors_as_sentences, writing_to

if TYPE_CHECKING:
    from holdfast.reporting.letters.folders import AdviceFolder
    from holdfast.reporting.letters.letter import Letter

LETTER = "Letter"  # a heading of --help
NAME_BYTES = 120  # of a label in the name of its file: disks allow 255, and a number, an ending and more come to it


def letter(
    folder: Annotated[Path, typer.Argument(help="The folder of advice that holdfast explain has written.")],
    person: Annotated[
        list[str] | None,
        typer.Option(
            "--person",
            metavar="LABEL",
            rich_help_panel=TABLES,
            help="Whom to write to, by the label of their row; repeat the option for several.",
        ),
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", rich_help_panel=TABLES, help="Write to everybody who has a plan.")
    ] = False,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            rich_help_panel=TABLES,
            help="The schema with the phrases for the letter; by default, schema.toml in the folder.",
        ),
    ] = None,
    template: Annotated[
        str,
        typer.Option(
            "--template",
            metavar="NAME",
            rich_help_panel=LETTER,
            help="eu, us, or the folder of a template of your own.",
        ),
    ] = "eu",
    language: Annotated[
        str, typer.Option("--language", metavar="CODE", rich_help_panel=LETTER, help="The letter's language: en, de.")
    ] = "en",
    fields: Annotated[
        Path | None,
        typer.Option(
            "--fields",
            metavar="FILE",
            rich_help_panel=LETTER,
            help="What only the bank knows, .toml: for all letters, and in a table person.LABEL for one.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="PATH",
            rich_help_panel=RESULTS,
            help="The letter's file, .html or .txt; of several letters, the folder. By default, the text is printed.",
        ),
    ] = None,
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
        _check(person, everybody, out)
        from holdfast.reporting.letters.folders import AdviceFolder

        advice = AdviceFolder.read(folder, schema)
        chosen = list(advice.with_a_plan if everybody else dict.fromkeys(person or ()))
        if not chosen:
            raise ValueError(
                f"nobody in {folder} has a plan, so there is no letter; --person LABEL writes that there is none"
            )
        letters = _letters(advice, chosen, template, language, _fields(fields))
        files = _written(letters, out)
        told = "1 letter" if len(letters) == 1 else f"{len(letters)} letters"
        text = told if out else "\n".join(one.text for one in letters.values())
        show({"letters": len(letters), "people": list(letters)}, text, files, as_json=json, quiet=quiet)


def _check(person: list[str] | None, everybody: bool, out: Path | None) -> None:
    if bool(person) == everybody:
        told = "both --person and --all were given" if everybody else "nobody is named"
        raise ValueError(f"{told}; name people (--person LABEL), or write to everybody who has a plan (--all)")
    if everybody and out is None:
        raise ValueError("--all writes many letters; name a folder for them: --out FOLDER")


def _letters(
    advice: AdviceFolder, people: Sequence[str], template: str, language: str, fields: Mapping[str, Any]
) -> dict[str, Letter]:
    """The letter of each person, all of them or an error."""
    from holdfast.reporting.letters.letter import letter_about
    from holdfast.reporting.letters.templates import template_of

    kind, letters = template_of(template), {}
    for person in people:
        own = _own(fields, person)
        reasons = own.pop("reasons", None)
        with _told_of(person):
            letters[person] = letter_about(advice.case(person), kind, language, own, reasons)
    return letters


@contextmanager
def _told_of(person: str) -> Iterator[None]:
    """What a file of fields has wrong is a mistake of the user's, whose letter it was."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(f"the letter to {person}: {error}") from error


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
    if not isinstance(people, dict) or not all(isinstance(own, dict) for own in people.values()):
        raise ValueError(f"{path}: person is {people!r}; write a table for each person, such as [person.8004]")
    return found


def _own(fields: Mapping[str, Any], person: str) -> dict[str, Any]:
    common = {name: value for name, value in fields.items() if name != "person"}
    return common | dict(fields.get("person", {}).get(person, {}))


def _written(letters: Mapping[str, Letter], out: Path | None) -> list[Path]:
    from holdfast.utils.files import all_or_none

    if out is None:
        return []
    if len(letters) == 1 and out.suffix and not out.is_dir():
        return [one.save(out) for one in letters.values()]
    if out.suffix.lower() in (".html", ".htm", ".txt"):
        raise ValueError(f"--out {out} names one file for {len(letters)} letters; name a folder")
    names = _file_names(letters)
    with writing_to(out), all_or_none(out) as parts:
        for person, one in letters.items():
            one.save(parts / names[person])
    return [out / name for name in names.values()]


def _file_names(people: Iterable[str]) -> dict[str, str]:
    """A name for each person's file: what a label has beside letters and figures is left out, and no two are one.

    Labels that need no change are named first, so that their names do not depend on who else gets a letter.
    """
    people = list(people)
    stems = {person: _stem(person) for person in people}
    names: dict[str, str] = {}
    used: set[str] = set()
    numbers: dict[str, int] = {}
    for person in sorted(people, key=lambda one: stems[one] != f"letter-{one}"):
        name = stem = stems[person]
        while _same_file(name) in used:
            numbers[stem] = numbers.get(stem, 1) + 1
            name = f"{stem}-{numbers[stem]}"
        used.add(_same_file(name))
        names[person] = f"{name}.html"
    return {person: names[person] for person in people}


def _stem(person: str) -> str:
    """Disks count the bytes of a name, not its characters: 80 Chinese characters are 240 bytes."""
    plain = re.sub(r"[^\w.-]+", "_", unicodedata.normalize("NFC", person))
    return "letter-" + plain.encode()[:NAME_BYTES].decode(errors="ignore")


def _same_file(name: str) -> str:
    """The same for names that are one file on some disk: upper or lower case, and é in one character or in two."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())
