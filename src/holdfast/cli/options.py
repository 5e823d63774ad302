"""What several commands share: checks of options, errors as sentences, and what may be chosen.

The choices are written out here, since importing where they come from would load torch before `--help` can answer; a
test compares them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape

DATASETS = ("german", "seizure", "ctg", "warfarin", "heloc", "taiwan")
PAPER_DATASETS = ("german", "seizure", "ctg", "warfarin", "heloc", "taiwan")
PAPER_METHODS = (
    "min-l1-art", "min-l1-art+sns", "min-l2-art", "min-l2-art+sns", "pgd", "pgd+sns", "prototype-alibi", "latent",
    "min-l1", "min-l2", "margin", "pgd+confidence", "margin-matched",
)  # fmt: skip
GERMAN_SPLIT = (700, 200)  # rows that German Credit's networks are trained on, and rows to explain
PAPER_BASES = 5  # deployed networks of the paper's study
QUICK_ROWS, QUICK_MEMBERS = 50, 20


@contextmanager
def errors_as_sentences(when_interrupted: str = "nothing was written") -> Iterator[None]:
    """End a user's mistake in a sentence and an exit code, not in a traceback; Ctrl-C in what is left of the work."""
    try:
        yield
    except KeyboardInterrupt:
        _print_error(f"interrupted; {when_interrupted}")
        raise typer.Exit(130) from None
    except (ValueError, OSError, RuntimeError) as error:
        _print_error(str(error))
        raise typer.Exit(1) from None


def _print_error(message: str) -> None:
    Console(stderr=True, soft_wrap=True).print(f"[bold red]holdfast:[/] {escape(message)}", highlight=False)


def whole_number(low: int, high: int | None = None) -> Callable[[int | None], int | None]:
    """A check whose message says what was given, which typer's own does not."""

    def check(value: int | None) -> int | None:
        if value is not None and (value < low or (high is not None and value > high)):
            allowed = f"from {low} to {high}" if high is not None else f"{low} or more"
            raise typer.BadParameter(f"got {value}; choose a whole number {allowed}")
        return value

    return check


def some_of(what: str, known: tuple[str, ...]) -> Callable[[list[str] | None], list[str]]:
    """Names with commas between them, or the option repeated; none for all."""

    def check(given: list[str] | None) -> list[str]:
        names = [name.strip() for text in given or () for name in text.split(",")]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise typer.BadParameter(f"there is no {what} '{unknown[0]}'; choose from {', '.join(known)}")
        return names

    return check


def check_folder(folder: Path) -> None:
    """Make the folder of --out, or say why it cannot be used: before the work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {folder} is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"--out {folder} cannot be written to ({error.strerror}); name another folder") from error
