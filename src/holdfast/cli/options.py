"""What several commands share: checks of options, errors as sentences, and what may be chosen.

The choices are written out here, since importing where they come from would load torch before `--help` can answer; a
test compares them.
"""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import typer
from rich.text import Text

from holdfast.utils.messages import printable
from holdfast.utils.terminal import console

DATASETS = ("german", "seizure", "ctg", "warfarin", "heloc", "taiwan")
PAPER_METHODS = (
    "min-l1-art", "min-l1-art+sns", "min-l2-art", "min-l2-art+sns", "pgd", "pgd+sns", "prototype-alibi", "latent",
    "min-l1", "min-l2", "margin", "pgd+confidence", "margin-matched",
)  # fmt: skip
GERMAN_SPLIT = (700, 200)  # rows that German Credit's networks are trained on, and rows to explain
PAPER_BASES = 5  # deployed networks of the paper's study
QUICK_ROWS, QUICK_MEMBERS = 50, 20

# No work that is meant needs more; a number beyond them is a slip of the finger, or takes years or all memory.
MOST_MEMBERS = 100_000  # an interval of the rate is then below 0.01 wide
MOST_EPOCHS = 1_000_000
MOST_ROWS = 100_000_000
MOST_WORKERS = 1_024
MOST_WIDTH, MOST_LAYERS = 100_000, 100
MOST_SEED = 9 * 10**18  # with all members' seeds after it below 2**63, which torch takes


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


def end_like_ctrl_c_when_terminated() -> None:
    def end(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)


@contextmanager
def errors_as_sentences(when_interrupted: str = "nothing was written") -> Iterator[None]:
    """End a user's mistake in a sentence and an exit code, not in a traceback; Ctrl-C in what is left of the work."""
    try:
        yield
    except KeyboardInterrupt as end:
        _print_error(f"interrupted; {when_interrupted}")
        raise typer.Exit(143 if isinstance(end, Terminated) else 130) from None
    except (ValueError, OSError, RuntimeError, ImportError) as error:  # a file may need a library that is not here
        _print_error(str(error))
        raise typer.Exit(1) from None


def _print_error(message: str) -> None:
    console(stderr=True).print(Text.assemble(("holdfast:", "bold red"), f" {printable(message)}"))


def command_again(words: Sequence[str]) -> str:
    """What to type in a shell to run the command of these words again, whatever is in them."""
    readable = [os.fsencode(word).decode("utf-8", "replace") for word in words[1:]]
    return shlex.join(["holdfast", *readable])


def whole_number(low: int, high: int) -> Callable[[int | None], int | None]:
    """A check whose message says what was given, which typer's own does not."""

    def check(value: int | None) -> int | None:
        if value is not None and not low <= value <= high:
            raise typer.BadParameter(f"got {_short(value)}; choose a whole number from {low} to {high}")
        return value

    return check


def _short(value: int) -> str:
    digits = str(value)
    return digits if len(digits) <= 30 else f"{digits[:20]}... ({len(digits)} digits)"


def widths(given: str | None) -> str | None:
    """Widths of layers with commas between them."""
    if given is None:
        return None
    texts = [width.strip() for width in given.split(",")]
    if len(texts) > MOST_LAYERS:
        raise typer.BadParameter(f"got {len(texts)} layers; give {MOST_LAYERS} or fewer")
    wrong = [text for text in texts if not text.isdecimal() or len(text) > 20 or not 1 <= int(text) <= MOST_WIDTH]
    if wrong:
        shown = wrong[0] if len(wrong[0]) <= 30 else f"{wrong[0][:20]}..."
        raise typer.BadParameter(
            f"'{shown}' is no width; give whole numbers from 1 to {MOST_WIDTH} with commas between them, such as "
            "128,64,16"
        )
    return given


def some_of(what: str, known: tuple[str, ...]) -> Callable[[list[str] | None], list[str]]:
    """Names with commas between them, or the option repeated; none for all."""

    def check(given: list[str] | None) -> list[str]:
        names = [name.strip() for text in given or () for name in text.split(",")]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise typer.BadParameter(f"there is no {what} '{unknown[0]}'; choose from {', '.join(known)}")
        return names

    return check


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Make the folder of --out for this command alone, or say why it cannot be: before the work, not after it.

    If nothing has been written there in the end (an error, Ctrl-C), the folder is gone again.
    """
    from holdfast.utils.files import RESULTS, InUseError, check_writable, no_empty_folders, only_writer

    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {folder} is a file; name a folder")
    with no_empty_folders(folder), ExitStack() as stack:
        try:
            check_writable(folder)
        except OSError as error:
            raise ValueError(f"--out {folder} cannot be written to ({error.strerror}); name another folder") from error
        try:
            stack.enter_context(only_writer(folder / RESULTS))
        except InUseError:
            raise InUseError(
                f"another command is writing to --out {folder}; wait until it has ended, or name another folder"
            ) from None
        yield
