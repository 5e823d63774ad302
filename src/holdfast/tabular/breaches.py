"""Which rows of a table break a relation, and why."""

from __future__ import annotations

import numpy as np
import pandas as pd

from holdfast.tabular.checks import check_table
from holdfast.tabular.relations import Determines, Relation, explain


def breaches(table: pd.DataFrame, relations: tuple[Relation, ...]) -> pd.DataFrame:
    """row (its label in the table), relation and why, in the order of the rows; see `Schema.broken`."""
    check_table(table)
    found = []
    for number, relation in enumerate(relations):
        known = relation.commonest(table) if isinstance(relation, Determines) and not relation.rows else relation
        places = np.flatnonzero(~known.holds(table))
        cells = table[list(known.columns)].iloc[places].to_dict("records")
        found += [
            (place, number, table.index[place], str(known), explain(known, row))
            for place, row in zip(places.tolist(), cells, strict=True)
        ]
    found.sort(key=lambda one: one[:2])
    return pd.DataFrame([one[2:] for one in found], columns=["row", "relation", "why"])
