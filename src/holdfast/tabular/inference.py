"""Reading off a table what its columns mean."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from holdfast.tabular.checks import all_problems, check_columns, check_finite, check_missing, check_table
from holdfast.tabular.feature import Feature, Level
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
    check_missing(column, name)
    if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
        return Feature(name, "ordinal", levels=tuple(plain(level) for level in column.dtype.categories))
    if column.nunique() == 2:
        return Feature(name, "binary", levels=_levels_of(column))
    if pd.api.types.is_bool_dtype(column) or not pd.api.types.is_numeric_dtype(column):
        return Feature(name, "categorical", levels=_inferred_categories(column, name))
    check_finite(column, name)
    return Feature(name, "integer" if (column == column.round()).all() else "real")


def _inferred_categories(column: pd.Series[Any], name: str) -> tuple[Level, ...]:
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise ValueError(f"column '{name}' holds times ({column.dtype}); turn it into a number, such as days, first")
    levels = _levels_of(column)
    if len(column) >= 20 and len(levels) > len(column) // 2:
        raise ValueError(
            f"column '{name}' has {len(levels)} different values in {len(column)} rows, {some(levels)}: "
            "that looks like an identifier or numbers kept as text; drop it, or convert it with pd.to_numeric"
        )
    return levels


def _classes_of(column: pd.Series[Any], label: str) -> tuple[Level, ...]:
    check_missing(column, label)
    classes = _levels_of(column)
    if len(classes) > 20 and len(classes) > len(column) // 10:
        raise ValueError(
            f"label '{label}' has {len(classes)} different values in {len(column)} rows, {some(classes)}: that looks "
            "like a number or an identifier; name a column of classes, or cut it into a few with pd.cut"
        )
    return classes


def _levels_of(column: pd.Series[Any]) -> tuple[Level, ...]:
    values = [plain(value) for value in column.unique()]
    for value in values:
        if not isinstance(value, (str, int, float, bool)):
            raise ValueError(
                f"column '{column.name}' holds {value!r} ({type(value).__name__}); convert it to text or numbers"
            )
    return tuple(sorted(values, key=lambda value: (isinstance(value, str), value)))
