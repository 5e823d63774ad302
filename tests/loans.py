"""A small table of loans with a model for it: what the tests of the front door explain."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import holdfast as hf

NUMBERS = ["income", "savings", "duration", "age"]
FEATURES = [*NUMBERS, "housing"]


@cache
def _loans() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    rows = 400
    table = pd.DataFrame(
        {
            "id": 8000 + np.arange(rows),
            "income": draw.integers(10, 90, rows),
            "savings": draw.integers(0, 60, rows) * 100,
            "duration": draw.integers(1, 12, rows) * 6,
            "age": draw.integers(19, 75, rows),
            "housing": draw.choice(["rent", "own", "free"], rows, p=[0.4, 0.4, 0.2]),
        }
    )
    score = table["income"] / 20 + table["savings"] / 1500 - table["duration"] / 15 + (table["housing"] == "own")
    noise = draw.normal(0, 0.7, rows)
    return table.assign(approved=np.where(score + noise > score.median(), "yes", "no"))


def loans() -> pd.DataFrame:
    return _loans().copy()


def train_rows() -> pd.DataFrame:
    return loans().iloc[:300]


def applicants(count: int = 40) -> pd.DataFrame:
    """Rows that no model was trained on, without their label."""
    return loans().iloc[300 : 300 + count].drop(columns="approved").reset_index(drop=True)


def schema() -> hf.Schema:
    return hf.Schema(
        (
            hf.Feature("income", "integer", direction="rise"),
            hf.Feature("savings", "integer", direction="rise", step=100),
            hf.Feature("duration", "integer", step=6),
            hf.Feature("age", "integer", mutable=False),
            hf.Feature("housing", "categorical", levels=("free", "own", "rent")),
        ),
        "approved",
        ("no", "yes"),
    )


def estimator() -> object:
    """Not fitted."""
    columns = make_column_transformer((StandardScaler(), NUMBERS), (OneHotEncoder(), ["housing"]))
    return make_pipeline(columns, LogisticRegression())


@cache
def model() -> object:
    table = train_rows()
    return estimator().fit(table[FEATURES], table["approved"])  # type: ignore[attr-defined]


@cache
def shared_explainer(refits: int = 24) -> hf.Explainer:
    """With so many refits: made once for all tests of a process, and never changed by one."""
    changes = hf.changes.bootstrap(refits)
    return hf.Explainer(model(), train_rows(), want="yes", schema=schema(), retrain=changes, workers=1)


@cache
def shared_advice(people: int, refits: int = 24, plans: int = 1) -> hf.Advice:
    """Searched once for all tests of a process."""
    return shared_explainer(refits).explain(applicants(people), hold=0.9, plans=plans)


def write_files(folder: Path, people: int) -> Path:
    """train.csv, people.csv, schema.toml and model.skops, as a user has them."""
    train_rows().to_csv(folder / "train.csv", index=False)
    applicants(people).to_csv(folder / "people.csv", index=False)
    schema().save(folder / "schema.toml")
    skops.io.dump(model(), folder / "model.skops")
    return folder
