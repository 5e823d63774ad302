"""What a careful look at one column of a table finds, with the evidence: a finding is a column, a kind and a sentence.

Chance must be no explanation: every rule says how many rows it needs.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.tabular.feature import Feature, Level
from holdfast.tabular.ranges import Ranges, gaps_of, spikes_of
from holdfast.utils.messages import some

SEVERAL = 20  # rows that a rule about one column needs
ENOUGH = 50  # rows that a rule about ranges, the label or two columns needs
LEAK = 0.01  # of the rows that a column alone may get wrong and still give the label away
CODES = 12  # different whole numbers at most that may be codes of categories
TRIED = 20_000  # rows that are looked at for what takes long

_UNKNOWN = {
    "?", "unknown", "missing", "n/a", "not available", "not known", "not recorded", "not reported", "not specified",
    "not stated", "no answer", "no data", "undocumented", "undisclosed", "unspecified", "unreported", "refused",
    "don't know", "missing value", "missing data", "data missing",
}  # fmt: skip
_SAYS_UNKNOWN = re.compile(r"\b(unknown|undocumented|unspecified|undisclosed)\b")
_KEY = {"id", "ids", "key", "uid", "uuid", "guid", "identifier", "no", "nr", "number", "ref", "reference", "index"}
_SURE_KEY = {"id", "uid", "uuid", "guid", "identifier"}
_WEIGHT = re.compile(r"wgt|sampl(e|ing).*weight|weight.*sampl|survey.*weight|final.*weight|pweight")
_BORN_WITH = {"sex", "gender", "race", "ethnicity", "ethnic", "nationality", "ancestry", "native", "born", "dob"}
_CODE = {"code", "type", "category", "class", "group", "id", "status", "region"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?(Z|[+-]\d{2}:?\d{2})?")
_NUMBER = re.compile(r"[+-]?\d[\d., _]*([eE][+-]?\d+)?%?")


@dataclass(frozen=True)
class Finding:
    """Something about one or more columns that a person should know before using the schema. `inspect` makes them.

    Attributes:
        columns: the columns that it is about
        kind: of a column that is no feature "key", "text", "date" or "empty"; of one that nobody is told to change
            "constant", "weight" or "leak"; else "missing", "unknown", "personal", "code", "gap" or "spike"; of two
            columns "determines", "exclusive", "ordered" or "never together"
        sentence: what was found, with its evidence
        proposal: a relation or a setting as a schema file has it, for a person to take over or not; empty if there is
            none

    Examples:
        >>> import holdfast as hf
        >>> table, _ = hf.load("german")
        >>> finding = hf.inspect(table, label="risk").about("age")[0]
        >>> print(finding.sentence)
        'age' has numbers from 19 to 75 and is called an age, which only rises: if that is so, say direction = "rise"
    """

    columns: tuple[str, ...]
    kind: str
    sentence: str
    proposal: str = ""


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table beside the label's classes, and what is worked out about it more than once."""

    name: str
    cells: pd.Series[Any]  # (n,) missing values included
    label: NDArray[np.int64]  # (n,) places of the classes

    @property
    def rows(self) -> int:
        return len(self.cells)

    @cached_property
    def known(self) -> pd.Series[Any]:
        return self.cells[self.cells.notna()].infer_objects()

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


# ---- columns that are no features ----


def is_date(column: Column) -> bool:
    """Times as such, or text that is an ISO date in every row: 2020-01-31, with or without a time."""
    known = column.known
    if pd.api.types.is_datetime64_any_dtype(known) or isinstance(known.dtype, pd.PeriodDtype):
        return True
    if pd.api.types.is_timedelta64_dtype(known):
        return True
    if pd.api.types.is_numeric_dtype(known) or isinstance(known.dtype, pd.CategoricalDtype):
        return False
    return all(
        isinstance(cell, datetime.date) or (isinstance(cell, str) and _DATE.fullmatch(cell.strip()) is not None)
        for cell in known.tolist()
    )


def date_finding(column: Column) -> Finding:
    name = column.name
    if pd.api.types.is_timedelta64_dtype(column.known):
        how = f'table["{name}"] = table["{name}"].dt.days'
    else:
        as_times = ".dt.to_timestamp()" if isinstance(column.known.dtype, pd.PeriodDtype) else ""
        how = f'when = pd.to_datetime(table["{name}"]{as_times}); table["{name}"] = (when.max() - when).dt.days'
    return Finding(
        (name,),
        "date",
        f"'{name}' holds times, such as {some(column.known.astype(str).unique(), 2)}, and is left out: no one moves to "
        f"a date; turn it into a number if it matters, for example with {how}",
    )


