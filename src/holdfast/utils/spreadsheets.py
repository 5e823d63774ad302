"""CSV for people: text that a spreadsheet would take for a formula stays text.

A spreadsheet that opens a CSV file computes every cell that begins with one of = + - @, or with a tab or a line break
before them. A label such as ``=HYPERLINK("http://...")`` in somebody's table would then run on the machine of whoever
opens the file. `as_csv` writes an apostrophe before such text, in cells, row labels and column names; `without_marks`
takes it away again, so that what is read is what was written:

    =1+1  ->  '=1+1  ->  =1+1

Numbers stay as they are, also negative ones, and so does text that is how a number is written, such as -3. Text between
two apostrophes ('-5 to 0', as some programs quote levels) is no formula and is left alone both ways. So the one thing
that keeps its mark is text that begins like a formula and ends in an apostrophe.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from typing import Any

import pandas as pd

_NUMBER = r"-(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-inf"
_FORMULA = re.compile(rf"(?!'.*'\Z)(?!'*({_NUMBER})\Z)'*[=+\-@\t\r\n]", re.DOTALL)


def as_csv(frame: pd.DataFrame, index: bool = True) -> str:
    """The text of a CSV file with this table, safe to open in a spreadsheet; see above."""
    safe = _with_text(frame, _marked)
    text: str = safe.to_csv(index=index, lineterminator="\n")
    if "\r" in text:  # a line break to readers, which the writer does not quote
        text = safe.to_csv(index=index, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return text


def without_marks(table: pd.DataFrame) -> pd.DataFrame:
    """A table as it was before `as_csv` wrote it."""
    return _with_text(table, unmarked)


def _marked(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def unmarked(value: Any) -> Any:
    """One value as it was before `as_csv` wrote it."""
    return value[1:] if isinstance(value, str) and value.startswith("'") and _FORMULA.match(value) else value


def _with_text(table: pd.DataFrame, change: Callable[[Any], Any]) -> pd.DataFrame:
    """The same table with other text in its cells, row labels and column names."""
    result = table.copy(deep=False)
    for number, dtype in enumerate(table.dtypes):
        if dtype.kind in "OU":  # text and categories count as objects
            column = table.iloc[:, number]
            changed = None if _stays(column, change) else _changed(column.tolist(), change)
            if changed is not None:
                result.isetitem(number, pd.array(changed, dtype="object" if dtype.name == "category" else dtype))
    result.index, result.columns = (_relabelled(labels, change) for labels in (table.index, table.columns))
    return result


def _relabelled(labels: pd.Index[Any], change: Callable[[Any], Any]) -> pd.Index[Any]:
    names = [change(name) for name in labels.names]
    if isinstance(labels, pd.MultiIndex):
        return pd.MultiIndex.from_tuples([tuple(map(change, label)) for label in labels], names=names)
    changed = _changed(labels.tolist(), change) if labels.dtype.kind in "OU" else None
    return labels.rename(names[0]) if changed is None else pd.Index(changed, name=names[0])


def _stays(column: pd.Series[Any], change: Callable[[Any], Any]) -> bool:
    """Whether no value changes, by the different ones: a million rows have few levels."""
    try:
        different = column.unique().tolist()
    except TypeError:  # lists and the like
        return False
    return _changed(different, change) is None


def _changed(values: list[Any], change: Callable[[Any], Any]) -> list[Any] | None:
    """What becomes of the values; None where they stay as they are."""
    changed = [change(value) for value in values]
    return None if all(before is after for before, after in zip(values, changed, strict=True)) else changed
