"""CTG: 2,126 cardiotocograms, recordings of a fetus's heart rate, judged normal or not by three obstetricians."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.datasets.cards import Card
from holdfast.tabular.feature import Feature
from holdfast.tabular.relations import Ordered, Sums
from holdfast.tabular.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

# In the sheet's order; its name for each stands behind. All are measurements of one recording and nobody sets
# them: a counterfactual says which recording would have been judged otherwise, so all of them may move. Some
# follow from others: the width of the histogram is its maximum less its minimum.
FEATURES = (
    Feature("baseline_rate", "integer", lower=0),  # LB, beats per minute
    Feature("accelerations", "real", lower=0),  # AC, per second, as the next five
    Feature("movements", "real", lower=0),  # FM
    Feature("contractions", "real", lower=0),  # UC
    Feature("light_decelerations", "real", lower=0),  # DL
    Feature("severe_decelerations", "real", lower=0),  # DS
    Feature("prolonged_decelerations", "real", lower=0),  # DP
    Feature("abnormal_short_term", "integer", lower=0, upper=100),  # ASTV, percent of the time
    Feature("short_term_variability", "real", lower=0),  # MSTV
    Feature("abnormal_long_term", "integer", lower=0, upper=100),  # ALTV, percent of the time
    Feature("long_term_variability", "real", lower=0),  # MLTV
    Feature("histogram_width", "integer", lower=0),  # Width, and on to the end: the histogram of the rate
    Feature("histogram_min", "integer", lower=0),  # Min
    Feature("histogram_max", "integer", lower=0),  # Max
    Feature("histogram_peaks", "integer", lower=0),  # Nmax
    Feature("histogram_zeros", "integer", lower=0),  # Nzeros
    Feature("histogram_mode", "integer", lower=0),  # Mode
    Feature("histogram_mean", "integer", lower=0),  # Mean
    Feature("histogram_median", "integer", lower=0),  # Median
    Feature("histogram_variance", "integer", lower=0),  # Variance
    Feature("histogram_tendency", "integer", lower=-1, upper=1),  # Tendency: leans left, neither, right
)

RELATIONS = (
    Sums("histogram_max", ("histogram_min", "histogram_width")),
    Ordered(("histogram_min", "histogram_mode", "histogram_max")),
    Ordered(("histogram_min", "histogram_mean", "histogram_max")),
    Ordered(("histogram_min", "histogram_median", "histogram_max")),
)


def read(path: Path) -> pd.DataFrame:
    import pandas as pd
    import xlrd

    # With xlrd itself: pandas is giving up its xlrd engine, and the public file is an .xls.
    with xlrd.open_workbook(path) as book:
        rows = [[cell.value for cell in row] for row in book.sheet_by_name("Data").get_rows()]
    # The first row numbers the columns in use: 1 to 21 the features, 22 a finer diagnosis, 23 the state (NSP).
    column_of = {int(number): column for column, number in enumerate(rows[0]) if number != ""}
    recordings = [row for row in rows[2:] if row[column_of[23]] != ""]  # below them come totals without a state
    columns = {
        feature.name: pd.Series(
            [row[column_of[number]] for row in recordings], dtype="int64" if feature.kind == "integer" else "float64"
        )
        for number, feature in enumerate(FEATURES, start=1)
    }
    state = ["normal" if row[column_of[23]] == 1 else "suspect or pathologic" for row in recordings]
    return pd.DataFrame({**columns, "state": state})


CARD = Card(
    name="ctg",
    title="Cardiotocography",
    file="ctg/CTG.xls",
    sha256="24ae23958e877937146673385b4a853cfb46b4ac28c2a410db340da9a4f3ff08",
    rows=2126,
    schema=Schema(FEATURES, label="state", classes=("suspect or pathologic", "normal"), relations=RELATIONS),
    read=read,
    split=(1700, 425),
    scaling="minmax",
    licence="CC BY 4.0",
    source="Campos, D. and Bernardes, J. (2000). Cardiotocography. UCI Machine Learning Repository. "
    "doi:10.24432/C51S4N",
    home="https://archive.ics.uci.edu/dataset/193",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/00193/CTG.xls",
)