def key_finding(column: Column, is_number: bool, whole: bool) -> Finding | None:
    """A column that names the row: unique whole numbers or text. One called id needs no 20 rows to be known as such."""
    rows, different = len(column.known), column.different
    sure = different == rows and called_key(column.name, surely=True)
    if (rows < SEVERAL and not sure) or (is_number and not whole):
        return None
    told = f"has {different:,} different values in {rows:,} rows"
    if is_number:
        numbers = np.sort(column.numbers[~np.isnan(column.numbers)])
        if different == rows and numbers[-1] - numbers[0] == rows - 1:
            return _left_out(column, "key", f"counts the rows, from {_number(numbers[0])} to {_number(numbers[-1])}")
        unique, nearly = different == rows, 2 * different > rows
        if (unique and called_key(column.name)) or (nearly and called_key(column.name, surely=True)):
            return _left_out(column, "key", f"{told} and is called so: it names the rows")
        return None
    if different == rows:
        return _left_out(column, "key", f"{told}, such as {some(column.known, 3)}: it names the rows")
    if 2 * different > rows:
        return _left_out(column, "text", f"{told}, such as {some(column.known.unique(), 3)}: too many to be levels")
    return None


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
    sentence = f"'{column.name}' is left out: it {why}; add a Feature for it if that is wrong"
    return Finding((column.name,), kind, sentence)


# ---- features that need a setting ----


