"""Tables that fit any terminal: where the columns do not, the rows stand one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

WIDE = 10_000  # columns of a terminal on which every table fits


@dataclass(frozen=True)
class FittedTable:
    """A title, columns, of which the first ``names`` are text, and rows of cells."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = console.measure(self._table(), options=options.update(max_width=WIDE)).maximum
        if needed <= options.max_width:
            yield self._table()
            return
        yield Text(f"{self.title}\n", style="italic")
        for row in self.rows:
            first, *cells = zip(self.columns, row, strict=True)
            yield Text(f"{first[0]}: {first[1]}", style="bold")
            told = [f"{name}: {cell}" if name else cell for name, cell in cells if cell]
            yield Padding(Text("\n".join(told)), (0, 0, 1, 2), expand=False)

    def _table(self) -> Table:
        table = Table(title=self.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for place, name in enumerate(self.columns):
            table.add_column(name, justify="left" if place < self.names else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*(Text(cell) for cell in row))
        return table
