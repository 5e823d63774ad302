"""From a table to a matrix and back, and the Space the matrix lives in."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NoReturn

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.tabular.feature import Feature
from holdfast.tabular.people import People, learned_ranges
from holdfast.tabular.ranges import Ranges, gaps_of, ranges_of
from holdfast.tabular.related import Related
from holdfast.tabular.relations import Relation
from holdfast.tabular.schema import Schema
from holdfast.tabular.shares import PARTS, quantiles_of
from holdfast.tabular.space import Group, Space
from holdfast.tabular.wishes import Wish, personal_of
from holdfast.utils.memory import check_memory
from holdfast.utils.messages import plain
from holdfast.utils.settings import check_share, check_whole
from holdfast.utils.threads import one_thread

LOG = logging.getLogger(__name__)
Scaling = Literal["standard", "standard-numeric", "minmax", "minmax-global", "none"]
Measure = Literal["deviation", "percentile"]
MEASURES: tuple[Measure, ...] = ("deviation", "percentile")
SCALINGS: tuple[Scaling, ...] = ("standard", "standard-numeric", "minmax", "minmax-global", "none")
Matrix = NDArray[np.float64]
LARGEST_WHOLE = np.nextafter(2.0**63, 0)  # whole number that a table keeps
SIGNS = {"any": 0, "rise": 1, "fall": -1}
MOST_KNOWN = 20_000  # training rows that are kept, to know what people are like
COLUMNS_AT_ONCE = 1024  # encoded columns that are worked on at a time: a categorical column may make many thousands


@dataclass(frozen=True, eq=False, repr=False)
class Encoding:
    """Raw columns ↔ numbers: encoded = (number − shift) / scale, one-hot for categories. `Encoding.fit` makes one.

    Scalings: "standard" (zero mean, unit variance, one-hot columns too, as in the paper), "standard-numeric"
    (numbers only, 0/1 columns left alone), "minmax" (each column to [0, 1]), "minmax-global" (one minimum and
    maximum for the whole matrix) and "none". A constant column is shifted but not scaled.

    Missing values, where the schema allows them, are a group with no level on, or else a number near the mean that no
    row has (``fill``); they decode to missing values again. Means, spreads and ranges are those of the other rows.

    Attributes:
        schema: the columns, with the rows of every `Determines` learned
        scaling: one of the scalings above
        shift: (d,)
        scale: (d,)
        lower: (d,) the smallest raw number that a person may move to
        upper: (d,) the largest
        ranges: for each feature, where a number may move to; () for levels
        fill: (d,) the raw number that a missing value is encoded as; NaN in columns that have none
        known: training rows with their label, 20,000 of them if there are more
        plausible: the share of real people who pass for one; None if nobody need do
        percentiles: (101, d) the 0, 1, ..., 100 % quantiles; of a 0/1 column, off to on

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> encoding
        Encoding(20 features -> 61 columns, standard)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> x.shape, y.shape
        (torch.Size([1000, 61]), torch.Size([1000]))
        >>> encoding.decode(x).equals(table[list(schema.names)])  # nothing is lost
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Appendix B.1: one-hot columns, and the scaling of each
    dataset. The paper has neither missing values nor constraints.
    """

    schema: Schema
    scaling: Scaling
    shift: Matrix
    scale: Matrix
    lower: Matrix
    upper: Matrix
    ranges: tuple[Ranges, ...]
    fill: Matrix
    known: pd.DataFrame | None = None
    plausible: float | None = None
    percentiles: Matrix | None = None

    @classmethod
    def fit(
        cls, table: pd.DataFrame, schema: Schema, scaling: Scaling = "standard", plausible: float | None = 0.95
    ) -> Encoding:
        """Learn scales and ranges from a table, and, where it has the label, who the people of each class are.

        Args:
            table: the training rows, with or without the label
            schema: what its columns mean
            scaling: how numbers are scaled, see `Encoding`
            plausible: the share of real people who pass for one. With None, an answer may be a person who does not
                exist
        """
        if scaling not in SCALINGS:
            raise ValueError(f"scaling is {scaling!r}; choose one of {', '.join(SCALINGS)}")
        if plausible is not None:
            check_share("plausible", plausible)
        if not isinstance(schema, Schema):
            raise TypeError(f"expected a Schema, got {type(schema).__name__}; Schema.load reads one from a file")
        schema.check(table)
        schema = schema.learned(table)
        _check_size(table, schema, 0)
        _check_known(table, schema)
        low, high, mean, spread = _statistics(table, schema)
        ranges = _ranges(table, schema, low, high)
        lower, upper = _bounds(schema, ranges)
        shift, scale = _shift_and_scale(low, high, mean, spread, scaling, _is_number(schema))
        _check_encodable(schema, scaling, (low, high), (lower, upper), (shift, scale))
        fill = _fills(table, schema, mean, shift, scale)
        LOG.info("encoded %d rows of %d columns as %d numbers each", len(table), len(schema.names), len(shift))
        known = None if plausible is None else _known(table, schema)
        percentiles = _percentiles(table, schema)
        return cls(schema, scaling, shift, scale, lower, upper, ranges, fill, known, plausible, percentiles)

    @property
    def width(self) -> int:
        """How many encoded columns there are, d."""
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
        """The rows of a table as numbers: (n, d). Other columns of the table, the label among them, are passed over.

        Refuses a number that is too large for ``dtype`` once it is encoded, and rows that do not fit into memory.
        """
        x = self.encode_unchecked(table, dtype)
        for start in range(0, self.width, COLUMNS_AT_ONCE):
            if not bool(x[:, start : start + COLUMNS_AT_ONCE].isfinite().all()):
                self._refuse_infinite(table, x)
        return x

    def _refuse_infinite(self, table: pd.DataFrame, x: Tensor) -> NoReturn:
        row, column = torch.nonzero(~x.isfinite())[0].tolist()
        name = next(feature.name for feature, columns in self.places if columns.start <= column < columns.stop)
        raise ValueError(
            f"column '{name}', row {plain(table.index[row])!r}: {plain(table[name].iloc[row])!r} is too large a number "
            f"to encode as {str(x.dtype).removeprefix('torch.')}; correct it or drop the row"
        )

    def encode_unchecked(self, table: pd.DataFrame, dtype: torch.dtype = torch.float32) -> Tensor:
        """The same, but numbers too large for ``dtype`` become infinite: for whoever tells which rows they are in."""
        if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise TypeError(f"dtype is {dtype}; rows are encoded as numbers with fractions, such as torch.float32")
        self.schema.check(table)
        _check_size(table, self.schema, dtype.itemsize)
        x = torch.empty(len(table), self.width, dtype=dtype)
        with np.errstate(over="ignore"):
            for columns, numbers in _blocks(table, self.schema):
                if self._fillable[columns].any():
                    np.copyto(numbers, self.fill[columns], where=np.isnan(numbers))
                numbers -= self.shift[columns]
                numbers /= self.scale[columns]
                x[:, columns] = torch.from_numpy(numbers)
        return x

    def labels(self, table: pd.DataFrame) -> Tensor:
        """The class of each row as a number: (n,), the place of its label in ``schema.classes``."""
        self.schema.check(table, labelled=True)
        return torch.tensor(_codes(table[self.schema.label], self.schema.classes))

    def decode(self, x: Tensor) -> pd.DataFrame:
        """Encoded rows (n, d) as a table again: whole numbers rounded, a group to the level that is most on.

        A real number comes back as the shortest decimal that encodes to the same bits.
        """
        raw = self.raw(x)
        return pd.DataFrame(
            {feature.name: _decoded(raw[:, i], feature) for i, feature in enumerate(self.schema.features)}
        )

    def raw(self, x: Tensor) -> Matrix:
        """What `decode` puts into its table, without making one: (n, number of features).

        Of a number its value, NaN where it is missing; of levels the place among ``feature.values``, one more where
        missing.
        """
        if not isinstance(x, Tensor):
            raise TypeError(f"expected encoded rows as a tensor, got {type(x).__name__}; use torch.from_numpy")
        if x.ndim != 2 or x.shape[1] != self.width:
            raise ValueError(f"expected a matrix of {self.width} columns, got shape {tuple(x.shape)}")
        if not x.isfinite().all():
            raise ValueError("the rows to decode hold numbers that are not finite; decode only rows that were found")
        encoded = x.detach().cpu().numpy()
        numbers = encoded.astype(np.float64) * self.scale + self.shift
        real = [columns.start for feature, columns in self.places if feature.kind == "real"]
        numbers[:, real] = self._shortest(numbers[:, real], encoded[:, real], real)
        numbers[self._missing(x)] = np.nan
        raw = np.empty((len(x), len(self.schema.features)))
        for column, (feature, columns) in enumerate(self.places):
            raw[:, column] = _read_off(numbers[:, columns], feature)
        return raw

    def reads_like(self, other: Encoding) -> bool:
        """Whether an encoded row is the same person by both."""
        if self is other:
            return True
        same = np.array_equal(self.shift, other.shift) and np.array_equal(self.scale, other.scale)
        return same and self.schema == other.schema

    @cached_property
    def _fillable(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.fill)

    def _missing(self, x: Tensor) -> NDArray[np.bool_]:
        """Where encoded rows hold what a missing number is encoded as: (n, d). Compared as float32, in which no row of
        the table that the encoding was fitted to has the same."""
        columns = np.flatnonzero(self._fillable)
        there = np.zeros(tuple(x.shape), dtype=bool)
        if len(columns):
            encoded = torch.tensor([number for _, number in self._missing_numbers()], dtype=torch.float64)
            dtype = x.dtype if x.dtype.itemsize < 4 else torch.float32
            there[:, columns] = (x.detach().cpu()[:, columns].to(dtype) == encoded.to(dtype)).numpy()
        return there

    def in_units(self, encoded: NDArray[Any]) -> Matrix:
        """Every encoded column (n, d) before scaling, as the shortest decimals that encode to the same bits."""
        numbers = encoded.astype(np.float64) * self.scale + self.shift
        return self._shortest(numbers, encoded, list(range(self.width)))

    def _shortest(self, numbers: Matrix, encoded: NDArray[Any], places: list[int]) -> Matrix:
        """The decimals of fewest places that encode to the same bits: 12.5 rather than 12.50000037."""
        shortest = numbers.copy()
        with np.errstate(over="ignore", invalid="ignore"):  # a huge number has no shorter decimal
            for decimals in range(12, -1, -1):
                shorter = numbers.round(decimals) + 0.0  # + 0.0 turns -0.0 into 0.0
                same = ((shorter - self.shift[places]) / self.scale[places]).astype(encoded.dtype) == encoded
                shortest = np.where(same, shorter, shortest)
        return shortest

    def target(self, label: Any, rows: int) -> Tensor:
        """One wanted class for every row: ``encoding.target("good", len(x))``."""
        check_whole("rows", rows, least=0)
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
        for feature, columns in self.places:
            mutable[columns] = feature.mutable
            direction[columns] = 0 if feature.kind == "categorical" else SIGNS[feature.direction]
            grid[columns] = feature.grid or 0
            if feature.kind == "categorical":
                groups.append(_group(feature, columns))
        return Space(
            lower=torch.from_numpy((self.lower - self.shift) / self.scale),
            upper=torch.from_numpy((self.upper - self.shift) / self.scale),
            mutable=torch.from_numpy(mutable),
            direction=torch.from_numpy(direction),
            step=torch.from_numpy(grid),
            shift=torch.from_numpy(self.shift),
            scale=torch.from_numpy(self.scale),
            groups=tuple(groups),
            gaps=tuple(self._gaps()),
            missing=tuple(self._missing_numbers()),
            related=self.related_by(self.schema.relations),
            people=self.people,
            weight=self._difficulty,
        )

    def related_by(self, relations: tuple[Relation, ...]) -> Related | None:
        """The columns that some relations join; None where there are no relations."""
        return Related.of(relations, self.places, self.shift, self.scale, self.upper - self.lower, self.fill)

    @property
    def _difficulty(self) -> Tensor | None:
        """How hard the schema says that a move of each column is: (d,); None where it says nothing."""
        hard = np.concatenate([np.full(feature.width, float(feature.difficulty)) for feature in self.schema.features])
        return None if (hard == 1).all() else torch.from_numpy(hard)

    def space_for(
        self, wishes: Wish | Sequence[Wish | None], rows: int | None = None, by: Measure = "deviation"
    ) -> Space:
        """The space in which each person has a wish of their own, or None; row i of a search is the i-th of them.

        One wish for everybody: ``encoding.space_for(Wish(keep=("housing",)), rows=len(x))``.
        """
        return replace(self.space_by(by), personal=personal_of(wishes, rows, self))

    def space_by(self, measure: Measure) -> Space:
        """The same space with moves measured in encoded units ("deviation", as in `space`) or by "percentile".

        By percentile, a number costs the share of the training rows between its values before and after, those that
        have one of the two counted half, and a changed level costs 1, both times the feature's difficulty. `MinCost`
        looks for the cheapest among valid points by that cost; its relaxed search, and other methods', goes by
        deviation.
        """
        if measure not in MEASURES:
            raise ValueError(f"moves are measured by {' or by '.join(map(repr, MEASURES))}, got {measure!r}")
        if measure == "deviation":
            return self.space
        if self.percentiles is None:
            raise ValueError("this encoding knows no percentiles; Encoding.fit(table, schema) learns them")
        return replace(self.space, quantiles=torch.from_numpy((self.percentiles - self.shift) / self.scale))

    @cached_property
    def people(self) -> People | None:
        """Whom an answer must resemble; None where nobody said who has which class, or nobody need be resembled."""
        if self.known is None or self.plausible is None or not len(self.known):
            return None
        with one_thread():
            x, y = self.encode_unchecked(self.known, torch.float64), self.labels(self.known)
            columns = [
                (feature, x[:, block.start].numpy() * self.scale[block.start] + self.shift[block.start])
                for feature, block in self.places
                if feature.is_numeric
            ]
            return People.fit(
                x,
                y,
                self.places,
                self.shift,
                self.scale,
                len(self.schema.classes),
                inside_folds=learned_ranges(columns),
                share=self.plausible,
            )

    def _missing_numbers(self) -> Iterator[tuple[int, float]]:
        """Encoded columns with a number that says "missing", and that number."""
        for column in np.flatnonzero(self._fillable).tolist():
            yield column, float((self.fill[column] - self.shift[column]) / self.scale[column])

    def _gaps(self) -> Iterator[tuple[int, float, float]]:
        """What lies between the ranges, in encoded units: column, low end, high end."""
        for (_, columns), ranges in zip(self.places, self.ranges, strict=True):
            for gap in gaps_of(ranges):
                low, high = ((end - self.shift[columns.start]) / self.scale[columns.start] for end in gap)
                yield columns.start, float(low), float(high)


def _known(table: pd.DataFrame, schema: Schema) -> pd.DataFrame | None:
    """The rows whose class is known, or some of them."""
    if schema.label not in table.columns:
        LOG.info("the table has no column '%s': what people of a class are like cannot be learned", schema.label)
        return None
    known = table.loc[table[schema.label].isin(schema.classes).to_numpy(), [*schema.names, schema.label]]
    if len(known) > MOST_KNOWN:
        known = known.iloc[np.sort(np.random.RandomState(0).permutation(len(known))[:MOST_KNOWN])]
    return known.copy()


def _places(schema: Schema) -> list[tuple[Feature, slice]]:
    """Which encoded columns belong to which feature."""
    ends = np.cumsum([feature.width for feature in schema.features])
    return [
        (feature, slice(int(end) - feature.width, int(end))) for feature, end in zip(schema.features, ends, strict=True)
    ]


def _group(feature: Feature, columns: slice) -> Group:
    return Group(
        tuple(range(columns.start, columns.stop)),
        optional=feature.zero_level is not None or feature.missing,
        avoid=tuple(columns.start + feature.levels.index(level) for level in feature.avoid if level in feature.levels),
        direction=SIGNS[feature.direction],
        avoid_none=feature.zero_level in feature.avoid or feature.missing,
    )


def _is_number(schema: Schema) -> NDArray[np.bool_]:
    return np.concatenate([np.full(feature.width, feature.is_numeric) for feature in schema.features])


def _check_size(table: pd.DataFrame, schema: Schema, itemsize: int) -> None:
    """Refuse what would not fit: the result, one block of columns with a copy, and a column for each feature."""
    at_once = 2 * min(schema.width, COLUMNS_AT_ONCE) + len(schema.features)
    most = max(schema.features, key=lambda feature: feature.width)
    rare = f"{most.width} columns are for the levels of '{most.name}': join the rare ones, or " * (most.width > 1)
    check_memory(
        f"encoding {len(table)} rows as {schema.width} columns",
        len(table) * (schema.width * itemsize + at_once * 8),
        f"{rare}take fewer rows at a time",
    )


def _check_known(table: pd.DataFrame, schema: Schema) -> None:
    numbers = [feature.name for feature in schema.features if feature.missing and feature.kind != "categorical"]
    empty = [name for name in numbers if table[name].isna().all()]
    if empty:
        raise ValueError(f"columns {empty} have missing values and no others; leave them out of the schema")


def _blocks(table: pd.DataFrame, schema: Schema) -> Iterator[tuple[slice, Matrix]]:
    """The encoded columns before scaling, some at a time: which they are, and their numbers (n, some)."""
    raw = [(columns, _raw(table[feature.name], feature)) for feature, columns in _places(schema)]
    # No block of one column: numpy would add up its rows in another order.
    edges = np.linspace(0, schema.width, -(-schema.width // COLUMNS_AT_ONCE) + 1).astype(int).tolist()
    for start, end in pairwise(edges):
        numbers = np.zeros((len(table), end - start))
        for columns, values in raw:
            _fill(numbers, slice(columns.start - start, columns.stop - start), values)
        yield slice(start, end), numbers


def _raw(column: pd.Series[Any], feature: Feature) -> NDArray[Any]:
    """One value for each row: the number itself, or the place of the level; NaN or -1 where it is missing."""
    if feature.is_numeric:
        if feature.missing:
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        return column.to_numpy(dtype=np.float64)
    there = column.notna().to_numpy()
    codes = np.full(len(column), -1)
    codes[there] = _codes(column[there], feature.values)
    return codes if feature.kind == "categorical" else np.where(there, codes, np.nan)


def _fill(numbers: Matrix, block: slice, values: NDArray[Any]) -> None:
    """Write a feature where it belongs, as far as that lies within this block of columns."""
    if values.dtype == np.float64:
        if 0 <= block.start < numbers.shape[1]:
            numbers[:, block.start] = values
        return
    # The level written as zeros is the last of feature.values: its column would be the first of the next feature.
    columns = block.start + values
    inside = (values >= 0) & (columns >= 0) & (columns < min(block.stop, numbers.shape[1]))
    numbers[np.flatnonzero(inside), columns[inside]] = 1


def _statistics(table: pd.DataFrame, schema: Schema) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Of every encoded column before scaling: the smallest and the largest number, mean and standard deviation."""
    parts = []
    with np.errstate(over="ignore", invalid="ignore"):  # `_check_encodable` says what went wrong
        for _, numbers in _blocks(table, schema):
            of_block = [numbers.min(axis=0), numbers.max(axis=0), numbers.mean(axis=0), numbers.std(axis=0)]
            for column in np.flatnonzero(np.isnan(of_block[0])).tolist():
                known = numbers[~np.isnan(numbers[:, column]), column]
                for part, value in zip(of_block, (known.min(), known.max(), known.mean(), known.std()), strict=True):
                    part[column] = value
            parts.append(of_block)
    low, high, mean, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
    return low, high, mean, spread


