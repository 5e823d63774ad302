"""Reading cells that somebody else has written: what they hold or spell, and which cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature
from holdfast.utils.messages import some

_FOUND = Feature("found", "binary", levels=(False, True))  # the column that Counterfactuals.to_frame writes


def read_points(
    points: pd.DataFrame, person: pd.DataFrame, encoding: Encoding
) -> tuple[dict[str, NDArray[Any]], dict[int, list[str]]]:
    """A column for each feature, with the person's own value where there is none, and which rows cannot be read."""
    columns: dict[str, NDArray[Any]] = {}
    trouble: dict[int, list[str]] = {}
    for feature in encoding.schema.features:
        current = (
            numbers_of(person[feature.name]) if feature.is_numeric else person[feature.name].to_numpy(dtype=object)
        )
        columns[feature.name] = current
        if feature.name in points:
            values, bad = _cells(points[feature.name], feature)
            if feature.missing:  # what a person does not have, nobody needs to say
                bad &= ~(points[feature.name].isna().to_numpy() & pd.isna(current))
            columns[feature.name] = np.where(bad, current, values)
            _complain(trouble, points[feature.name], bad, feature)
    if _has_found(points, encoding):
        _complain(trouble, points["found"], _cells(points["found"], _FOUND)[1], _FOUND)
    return columns, trouble


def empty_rows(points: pd.DataFrame, encoding: Encoding) -> dict[int, str]:
    """Rows that are there and say that there is no counterfactual."""
    given = [feature for feature in encoding.schema.features if feature.name in points]
    cells = [feature.name for feature in given if feature.mutable] or [feature.name for feature in given]
    without = dict.fromkeys(np.flatnonzero(points[cells].isna().all(axis=1)).tolist(), "its cells are empty")
    if _has_found(points, encoding):
        flags, _ = _cells(points["found"], _FOUND)
        without |= {row: "its 'found' says no" for row, flag in enumerate(flags) if flag is False}
    return without


def _has_found(points: pd.DataFrame, encoding: Encoding) -> bool:
    return "found" in points and "found" not in encoding.schema.names


def as_they_are(encoding: Encoding) -> Encoding:
    """The same numbers, without the demand that whole numbers be whole: someone else's 12.5 months stay 12.5."""
    whole = [feature.name for feature in encoding.schema.features if feature.kind == "integer"]
    return replace(encoding, schema=encoding.schema.revise(*whole, kind="real")) if whole else encoding


def _cells(column: pd.Series[Any], feature: Feature) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The values of a column, and which of them cannot be read."""
    if feature.is_numeric:
        values = numbers_of(column)
        return values, ~np.isfinite(values)
    spelt = spelling(feature)
    levels = np.empty(len(column), dtype=object)
    levels[:] = [spelt(value) for value in column.tolist()]
    return levels, np.array([level is None for level in levels], dtype=bool)


def numbers_of(column: pd.Series[Any]) -> NDArray[np.float64]:
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([_number(value) for value in column.tolist()], dtype=np.float64)


def _number(value: Any) -> float:
    """One bad cell turns a whole CSV column into text, so text that is a number is one."""
    try:
        return np.nan if isinstance(value, (bool, np.bool_)) else float(value)
    except (TypeError, ValueError, OverflowError):
        return np.nan


def spelling(feature: Feature) -> Callable[[Any], Any]:
    """Which level a cell holds or spells ('1' or 1.0 for 1, 'True' for True), or None."""
    known: dict[Any, Any] = {level: level for level in feature.values}
    spelt = {str(level): level for level in feature.values}

    def level(value: Any) -> Any:
        value = value.item() if isinstance(value, np.generic) else value
        if not isinstance(value, (str, int, float)) or value != value:
            return None
        if value in known:
            return known[value]
        if isinstance(value, str):
            return spelt[value] if value in spelt else known.get(_number(value))
        return spelt.get(str(int(value)) if isinstance(value, float) and value.is_integer() else str(value))

    return level


def _complain(trouble: dict[int, list[str]], column: pd.Series[Any], bad: NDArray[np.bool_], feature: Feature) -> None:
    should = "a finite number" if feature.is_numeric else f"one of {some(feature.values)}"
    for row in np.flatnonzero(bad).tolist():
        value = column.iloc[row]
        empty = pd.api.types.is_scalar(value) and pd.isna(value)
        fault = f"{feature.name!r} is empty" if empty else f"{feature.name!r} holds {value!r}, not {should}"
        trouble.setdefault(row, []).append(fault)
