"""Checking a table against a schema: every message names the column, shows the values and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.tabular.feature import Feature, Level
from holdfast.utils.messages import did_you_mean, plain, repeated, some

if TYPE_CHECKING:
    from holdfast.tabular.schema import Schema

WHOLE_NUMBERS_END = 2.0**63  # where whole numbers end, as tables keep them


def check_against(table: pd.DataFrame, schema: Schema, labelled: bool) -> None:
    """Raise a ValueError with everything that is wrong with a table, or return."""
    check_table(table)
    check_columns(table, (*schema.names, schema.label) if labelled else schema.names)
    all_problems(
        *(partial(check_feature, table[feature.name], feature) for feature in schema.features),
        *([partial(check_label, table[schema.label], schema.label, schema.classes)] if labelled else []),
    )


def all_problems(*steps: Callable[[], Any]) -> list[Any]:
    """Take every step and tell all that went wrong at once: nobody wants to mend a table column by column."""
    results, problems = [], []
    for step in steps:
        try:
            results.append(step())
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise ValueError("\n".join(problems))
    return results


def check_table(table: pd.DataFrame) -> None:
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"expected a pandas DataFrame, got {type(table).__name__}; wrap it with pd.DataFrame(...)")
    unnamed = [name for name in table.columns if not isinstance(name, str)]
    if unnamed:
        raise ValueError(
            f"columns {some(unnamed)} have names that are not text; rename them, for example with "
            "table.columns = table.columns.astype(str)"
        )
    twice = repeated(table.columns)
    if twice:
        raise ValueError(f"columns {twice} appear more than once; rename or drop the copies")
    if table.empty:
        raise ValueError(f"the table is empty ({len(table)} rows, {len(table.columns)} columns); check how it was read")


def check_columns(table: pd.DataFrame, names: Iterable[str]) -> None:
    missing = [name for name in names if name not in table.columns]
    if missing:
        hints = "".join(did_you_mean(name, table.columns) for name in missing[:1])
        raise ValueError(f"the table lacks columns {missing}{hints}; it has {some(list(table.columns), 12)}")


def check_feature(column: pd.Series[Any], feature: Feature) -> None:
    if feature.missing:
        column = present(column)
        if not len(column):
            return
    check_missing(column, feature.name, _offer(feature))
    if not feature.is_numeric:
        check_levels(column, feature.name, feature.values, f'revise("{feature.name}", levels=...)')
        return
    if not holds_numbers(column):
        raise ValueError(
            f"column '{feature.name}' should hold numbers but is {column.dtype}, {_no_numbers(column, feature.name)}; "
            'correct the cells (numbers kept as text: pd.to_numeric), or say kind="categorical" in the schema'
        )
    check_finite(column, feature.name)
    if feature.kind == "integer":
        large = too_large(column)
        if large.any():
            raise ValueError(
                f"column '{feature.name}' has {some(list(column[large]))}: whole numbers end before 2^63; "
                "divide it, or make the feature 'real'"
            )
        broken = column[column != column.round()]
        if len(broken):
            raise ValueError(
                f"column '{feature.name}' should hold whole numbers but has {some(list(broken))}; "
                "round it, or make the feature 'real'"
            )


def _no_numbers(column: pd.Series[Any], name: str) -> str:
    """Which cells are no numbers, and where; those that only look like numbers where there are no others."""
    unique(column, name)  # refuses what cannot be compared
    not_numbers = column[pd.to_numeric(column.astype(object), errors="coerce").isna()]
    not_numbers = not_numbers if len(not_numbers) else column
    shown = [f"{plain(value)!r} in row {plain(row)!r}" for row, value in not_numbers[:3].items()]
    return ", ".join(shown) + (f", ... ({len(not_numbers)} in all)" if len(not_numbers) > 3 else "")


def holds_numbers(column: pd.Series[Any]) -> bool:
    """Real numbers: neither truth values nor complex ones."""
    return bool(pd.api.types.is_any_real_numeric_dtype(column))


def check_label(column: pd.Series[Any], label: str, classes: tuple[Level, ...]) -> None:
    check_missing(column, label)
    check_levels(column, label, classes, "Schema(classes=...)")


def present(column: pd.Series[Any]) -> pd.Series[Any]:
    """The values that are there; beside None, pandas keeps numbers as objects."""
    return column[column.notna()].infer_objects()


def check_missing(column: pd.Series[Any], name: str, offer: str = "") -> None:
    missing = column.isna()
    if missing.any():
        rows = some(list(column.index[missing]))
        raise ValueError(
            f"column '{name}' has {int(missing.sum())} missing values (rows {rows}); "
            f"fill them or drop those rows; a column of levels may have 'missing' as one{offer}"
        )


def _offer(feature: Feature) -> str:
    kind = 'kind="categorical", ' if feature.kind == "binary" else ""
    return f'; or let them stay as they are: revise("{feature.name}", {kind}missing=True), missing = true in a file'


def unique(column: pd.Series[Any], name: str) -> NDArray[Any]:
    """The different values of a column in the order they come; lists, dictionaries and the like are refused."""
    try:
        return column.unique()
    except TypeError as error:
        odd = next(value for value in column if isinstance(value, (list, dict, set, np.ndarray)))
        raise ValueError(
            f"column '{name}' holds {odd!r} ({type(odd).__name__}); convert it to text or numbers"
        ) from error


def too_large(column: pd.Series[Any]) -> NDArray[np.bool_]:
    """Which numbers no table keeps as whole ones."""
    large: NDArray[np.bool_] = np.abs(column.to_numpy(dtype=np.float64)) >= WHOLE_NUMBERS_END
    return large


def check_finite(column: pd.Series[Any], name: str) -> None:
    broken = column[~np.isfinite(column.to_numpy(dtype=np.float64))]
    if len(broken):
        raise ValueError(f"column '{name}' has values that are not finite: {some(list(broken))}; replace or drop them")


def check_levels(column: pd.Series[Any], name: str, levels: tuple[Level, ...], where_to_add: str) -> None:
    extra = sorted({plain(value) for value in unique(column, name)} - set(levels), key=repr)
    if extra:
        raise ValueError(
            f"column '{name}' has levels {some(extra)} that the schema does not list; "
            f"it lists {some(list(levels), 12)}; add them with {where_to_add} or drop those rows"
        )
