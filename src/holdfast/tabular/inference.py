"""Reading off a table what its columns mean, as a careful analyst would: every conclusion comes with its evidence."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
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
from holdfast.tabular.pairs import related
from holdfast.tabular.ranges import ranges_of
from holdfast.tabular.relations import Relation
from holdfast.utils.messages import plain, some

LOG = logging.getLogger(__name__)
STAYS = ("constant", "weight", "leak")  # kinds of findings about what no one can or should be told to change


@dataclass(frozen=True)
class Inferred:
    """What a table shows of its columns, and why."""

    features: tuple[Feature, ...]
    classes: tuple[Level, ...]
    relations: tuple[Relation, ...]
    findings: tuple[Finding, ...]


def infer(table: pd.DataFrame, label: str) -> Inferred:
    """Read features, classes and relations off a table."""
    if not isinstance(label, str):
        raise TypeError(f"label must be the name of a column, got {type(label).__name__}; pass label='...'")
    check_table(table)
    check_columns(table, (label,))
    names = [name for name in table.columns if name != label]
    classes, *read = all_problems(
        partial(_classes_of, table[label], label), *(partial(_read, table[name], name) for name in names)
    )
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large to compute with show nothing
        return _inferred(read, pd.factorize(table[label])[0].astype(np.int64), label, classes)


Read = tuple[Column, Feature | None, tuple[Finding, ...]]


def _inferred(read: list[Read], places: NDArray[np.int64], label: str, classes: tuple[Level, ...]) -> Inferred:
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
    found = tuple(feature for feature, _ in features)
    return Inferred(found, classes, relations, (*findings, *(finding for finding, _ in pairs)))


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
