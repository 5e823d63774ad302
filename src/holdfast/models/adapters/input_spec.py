"""What goes into a model: which rows, in which form. A value that can be written down, and read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.adapters.one_hot import one_hot, one_hot_table
from holdfast.models.adapters.seen import as_fitted, in_categories
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature

Takes = Literal["table", "encoded", "numbers"]
Form = Literal["frame", "array", "tensor"]


@dataclass(frozen=True)
class InputSpec:
    """Columns of the table in some order, encoded rows, or the table's numbers; as a frame, an array or a tensor."""

    takes: Takes
    form: Form
    columns: tuple[str, ...]  # of the table, or of the encoding
    categories: bool = False  # text becomes categories, which is all that some libraries take
    one_hot: bool = False  # the columns are the model's own: some of them say whether a feature has a level
    dtype: str = "float32"  # of a tensor
    device: str = "cpu"

    def rows(self, table: pd.DataFrame, encoding: Encoding) -> Any:
        """A table in the user's units, as the model takes it."""
        if self.takes == "encoded":
            return self._encoded(table, encoding)
        if self.takes == "numbers":
            return self._as_tensor(torch.from_numpy(numbers_of(table, encoding)))
        model_table = as_fitted(table, encoding)
        model_table = model_table if self.one_hot else model_table[list(self.columns)]
        model_table = in_categories(model_table, encoding) if self.categories else model_table
        if self.one_hot:
            sources = one_hot(self.columns, encoding)
            assert sources is not None
            model_table = one_hot_table(model_table, self.columns, sources)
        return model_table.to_numpy() if self.form == "array" else model_table

    def _encoded(self, table: pd.DataFrame, encoding: Encoding) -> Any:
        if self.form == "tensor":  # a table is not encoded in fewer bits than 32
            wide = torch.float64 if self.dtype == "float64" else torch.float32
            return self._as_tensor(encoding.encode(table, wide))
        rows = encoding.encode(table).numpy()
        return rows if self.form == "array" else pd.DataFrame(rows, columns=list(self.columns))

    def encoded_rows(self, x: Tensor, encoding: Encoding) -> Tensor:
        """Encoded rows (n, d) as the model takes them; a gradient comes back the same way."""
        return self._as_tensor(x if self.takes == "encoded" else _decoded(x.double(), encoding))

    def _as_tensor(self, rows: Tensor) -> Tensor:
        return rows.to(self.device, getattr(torch, self.dtype))

    def in_words(self, encoding: Encoding) -> str:
        count, known = len(self.columns), len(encoding.schema.names)
        if self.form == "tensor":
            return (
                f"the {count} numbers of the table as they are"
                if self.takes == "numbers"
                else f"encoded rows of {count} numbers"
            )
        what = "an array" if self.form == "array" else "a table"
        if self.takes == "encoded":
            return f"{what} of {count} encoded columns"
        if self.one_hot:
            return f"{what} of {count} columns, one-hot by their names"
        return f"{what} of {count} columns" if count == known else f"{what} of {count} of the {known} columns"


def some_rows_of(given: Any, rows: NDArray[np.int64]) -> Any:
    """Some of the rows that a model is given."""
    return given.iloc[rows] if isinstance(given, pd.DataFrame) else given[rows]


def table_input(
    encoding: Encoding, takes: Takes, form: Form, columns: Sequence[str] | None = None, categories: bool = False
) -> InputSpec:
    """For an estimator or a function."""
    if takes == "numbers":
        raise ValueError("takes='numbers' is for networks; an estimator or a function takes the table or encoded rows")
    known = encoding.schema.names if takes == "table" else encoding.columns
    return InputSpec(takes, form, tuple(known if columns is None else columns), categories)


def one_hot_input(encoding: Encoding, names: Sequence[str], categories: bool) -> InputSpec | None:
    """For a model of columns that were made one-hot, if their names say so."""
    if one_hot(names, encoding) is None:
        return None
    return InputSpec("table", "frame", tuple(names), categories, one_hot=True)


def network_input(takes: Takes, encoding: Encoding, like: Tensor | None) -> InputSpec:
    """For a network: in the dtype and on the device of ``like``, which is one of its weights."""
    if takes == "table":
        return InputSpec("table", "frame", encoding.schema.names)
    if takes == "numbers":
        _check_numbers(encoding)
    dtype, device = ("float32", "cpu") if like is None else (str(like.dtype).removeprefix("torch."), str(like.device))
    columns = encoding.columns if takes == "encoded" else encoding.schema.names
    return InputSpec(takes, "tensor", tuple(columns), dtype=dtype, device=device)


# ---- the table's columns as numbers ----


def numbers_of(table: pd.DataFrame, encoding: Encoding) -> NDArray[np.float64]:
    """A column for each feature, in the order of the schema: levels that are text are counted, from 0."""
    found = np.empty((len(table), len(encoding.schema.features)))
    for column_index, feature in enumerate(encoding.schema.features):
        column = table[feature.name]
        if not feature.is_numeric and not _has_numbers(feature):
            counted = {level: number for number, level in enumerate(feature.levels)}
            column = column.map(counted)
        found[:, column_index] = column.astype(np.float64)
    return found


def _decoded(x: Tensor, encoding: Encoding) -> Tensor:
    """The same of encoded rows (n, d), with a gradient: straight lines between neighbouring levels."""
    raw = x * torch.from_numpy(encoding.scale).to(x) + torch.from_numpy(encoding.shift).to(x)
    columns = []
    for feature, columns_of_feature in encoding.places:
        block = raw[:, columns_of_feature]
        if feature.is_numeric or not _has_numbers(feature):
            columns.append(block[:, 0])
        elif feature.kind == "categorical":
            zero = 0.0 if feature.zero_level is None else float(feature.zero_level)
            columns.append(zero + block @ (torch.tensor([float(level) for level in feature.levels]).to(block) - zero))
        else:
            columns.append(_between([float(level) for level in feature.levels], block[:, 0]))
    return torch.stack(columns, 1)


def _between(levels: list[float], position: Tensor) -> Tensor:
    """The level at a place; between two places, the straight line."""
    if len(levels) == 1:
        return position * 0 + levels[0]
    known = torch.tensor(levels).to(position)
    below = position.detach().floor().clamp(0, len(levels) - 2).long()
    return known[below] + (position - below) * (known[below + 1] - known[below])


def _has_numbers(feature: Feature) -> bool:
    return all(isinstance(level, Real) for level in feature.values)


def _check_numbers(encoding: Encoding) -> None:
    features = encoding.schema.features
    text = [feature.name for feature in features if feature.kind == "categorical" and not _has_numbers(feature)]
    if text:
        raise ValueError(
            f"the levels of column '{text[0]}' are no numbers and have no order, so a model cannot take the table as "
            "numbers; give a model of encoded rows (takes='encoded'), or one that takes the table (takes='table')"
        )


def how_to_fit(encoding: Encoding) -> str:
    """What a network whose columns are others can do, in words."""
    levels = sum(not feature.is_numeric for feature in encoding.schema.features)
    return (
        f"encoded rows have {encoding.width} columns, those of encoding.columns: numbers standardised, and {levels} "
        "features of levels one-hot or counted. A network does not say what its columns mean: train it on "
        "Encoding.fit(table, schema).encode(table), or give a model that takes the table itself: a pipeline (.skops), "
        "or in Python a function from a table to probabilities"
    )
