"""Warfarin: 4,819 patients and whether the dose that suits them is low, medium or high."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.datasets.cards import Card
from holdfast.tabular.feature import Feature
from holdfast.tabular.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

# The file holds standardised numbers, to four decimals. What undoes it was fitted to the consortium's raw table.
DECADE_AT, DECADE_STEP = 0.0442, 0.6868  # where 60 to 69 years lie, and how far the next decade is
HEIGHT_MEAN, HEIGHT_SPREAD = 167.818, 10.538  # cm
WEIGHT_MEAN, WEIGHT_SPREAD = 77.740, 21.661  # kg

# The consortium's cut-offs, 21 and 49 mg a week, on the file's scale (the standardised square root of the dose).
LOW, HIGH = -0.5568, 1.1451

CYP2C9 = {"11": "*1/*1", "12": "*1/*2", "13": "*1/*3", "22": "*2/*2", "23": "*2/*3", "33": "*3/*3"}
YES_NO = ("no", "yes")

# A patient can lose weight, and the two medicines can be changed; the rest is given.
FEATURES = (
    Feature("age_decade", "integer", mutable=False),  # 6 is 60 to 69 years
    Feature("height_cm", "real", mutable=False),
    Feature("weight_kg", "real"),
    Feature("amiodarone", "binary", levels=YES_NO),
    Feature("enzyme_inducer", "binary", levels=YES_NO),
    Feature("race", "categorical", mutable=False, levels=("asian", "black", "white")),
    Feature("cyp2c9", "categorical", mutable=False, levels=tuple(CYP2C9.values())),
    Feature("vkorc1", "categorical", mutable=False, levels=("CC", "CT", "TT")),
)


def natural(scaled: pd.Series[Any], mean: float, spread: float) -> pd.Series[Any]:
    """The shortest decimal that scales to the number in the file: 70 kg rather than 70.000525."""
    exact = mean + spread * scaled
    shortest = exact.round(3)  # three decimals are enough for every row, fewer are for most
    for decimals in (2, 1, 0):
        shorter = exact.round(decimals)
        shortest = shorter.where(((shorter - mean) / spread).round(4) == scaled.round(4), shortest)
    return shortest


def read(path: Path) -> pd.DataFrame:
    import pandas as pd

    raw = pd.read_csv(path, dtype={"cyp2c9": str})
    return pd.DataFrame(
        {
            "age_decade": (6 + (raw["age"] - DECADE_AT) / DECADE_STEP).round().astype("int64"),
            "height_cm": natural(raw["height"], HEIGHT_MEAN, HEIGHT_SPREAD),
            "weight_kg": natural(raw["weight"], WEIGHT_MEAN, WEIGHT_SPREAD),
            "amiodarone": raw["amiodarone"].map(dict(enumerate(YES_NO))),
            "enzyme_inducer": raw["decr"].map(dict(enumerate(YES_NO))),
            "race": raw["race"],
            "cyp2c9": raw["cyp2c9"].map(CYP2C9),
            "vkorc1": raw["vkorc1"],
            "dose": ["low" if dose <= LOW else "high" if dose >= HIGH else "medium" for dose in raw["dose"]],
        }
    )


CARD = Card(
    name="warfarin",
    title="Warfarin dosing",
    file="warfarin/iwpc-scaled.csv",
    sha256="fc81402548298d703a92c63d84c8d2e2da266af7ccda35025d35f431934977f3",
    rows=4819,
    schema=Schema(FEATURES, label="dose", classes=("low", "medium", "high")),
    read=read,
    split=(3615, 1204),  # the paper gives none: three quarters and the rest
    scaling="standard-numeric",
    licence="CC BY-SA 4.0 (PharmGKB); this table's project is MIT",
    source="International Warfarin Pharmacogenetics Consortium (2009). N. Engl. J. Med. 360, 753-764; "
    "table of Yeom, S. et al. (2018), CSF",
    home="https://github.com/samuel-yeom/ml-privacy-csf18",
    url="https://raw.githubusercontent.com/samuel-yeom/ml-privacy-csf18/"
    "5b176c3025b02ce5853448dbe6365ce7f0eecbf4/data/iwpc-scaled.csv",
)
