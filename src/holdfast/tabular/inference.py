"""Reading off a table what its columns mean, as a careful analyst would: every conclusion comes with its evidence."""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import tomli_w
from numpy.typing import NDArray

from holdfast.tabular.checks import (
    all_problems,
    check_columns,
    check_finite,
    check_missing,
    check_table,
    holds_numbers,
    too_large,
    unique,
)
from holdfast.tabular.feature import Feature, Level, is_level, shown
from holdfast.tabular.findings import (
    ENOUGH,
    Column,
    Finding,
    bounded,
    code_finding,
    constant_finding,
    date_finding,
    empty_finding,
    is_date,
    is_numbers_as_text,
    key_finding,
    leak_finding,
    missing_finding,
    personal_finding,
    range_findings,
    unknown_finding,
    unknown_levels,
    weight_finding,
)
from holdfast.tabular.pairs import as_line, as_toml, related
from holdfast.tabular.ranges import ranges_of
from holdfast.tabular.schema import Schema
from holdfast.utils.messages import plain, printable, some

LOG = logging.getLogger(__name__)
STAYS = ("constant", "weight", "leak")  # kinds of findings about what no one can or should be told to change
LEFT_OUT = ("key", "text", "date", "empty")  # about columns that are no features
GUIDE = """\
Look first at what nobody can choose, such as age, sex or where somebody was born.
What each setting of a feature means:
  mutable = false      nobody is told to change it
  direction = "rise"   people can only go up, or "fall": down; levels need their order
  lower, upper         the least and the largest number that anybody is told to move to
  ranges               the parts of the line that anybody is told to move to
  step = 500           numbers go in steps: 500, 1000, 1500, ...
  levels               what a column of text may hold; kind = "ordinal" where their order counts
  avoid                levels that some people have and nobody is told to move to
  difficulty = 2       a change is twice as hard as the same change of other features
  missing = true       the column may be empty
  phrase               what a letter calls a change: phrase = "shorten the loan from {now} to {then} months"
[[relations]] say what must stay true when several features change. At the end of the file, for example:
  [[relations]]
  kind = "ordered"                                  the first is never above the second
  columns = ["years_employed", "age"]
Lines that begin with # are comments. Those that propose a setting or a relation count when the # is taken away.
"""
__all__ = ["Finding", "Inspection", "inspect"]


@dataclass(frozen=True)
class Inspection:
    """The schema of a table, and what was found on the way. `inspect` makes one.

    Attributes:
        schema: what is certain enough
        findings: what a person should know or decide, each with its evidence

    Examples:
        >>> import holdfast as hf
        >>> table, _ = hf.load("german")
        >>> inspection = hf.inspect(table, label="risk")
        >>> inspection.schema["savings"].avoid  # nobody is advised to move there
        ('unknown or none',)
        >>> [finding.kind for finding in inspection.about("savings")]
        ['unknown']
        >>> text = inspection.to_toml()  # a schema's file, findings as comments
        >>> print(text.splitlines()[0])
        # Look this over: no table says what a person can change.

    Paper: not in [Black et al. 2022](https://arxiv.org/abs/2110.03109), whose datasets are prepared by hand (Appendix
    B.1).
    """

    schema: Schema
    findings: tuple[Finding, ...]

    def about(self, *names: str) -> tuple[Finding, ...]:
        """The findings about some columns."""
        return tuple(finding for finding in self.findings if set(names) & set(finding.columns))

    @property
    def left_out(self) -> tuple[Finding, ...]:
        """Why columns are no features: they name the rows, hold times or nothing."""
        return tuple(finding for finding in self.findings if finding.kind in LEFT_OUT)

    @property
    def fixed(self) -> tuple[Finding, ...]:
        """Why features start as mutable=False."""
        return tuple(finding for finding in self.findings if finding.kind in STAYS)

    @property
    def proposed(self) -> tuple[Finding, ...]:
        """What a person should decide: settings and relations that are comments in the file."""
        return tuple(finding for finding in self.findings if finding.proposal)

    @property
    def asked(self) -> tuple[Finding, ...]:
        """Questions that the file has no setting for: what values stand for that lie apart from all others."""
        return tuple(finding for finding in self.findings if finding.kind == "gap" and "?" in finding.sentence)

    def to_toml(self, guide: bool = False) -> str:
        """The schema's file, with every finding as a comment above what it is about. `Schema.load` reads it.

        With a ``guide``, it begins with what the settings mean.
        """
        alone = {name: [f for f in self.findings if f.columns == (name,)] for name in self.schema.names}
        placed = {id(finding) for findings in alone.values() for finding in findings}
        parts = [_comments(["Look this over: no table says what a person can change."])]
        parts += [_as_comment(GUIDE)] if guide else []
        parts += [_comments([f.sentence]) for f in self.findings if id(f) not in placed and len(f.columns) == 1]
        values = self.schema.to_dict()
        parts.append(_settings({key: values[key] for key in ("label", "classes")}))
        for name, item in zip(self.schema.names, values["features"], strict=True):
            notes = _comments([finding.sentence for finding in alone[name]])
            proposals = "".join(f"# {finding.proposal}\n" for finding in alone[name] if finding.proposal)
            parts.append(f"{notes}[[features]]\n{_settings(item)}{proposals}")
        active = {relation.columns: relation for relation in self.schema.relations}
        for finding in self.findings:
            if len(finding.columns) > 1:
                own = active.get(finding.columns) if not finding.proposal else None
                text = "" if own is None else as_toml(own) + "\n"
                parts.append(_comments([finding.sentence]) + _commented(finding.proposal) + text)
        return "\n".join(parts)

    def __str__(self) -> str:
        return "\n".join([str(self.schema), *(f"- {finding.sentence}" for finding in self.findings)])