def _codes(column: pd.Series[Any], levels: tuple[Any, ...]) -> NDArray[np.int64]:
    # A plain dictionary, for which 1, 1.0 and True are one level, as they are for Schema.check.
    places = {level: level_index for level_index, level in enumerate(levels)}
    return np.array([places[level] for level in column.tolist()], dtype=np.int64)


def _read_off(numbers: Matrix, feature: Feature) -> Matrix | NDArray[np.int64]:
    """The encoded columns of a feature before scaling -> its numbers, or the places of its levels."""
    first: Matrix = numbers[:, 0]
    if feature.kind == "real":
        return first
    if feature.kind == "integer":
        return np.rint(first).clip(-LARGEST_WHOLE, LARGEST_WHOLE)
    if feature.kind == "categorical":
        places = len(feature.values) + feature.missing
        off = np.full((len(numbers), places - feature.width), 0.5)  # the zero level wins below a half
        on: NDArray[np.int64] = np.concatenate([numbers, off], axis=1).argmax(axis=1)
        return on
    there = ~np.isnan(first)
    codes = np.rint(np.where(there, first, 0)).astype(np.int64).clip(0, len(feature.levels) - 1)
    codes[~there] = len(feature.levels)
    return codes


def _decoded(raw: Matrix, feature: Feature) -> pd.Series[Any]:
    """A column of `Encoding.raw` as a column of a table; pandas keeps whole numbers beside missing ones as floats."""
    if feature.is_numeric:
        return pd.Series(raw.astype(np.int64) if feature.kind == "integer" and not feature.missing else raw)
    values = (*feature.values, *([None] if feature.missing else []))
    return pd.Series([values[code] for code in raw.astype(np.int64)], dtype=object if feature.missing else None)


