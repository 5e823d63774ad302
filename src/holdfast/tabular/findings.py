"""What a careful look at one column of a table finds, with the evidence: a finding is a column, a kind and a sentence.

Chance must be no explanation: every rule says how many rows it needs.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.tabular.checks import holds_numbers
from holdfast.tabular.feature import Level
from holdfast.tabular.ranges import Ranges
from holdfast.utils.messages import some

ROWS_FOR_A_KEY = 20
ENOUGH_ROWS = 50  # for a rule about ranges, codes, the label or two columns
LEAK = 0.01  # of the rows that a column alone may get wrong and still give the label away
MOST_CODES = 12  # different whole numbers at most that may be codes of categories
LEAK_ROWS = 20_000  # at most, in which a leak is looked for

_UNKNOWN = {
    "?", "unknown", "missing", "n/a", "not available", "not known", "not recorded", "not reported", "not specified",
    "not stated", "no answer", "no data", "undocumented", "undisclosed", "unspecified", "unreported", "refused",
    "don't know", "missing value", "missing data", "data missing",
}  # fmt: skip
_SAYS_UNKNOWN = re.compile(r"\b(unknown|undocumented|unspecified|undisclosed)\b")
_KEY = {"id", "ids", "key", "uid", "uuid", "guid", "identifier", "no", "nr", "number", "ref", "reference", "index"}
_SURE_KEY = {"id", "uid", "uuid", "guid", "identifier"}
_CODE = {"code", "type", "category", "class", "group", "id", "status", "region"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?(Z|[+-]\d{2}:?\d{2})?")
_NUMBER = re.compile(r"[+-]?\d[\d., _]*([eE][+-]?\d+)?%?")


@dataclass(frozen=True)
class Finding:
    """Something about one or two columns that a person should know before using the schema. `inspect` makes them.

    Attributes:
        columns: the columns that it is about
        kind: of a column that is no feature "key", "text", "date" or "empty"; else "leak", "missing", "unknown" or
            "code"; of two columns "determines"
        sentence: what was found, with its evidence

    Examples:
        >>> import holdfast as hf
        >>> table, _ = hf.load("german")
        >>> finding = hf.inspect(table, label="risk").about("savings")[0]
        >>> print(finding.kind)
        unknown
    """

    columns: tuple[str, ...]
    kind: str
    sentence: str


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table, and what is worked out about it more than once."""

    name: str
    cells: pd.Series[Any]  # (n,) missing values included

    @property
    def rows(self) -> int:
        return len(self.cells)

    @cached_property
    def known(self) -> pd.Series[Any]:
        return self.cells[self.cells.notna()].infer_objects()

    @cached_property
    def is_number(self) -> bool:
        return holds_numbers(self.known)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """(n,) the place of each value among the different ones, -1 where it is missing."""
        return pd.factorize(self.cells)[0].astype(np.int64)

    @cached_property
    def different(self) -> int:
        return int(self.codes.max(initial=-1)) + 1

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """(n,) of a column of numbers; NaN where they are missing."""
        return self.cells.to_numpy(dtype=np.float64, na_value=np.nan)

    def finding(self, kind: str, sentence: str) -> Finding:
        return Finding((self.name,), kind, f"'{self.name}' {sentence}")


# ---- columns that are no features ----


def is_date(column: Column) -> bool:
    """Times as such, or text that is an ISO date in every row: 2020-01-31, with or without a time."""
    known = column.known
    is_span = isinstance(known.dtype, pd.PeriodDtype) or pd.api.types.is_timedelta64_dtype(known)
    if is_span or pd.api.types.is_datetime64_any_dtype(known):
        return True
    if pd.api.types.is_numeric_dtype(known) or isinstance(known.dtype, pd.CategoricalDtype):
        return False
    return all(
        isinstance(cell, datetime.date) or (isinstance(cell, str) and _DATE.fullmatch(cell.strip()) is not None)
        for cell in known.tolist()
    )


def date_finding(column: Column) -> Finding:
    return column.finding(
        "date",
        f"holds times, such as {some(column.known.astype(str).unique(), 2)}, and is left out: no one moves to a date; "
        "turn it into a number if it matters, such as the days since then",
    )


def key_finding(column: Column, whole: bool) -> Finding | None:
    """A column that names the row: unique whole numbers or text. One called id needs no 20 rows to be known as such."""
    rows, different = len(column.known), column.different
    unique, mostly = different == rows, 2 * different > rows
    called_id = called_key(column.name, surely=True)
    if column.is_number:
        named = unique and (called_key(column.name) or _counts_the_rows(column))
        found = whole and (named or (mostly and called_id))
    else:
        found = mostly
    if not found or (rows < ROWS_FOR_A_KEY and not (unique and called_id)):
        return None
    kind, why = ("key", "it names the rows") if unique or column.is_number else ("text", "too many to be levels")
    examples = some(column.known.unique(), 3)
    return _left_out(column, kind, f"has {different:,} different values in {rows:,} rows, such as {examples}: {why}")