def missing_finding(column: Column) -> Finding | None:
    missing = column.rows - len(column.known)
    if not missing:
        return None
    return Finding(
        (column.name,),
        "missing",
        f"'{column.name}' is missing in {missing:,} of {column.rows:,} rows ({missing / column.rows:.1%}): missing "
        "values are encoded as such and may stay; fill them before if they mean something",
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
    return Finding(
        (column.name,),
        "unknown",
        f"'{column.name}' says that it is not known, {some(levels)}, in {rows:,} of {column.rows:,} rows "
        f"({rows / column.rows:.1%}): no one is advised to move there (avoid)",
    )


def constant_finding(column: Column) -> Finding | None:
    if column.different != 1 or len(column.known) < SEVERAL:
        return None
    return Finding(
        (column.name,),
        "constant",
        f"'{column.name}' is {some(column.known.unique())} in all {len(column.known):,} rows that have it: nothing is "
        "known about other values, so it stays (mutable=False)",
    )


def weight_finding(column: Column) -> Finding | None:
    """Sampling weights: how many people a row stands for."""
    known = column.numbers[~np.isnan(column.numbers)]
    words = words_of(column.name)
    called = _WEIGHT.search("_".join(words)) is not None
    if words in (["weight"], ["weights"]):  # of a body, of goods, or of a sample
        called = bool(known.mean() >= 1000 or abs(known.mean() - 1) < 0.01)
    if not called or len(known) < SEVERAL or 2 * column.different < len(known):
        return None
    return Finding(
        (column.name,),
        "weight",
        f"'{column.name}' has {column.different:,} different values in {len(known):,} rows and is called a weight: it "
        "seems to say how many people a row stands for, which is nothing a person can change (mutable=False); drop it "
        "if the model should not see it",
    )


def leak_finding(column: Column, is_number: bool) -> Finding | None:
    """A column that gives the label away: what one half of the rows shows is asked of the other half."""
    counts = np.bincount(column.label)
    if column.rows < ENOUGH or column.rows - counts.max() < 10 or column.different < 2:
        return None
    order = np.random.default_rng(0).permutation(column.rows)[:TRIED]
    label, values = column.label[order], (column.numbers if is_number else column.codes.astype(np.float64))[order]
    if is_number:
        least, most = np.nanmin(values), np.nanmax(values)
        values = np.where(np.isnan(values), least - max(most - least, 1.0), values)
    half = len(order) // 2
    first, second = (values[:half], label[:half]), (values[half:], label[half:])
    wrong = _mistakes(first, second, is_number) + _mistakes(second, first, is_number)
    share, majority = wrong / len(order), 1 - np.bincount(label).max() / len(order)
    if share > LEAK or share > majority / 10:
        return None
    return Finding(
        (column.name,),
        "leak",
        f"'{column.name}' alone gives the label in {1 - share:.1%} of the rows; the commonest class is "
        f"{1 - majority:.1%} of them: it may be known only afterwards, or say the label in other words; it stays "
        "(mutable=False); drop it if it is not known when the model is asked",
    )


def _mistakes(
    known: tuple[NDArray[np.float64], NDArray[np.int64]],
    asked: tuple[NDArray[np.float64], NDArray[np.int64]],
    nearest: bool,
) -> int:
    """How many labels the commonest one of the same value gets wrong, or of the nearest value."""
    values, places = np.unique(known[0], return_inverse=True)
    classes = int(max(known[1].max(), asked[1].max())) + 1
    counts = np.bincount(places * classes + known[1], minlength=len(values) * classes).reshape(-1, classes)
    right = np.searchsorted(values, asked[0]).clip(0, len(values) - 1)
    left = (right - 1).clip(0)
    place = np.where(np.abs(asked[0] - values[left]) < np.abs(asked[0] - values[right]), left, right)
    said = counts.argmax(1)[place]
    if not nearest:
        said = np.where(values[place] == asked[0], said, counts.sum(0).argmax())
    return int((said != asked[1]).sum())


# ---- what a person should look at ----


def personal_finding(feature: Feature, column: Column) -> Finding | None:
    """What nobody can choose, by its name: only a person can tell whether the name means that."""
    words = words_of(feature.name)
    if any(word in _BORN_WITH or word.startswith("birth") for word in words):
        why, proposal = "is called like something that nobody can change", "mutable = false"
    elif "age" in words and feature.is_numeric:
        why, proposal = "is called an age, which only rises", 'direction = "rise"'
    elif "age" in words:
        why, proposal = "is called an age, which nobody can choose", "mutable = false"
    else:
        return None
    if feature.is_numeric:
        known = column.numbers[~np.isnan(column.numbers)]
        has = f"has numbers from {_number(known.min())} to {_number(known.max())}"
    else:
        has = f"has the levels {some(feature.levels, 3)}"
    return Finding(
        (feature.name,),
        "personal",
        f"'{feature.name}' {has} and {why}: if that is so, say {proposal}",
        proposal,
    )


def code_finding(column: Column) -> Finding | None:
    """Whole numbers that may be names of categories. Only a person can tell."""
    values, counts = np.unique(column.numbers[~np.isnan(column.numbers)], return_counts=True)
    if column.rows < ENOUGH or not 3 <= len(values) <= CODES or counts.min() < 5:
        return None
    called = [word for word in words_of(column.name) if word in _CODE]
    if called:
        why = f"it is called '{called[0]}'"
    elif _is_unordered(column):
        why = "the label rises and falls along them"
    else:
        return None
    return Finding(
        (column.name,),
        "code",
        f"'{column.name}' has {len(values)} different whole numbers, {some(values.astype(int))}: they may be codes of "
        f"categories, for {why}; if so, revise('{column.name}', kind='categorical', levels=(...))",
    )


def _is_unordered(column: Column) -> bool:
    """Whether the label depends on the numbers, and little of that is a trend."""
    there = ~np.isnan(column.numbers)
    numbers, label = column.numbers[there], column.label[there]
    y = (label == np.bincount(label).argmax()).astype(np.float64)
    values, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    spread = float(y.var())
    if spread == 0:
        return False
    shares = np.bincount(places, weights=y) / counts
    between = float((counts * (shares - y.mean()) ** 2).sum() / spread)  # chi-squared, one less than values free
    ranks = np.searchsorted(np.sort(numbers), values, side="left") + (counts - 1) / 2
    slope = np.corrcoef(ranks[places], y)[0, 1]
    trend = float(len(y) * slope**2)
    freedom = len(values) - 1
    return between > freedom + 6 * np.sqrt(2 * freedom) + 10 and trend < between / 3


def range_findings(column: Column, ranges: Ranges) -> Iterator[Finding]:
    """Gaps in which nobody is, and values that many share."""
    numbers = column.numbers[~np.isnan(column.numbers)]
    gaps = " nor ".join(f"between {_number(low)} and {_number(high)}" for low, high in gaps_of(ranges))
    if gaps:
        whole = any(low < high for low, high in ranges)  # else every value stands alone
        code = _asked(ranges) if whole else ""
        sentence = f"of {len(numbers):,} rows none lies {gaps}, so nobody is told to move into the gap (ranges){code}"
        yield Finding((column.name,), "gap", f"'{column.name}': {sentence}")
    spikes = [one for one in spikes_of(numbers) if one[1] * column.different >= 5]  # five times an even share
    if spikes and len(numbers) >= ENOUGH:
        told = ", ".join(f"{_number(value)} in {share:.1%} of the rows" for value, share in spikes[:3])
        yield Finding((column.name,), "spike", f"'{column.name}' is often the same: {told}")


def _asked(ranges: Ranges) -> str:
    """A question about values that stand apart at an end, as codes such as -9 or 99999 do; empty where none does."""
    (low, high), (first, _), (_, last), (lowest, highest) = ranges[0], ranges[1], ranges[-2], ranges[-1]
    if low == high != 0 or high < 0 <= first:
        told = _number(low) if low == high else f"{_number(low)} to {_number(high)}"
        setting = f"lower = {_number(first)}"
    elif lowest == highest != 0:
        told, setting = _number(highest), f"upper = {_number(last)}"
    else:
        return ""
    return (
        f"; is {told} a number, or does it stand for something else? If it does, say {setting} and take it out of "
        "ranges: nobody is then told to move there"
    )


def bounded(feature: Feature, ranges: Ranges) -> dict[str, Any]:
    """The settings of a feature that say where people are."""
    kind = int if feature.kind == "integer" else float
    pairs = tuple((kind(low), kind(high)) for low, high in ranges)
    return {"lower": pairs[0][0], "upper": pairs[-1][1], "ranges": pairs if len(pairs) > 1 else ()}


def words_of(name: str) -> list[str]:
    """education_num, educationNum and education-num are two words."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def _number(value: float) -> str:
    return f"{value:.10g}"
