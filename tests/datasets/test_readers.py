"""The tables against the raw files, read another way."""

from __future__ import annotations

import numpy as np
import pandas as pd

from holdfast.datasets import DATASETS, warfarin
from holdfast.tabular.encoding import Encoding


def test_seizure_is_the_file_without_its_identifiers(loaded):
    table, schema = loaded("seizure")
    raw = np.loadtxt(DATASETS["seizure"].path(), delimiter=",", skiprows=1, usecols=range(1, 180), dtype=np.int64)
    assert (table[list(schema.names)].to_numpy() == raw[:, :178]).all()
    assert (table["state"].eq("seizure").to_numpy() == (raw[:, 178] == 1)).all()


def test_ctg_is_the_sheet_value_by_value(loaded, data_file):
    table, schema = loaded("ctg")
    sheet = np.loadtxt(data_file("ctg/ctg_data.csv"), delimiter=",", skiprows=1)  # 21 features, CLASS, NSP
    assert (table[list(schema.names)].to_numpy() == sheet[:, :21]).all()
    assert (table["state"].eq("normal").to_numpy() == (sheet[:, 22] == 1)).all()
    assert (table["histogram_max"] - table["histogram_min"] == table["histogram_width"]).all()


def test_warfarin_scales_back_to_the_file(loaded):
    table, schema = loaded("warfarin")
    raw = pd.read_csv(DATASETS["warfarin"].path())
    height = (table["height_cm"] - warfarin.HEIGHT_MEAN) / warfarin.HEIGHT_SPREAD
    weight = (table["weight_kg"] - warfarin.WEIGHT_MEAN) / warfarin.WEIGHT_SPREAD
    assert (height.round(4) == raw["height"].round(4)).all()
    assert (weight.round(4) == raw["weight"].round(4)).all()
    assert table["weight_kg"].mode().tolist() == [70.0]
    assert sorted(table["age_decade"].unique()) == list(range(1, 10))
    x = Encoding.fit(table, schema, "standard-numeric").encode(table)
    np.testing.assert_allclose(x[:, :3], raw[["age", "height", "weight"]], atol=1e-3)
    assert (x[:, 3:5].numpy() == raw[["amiodarone", "decr"]].to_numpy()).all()


def test_warfarin_genotypes_and_doses(loaded):
    table, _ = loaded("warfarin")
    raw = pd.read_csv(DATASETS["warfarin"].path())
    counts = {"*1/*1": 3630, "*1/*2": 643, "*1/*3": 430, "*2/*3": 60, "*2/*2": 41, "*3/*3": 15}
    assert table["cyp2c9"].value_counts().to_dict() == counts
    weekly = ((1.420374 * raw["dose"] + 5.373498) ** 2).groupby(table["dose"])  # mg
    low, medium, high = (weekly.get_group(dose) for dose in ("low", "medium", "high"))
    assert low.max() < 21.01 < medium.min()
    assert medium.max() < 48.99 < high.min()


def test_heloc_writes_no_record_as_zeros_and_advises_no_code(loaded):
    table, schema = loaded("heloc")
    encoding = Encoding.fit(table, schema, "none")
    x = encoding.encode(table)
    no_record = (table["MaxDelqEver"] == -9).to_numpy()
    groups = ["=" in column for column in encoding.columns]
    assert (no_record.sum(), sum(groups)) == (588, 19)
    assert (x[:, groups].sum(1).numpy() == np.where(no_record, 0, 2)).all()
    assert all(feature.lower == 0 for feature in schema.features if feature.is_numeric)
    assert all(table[feature.name].max() <= feature.upper for feature in schema.features if feature.upper)


def test_taiwan_names_its_codes(loaded):
    table, _ = loaded("taiwan")
    assert table["sex"].value_counts().to_dict() == {"woman": 18112, "man": 11888}
    assert table["education"].value_counts().filter(like="undocumented").to_dict() == {
        "undocumented 5": 280,
        "undocumented 6": 51,
        "undocumented 0": 14,
    }
    assert (table["marriage"] == "undocumented 0").sum() == 54
    assert (table["limit_bal"] % 10_000 != 0).sum() == 3
