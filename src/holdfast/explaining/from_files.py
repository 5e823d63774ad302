"""What `holdfast explain` is given, as an Explainer takes it: tables from files or datasets, models from files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from holdfast import datasets
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES, Recipe
from holdfast.tabular.encoding import Scaling
from holdfast.tabular.reading import read_table
from holdfast.tabular.schema import Schema


@dataclass(frozen=True, eq=False)
class Known:
    """The rows that a model was trained on, and what is known about them."""

    table: pd.DataFrame
    schema: Schema | Path | None
    scaling: Scaling
    recipe: Recipe | None = None  # how the paper trains a network on them
    people: pd.DataFrame | None = None  # rows that no model was trained on


def read_known(data: str | Path, schema: str | Path | None = None, scaling: Scaling | None = None) -> Known:
    """One of our datasets by its name, or a file."""
    if str(data) in datasets.DATASETS:
        own = prepare(str(data), scaling)
        given = own.schema if schema is None else Path(schema)
        return Known(own.train, given, own.encoding.scaling, PAPER_RECIPES.get(own.card.name), own.test)
    if not Path(data).suffix and not Path(data).exists():
        raise ValueError(
            f"no dataset is called '{data}' (there are {', '.join(datasets.DATASETS)}); for your own table, name its "
            ".csv or .parquet file"
        )
    return Known(read_table(data), None if schema is None else Path(schema), scaling or "standard")


def read_people(people: str | Path | None, known: Known, rows: int | None) -> pd.DataFrame:
    """Those of a file, or the rows of the dataset that no model was trained on; so many of them."""
    if people is not None:
        return read_table(people).iloc[:rows]
    if known.people is None:
        raise ValueError("a table of your own does not say whom advice is for; name them: --people FILE")
    return known.people.iloc[:rows]