def _shift_and_scale(
    low: Matrix, high: Matrix, mean: Matrix, spread: Matrix, scaling: Scaling, is_number: NDArray[np.bool_]
) -> tuple[Matrix, Matrix]:
    with np.errstate(over="ignore"):
        match scaling:
            case "standard":
                shift, scale = mean, spread
            case "standard-numeric":
                shift, scale = np.where(is_number, mean, 0), np.where(is_number, spread, 1)
            case "minmax":
                shift, scale = low, high - low
            case "minmax-global":
                shift, scale = np.full_like(low, low.min()), np.full_like(low, high.max() - low.min())
            case "none":
                shift, scale = np.zeros_like(low), np.ones_like(low)
    constant = (high == low) & (scaling != "minmax-global")
    return shift, np.where(constant | (scale == 0), 1.0, scale)


def _ranges(table: pd.DataFrame, schema: Schema, low: Matrix, high: Matrix) -> tuple[Ranges, ...]:
    """What the schema says; where it is silent, where the rows are."""
    found: list[Ranges] = []
    for feature, columns in _places(schema):
        if not feature.is_numeric or feature.ranges:
            found.append(tuple((float(first), float(last)) for first, last in feature.ranges))
            continue
        lower = low[columns][0] if feature.lower is None else feature.lower
        upper = high[columns][0] if feature.upper is None else feature.upper
        if lower > upper:
            raise ValueError(
                f"feature '{feature.name}': bounds {lower:g} to {upper:g} are empty; the rows "
                f"go from {low[columns][0]:g} to {high[columns][0]:g}: give both lower and upper"
            )
        found.append(ranges_of(_raw(table[feature.name], feature), feature.grid, feature.lower, feature.upper))
    return tuple(found)


