"""Columns that somebody made one-hot before training: "housing_own" is 1 where housing is "own"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature

# As pandas.get_dummies, scikit-learn and others write them. "=" is the encoding's own, whose columns are scaled.
BETWEEN = ("_", "__", ".", "-", ":", "|", " ")
MISSING = "nan"  # what pandas calls the column of missing values
_ODD = re.compile(r"[^0-9a-z]+")  # XGBoost takes no [ ] <, LightGBM writes _ for a space: people replace more


@dataclass(frozen=True)
class Source:
    """Where a model's column comes from: a feature as it is, or whether it has a level."""

    feature: str
    is_level: bool = False
    level: Any = None  # None with is_level: whether it is missing

    def of(self, table: pd.DataFrame) -> pd.Series[Any]:
        column = table[self.feature]
        if not self.is_level:
            return column
        has = column.isna() if self.level is None else column == self.level
        return has.astype(np.float64)


def one_hot(names: Sequence[str], encoding: Encoding) -> tuple[Source, ...] | None:
    """Where columns of these names come from; None unless all are known, and one of them is of a level."""
    exact: dict[str, set[Source]] = {}
    loose: dict[str, set[Source]] = {}
    for feature in encoding.schema.features:
        for name, source in _names(feature):
            exact.setdefault(name, set()).add(source)
            loose.setdefault(_plain(name), set()).add(source)
    found = [_only(exact.get(name)) or _only(loose.get(_plain(name))) for name in names]
    sources = tuple(source for source in found if source is not None)
    some_levels = any(source.is_level for source in sources)
    return sources if len(sources) == len(names) == len(set(sources)) and some_levels else None


def one_hot_table(table: pd.DataFrame, names: Sequence[str], sources: Sequence[Source]) -> pd.DataFrame:
    return pd.DataFrame({name: source.of(table) for name, source in zip(names, sources, strict=True)})


def _names(feature: Feature) -> Iterable[tuple[str, Source]]:
    yield feature.name, Source(feature.name)
    if feature.is_numeric:
        return
    for level in feature.values:
        for between in BETWEEN:
            yield f"{feature.name}{between}{level}", Source(feature.name, True, level)
    if feature.missing:
        yield f"{feature.name}_{MISSING}", Source(feature.name, True)


def _only(sources: set[Source] | None) -> Source | None:
    return next(iter(sources)) if sources is not None and len(sources) == 1 else None


def _plain(name: str) -> str:
    return _ODD.sub("_", name.lower()).strip("_")
