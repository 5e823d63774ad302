"""What a fitted estimator sees of a table, and which of its numbers come from which feature of the schema."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.tabular.encoding import Encoding, Matrix
from holdfast.tabular.feature import Feature

Transform = Callable[[pd.DataFrame], Matrix]  # a table in the user's units -> (n, m) as the final estimator sees it
See = Callable[[pd.DataFrame], Any]  # the same before it becomes numbers: a table, an array or a sparse matrix
PEOPLE_TRIED = 8  # known rows in which every feature is changed in turn
NUMBERS_TRIED = 32  # values of a number that are tried in each of them
NUMBERS_AT_ONCE = 20_000_000  # numbers of a matrix that are made at once


def as_fitted(table: pd.DataFrame, encoding: Encoding) -> pd.DataFrame:
    """The table with the dtypes of the rows that the encoding knows: categories, truth values, floats.

    A value that the dtype cannot hold leaves its column as it is, so that the model can say what it thinks of it.
    """
    if encoding.known is None:
        return table
    wanted = encoding.known.dtypes
    changed = {
        name: _cast(table[name], encoding.known[name])
        for name in encoding.schema.names
        if table[name].dtype != wanted[name] or pd.api.types.is_object_dtype(wanted[name])
    }
    return table.assign(**changed) if changed else table


def _cast(column: pd.Series[Any], like: pd.Series[Any]) -> pd.Series[Any]:
    missing = column.isna()
    if pd.api.types.is_object_dtype(like.dtype):
        gone = like[like.isna()]
        empty = gone.iloc[0] if len(gone) else np.nan  # an encoder may tell None from NaN
        return column.astype(object).where(~missing, empty) if missing.any() else column.astype(object)
    if isinstance(like.dtype, pd.CategoricalDtype) and not column[~missing].isin(like.dtype.categories).all():
        return column
    try:
        cast = column.astype(like.dtype)
        return cast if _same(column, cast) else column
    except (TypeError, ValueError):
        return column


def _same(column: pd.Series[Any], cast: pd.Series[Any]) -> bool:
    """Whether a cast lost nothing. Floats may be rounded: so they are when the model is asked about a real table."""
    there = column.notna().to_numpy()
    if not (there == cast.notna().to_numpy()).all():
        return False
    whole = pd.api.types.is_integer_dtype(cast.dtype) or pd.api.types.is_bool_dtype(cast.dtype)
    return not whole or bool((column[there].to_numpy(np.float64) == cast[there].to_numpy(np.float64)).all())


def seen(estimator: Any, rows: See) -> tuple[See, Any]:
    """What the last step of a fitted estimator sees of a table, and that last step.

    ``rows`` makes of a table what the estimator is given; a pipeline's earlier steps hand over a table, an array or a
    sparse matrix.
    """
    before, final = steps(chosen(estimator))
    if not before:
        return rows, final

    def see(table: pd.DataFrame) -> Any:
        given = rows(table)
        for step in before:
            given = step.transform(given)
        return given

    return see, final


def chosen(estimator: Any) -> Any:
    """The estimator that a search over settings chose and asks; any other is itself."""
    return chosen(estimator.best_estimator_) if hasattr(estimator, "best_estimator_") else estimator


def is_of(value: Any, module: str, *names: str) -> bool:
    """Whether a value is of one of these classes of a library; it is not where the library is not even loaded."""
    known = sys.modules.get(module)
    return known is not None and isinstance(value, tuple(getattr(known, name) for name in names))


def held(model: Any, part: str) -> Any:
    """An attribute, if there is one; one that says why it is not there is not there."""
    try:
        return getattr(model, part, None)
    except Exception:  # whatever a property of theirs raises
        return None


def steps(estimator: Any) -> tuple[list[Any], Any]:
    """The fitted steps before the last, and the last."""
    if not is_of(estimator, "sklearn.pipeline", "Pipeline"):
        return [], estimator
    kept = [step for _, step in estimator.steps if step not in (None, "passthrough")]
    before, final = steps(chosen(kept[-1]))
    return [*kept[:-1], *before], final


def names_in_schema(names: Sequence[str], encoding: Encoding) -> list[str] | None:
    """The features that columns of these names are; None where one is none. LightGBM keeps "a b" as "a_b"."""
    known = {name.replace(" ", "_"): name for name in encoding.schema.names}
    known |= {name: name for name in encoding.schema.names}
    return [known[name] for name in names] if set(names) <= set(known) else None


def takes_categories(model: Any) -> bool:
    """Whether a model is of a library that takes categories and no text."""
    return type(chosen(model)).__module__.startswith(("xgboost", "lightgbm"))


def in_categories(table: pd.DataFrame, encoding: Encoding) -> pd.DataFrame:
    """Text as the categories that pandas makes of it: what a library of boosted trees must have been given."""
    if encoding.known is None:
        return table
    text = [name for name in table if _is_text(table[name].dtype)]
    return table.assign(**{str(name): _cast(table[name], encoding.known[name].astype("category")) for name in text})


def _is_text(dtype: Any) -> bool:
    kinds = pd.api.types
    return not (isinstance(dtype, pd.CategoricalDtype) or kinds.is_numeric_dtype(dtype) or kinds.is_bool_dtype(dtype))


def columns_of(model: Any) -> list[str] | None:
    """The columns that an estimator or a booster was fitted on; None if it was fitted on an array."""
    for name in ("feature_names_in_", *(("feature_names", "feature_name") if takes_categories(model) else ())):
        names = held(model, name)
        if names is not None:
            return [str(each) for each in (names() if callable(names) else names)]
    return None


def width_of(model: Any) -> int | None:
    """How many columns it was fitted on."""
    for name in ("n_features_in_", *(("num_features", "num_feature") if takes_categories(model) else ())):
        width = held(model, name)
        if width is not None:
            return int(width() if callable(width) else width)
    return None


def numbers(rows: Any, absent: float = 0.0) -> Matrix:
    """Rows as the numbers that an estimator reads: categories by their code, a missing value as NaN.

    ``absent`` is what an entry that a sparse matrix leaves out stands for.
    """
    if isinstance(rows, pd.DataFrame):
        columns = [_numbers_of(rows.iloc[:, column_index]) for column_index in range(rows.shape[1])]
        return np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))
    if hasattr(rows, "tocoo"):
        entries = rows.tocoo()
        matrix = np.full(entries.shape, absent)
        matrix[entries.row, entries.col] = entries.data
        return matrix
    array = np.asarray(rows)
    if array.dtype == object:
        array = np.where(pd.isna(array), np.nan, array)
    return np.asarray(array, dtype=np.float64)


def _numbers_of(column: pd.Series[Any]) -> Matrix:
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy(dtype=np.float64)
        return np.where(codes < 0, np.nan, codes)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Where the columns of an estimator's matrix come from: each from one feature of the schema, or from none."""

    transform: Transform
    encoding: Encoding
    source: NDArray[np.int64]  # (m,) the feature that each column depends on, −1 if on none

    @classmethod
    def of(cls, transform: Transform, encoding: Encoding) -> Inputs | None:
        """Found by changing one feature at a time; None where a column depends on several, or where nothing is known.

        What is tried are some rows, so whatever is built on this is to be compared with the model.
        """
        if encoding.known is None or not len(encoding.known):
            return None
        depends = _depends(transform, encoding)
        if (depends.sum(axis=0) > 1).any():
            return None
        return cls(transform, encoding, np.where(depends.any(axis=0), depends.argmax(axis=0), -1))

    @cached_property
    def typical(self) -> pd.DataFrame:
        """One known row, which has the other values while one changes."""
        assert self.encoding.known is not None
        return self.encoding.known[list(self.encoding.schema.names)].iloc[:1]

    def at(self, values: Mapping[int, Sequence[Any] | Matrix]) -> Matrix:
        """The columns for given values of some features, one per row: (n, m). The other features are typical.

        Shorter lists are continued by their first value.
        """
        rows = max(map(len, values.values()))
        columns = {}
        for index, given in values.items():
            feature = self.encoding.schema.features[index]
            columns[feature.name] = _column(feature, given)[np.arange(rows) * (np.arange(rows) < len(given))]
        return self.transform(_repeated(self.typical, rows).assign(**columns))

    @cached_property
    def of_levels(self) -> dict[int, Matrix]:
        """For every feature of levels, the columns for each level and for a missing value: (levels, m)."""
        values = {index: _values(feature) for index, feature in self._features if not feature.is_numeric}
        rows = self.at(values) if values else self.transform(self.typical)
        return {index: rows[: len(levels)] for index, levels in values.items()}

    @cached_property
    def of_missing(self) -> Matrix:
        """The columns where every number is missing that may be: (m,)."""
        values = {index: [None] for index, feature in self._features if feature.is_numeric and feature.missing}
        found: Matrix = (self.at(values) if values else self.transform(self.typical))[0]
        return found

    @property
    def _features(self) -> list[tuple[int, Feature]]:
        return list(enumerate(self.encoding.schema.features))


