"""Tables beside the datasets: how they are read, what their schema is, and which relations are stated by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from sklearn.datasets import load_breast_cancer, load_wine

from holdfast import Exclusive, Follows, Implies, Ordered, Schema, inspect
from holdfast.tabular.reading import read_table

Given = tuple[pd.DataFrame, Schema]
ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours",
    "country",
    "income",
]
SCHOOLS = [
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
]
YEARS = dict(zip(SCHOOLS, (0, 2, 4, 6, 7, 8, 9, 10, 10, 12, 12, 12, 14, 16, 18, 20), strict=True))  # at school
MARRIED = ("Married-civ-spouse", "Married-AF-spouse")


def breast_cancer() -> Given:
    """Measurements of cells, and the worst of each."""
    read = load_breast_cancer(as_frame=True)
    table = read.frame.assign(target=[read.target_names[label] for label in read.target])
    schema = inspect(table, "target").schema
    means = [name.removeprefix("mean ") for name in schema.names if name.startswith("mean ")]
    return table, _related(schema, *(Ordered((f"mean {name}", f"worst {name}")) for name in means))


def wine() -> Given:
    """The first grower's wines, or another's."""
    read = load_wine(as_frame=True)
    table = read.frame.assign(target=["first" if label == 0 else "other" for label in read.target])
    return table, inspect(table, "target").schema


def adult(file: str) -> Given:
    """The census table of 1994 as the UCI repository has it: no header, "?" for what is missing."""
    table = pd.read_csv(file, header=None, names=ADULT, skipinitialspace=True, na_values="?")
    schema = inspect(table, "income").schema
    schema = schema.revise("age", "fnlwgt", "sex", "race", "country", mutable=False)
    schema = schema.revise("education", levels=tuple(SCHOOLS), direction="rise")
    return table, _related(
        schema,
        Exclusive(("capital_gain", "capital_loss")),
        Implies({"marital": MARRIED[:1]}, {"relationship": ("Husband", "Wife", "Other-relative", "Own-child")}),
        Implies({"relationship": ("Husband", "Wife")}, {"marital": MARRIED}),
        Implies({"relationship": ("Husband",)}, {"sex": ("Male",)}),
        Implies({"relationship": ("Wife",)}, {"sex": ("Female",)}),
        Follows("age", "education", by=YEARS),
    )


def heart(file: str) -> Given:
    """Heart disease as Orange's .tab file has it: two lines about the columns after their names."""
    table = pd.read_csv(file, sep="\t", skiprows=[1, 2], na_values="?")
    schema = inspect(table, "diameter narrowing").schema
    return table, _related(schema.revise("age", "gender", mutable=False))


def given(tables: list[list[str]], adult_file: str | None, heart_file: str | None) -> Iterator[tuple[str, Given]]:
    """Those that scikit-learn ships with, and those that were given."""
    yield "breast_cancer", breast_cancer()
    yield "wine", wine()
    if adult_file is not None:
        yield "adult", adult(adult_file)
    if heart_file is not None:
        yield "heart", heart(heart_file)
    for file, label in tables:
        table = read_table(file)
        yield Path(file).stem, (table, inspect(table, label).schema)


def _related(schema: Schema, *relations: Exclusive | Ordered | Implies | Follows) -> Schema:
    """With the relations that the inspection has not found itself."""
    return schema.relate(*(relation for relation in relations if relation not in schema.relations))
