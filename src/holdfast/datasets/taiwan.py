"""Taiwan: 30,000 credit card customers of 2005, and whether they defaulted in the month that followed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.datasets.cards import Card
from holdfast.tabular.feature import Feature
from holdfast.tabular.relations import Implies
from holdfast.tabular.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

# Code in the file -> what it says. The codes without a meaning are in the data but not in its description.
LEVELS: dict[str, dict[int, str]] = {
    "sex": {1: "man", 2: "woman"},
    "education": {
        0: "undocumented 0",
        1: "graduate school",
        2: "university",
        3: "high school",
        4: "other",
        5: "undocumented 5",
        6: "undocumented 6",
    },
    "marriage": {0: "undocumented 0", 1: "married", 2: "single", 3: "other"},
    "default": {0: "no default", 1: "default"},
}


def _months(name: str, months: tuple[int, ...], lower: float | None = None) -> tuple[Feature, ...]:
    """One number a month, the latest first. Only the latest is still open to change: the others are history."""
    return tuple(Feature(f"{name}{month}", "integer", mutable=month == months[0], lower=lower) for month in months)


# A customer who comes back has another latest month: status, bill and payment. The bank may set another limit.
FEATURES = (
    Feature("limit_bal", "integer", lower=0, step=10_000),  # Taiwan dollars; all but three limits are on this grid
    Feature("sex", "binary", mutable=False, levels=tuple(LEVELS["sex"].values())),
    Feature("education", "categorical", mutable=False, levels=tuple(LEVELS["education"].values())),
    Feature("marriage", "categorical", mutable=False, levels=tuple(LEVELS["marriage"].values())),
    Feature("age", "integer", mutable=False),
    *_months("pay_", (0, 2, 3, 4, 5, 6)),  # months behind; 0 and below: not behind. The file has no pay_1
    *_months("bill_amt", (1, 2, 3, 4, 5, 6)),  # below 0: the customer has paid too much
    *_months("pay_amt", (1, 2, 3, 4, 5, 6), lower=0),
)
MUCH = 10**8  # Taiwan dollars, more than any bill

# Who pays only a part of the bill, or is two months behind or more, has a bill.
RELATIONS = (
    Implies({"pay_0": (0, 0)}, {"bill_amt1": (1, MUCH)}),
    Implies({"pay_0": (2, 9)}, {"bill_amt1": (1, MUCH)}),
)
SCHEMA = Schema(FEATURES, label="default", classes=("default", "no default"), relations=RELATIONS)


def read(path: Path) -> pd.DataFrame:
    import pandas as pd

    raw = pd.read_csv(path).rename(columns=str.lower).rename(columns={"default payment next month": "default"})
    for name, levels in LEVELS.items():
        raw[name] = raw[name].map(levels)
    return raw[[*SCHEMA.names, SCHEMA.label]]


CARD = Card(
    name="taiwan",
    title="Taiwanese Credit",
    file="taiwan_credit/default_of_credit_card_clients.csv",
    sha256="4edce6da569b2c30788a85fd98a9bafb1a983e8ca1a7aac875dd7ff853cbd0bb",
    rows=30000,
    schema=SCHEMA,
    read=read,
    split=(22500, 7500),
    scaling="minmax",
    licence="CC BY 4.0",
    source="Yeh, I-C. (2009). Default of Credit Card Clients. UCI Machine Learning Repository. doi:10.24432/C55S3H",
    home="https://archive.ics.uci.edu/dataset/350",
    preparation="(an .xls), convert it with "
    'pandas.read_excel(xls, header=1).to_csv(csv, index=False, lineterminator="\\n")',
)
