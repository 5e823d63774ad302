"""HELOC: 10,459 applicants for a home equity line of credit, and whether they fell 90 days behind within two years."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.datasets.cards import Card
from holdfast.tabular.feature import Feature
from holdfast.tabular.relations import Follows, Implies, Ordered
from holdfast.tabular.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

# -9 (no record), -8 (no usable trade or inquiry) and -7 (condition not met) stay in the numbers, as in the paper.
# Bounds begin at 0, so nobody is advised to become a code; who starts at one may stay there. Of the two columns
# of codes, -9 is written as all zeros: that gives the paper's 40 columns.
#
# What may change is what an applicant can still do: borrow less, ask for less credit, wait. What has happened
# stays. So does the time since the last delinquency, although it grows: nearly half the rows hold -7, "never",
# and for them a rise to 0 would mean a first delinquency.
FEATURES = (
    # Somebody else's score of the same person: it follows from the rest, and "raise your score" is not advice.
    Feature("ExternalRiskEstimate", "integer", mutable=False, lower=0),
    Feature("MSinceOldestTradeOpen", "integer", mutable=False, lower=0),
    Feature("MSinceMostRecentTradeOpen", "integer", lower=0, direction="rise"),
    Feature("AverageMInFile", "integer", mutable=False, lower=0),
    Feature("NumSatisfactoryTrades", "integer", lower=0, direction="rise"),
    Feature("NumTrades60Ever2DerogPubRec", "integer", mutable=False, lower=0),
    Feature("NumTrades90Ever2DerogPubRec", "integer", mutable=False, lower=0),
    Feature("PercentTradesNeverDelq", "integer", mutable=False, lower=0, upper=100),
    Feature("MSinceMostRecentDelq", "integer", mutable=False, lower=0),
    Feature("MaxDelq2PublicRecLast12M", "categorical", mutable=False, levels=tuple(range(10)), zero_level=-9),
    Feature("MaxDelqEver", "categorical", mutable=False, levels=tuple(range(1, 10)), zero_level=-9),
    Feature("NumTotalTrades", "integer", lower=0, direction="rise"),
    Feature("NumTradesOpeninLast12M", "integer", lower=0),
    Feature("PercentInstallTrades", "integer", lower=0, upper=100),
    Feature("MSinceMostRecentInqexcl7days", "integer", lower=0, direction="rise"),
    Feature("NumInqLast6M", "integer", lower=0),
    Feature("NumInqLast6Mexcl7days", "integer", lower=0),
    # Percent of the limit or of the first loan, and above 100 where somebody owes more than that.
    Feature("NetFractionRevolvingBurden", "integer", lower=0),
    Feature("NetFractionInstallBurden", "integer", lower=0),
    Feature("NumRevolvingTradesWBalance", "integer", lower=0),
    Feature("NumInstallTradesWBalance", "integer", lower=0),
    Feature("NumBank2NatlTradesWHighUtilization", "integer", lower=0),
    Feature("PercentTradesWBalance", "integer", lower=0, upper=100),
)
LONG = 1000  # more months, trades and percent than anybody has

# What follows from what the columns count. Satisfactory trades exceed all trades in 8 % of the rows, trades with a
# balance in 2 %: who is there may stay.
RELATIONS = (
    Ordered(("NumSatisfactoryTrades", "NumTotalTrades")),
    Ordered(("NumTradesOpeninLast12M", "NumTotalTrades")),
    Ordered(("NumRevolvingTradesWBalance", "NumTotalTrades")),
    Ordered(("NumInstallTradesWBalance", "NumTotalTrades")),
    Ordered(("NumBank2NatlTradesWHighUtilization", "NumRevolvingTradesWBalance")),
    Ordered(("NumInqLast6Mexcl7days", "NumInqLast6M")),
    # Months since the last opening: none was opened in the last twelve, or one was.
    Implies({"MSinceMostRecentTradeOpen": (13, LONG)}, {"NumTradesOpeninLast12M": (-9, 0)}),
    Implies({"NumTradesOpeninLast12M": (1, LONG)}, {"MSinceMostRecentTradeOpen": (-9, 12)}),
    Implies({"NetFractionRevolvingBurden": (1, LONG)}, {"NumRevolvingTradesWBalance": (1, LONG)}),
    # Who waits grows older, and so do the trades.
    Follows("MSinceOldestTradeOpen", "MSinceMostRecentTradeOpen", rate=1.0),
    Follows("AverageMInFile", "MSinceMostRecentTradeOpen", rate=1.0),
)
SCHEMA = Schema(FEATURES, label="RiskPerformance", classes=("Bad", "Good"), relations=RELATIONS)


def read(path: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_csv(path)[[*SCHEMA.names, SCHEMA.label]]


CARD = Card(
    name="heloc",
    title="FICO HELOC",
    file="heloc/heloc_dataset_v1.csv",
    sha256="e5a914f742ad7f8472c5417902ec06b321ebc5de1d68ec13f136d62c87a7fbf3",
    rows=10459,
    schema=SCHEMA,
    read=read,
    split=(7844, 2615),
    scaling="minmax",
    licence="FICO's terms: research use, no redistribution",
    source="FICO (2018). Explainable Machine Learning Challenge, HELOC dataset, version 1",
    home="https://community.fico.com/s/explainable-machine-learning-challenge",
)
