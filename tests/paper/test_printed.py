"""What the paper prints, in our names."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pandas as pd
import pytest

from holdfast.paper.declared import PAPER, PAPER_DATASETS
from holdfast.paper.printed import FILE, METHODS, printed, printed_r2
from holdfast.paper.reproduce import METHODS as IN_THE_STUDY

# Our names -> those of the paper's own tables.
THEIRS = {
    "german": "german_credit",
    "seizure": "seizure",
    "ctg": "ctg",
    "warfarin": "warfarin",
    "heloc": "heloc",
    "taiwan": "taiwan_credit",
    "min-l1-art": "min_l1",
    "min-l1-art+sns": "min_l1+sns",
    "min-l2-art": "min_l2",
    "min-l2-art+sns": "min_l2+sns",
    "pgd": "pgd",
    "pgd+sns": "pgd+sns",
    "prototype-alibi": "looveren",
    "latent": "pawelczyk",
    "iv_loo": "iv_loo",
    "iv_seeds": "iv_rs",
    "cost_l1": "cost_l1",
    "cost_l2": "cost_l2",
    "success": "success",
}
QUANTITIES = ("iv_loo", "iv_seeds", "cost_l1", "cost_l2", "success")


@pytest.fixture
def folder():
    """The paper's tables as they were typed off, where they lie beside the data."""
    found = Path(os.environ.get("HOLDFAST_DATA", "")).parent / "paper"
    if not (found / "results.csv").is_file():
        pytest.skip("the paper's tables are not beside HOLDFAST_DATA")
    return found


def test_it_is_tidy_and_in_our_names():
    table = printed()
    assert list(table.columns) == ["dataset", "method", "quantity", "value", "spread"]
    assert not table.duplicated(["dataset", "method", "quantity"]).any()
    assert tuple(table["dataset"].unique()) == PAPER["text"].datasets == PAPER_DATASETS
    assert set(table["method"]) == set(METHODS) <= set(IN_THE_STUDY)
    assert set(table["quantity"]) == set(QUANTITIES)
    assert table["value"].notna().all()
    assert (table["spread"].isna() == (table["quantity"] == "success")).all()
    rates = table[table["quantity"].isin(["iv_loo", "iv_seeds", "success"])]
    assert rates["value"].between(0, 1).all()


def test_what_is_printed_as_a_dash_is_not_there():
    table = printed()
    few = table[(table["dataset"] == "seizure") & table["method"].str.startswith("min-l1")]
    assert list(few["quantity"]) == ["success"]
    assert table[table["quantity"] == "success"]["method"].str.endswith("+sns").sum() == 0


def test_a_few_numbers_by_heart():
    known = printed().set_index(["dataset", "method", "quantity"])
    assert tuple(known.loc[("german", "pgd", "iv_seeds")]) == (0.61, 0.04)
    assert tuple(known.loc[("seizure", "pgd+sns", "iv_seeds")]) == (0.16, 0.08)
    assert tuple(known.loc[("warfarin", "latent", "cost_l1")]) == (6.48, 2.66)
    assert printed_r2()["heloc"] == 0.17


def test_it_is_the_papers_cell_by_cell(folder):
    theirs = pd.read_csv(folder / "results.csv").set_index(["dataset", "method"])
    ours = printed().set_index(["dataset", "method", "quantity"])
    there = 0
    for dataset in PAPER_DATASETS:
        for method in METHODS:
            row = theirs.loc[(THEIRS[dataset], THEIRS[method])]
            for quantity in QUANTITIES:
                value, spread = row[THEIRS[quantity]], row.get(f"{THEIRS[quantity]}_std", math.nan)
                key = (dataset, method, quantity)
                assert (key in ours.index) == (not math.isnan(value)), key
                if key in ours.index:
                    there += 1
                    assert tuple(ours.loc[key]) == pytest.approx((value, spread), abs=0, nan_ok=True), key
    assert there == len(ours)
    assert len(theirs) == len(PAPER_DATASETS) * len(METHODS)


def test_r2_is_the_papers(folder):
    theirs = pd.read_csv(folder / "r2.csv").set_index("dataset")["r2"]
    assert {THEIRS[dataset]: value for dataset, value in printed_r2().items()} == theirs.to_dict()


def test_the_file_lies_in_the_package():
    assert FILE.is_file()
    assert FILE.parent.name == "paper"


def test_what_comes_back_is_ones_own():
    first = printed()
    first["value"] = 0.0
    assert (printed()["value"] > 0).any()
