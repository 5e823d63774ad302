"""Which rows of a table break a relation, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from holdfast.tabular.checks import check_columns, check_feature, check_table, present
from holdfast.tabular.feature import Feature
from holdfast.tabular.relations import Determines, Relation, explain
from holdfast.tabular.rules import compiled


def breaches(table: pd.DataFrame, features: Mapping[str, Feature], relations: tuple[Relation, ...]) -> pd.DataFrame:
    """row (its label in the table), relation and why, in the order of the rows; see `Schema.broken`."""
    check_table(table)
    found = []
    for number, relation in enumerate(relations):
        check_columns(table, relation.columns)
        known = (
            relation.learn(table, commonest=True)
            if isinstance(relation, Determines) and not relation.rows
            else relation
        )
        named = tuple(features[name] for name in known.columns)
        values = np.stack([_values(table[feature.name], feature) for feature in named], axis=1)
        (rule,) = compiled((known,), named)
        row_indices = np.flatnonzero(~rule.holds(torch.from_numpy(values)).numpy())
        cells = table[list(known.columns)].iloc[row_indices].to_dict("records")
        found += [
            (row_index, number, table.index[row_index], str(known), explain(known, row))
            for row_index, row in zip(row_indices.tolist(), cells, strict=True)
        ]
    found.sort(key=lambda breach: breach[:2])
    return pd.DataFrame([breach[2:] for breach in found], columns=["row", "relation", "why"])


def _values(column: pd.Series[Any], feature: Feature) -> NDArray[np.float64]:
    """A number as it is, a level as its place, NaN where it is missing: as rules have it."""
    values, known = np.full(len(column), np.nan), present(column)
    if len(known):
        check_feature(known, feature)
        places = {level: level_index for level_index, level in enumerate(feature.values)}
        numbers = known if feature.is_numeric else [places[level] for level in known.tolist()]
        values[column.notna().to_numpy()] = np.asarray(numbers, dtype=np.float64)
    return values
