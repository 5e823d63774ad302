"""From a table to a matrix and back, and the Space the matrix lives in."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.tabular.feature import Feature
from holdfast.tabular.schema import Schema
from holdfast.tabular.space import Group, Space

LOG = logging.getLogger(__name__)
Scaling = Literal["standard", "standard-numeric", "minmax", "minmax-global", "none"]
SCALINGS: tuple[Scaling, ...] = ("standard", "standard-numeric", "minmax", "minmax-global", "none")
Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Encoding:
    """Raw columns ↔ numbers: encoded = (number − shift) / scale, one-hot for categories.

    Scalings: "standard" (zero mean, unit variance, one-hot columns too, as in the paper), "standard-numeric"
    (numbers only, 0/1 columns left alone), "minmax" (each column to [0, 1]), "minmax-global" (one minimum and
    maximum for the whole matrix) and "none". A constant column is shifted but not scaled.
    """

    schema: Schema
    scaling: Scaling
    shift: Matrix  # (d,)
    scale: Matrix  # (d,)
    lower: Matrix  # (d,) in raw numbers
    upper: Matrix  # (d,)

    @classmethod
    def fit(cls, table: pd.DataFrame, schema: Schema, scaling: Scaling = "standard") -> Encoding:
        if scaling not in SCALINGS:
            raise ValueError(f"scaling is {scaling!r}; choose one of {', '.join(SCALINGS)}")
        if not isinstance(schema, Schema):
            raise TypeError(f"expected a Schema, got {type(schema).__name__}; Schema.load reads one from a file")
        schema.check(table)
        numbers = _numbers(table, schema)
        shift, scale = _shift_and_scale(numbers, scaling, _is_number(schema))
        lower, upper = _bounds(numbers, schema)
        LOG.info("encoded %d rows of %d columns as %d numbers each", len(table), len(schema.names), numbers.shape[1])
        return cls(schema, scaling, shift, scale, lower, upper)

    @property
    def width(self) -> int:
        return len(self.shift)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the encoded columns: 'age', 'purpose=car', ..."""
        return tuple(
            name
            for feature in self.schema.features
            for name in (
                [f"{feature.name}={level}" for level in feature.levels]
                if feature.kind == "categorical"
                else [feature.name]
            )
        )

    def encode(self, table: pd.DataFrame, dtype: torch.dtype = torch.float32) -> Tensor:
        """(n, d). Other columns of the table, the label among them, are passed over."""
        self.schema.check(table)
        return torch.from_numpy((_numbers(table, self.schema) - self.shift) / self.scale).to(dtype)

    def labels(self, table: pd.DataFrame) -> Tensor:
        """(n,) class indices, in the order of ``schema.classes``."""
        self.schema.check(table, labelled=True)
        return torch.tensor(_codes(table[self.schema.label], self.schema.classes))

    def decode(self, x: Tensor) -> pd.DataFrame:
        """Back to raw columns: whole numbers rounded, a group to the level that is most on.

        A real number comes back as the shortest decimal that encodes to the same bits.
        """
        if x.ndim != 2 or x.shape[1] != self.width:
            raise ValueError(f"expected a matrix of {self.width} columns, got shape {tuple(x.shape)}")
        encoded = x.detach().cpu().numpy()
        numbers = encoded.astype(np.float64) * self.scale + self.shift
        for feature, place in self.places:
            if feature.kind == "real":
                column = place.start
                numbers[:, column] = self._shortest(numbers[:, column], encoded[:, column], column)
        return pd.DataFrame({feature.name: _decoded(numbers[:, place], feature) for feature, place in self.places})

    def _shortest(self, numbers: Matrix, encoded: NDArray[Any], place: int) -> Matrix:
        """The decimals of fewest places that encode to the same bits: 12.5 rather than 12.50000037."""
        shortest = numbers.copy()
        for decimals in range(12, -1, -1):
            shorter = numbers.round(decimals) + 0.0  # + 0.0 turns -0.0 into 0.0
            same = ((shorter - self.shift[place]) / self.scale[place]).astype(encoded.dtype) == encoded
            shortest = np.where(same, shorter, shortest)
        return shortest

    def target(self, label: Any, rows: int) -> Tensor:
        """One wanted class for every row: ``encoding.target("good", len(x))``."""
        if label not in self.schema.classes:
            raise ValueError(f"no class {label!r}; the classes are {', '.join(map(repr, self.schema.classes))}")
        return torch.full((rows,), self.schema.classes.index(label))

    @property
    def places(self) -> list[tuple[Feature, slice]]:
        """Which encoded columns belong to which feature."""
        return _places(self.schema)

    def __repr__(self) -> str:
        return f"Encoding({len(self.schema.features)} features -> {self.width} columns, {self.scaling})"

    @cached_property
    def space(self) -> Space:
        """What the schema allows, in encoded units (float64; a search casts it to the dtype of its rows)."""
        mutable, direction, grid = np.ones(self.width, dtype=bool), np.zeros(self.width), np.zeros(self.width)
        groups = []
        for feature, place in self.places:
            mutable[place] = feature.mutable
            direction[place] = {"any": 0, "rise": 1, "fall": -1}[feature.direction]
            grid[place] = feature.grid or 0
            if feature.kind == "categorical":
                groups.append(_group(feature, place))
        return Space(
            lower=torch.from_numpy((self.lower - self.shift) / self.scale),
            upper=torch.from_numpy((self.upper - self.shift) / self.scale),
            mutable=torch.from_numpy(mutable),
            direction=torch.from_numpy(direction),
            step=torch.from_numpy(grid),
            shift=torch.from_numpy(self.shift),
            scale=torch.from_numpy(self.scale),
            groups=tuple(groups),
        )


