"""The tables that a command names: read, with their schema, and their rows matched by their labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from holdfast import datasets
from holdfast.datasets.prepared import prepare
from holdfast.explaining.file_audit import named_as_in_advice
from holdfast.families.recipe import PAPER_RECIPES, Recipe
from holdfast.tabular.encoding import Scaling
from holdfast.tabular.identifying import matched, row_labels
from holdfast.tabular.reading import read_table
from holdfast.tabular.schema import Schema


@dataclass(frozen=True, eq=False)
class Tables:
    """The data, the people who ask, and their counterfactuals, by the same labels."""

    table: pd.DataFrame
    known: pd.DataFrame  # the rows that models are trained on
    schema: Schema
    scaling: Scaling
    people: pd.DataFrame | None = None
    points: pd.DataFrame | str = ""  # a text is DiCE's, empty where there are none
    matched: str = ""  # how rows are matched, in a sentence
    recipe: Recipe | None = None  # the one that goes with a dataset
    test: pd.DataFrame | None = None  # rows of a dataset that no model is trained on


def read_tables(
    data: str | Path,
    *,
    people: str | Path | None = None,
    points: str | Path | None = None,
    schema: str | Path | None = None,
    label: str | None = None,
    scaling: Scaling = "standard",
    index: str | None = None,
) -> Tables:
    """One of our datasets by its name, or a file with the rows that the models were trained on; and who asks.

    A file's schema is read from ``schema``, or off the table, whose ``label`` must then be named. Rows are matched by
    the column ``index``, or by the one that the tables share; it is no feature unless the schema says so. Rows whose
    labels the other table does not know are an error: matched by their numbers, one person's counterfactual would be
    judged as another's.
    """
    dataset = prepare(str(data)) if _is_dataset(data) else None
    if dataset is None:
        table, described = _described(data, schema, label)
    else:
        table, described = dataset.table.rename_axis(index), dataset.schema
    who_ask = None if people is None else read_table(people)
    found = "" if points is None else _read_points(Path(points))
    features = {described} if isinstance(described, str) else {*described.names, described.label}
    key, how_matched = index, ""
    if isinstance(found, pd.DataFrame):
        names = ("data" if who_ask is None else "people", "counterfactuals")
        whose = named_as_in_advice(table if who_ask is None else who_ask, found)
        whose, found, how_matched = matched(whose, found, features, index, names, table)
        who_ask, key = None if who_ask is None else whose, _name_of(whose)
    elif who_ask is not None:
        who_ask, how_matched = row_labels(who_ask, features, index, "people", table)
        key = _name_of(who_ask)
    if dataset is not None:
        recipe, own_scaling = PAPER_RECIPES.get(dataset.card.name), dataset.encoding.scaling
        return Tables(
            dataset.table, dataset.train, dataset.schema, own_scaling, who_ask, found, how_matched, recipe, dataset.test
        )
    if key in table and (isinstance(described, str) or key not in described.names):
        table = table.set_index(key)  # what names a row never becomes a feature unsaid
    described = Schema.infer(table, described) if isinstance(described, str) else described
    return Tables(table, table, described, scaling, who_ask, found, how_matched)


def _is_dataset(name: str | Path) -> bool:
    if str(name) in datasets.DATASETS:
        return True
    if Path(name).is_dir():
        raise ValueError(f"{name} is a folder; name the .csv or .parquet file in it")
    if not Path(name).suffix:
        raise ValueError(
            f"no dataset is called '{name}' (there are {', '.join(datasets.DATASETS)}); for your own table, name "
            "its .csv or .parquet file"
        )
    return False


def _described(data: str | Path, schema: str | Path | None, label: str | None) -> tuple[pd.DataFrame, Schema | str]:
    """The table of a file with its schema, or the name of the label, with which a schema can be inferred."""
    table = read_table(data)
    if schema is not None:
        return table, Schema.load(schema)
    if label is None:
        raise ValueError(f"{data} needs a label: name its column (--label NAME), or give a schema file (--schema FILE)")
    return table, label


def _read_points(path: Path) -> pd.DataFrame | str:
    """A table, or the text that DiCE wrote."""
    return path.read_text(encoding="utf-8") if path.suffix == ".json" else read_table(path)


def _name_of(table: pd.DataFrame) -> str | None:
    return None if table.index.name is None else str(table.index.name)