def inspect(table: pd.DataFrame, label: str) -> Inspection:
    """Read a schema off a table, and say what was found: keys, dates, weights, leaks, codes, gaps, relations.

    What is certain enough is taken into the schema, and what only a person can tell is a finding alone. Look it over:
    no table says what a person can change.

    Args:
        table: one row per person, with the label
        label: the column that holds the classes

    Examples:
        >>> import holdfast as hf
        >>> table, _ = hf.load("german")
        >>> inspection = hf.inspect(table, label="risk")
        >>> len(inspection.schema.features)
        20
        >>> [(finding.columns[0], finding.proposal) for finding in inspection.proposed]
        [('status_and_sex', 'mutable = false'), ('age', 'direction = "rise"')]

    Paper: not in [Black et al. 2022](https://arxiv.org/abs/2110.03109), whose datasets are prepared by hand (Appendix
    B.1).
    """
    if not isinstance(label, str):
        raise TypeError(f"label must be the name of a column, got {type(label).__name__}; pass label='...'")
    check_table(table)
    check_columns(table, (label,))
    names = [name for name in table.columns if name != label]
    classes, *read = all_problems(
        partial(_classes_of, table[label], label), *(partial(_read, table[name], name) for name in names)
    )
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large to compute with show nothing
        return _inspected(read, pd.factorize(table[label])[0].astype(np.int64), label, classes)


def leaks(table: pd.DataFrame, schema: Schema) -> tuple[str, ...]:
    """The features that nobody can change and that alone give the label away: nothing to tell a person about."""
    if schema.label not in table:
        return ()
    label = pd.factorize(table[schema.label])[0].astype(np.int64)
    fixed = [feature for feature in schema.features if not feature.mutable]
    columns = [(Column(feature.name, table[feature.name], label), feature.is_numeric) for feature in fixed]
    return tuple(column.name for column, is_number in columns if leak_finding(column, is_number) is not None)


Read = tuple[Column, Feature | None, tuple[Finding, ...]]


def _inspected(read: list[Read], places: NDArray[np.int64], label: str, classes: tuple[Level, ...]) -> Inspection:
    findings: list[Finding] = []
    features: list[tuple[Feature, Column]] = []
    for column, feature, own in read:
        looked = replace(column, label=places)
        if feature is not None:
            feature, more = _looked_over(feature, looked)
            own = (*own, *more)
            features.append((feature, looked))
        findings += own
    if not features:
        left = "".join(f"; {finding.sentence}" for finding in findings)
        raise ValueError(f"a schema needs at least one feature beside its label '{label}'{left}")
    pairs = list(related(features))
    relations = tuple(relation for _, relation in pairs if relation is not None)
    schema = Schema(tuple(feature for feature, _ in features), label, classes, relations)
    return Inspection(schema, (*findings, *(finding for finding, _ in pairs)))


def _read(cells: pd.Series[Any], name: str) -> Read:
    """The kind of a column, or the reason why it is none of the features."""
    column = Column(name, cells, np.zeros(len(cells), dtype=np.int64))
    if not len(column.known):
        return _left_out(column, empty_finding(column))
    if is_date(column):
        return _left_out(column, date_finding(column))
    dtype = cells.dtype
    order = dtype.categories if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered else None
    is_number = holds_numbers(column.known)
    if is_number:
        check_finite(column.known, name)
    different = len(unique(column.known, name))
    whole = is_number and bool((column.known == column.known.round()).all()) and not too_large(column.known).any()
    if order is None and different > 2:
        key = key_finding(column, is_number, whole)
        if key is not None:
            _check_text(column)
            return _left_out(column, key)
    missing = missing_finding(column)
    feature = _feature(column, order, different, is_number, whole)
    return column, feature, () if missing is None else (missing,)


