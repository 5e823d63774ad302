"""Values as a notebook shows them: tables and sentences in HTML that take on the colours of their page, light or dark.

Everything that is shown is escaped: no name of a column and no level of a table is ever obeyed. Loads without pandas,
so that a schema can be shown where no table is at hand.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.utils.messages import printable

MOST_ROWS = 50  # rows that are shown of a long table
LONGEST_CELL = 300  # letters that are shown of one cell
_LINE = "color-mix(in srgb, currentColor 25%, transparent)"
# By class and three tags deep, so that the rules of notebooks do not come before these.
_STYLE = f"""<style>
div.holdfast {{ color: inherit; overflow-x: auto; max-width: 100% }}
div.holdfast table {{ border-collapse: collapse; border: none; color: inherit; background: none; margin: 0.4em 0 }}
div.holdfast table tr {{ color: inherit; background: none }}
div.holdfast table tr th, div.holdfast table tr td {{
  color: inherit; background: none; border: none; border-bottom: 1px solid rgba(128, 128, 128, 0.4);
  border-bottom: 1px solid {_LINE}; padding: 0.25em 0.9em 0.25em 0; text-align: right; vertical-align: top;
  white-space: normal; font-variant-numeric: tabular-nums }}
div.holdfast table tr th {{ font-weight: 600; vertical-align: bottom }}
div.holdfast table tr > :first-child, div.holdfast table.words tr > * {{ text-align: left; overflow-wrap: break-word }}
div.holdfast p {{ color: inherit; margin: 0.4em 0; max-width: 60em }}
</style>"""


def page(*parts: str) -> str:
    """Parts that the functions below made, as one."""
    return f'{_STYLE}<div class="holdfast">{"".join(parts)}</div>'


def sentence(words: str) -> str:
    return f"<p>{text(words)}</p>"


def heading(words: str) -> str:
    return f"<p><strong>{text(words)}</strong></p>"


def note(words: str) -> str:
    return f"<p><small>{text(words)}</small></p>"


def table(columns: Mapping[Any, Sequence[Any]], *, of: str = "rows", words: bool = False, most: int = MOST_ROWS) -> str:
    """Columns by name. A number that is not whole is a share, shown in percent; give other numbers as text.

    Of more than ``most`` rows the first are shown, and a sentence says so with the word ``of`` for them. With ``words``
    every cell begins at the left.
    """
    count = max((len(values) for values in columns.values()), default=0)
    head = "".join(f"<th>{text(str(name).replace('_', ' '))}</th>" for name in columns)
    rows = zip(*(list(values)[:most] for values in columns.values()), strict=True)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows)
    kind = ' class="words"' if words else ""
    shown = f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return shown if count <= most else shown + note(f"The first {most} of {count:,} {of} are shown.")


def text(words: object) -> str:
    """Words as HTML shows them, whatever is in them."""
    return html.escape(printable(str(words)))


def _cells(row: Iterable[object]) -> str:
    return "".join(f"<td>{text(_cell(value))}</td>" for value in row)


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.1%}"
    words = str(value)
    return words if len(words) <= LONGEST_CELL else f"{words[:LONGEST_CELL]}…"
