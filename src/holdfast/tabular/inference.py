"""Reading off a table what its columns mean."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

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
from holdfast.utils.messages import plain, some


def infer(table: pd.DataFrame, label: str) -> tuple[tuple[Feature, ...], tuple[Level, ...]]:
    """The features and the classes of a table; see `Schema.infer`."""
    if not isinstance(label, str):
        raise TypeError(f"label must be the name of a column, got {type(label).__name__}; pass label='...'")
    check_table(table)
    check_columns(table, (label,))
    names = [name for name in table.columns if name != label]
    classes, *features = all_problems(
        partial(_classes_of, table[label], label), *(partial(_infer_feature, table[name], name) for name in names)
    )
    return tuple(features), classes


def _infer_feature(column: pd.Series[Any], name: str) -> Feature:
    _check_values(column, name)
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return Feature(name, "ordinal", levels=_levels(column.dtype.categories, name))
    if len(unique(column, name)) == 2:
        return Feature(name, "binary", levels=_levels_of(column, name))
    if not holds_numbers(column):
        return Feature(name, "categorical", levels=_inferred_categories(column, name))
    whole = (column == column.round()).all() and not too_large(column).any()
    return Feature(name, "integer" if whole else "real")


def _check_values(column: pd.Series[Any], name: str) -> None:
    check_missing(column, name)
    if holds_numbers(column):
        check_finite(column, name)


def _inferred_categories(column: pd.Series[Any], name: str) -> tuple[Level, ...]:
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise ValueError(f"column '{name}' holds times ({column.dtype}); turn it into a number, such as days, first")
    levels = _levels_of(column, name)
    if len(column) >= 20 and len(levels) > len(column) // 2:
        raise ValueError(
            f"column '{name}' has {len(levels)} different values in {len(column)} rows, {some(levels)}: "
            "that looks like an identifier or numbers kept as text; drop it, or convert it with pd.to_numeric"
        )
    return levels


def _classes_of(column: pd.Series[Any], label: str) -> tuple[Level, ...]:
    _check_values(column, label)
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