def _counts_the_rows(column: Column) -> bool:
    return bool(np.nanmax(column.numbers) - np.nanmin(column.numbers) == len(column.known) - 1)


def called_key(name: str, surely: bool = False) -> bool:
    """Whether a column has the name of one that names rows: id, order_no; ``surely``: id, person_id."""
    words = words_of(name)
    last, first = (_SURE_KEY if surely else _KEY), (set() if surely else _SURE_KEY)
    return bool(words) and (words[-1] in last or words[0] in first)


def is_numbers_as_text(column: Column) -> bool:
    cells = column.known.tolist()
    spelt = sum(isinstance(cell, str) and _NUMBER.fullmatch(cell.strip()) is not None for cell in cells)
    return 10 * spelt >= 9 * len(cells)


def empty_finding(column: Column) -> Finding:
    return _left_out(column, "empty", f"has no value in any of {column.rows:,} rows")


def _left_out(column: Column, kind: str, why: str) -> Finding:
    return column.finding(kind, f"is left out: it {why}; add a Feature for it if that is wrong")


# ---- features ----


def missing_finding(column: Column) -> Finding | None:
    missing = column.rows - len(column.known)
    if not missing:
        return None
    return column.finding(
        "missing",
        f"is missing in {missing:,} of {column.rows:,} rows ({missing / column.rows:.1%}): missing values are encoded "
        "as such and may stay; fill them before if they mean something",
    )


def unknown_levels(levels: Iterable[Level]) -> tuple[Level, ...]:
    """The levels that say that something is not known."""
    return tuple(
        level
        for level in levels
        if isinstance(level, str)
        and (level.strip().casefold() in _UNKNOWN or _SAYS_UNKNOWN.search(level.casefold()) is not None)
    )


def unknown_finding(column: Column, levels: tuple[Level, ...]) -> Finding:
    rows = int(column.cells.isin(list(levels)).sum())
    return column.finding(
        "unknown",
        f"says that it is not known, {some(levels)}, in {rows:,} of {column.rows:,} rows ({rows / column.rows:.1%}): "
        "no one is advised to move there (avoid)",
    )


def leak_finding(column: Column, classes: pd.Series[Any]) -> Finding | None:
    """A column that gives the label away: what one half of the rows shows is asked of the other half."""
    label = pd.factorize(classes)[0]
    if column.rows < ENOUGH_ROWS or column.rows - np.bincount(label).max() < 10 or column.different < 2:
        return None
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.tree import DecisionTreeClassifier

    chosen = np.random.default_rng(0).permutation(column.rows)[:LEAK_ROWS]
    # Numbers by their ranks, because a tree takes none that is too large for float32.
    values = np.unique(column.numbers, return_inverse=True)[1] if column.is_number else column.codes
    values, label = values[chosen], label[chosen]
    guessed = cross_val_predict(DecisionTreeClassifier(random_state=0), values[:, None], label, cv=KFold(2))
    wrong, others = float((guessed != label).mean()), 1 - np.bincount(label).max() / len(label)
    if wrong > LEAK or wrong > others / 10:
        return None
    return column.finding(
        "leak",
        f"alone gives the label in {1 - wrong:.1%} of the rows; the commonest class is {1 - others:.1%} of them: it "
        "may be known only afterwards, or say the label in other words; it stays (mutable=False); drop it if it is not "
        "known when the model is asked",
    )


def category_code_finding(column: Column) -> Finding | None:
    """Whole numbers whose name says that they are codes of categories. Only a person can tell."""
    values, counts = np.unique(column.numbers[~np.isnan(column.numbers)], return_counts=True)
    called = [word for word in words_of(column.name) if word in _CODE]
    if not called or column.rows < ENOUGH_ROWS or not 3 <= len(values) <= MOST_CODES or counts.min() < 5:
        return None
    return column.finding(
        "code",
        f"has {len(values)} different whole numbers, {some(values.astype(int))}, and is called '{called[0]}': are they "
        f"codes of categories? If so, revise('{column.name}', kind='categorical', levels=(...))",
    )


def outlying_code_finding(column: Column, ranges: Ranges) -> Finding | None:
    """Values beyond a gap at an end of the column, as codes such as -9 or 99999 are. Only a person can tell."""
    if len(ranges) < 2 or all(low == high for low, high in ranges):  # else every value stands alone
        return None
    (low, high), (first, _), (_, last), (lowest, highest) = ranges[0], ranges[1], ranges[-2], ranges[-1]
    if low == high != 0 or high < 0 <= first:
        values, setting = (f"{low:.10g}" if low == high else f"{low:.10g} to {high:.10g}"), f"lower = {first:.10g}"
    elif lowest == highest != 0:
        values, setting = f"{highest:.10g}", f"upper = {last:.10g}"
    else:
        return None
    return column.finding(
        "code",
        f"has {values} far from all other numbers: is that a number, or does it stand for something else? If it does, "
        f"say {setting} and take it out of ranges: nobody is then told to move there",
    )


def words_of(name: str) -> list[str]:
    """education_num, educationNum and education-num are two words."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]