def _people(encoding: Encoding) -> pd.DataFrame:
    """Some known rows, and one that has nothing that can be missing."""
    assert encoding.known is not None
    table = encoding.known[list(encoding.schema.names)]
    chosen_rows = table.iloc[np.linspace(0, len(table) - 1, min(PEOPLE_TRIED, len(table))).astype(int)]
    gone = [feature for feature in encoding.schema.features if feature.missing]
    if not gone:
        return chosen_rows
    bare = _repeated(table.iloc[:1], 1).assign(**{feature.name: _column(feature, [None]) for feature in gone})
    return pd.concat([chosen_rows, as_fitted(bare, encoding)], ignore_index=True)


def _depends(transform: Transform, encoding: Encoding) -> NDArray[np.bool_]:
    """Which columns change when each of the features is given other values in turn: (number of features, m)."""
    assert encoding.known is not None
    people, known, features = _people(encoding), encoding.known, encoding.schema.features
    tried = [
        _some_numbers(known[feature.name], feature) if feature.is_numeric else _values(feature) for feature in features
    ]
    who = np.repeat(np.arange(len(features)), [len(values) for values in tried])  # the feature of each value tried
    what = np.array([*chain(*tried), None], dtype=object)[:-1]
    most, depends = max(1, NUMBERS_AT_ONCE // (len(people) * (encoding.width + 1))), []
    for start in range(0, len(who), most):
        tried_feature, value = (part[start : start + most].repeat(len(people)) for part in (who, what))
        columns = {}
        for number, feature in enumerate(features):
            known_values = people[feature.name].to_numpy(dtype=object)
            changed = np.where(tried_feature == number, value, np.tile(known_values, len(value) // len(people)))
            columns[feature.name] = _column(feature, np.concatenate([known_values, changed]))
        out = transform(pd.DataFrame(columns))
        home, out = out[: len(people)], out[len(people) :].reshape(-1, len(people), out.shape[1])
        depends.append(~((out == home) | (np.isnan(out) & np.isnan(home))).all(axis=1))
    found = np.concatenate(depends)  # (values tried, m)
    return np.stack([found[who == number].any(axis=0) for number in range(len(features))])


def _values(feature: Feature) -> list[Any]:
    return [*feature.values, *([None] if feature.missing else [])]


def _some_numbers(column: pd.Series[Any], feature: Feature) -> list[Any]:
    known = np.unique(column.dropna().to_numpy(dtype=np.float64))
    chosen_numbers = known[np.linspace(0, len(known) - 1, min(NUMBERS_TRIED, len(known))).astype(int)]
    return [*chosen_numbers.tolist(), *([None] if feature.missing else [])]


def _column(feature: Feature, values: Sequence[Any] | Matrix) -> Any:
    """Values of a feature as `Encoding.decode` gives them."""
    if not feature.is_numeric:
        return pd.array(list(values), dtype=object) if feature.missing else pd.Series(list(values)).array
    array = np.asarray(values)
    if array.dtype == np.dtype(object):
        array = np.where(pd.isna(array), np.nan, array)
    floats = array.astype(np.float64)
    if feature.kind == "integer" and not feature.missing:
        return floats.astype(np.int64)
    return floats


def _repeated(people: pd.DataFrame, times: int) -> pd.DataFrame:
    """Every row so many times, one after another."""
    return people.iloc[np.repeat(np.arange(len(people)), times)].reset_index(drop=True)


def quietly(transform: Transform) -> Transform:
    """A transform that is asked about values that nobody has: what it warns of concerns nobody."""

    def quiet(table: pd.DataFrame) -> Matrix:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return transform(table)

    return quiet