def _check_text(column: Column) -> None:
    """Raise for numbers that are kept as text: to leave those out would lose a feature."""
    if holds_numbers(column.known):
        return
    levels = _levels_of(column.known, column.name)
    if is_numbers_as_text(column):
        raise ValueError(
            f"column '{column.name}' has {len(levels)} different values in {column.rows} rows, {some(levels)}: "
            "that looks like an identifier or numbers kept as text; drop it, or convert it with pd.to_numeric"
        )


def _left_out(column: Column, finding: Finding) -> Read:
    LOG.warning("%s", finding.sentence)
    return column, None, (finding,)


def _feature(column: Column, order: Iterable[Any] | None, different: int, is_number: bool, whole: bool) -> Feature:
    name, missing = column.name, len(column.known) < column.rows
    if order is not None:
        return Feature(name, "ordinal", levels=_levels(order, name), missing=missing)
    if different == 2 or not is_number:
        levels = _levels_of(column.known, name)
        kind = "binary" if different == 2 and not missing and not unknown_levels(levels) else "categorical"
        return Feature(name, kind, levels=levels, missing=missing)  # type: ignore[arg-type]
    return Feature(name, "integer" if whole else "real", missing=missing)


def _looked_over(feature: Feature, column: Column) -> tuple[Feature, list[Finding]]:
    """The feature with what its values say, and the findings."""
    findings: list[Finding | None] = [constant_finding(column)]
    if feature.is_numeric:
        findings.append(weight_finding(column))
        findings.append(code_finding(column) if feature.kind == "integer" else None)
    findings.append(leak_finding(column, feature.is_numeric))
    settings: dict[str, Any] = {}
    if feature.is_numeric and column.rows >= ENOUGH:
        ranges = ranges_of(column.numbers, feature.grid, None, None)
        settings |= bounded(feature, ranges)
        findings += list(range_findings(column, ranges))
    unknown = unknown_levels(feature.levels)
    if unknown and len(unknown) < len(feature.levels):
        settings |= {"avoid": unknown} if feature.kind == "categorical" else {}
        findings.append(unknown_finding(column, unknown))
    found = [finding for finding in findings if finding is not None]
    if any(finding.kind in STAYS for finding in found):
        settings["mutable"] = False
    else:
        personal = personal_finding(feature, column)
        found += [] if personal is None else [personal]
    return replace(feature, **settings), found


def _classes_of(column: pd.Series[Any], label: str) -> tuple[Level, ...]:
    check_missing(column, label)
    if holds_numbers(column):
        check_finite(column, label)
    classes = _levels_of(column, label)
    if len(classes) > 20 and len(classes) > len(column) // 10:
        raise ValueError(
            f"label '{label}' has {len(classes)} different values in {len(column)} rows, {some(classes)}: that looks "
            "like a number or an identifier; name a column of classes, or cut it into a few with pd.cut(labels=...)"
        )
    return classes


def _levels_of(column: pd.Series[Any], name: str) -> tuple[Level, ...]:
    return tuple(sorted(_levels(unique(column, name), name), key=lambda value: (isinstance(value, str), value)))


def _levels(values: Iterable[Any], name: str) -> tuple[Level, ...]:
    levels = tuple(plain(value) for value in values)
    for value in levels:
        if not is_level(value):
            raise ValueError(
                f"column '{name}' holds {shown(value)} ({type(value).__name__}); convert it to text or numbers"
            )
    return levels


# ---- as a file has it ----


def _settings(values: dict[str, Any]) -> str:
    """A line for each setting, if it is not too long for one."""
    lines = [as_line(key, value) for key, value in values.items()]
    return "".join(
        f"{line}\n" if len(line) <= 120 else tomli_w.dumps({key: value})
        for line, (key, value) in zip(lines, values.items(), strict=True)
    )


def _comments(sentences: Iterable[str]) -> str:
    """Each sentence as comment lines; a new line in a name must not end the comment."""
    lines = []
    for sentence in sentences:
        one = printable(" ".join(sentence.split()))
        lines += textwrap.wrap(one, 117, break_long_words=False, break_on_hyphens=False) or [""]
    return "".join(f"# {line}\n" for line in lines)


def _as_comment(text: str) -> str:
    return "".join(f"# {line}\n" for line in text.splitlines())


def _commented(text: str) -> str:
    return "".join(f"#   {printable(line)}\n" for line in text.splitlines())