def _percentiles(table: pd.DataFrame, schema: Schema) -> Matrix:
    """Of numbers and of levels that have an order; from off to on in the columns of other levels."""
    found = np.linspace(np.zeros(schema.width), np.ones(schema.width), PARTS + 1)
    for feature, columns in _places(schema):
        if feature.is_numeric or feature.kind == "ordinal":
            found[:, columns.start] = quantiles_of(_raw(table[feature.name], feature))
    return found


def _fills(table: pd.DataFrame, schema: Schema, mean: Matrix, shift: Matrix, scale: Matrix) -> Matrix:
    """What the missing numbers of each column are encoded as; NaN where there are none to be."""
    fill = np.full(schema.width, np.nan)
    for feature, columns in _places(schema):
        if feature.missing and feature.kind != "categorical":
            column = columns.start
            scaled_by = float(mean[column]), float(shift[column]), float(scale[column])
            with np.errstate(over="ignore"):
                found = _unused_number(_raw(table[feature.name], feature), feature.grid, *scaled_by)
            if found is None:
                raise ValueError(
                    f"column '{feature.name}': no number near its mean is left to encode missing values as float32; "
                    "choose another scaling, or fill the missing values"
                )
            fill[column] = found
    return fill


def _unused_number(values: Matrix, grid: float | None, mean: float, shift: float, scale: float) -> float | None:
    """A number near the mean that no row has once it is encoded as float32: for numbers on a grid, between two steps.

    Of other numbers it is the mean and a little, so that it is no round number either.
    """
    known = values[~np.isnan(values)]
    least, most = float(known.min()), float(known.max())
    unit = grid or (most / 4 - least / 4) or 1.0
    taken = np.unique(((known - shift) / scale).astype(np.float32))
    for attempt in range(64):
        away = (-1) ** attempt * (2.0 ** (attempt // 2) - 1)  # 0, -0, 1, -1, 3, -3, ...
        number = (np.floor(mean / grid) + away + 0.5) * grid if grid else mean + (1 + away) * 1.2345e-5 * unit
        steps = np.array([number - grid / 2, number + grid / 2] if grid else [])
        used = np.append(taken, ((steps - shift) / scale).astype(np.float32))
        encoded = np.float32((number - shift) / scale)
        if least - unit <= number <= most + unit and not (used == encoded).any():
            return float(number)
    return None


def _bounds(schema: Schema, ranges: tuple[Ranges, ...]) -> tuple[Matrix, Matrix]:
    """The ends of the ranges, and all the levels there are."""
    lower, upper = np.zeros(schema.width), np.ones(schema.width)
    for (feature, columns), feature_ranges in zip(_places(schema), ranges, strict=True):
        if feature.is_numeric:
            lower[columns], upper[columns] = feature_ranges[0][0], feature_ranges[-1][1]
        elif feature.kind != "categorical":
            upper[columns] = max(1, len(feature.levels) - 1)
    return lower, upper


Pair = tuple[Matrix, Matrix]


def _check_encodable(schema: Schema, scaling: Scaling, rows: Pair, bounds: Pair, scaled: Pair) -> None:
    """Refuse what would become constant, or infinite, as encoded rows have it: in float32."""
    (low, high), (lower, upper), (shift, scale) = rows, bounds, scaled
    with np.errstate(all="ignore"):
        lost = _lost(rows, shift, scale, 0)
        out_of_reach = _lost(bounds, shift, scale, np.where(_is_number(schema), 0, 8))
    if not np.isfinite(scale[0]) and scaling == "minmax-global":  # not all columns are to blame
        lost &= (low == low.min()) | (high == high.max())
        out_of_reach &= lost
    problems = []
    for feature, columns in _places(schema):
        ends = f"{low[columns].min():.12g} to {high[columns].max():.12g}"
        if feature.is_numeric and lost[columns].any():
            problems.append(
                f"column '{feature.name}' goes from {ends}: with scaling={scaling!r} it would become constant or "
                "infinite as float32; divide or multiply it first, subtract its smallest number, or choose another "
                "scaling"
            )
        elif out_of_reach[columns].any() and (
            _is_bounded(feature) if feature.is_numeric else np.isfinite(scale[columns]).all()
        ):
            what = f"bounds {lower[columns][0]:g} to {upper[columns][0]:g}" if feature.is_numeric else "its levels"
            problems.append(
                f"feature '{feature.name}': {what} could not be told apart as float32 with scaling={scaling!r}, where "
                f"the rows go from {ends}; choose bounds nearer to the rows, or another scaling"
            )
    if problems:
        raise ValueError("\n".join(problems))


def _is_bounded(feature: Feature) -> bool:
    """Whether somebody chose the bounds. Those that the rows show may be one number beside an outlier."""
    return feature.lower is not None or feature.upper is not None or bool(feature.ranges)


def _lost(ends: Pair, shift: Matrix, scale: Matrix, roundings: int | NDArray[Any]) -> NDArray[np.bool_]:
    """Where two ends that differ lie no further apart than so many roundings once encoded, or are not finite."""
    first, last = (((end - shift) / scale).astype(np.float32) for end in ends)
    rounding = np.finfo(np.float32).eps * np.maximum(abs(first), abs(last))
    same: NDArray[np.bool_] = (ends[0] < ends[1]) & (last - first <= roundings * rounding)
    return same | ~np.isfinite(first) | ~np.isfinite(last)
