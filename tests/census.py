"""A small census made by code: every kind of feature and relation, missing values, people who break the rules."""

from __future__ import annotations

import numpy as np
import pandas as pd

from holdfast import Determines, Exclusive, Feature, Follows, Implies, Ordered, Schema, Sums

SCHOOLS = {"none": 4, "school": 9, "college": 13, "doctor": 16}
YEARS = {"none": 0, "school": 0, "college": 4, "doctor": 8, "unknown": 0}

CENSUS = Schema(
    (
        Feature("age", "integer", mutable=False, lower=17, upper=90),
        Feature("sex", "binary", mutable=False, levels=("female", "male")),
        Feature("education", "categorical", levels=(*SCHOOLS, "unknown"), direction="rise", avoid=("unknown",)),
        Feature("education_num", "integer"),
        Feature("marital", "categorical", levels=("single", "married"), zero_level="widowed", avoid=("widowed",)),
        Feature("role", "categorical", levels=("alone", "husband", "wife")),
        Feature("gain", "integer", step=50),
        Feature("loss", "integer", lower=0),
        Feature("paid", "integer", lower=0, direction="rise", missing=True),
        Feature("loans", "integer", lower=0, upper=20),
        Feature("salary", "real", lower=0),
        Feature("bonus", "real", lower=0),
        Feature("income", "real", lower=0),
        Feature("months", "integer", lower=0, upper=200, direction="rise"),
        Feature("on_file", "integer", mutable=False, lower=0, upper=400),
        Feature("least", "ordinal", levels=("low", "middle", "high")),
        Feature("grade", "ordinal", levels=("low", "middle", "high"), direction="rise"),
        Feature("health", "ordinal", levels=("bad", "fair", "good"), missing=True),
        Feature("region", "categorical", levels=("north", "south", "west"), missing=True),
        Feature("hours", "real", step=0.5, lower=0, upper=80, missing=True),
        Feature("debt", "real", missing=True),
        Feature("flag", "real", ranges=((0, 10), (99, 99))),
    ),
    label="rich",
    classes=("no", "yes"),
    relations=(
        Determines(("education",), "education_num"),
        Implies({"marital": ("married",)}, {"role": ("husband", "wife")}),
        Implies({"role": ("husband", "wife")}, {"marital": ("married",)}),
        Implies({"role": ("husband",)}, {"sex": ("male",)}),
        Implies({"hours": (60, np.inf)}, {"health": ("fair", "good")}),
        Exclusive(("gain", "loss")),
        Ordered(("paid", "loans")),
        Ordered(("least", "grade")),
        Sums("income", ("salary", "bonus")),
        Follows("age", "education", by=YEARS),
        Follows("on_file", "months", rate=1.0),
    ),
)


def census(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """People; one in twenty breaks a relation, one in ten has something missing."""
    draw = np.random.default_rng(seed)
    education = draw.choice(list(YEARS), rows, p=[0.2, 0.4, 0.25, 0.1, 0.05])
    number = np.array([SCHOOLS.get(level, 1) for level in education])
    sex, married = draw.choice(["female", "male"], rows), draw.random(rows) < 0.5
    salary, bonus = draw.gamma(4, 8, rows).round(2), np.where(draw.random(rows) < 0.4, draw.gamma(2, 3, rows), 0)
    loans, months, grade = draw.integers(0, 12, rows), draw.integers(0, 60, rows), draw.integers(0, 3, rows)
    gains = draw.random(rows)
    health = np.array(["bad", "fair", "good"], dtype=object)[draw.integers(0, 3, rows)]
    table = pd.DataFrame(
        {
            "age": draw.integers(17, 75, rows),
            "sex": sex,
            "education": education,
            "education_num": number,
            "marital": np.where(married, "married", draw.choice(["single", "widowed"], rows, p=[0.8, 0.2])),
            "role": np.where(married, np.where(sex == "male", "husband", "wife"), "alone"),
            "gain": np.where(gains < 0.2, draw.integers(1, 40, rows) * 50, 0),
            "loss": np.where(gains > 0.85, draw.integers(1, 900, rows), 0),
            "paid": draw.binomial(loans, 0.7).astype(float),
            "loans": loans,
            "salary": salary,
            "bonus": bonus.round(2),
            "income": salary + bonus.round(2),
            "months": months,
            "on_file": months + draw.integers(0, 100, rows),
            "least": np.array(["low", "middle", "high"])[draw.integers(0, grade + 1)],
            "grade": np.array(["low", "middle", "high"])[grade],
            "health": health,
            "region": draw.choice(["north", "south", "west"], rows, p=[0.5, 0.3, 0.2]).astype(object),
            "hours": np.where(health == "bad", draw.integers(0, 80, rows), draw.integers(40, 160, rows)) / 2,
            "debt": draw.gamma(2, 4, rows),
            "flag": np.where(draw.random(rows) < 0.1, 99.0, draw.uniform(0, 10, rows).round(3)),
        }
    )
    score = (number - 9) / 3 + (table["income"] - 34) / 16 + table["gain"] / 500 - table["loss"] / 300
    score += (table["grade"] == "high") + 0.5 * married - (table["health"] == "bad") + draw.normal(0, 0.7, rows)
    table["rich"] = np.where(score > 0.4, "yes", "no")
    return _with_breaches(_with_holes(table, draw), draw)


def _with_holes(table: pd.DataFrame, draw: np.random.Generator) -> pd.DataFrame:
    for name in ("paid", "health", "region", "hours", "debt"):
        table[name] = table[name].mask(pd.Series(draw.random(len(table)) < 0.05))
    return table


def _with_breaches(table: pd.DataFrame, draw: np.random.Generator) -> pd.DataFrame:
    """Some people whose row says what cannot be."""
    broken = np.flatnonzero(draw.random(len(table)) < 0.06)
    for place, row in enumerate(broken.tolist()):
        changes = (
            {"role": "alone", "marital": "married"},
            {"gain": 100, "loss": 40},
            {"paid": 9.0, "loans": 7},
            {"income": table.loc[row, "income"] + 5.0},
            {"least": "high", "grade": "low"},
            {"hours": 70.0, "health": "bad"},
            {"age": 95},
        )[place % 7]
        for name, value in changes.items():
            table.loc[row, name] = value
    return table