def _places(schema: Schema) -> list[tuple[Feature, slice]]:
    """Which encoded columns belong to which feature."""
    ends = np.cumsum([feature.width for feature in schema.features])
    return [
        (feature, slice(int(end) - feature.width, int(end))) for feature, end in zip(schema.features, ends, strict=True)
    ]


def _group(feature: Feature, place: slice) -> Group:
    return Group(
        tuple(range(place.start, place.stop)),
        optional=feature.zero_level is not None,
        avoid=tuple(place.start + feature.levels.index(level) for level in feature.avoid if level in feature.levels),
        avoid_none=feature.zero_level in feature.avoid,
    )


def _is_number(schema: Schema) -> NDArray[np.bool_]:
    return np.concatenate([np.full(feature.width, feature.is_numeric) for feature in schema.features])


def _numbers(table: pd.DataFrame, schema: Schema) -> Matrix:
    return np.concatenate([_feature_numbers(table[feature.name], feature) for feature in schema.features], axis=1)


def _feature_numbers(column: pd.Series[Any], feature: Feature) -> Matrix:
    if feature.is_numeric:
        return column.to_numpy(dtype=np.float64)[:, None]
    codes = _codes(column, feature.values)
    if feature.kind != "categorical":
        return codes[:, None].astype(np.float64)
    # The level written as zeros is the last of feature.values: its column is cut off.
    return np.eye(len(feature.values))[codes][:, : feature.width]


def _codes(column: pd.Series[Any], levels: tuple[Any, ...]) -> NDArray[np.int64]:
    # A plain dictionary, for which 1, 1.0 and True are one level, as they are for Schema.check.
    places = {level: place for place, level in enumerate(levels)}
    return np.array([places[level] for level in column.tolist()], dtype=np.int64)


def _decoded(numbers: Matrix, feature: Feature) -> pd.Series[Any]:
    if feature.kind == "real":
        return pd.Series(numbers[:, 0])
    if feature.kind == "integer":
        return pd.Series(np.rint(numbers[:, 0]).astype(np.int64))
    if feature.kind == "categorical":
        off = np.full((len(numbers), len(feature.values) - feature.width), 0.5)  # the zero level wins below a half
        codes = np.concatenate([numbers, off], axis=1).argmax(axis=1)
    else:
        codes = np.rint(numbers[:, 0]).astype(np.int64).clip(0, len(feature.levels) - 1)
    return pd.Series([feature.values[code] for code in codes])


def _shift_and_scale(numbers: Matrix, scaling: Scaling, is_number: NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    match scaling:
        case "standard":
            shift, scale = numbers.mean(axis=0), numbers.std(axis=0)
        case "standard-numeric":
            shift, scale = np.where(is_number, numbers.mean(axis=0), 0), np.where(is_number, numbers.std(axis=0), 1)
        case "minmax":
            shift, scale = low, high - low
        case "minmax-global":
            shift, scale = np.full_like(low, low.min()), np.full_like(low, high.max() - low.min())
        case "none":
            shift, scale = np.zeros_like(low), np.ones_like(low)
    constant = (high == low) & (scaling != "minmax-global")
    return shift, np.where(constant | (scale == 0), 1.0, scale)


def _bounds(numbers: Matrix, schema: Schema) -> tuple[Matrix, Matrix]:
    """What the schema says; where it is silent, what the rows show, and all the levels there are."""
    lower, upper = numbers.min(axis=0), numbers.max(axis=0)
    for feature, place in _places(schema):
        if feature.is_numeric:
            lower[place] = lower[place] if feature.lower is None else feature.lower
            upper[place] = upper[place] if feature.upper is None else feature.upper
            if (lower[place] > upper[place]).any():
                raise ValueError(
                    f"feature '{feature.name}': bounds {lower[place][0]:g} to {upper[place][0]:g} are empty; the rows "
                    f"go from {numbers[:, place].min():g} to {numbers[:, place].max():g}: give both lower and upper"
                )
        else:
            lower[place], upper[place] = 0, max(1, len(feature.levels) - 1) if feature.kind != "categorical" else 1
    return lower, upper
