"""A progress bar for long work: on a terminal, on stderr, gone when the work is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def bar(title: str, total: int, show: bool = True) -> Iterator[Callable[[int], None]]:
    """Yields what is called with how much more is done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not (show and console.is_terminal)) as progress:
        task = progress.add_task(title, total=total)
        yield lambda amount: progress.advance(task, amount)
