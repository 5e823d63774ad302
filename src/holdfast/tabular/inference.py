"""Reading off a table what its columns mean, as a careful analyst would: every conclusion comes with its evidence."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

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
    ENOUGH_ROWS,
    Column,
    Finding,
    category_code_finding,
    date_finding,
    empty_finding,
    is_date,
    is_numbers_as_text,
    key_finding,
    leak_finding,
    missing_finding,
    outlying_code_finding,
    unknown_finding,
    unknown_levels,
)
from holdfast.tabular.pairs import determined
from holdfast.tabular.ranges import ranges_of
from holdfast.tabular.relations import Relation
from holdfast.utils.messages import plain, some

LOG = logging.getLogger(__name__)


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
    columns = [Column(name, table[name]) for name in table.columns if name != label]
    with np.errstate(over="ignore", invalid="ignore"):  # numbers too large to compute with show nothing
        classes, *read = all_problems(
            partial(_classes_of, table[label], label), *(partial(_read, column) for column in columns)
        )
        findings = [finding for _, about_column in read for finding in about_column]
        features = [(feature, column) for (feature, _), column in zip(read, columns, strict=True) if feature]
        if not features:
            left = "".join(f"; {finding.sentence}" for finding in findings)
            raise ValueError(f"a schema needs at least one feature beside its label '{label}'{left}")
        leaks = [leak_finding(column, table[label]) for _, column in features]
        pairs = list(determined(features))
    return Inferred(
        tuple(replace(feature, mutable=not leak) for (feature, _), leak in zip(features, leaks, strict=True)),
        classes,
        tuple(relation for _, relation in pairs),
        (*findings, *filter(None, leaks), *(finding for finding, _ in pairs)),
    )


def _read(column: Column) -> tuple[Feature | None, list[Finding]]:
    """What a column is, or None if it is no feature, and the findings about it."""
    left_out = _no_feature(column)
    if left_out is not None:
        LOG.warning("%s", left_out.sentence)
        return None, [left_out]
    feature = _feature(column)
    settings: dict[str, Any] = {}
    findings = [missing_finding(column)]
    if feature.kind == "integer":
        findings.append(category_code_finding(column))
    if feature.is_numeric and column.rows >= ENOUGH_ROWS:
        number = int if feature.kind == "integer" else float
        ranges = tuple((number(low), number(high)) for low, high in ranges_of(column.numbers, feature.grid, None, None))
        settings = {"lower": ranges[0][0], "upper": ranges[-1][1], "ranges": ranges if len(ranges) > 1 else ()}
        findings.append(outlying_code_finding(column, ranges))
    unknown = unknown_levels(feature.levels)
    if unknown and len(unknown) < len(feature.levels):
        settings = {"avoid": unknown} if feature.kind == "categorical" else {}
        findings.append(unknown_finding(column, unknown))
    return replace(feature, **settings), [finding for finding in findings if finding is not None]


def _no_feature(column: Column) -> Finding | None:
    """Why a column is no feature: it is empty, holds times, or names the rows."""
    if not len(column.known):
        return empty_finding(column)
    if is_date(column):
        return date_finding(column)
    if column.is_number:
        check_finite(column.known, column.name)
    if len(unique(column.known, column.name)) <= 2 or _order(column) is not None:
        return None
    finding = key_finding(column, _is_whole(column))
    if finding is not None and not column.is_number:
        levels = _levels_of(column.known, column.name)
        if is_numbers_as_text(column):  # to leave those out would lose a feature
            raise ValueError(
                f"column '{column.name}' has {len(levels)} different values in {column.rows} rows, {some(levels)}: "
                "that looks like an identifier or numbers kept as text; drop it, or convert it with pd.to_numeric"
            )
    return finding


def _feature(column: Column) -> Feature:
    name, missing, order = column.name, len(column.known) < column.rows, _order(column)
    if order is not None:
        return Feature(name, "ordinal", levels=_levels(order, name), missing=missing)
    if column.is_number and column.different != 2:
        return Feature(name, "integer" if _is_whole(column) else "real", missing=missing)
    levels = _levels_of(column.known, name)
    is_binary = len(levels) == 2 and not missing and not unknown_levels(levels)
    return Feature(name, "binary" if is_binary else "categorical", levels=levels, missing=missing)


def _order(column: Column) -> Iterable[Any] | None:
    dtype = column.cells.dtype
    return dtype.categories if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered else None


def _is_whole(column: Column) -> bool:
    known = column.known
    return column.is_number and bool((known == known.round()).all()) and not too_large(known).any()


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
