"""German Credit: 1,000 loan applicants of a German bank, good or bad risks. Ships with holdfast (CC BY 4.0)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.datasets.cards import Card
from holdfast.datasets.german_words import PHRASES
from holdfast.tabular.feature import Direction, Feature
from holdfast.tabular.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

# Code in the file -> what it says, per column, in the file's order. None: a number.
COLUMNS: dict[str, dict[str, str] | None] = {
    "checking_account": {"A11": "overdrawn", "A12": "below 200 DM", "A13": "200 DM or more", "A14": "none"},
    "duration_months": None,
    "credit_history": {
        "A30": "no earlier credits",
        "A31": "all repaid at this bank",
        "A32": "current ones repaid on time",
        "A33": "late in the past",
        "A34": "critical, or credits elsewhere",
    },
    "purpose": {
        "A40": "new car",
        "A41": "used car",
        "A42": "furniture",
        "A43": "radio or television",
        "A44": "household appliance",
        "A45": "repairs",
        "A46": "education",
        "A48": "retraining",
        "A49": "business",
        "A410": "other",
    },
    "credit_amount": None,
    "savings": {
        "A61": "below 100 DM",
        "A62": "100 to 500 DM",
        "A63": "500 to 1000 DM",
        "A64": "1000 DM or more",
        "A65": "unknown or none",
    },
    "employed_for": {
        "A71": "unemployed",
        "A72": "under 1 year",
        "A73": "1 to 4 years",
        "A74": "4 to 7 years",
        "A75": "7 years or more",
    },
    "instalment_rate": None,
    "status_and_sex": {
        "A91": "man, divorced or separated",
        "A92": "woman, married or divorced",
        "A93": "man, single",
        "A94": "man, married or widowed",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "resident_for": None,
    "property": {
        "A121": "real estate",
        "A122": "building savings or life insurance",
        "A123": "car or other",
        "A124": "unknown or none",
    },
    "age": None,
    "other_instalments": {"A141": "bank", "A142": "shops", "A143": "none"},
    "housing": {"A151": "rented", "A152": "owned", "A153": "free"},
    "existing_credits": None,
    "job": {
        "A171": "unskilled, not resident",
        "A172": "unskilled, resident",
        "A173": "skilled or official",
        "A174": "management or self-employed",
    },
    "dependants": None,
    "telephone": {"A191": "none", "A192": "in own name"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "risk": {"1": "good", "2": "bad"},
}

# What an applicant can arrange before coming back. The rest is who they are or what has already happened; the purpose
# stays as well: claiming another one is not advice. So do housing and property: nobody buys or sells a house for a
# loan. And the instalment rate, which is what amount, duration and income make of it: nobody can change it alone.
MUTABLE = {
    "checking_account",
    "duration_months",
    "credit_amount",
    "savings",
    "other_debtors",
    "other_instalments",
    "telephone",
}

# Levels that say the bank does not know, or that there is nothing: an applicant is not told to move there. Nor to take
# up another debt.
AVOID = {"checking_account": ("none",), "savings": ("unknown or none",), "other_instalments": ("bank", "shops")}

# One way only: to borrow more is no advice, and nobody is told to spend savings, to let a guarantor go or to give up a
# telephone. Levels are listed from less to more.
DIRECTION: dict[str, Direction] = {
    "checking_account": "rise",
    "credit_amount": "fall",
    "savings": "rise",
    "other_debtors": "rise",
    "telephone": "rise",
}


def _feature(name: str, levels: dict[str, str] | None) -> Feature:
    return Feature(
        name,
        "integer" if levels is None else "categorical",
        mutable=name in MUTABLE,
        levels=tuple((levels or {}).values()),
        avoid=AVOID.get(name, ()),
        direction=DIRECTION.get(name, "any"),
        phrase=PHRASES[name],
    )


def read(path: Path) -> pd.DataFrame:
    import pandas as pd

    raw = pd.read_csv(path, sep=" ", header=None, names=list(COLUMNS), dtype={"risk": str})
    for name, levels in COLUMNS.items():
        if levels is not None:
            raw[name] = raw[name].map(levels)
    return raw


CARD = Card(
    name="german",
    title="German Credit",
    file="german_credit/german.data",
    sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
    rows=1000,
    schema=Schema(
        tuple(_feature(name, levels) for name, levels in COLUMNS.items() if name != "risk"),
        label="risk",
        classes=("bad", "good"),
    ),
    read=read,
    split=(700, 200),
    scaling="standard",
    licence="CC BY 4.0",
    source="Hofmann, H. (1994). Statlog (German Credit Data). UCI Machine Learning Repository. doi:10.24432/C5NC77",
    home="https://archive.ics.uci.edu/dataset/144",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/german/german.data",
    packaged=Path(__file__).parent / "files" / "german.data",
)
