"""A progress bar for long work: on a terminal, on stderr, gone when the work is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from holdfast.utils.messages import printable

if TYPE_CHECKING:
    from rich.console import Console


class Advance(Protocol):
    def __call__(self, amount: int, doing: str | None = None) -> None:
        """So much more is done, and this is what is being done now."""


@contextmanager
def bar(title: str, total: int, show: bool = True) -> Iterator[Advance]:
    """Yields what is called with how much more is done.

    Into a file or a pipe go only lines that say what is being done, where the work says so.
    """
    if not show:
        yield lambda amount, doing=None: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from holdfast.utils.terminal import console

    shown = console(stderr=True)
    if not shown.is_terminal:
        yield _lines(title, total, shown)
        return
    text = TextColumn("{task.description}", markup=False)  # names of datasets and files are not markup
    columns = (text, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=shown, transient=True) as progress:
        task = progress.add_task(printable(title), total=total)

        def advance(amount: int, doing: str | None = None) -> None:
            text = title if doing is None else f"{title}: {doing}"
            progress.update(task, advance=amount, description=printable(text))

        yield advance


def _lines(title: str, total: int, console: Console) -> Advance:
    done = 0

    def advance(amount: int, doing: str | None = None) -> None:
        nonlocal done
        done += amount
        if doing is not None:
            console.print(f"{title}, {done} of {total}: {doing}")

    return advance
