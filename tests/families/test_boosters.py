"""A bare booster, or one of a file, is fitted again with the parameters that made it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything
from sklearn.datasets import load_breast_cancer

from holdfast import (
    Encoding,
    Schema,
    as_model,
    changes,
    load_family,
    predict,
    read_model,
    refit,
    save_family,
    seeds,
)
from holdfast.datasets.prepared import prepare
from holdfast.families.boosters import UNKNOWN_SEED, estimator_of
from holdfast.families.lightgbm_settings import _drawn
from holdfast.models.files.lightgbm_settings import settings_in

xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")


def cancer():
    table = load_breast_cancer(as_frame=True).frame
    return table.assign(target=table["target"].map({0: "malignant", 1: "benign"}))


CANCER = cancer()
ENCODING = Encoding.fit(CANCER, Schema.infer(CANCER, label="target"))
X, Y = ENCODING.encode(CANCER), ENCODING.labels(CANCER)
ROWS = CANCER[list(ENCODING.schema.names)]


def classifier(library, **own):
    return xgboost.XGBClassifier(**own) if library == "xgboost" else lightgbm.LGBMClassifier(verbose=-1, **own)


def bare(fitted):
    return fitted.get_booster() if hasattr(fitted, "get_booster") else fitted.booster_


def saved(fitted, folder):
    """The name of its file."""
    path = folder / ("model.ubj" if hasattr(fitted, "get_booster") else "model.txt")
    bare(fitted).save_model(path)
    return path


ALL_SHOWN = [
    ("xgboost", {"n_estimators": 12, "max_depth": 4, "learning_rate": 0.1}),
    ("xgboost", {"n_estimators": 40, "max_depth": 3, "learning_rate": 0.05, "min_child_weight": 5, "reg_lambda": 2.5}),
    ("xgboost", {"n_estimators": 12, "max_depth": 1}),
    ("xgboost", {"n_estimators": 12, "reg_alpha": 0.4, "gamma": 0.5}),
    ("xgboost", {"n_estimators": 12, "grow_policy": "lossguide", "max_leaves": 5, "max_depth": 0}),
    ("xgboost", {"n_estimators": 12, "scale_pos_weight": 3, "base_score": 0.4}),
    ("xgboost", {"n_estimators": 12, "tree_method": "exact", "max_depth": 3}),
    ("lightgbm", {"n_estimators": 12}),
    ("lightgbm", {"n_estimators": 12, "num_leaves": 7, "min_child_samples": 4, "reg_lambda": 1.5, "max_bin": 63}),
]


@pytest.mark.parametrize(("library", "own"), ALL_SHOWN)
def test_a_booster_of_a_file_comes_out_again(library, own, tmp_path):
    """Nothing is drawn, so a new seed gives the deployed model itself."""
    fitted = classifier(library, **own).fit(ROWS, Y)
    deployed = read_model(saved(fitted, tmp_path), ENCODING)
    with pytest.warns(UserWarning, match="all 2 refits of kind 'seeds' are one model: .*bootstrap:2 on the command"):
        family = refit(deployed, CANCER, seeds(2) + changes.bootstrap(3), workers=1)
    assert "the booster comes out again" in family.told
    assert family.surrogates == ""
    margin = [logits.diff(dim=-1) for logits in (family.logits(X)[0], deployed(X))]
    torch.testing.assert_close(*margin, rtol=1e-3, atol=1e-3)
    assert torch.equal(family.predict(X)[0], predict(deployed, X))
    assert not torch.equal(family.predict(X)[2], family.predict(X)[3])


@pytest.mark.parametrize(("library", "own"), ALL_SHOWN)
def test_a_booster_in_memory_says_as_much(library, own):
    fitted = classifier(library, **own).fit(ROWS, Y)
    estimator, told = estimator_of(bare(fitted), ROWS, Y.numpy())
    assert "the booster comes out again" in told
    kept = estimator.get_params()
    for name, value in own.items():
        assert kept[name] == pytest.approx(value) if isinstance(value, float) else kept[name] == value, name


def test_rates_of_learning_and_regularisation_are_read_off_the_leaves(tmp_path):
    own = {"n_estimators": 20, "learning_rate": 0.07, "reg_lambda": 3.5, "reg_alpha": 0.25, "num_parallel_tree": 2}
    fitted = classifier("xgboost", **own, max_depth=5, base_score=0.3).fit(ROWS, Y)
    estimator, told = estimator_of(xgboost.Booster(model_file=saved(fitted, tmp_path)))
    kept = estimator.get_params()
    assert {name: kept[name] for name in own} == pytest.approx(own)
    assert (kept["max_depth"], kept["base_score"]) == (5, pytest.approx(0.3))
    assert "worked out from its trees: max_depth 5, learning_rate 0.07, reg_lambda 3.5, reg_alpha 0.25" in told
    assert "assumed: min_child_weight 1.0" in told


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_the_share_of_rows_of_a_round_is_counted(share, tmp_path):
    fitted = classifier("xgboost", n_estimators=20, max_depth=3, subsample=share, random_state=7).fit(ROWS, Y)
    booster = xgboost.Booster(model_file=saved(fitted, tmp_path))
    estimator, told = estimator_of(booster, ROWS, Y.numpy())
    assert estimator.subsample == pytest.approx(share, abs=0.02)
    assert "its seed is not known, so it cannot be trained again" in told
    assert estimator.random_state == UNKNOWN_SEED  # else seed 7 would be the deployed model
    family = refit(as_model(booster, ENCODING), CANCER, seeds(9), workers=1)
    assert len({tuple(margin) for margin in family.logits(X)[..., 1].tolist()}) == 9
    said = booster.predict(xgboost.DMatrix(ROWS))
    for member in family.stacks[0].models:
        assert not np.allclose(bare(member.own).predict(xgboost.DMatrix(ROWS)), said)


def test_other_rows_than_those_of_the_training_are_said(tmp_path):
    fitted = classifier("xgboost", n_estimators=10, max_depth=3).fit(ROWS[:300], Y[:300])
    _, told = estimator_of(xgboost.Booster(model_file=saved(fitted, tmp_path)), ROWS, Y.numpy())
    assert "than the table's: it was trained on other rows" in told
    assert "another booster comes out" in told
    weighted = classifier("xgboost", n_estimators=10, base_score=0.5).fit(ROWS, Y, sample_weight=np.full(len(Y), 1.5))
    _, told = estimator_of(xgboost.Booster(model_file=saved(weighted, tmp_path)), ROWS, Y.numpy())
    assert "hessians of 1.5 times those of the table: it was trained on other rows, or on rows with weights" in told


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_german_with_its_categories(library, tmp_path):
    german = prepare("german")
    table, encoding = german.table, Encoding.fit(german.table, german.schema)
    rows = table[list(german.schema.names)]
    text = {name: "category" for name in rows if not pd.api.types.is_numeric_dtype(rows[name])}
    more = {"enable_categorical": True} if library == "xgboost" else {}
    fitted = classifier(library, n_estimators=10, max_depth=4, **more)
    fitted.fit(rows.astype(text), encoding.labels(table).numpy())
    deployed = read_model(saved(fitted, tmp_path), encoding)
    family = refit(deployed, table, changes.bootstrap(3), workers=1)
    assert "the booster comes out again" in family.told
    assert family.surrogates == ""
    again = load_family(save_family(family, tmp_path / "family"), encoding=encoding)
    x = encoding.encode(table)
    assert torch.equal(again.logits(x), family.logits(x))
    assert again.told == family.told


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_several_classes_and_the_order_they_are_given_in(library, tmp_path):
    table = everything(240)
    table["y"] = np.where(table["income"] > table["income"].median(), table[EVERYTHING.label], "maybe")
    schema = Schema(EVERYTHING.features, "y", ("yes", "no", "maybe"))
    encoding = Encoding.fit(table, schema)
    order = ("maybe", "no", "yes")
    x = encoding.encode(table)
    y = table["y"].map(order.index).to_numpy()
    fitted = classifier(library, n_estimators=6, max_depth=3).fit(x.numpy(), y)
    deployed = read_model(saved(fitted, tmp_path), encoding, takes="encoded", classes=order)
    family = refit(deployed, table, changes.bootstrap(3), workers=1)
    assert "the booster comes out again" in family.told
    assert family.surrogates == ""
    assert min(family.accuracy) > 0.7


def test_refits_of_a_booster_with_settings_that_nothing_shows_say_so(tmp_path):
    """Rows had weights, of which a booster says nothing."""
    table = everything(240)
    encoding = Encoding.fit(table, EVERYTHING)
    x, y = encoding.encode(table).numpy(), encoding.labels(table).numpy()
    fitted = classifier("lightgbm", n_estimators=10).fit(x, y, sample_weight=np.where(y == 0, 25.0, 0.2))
    with pytest.warns(UserWarning, match="the deployed model"):
        family = refit(read_model(saved(fitted, tmp_path), encoding), table, changes.bootstrap(4), workers=1)
    assert "its parameters are known so: lightgbm.Booster: held by the booster: n_estimators 10" in family.surrogates
    assert "another booster comes out" in family.surrogates


def test_a_raw_booster_needs_its_encoding_and_is_kept_like_others(tmp_path):
    booster = bare(classifier("xgboost", n_estimators=5, subsample=0.7, random_state=3).fit(ROWS, Y))
    with pytest.raises(TypeError, match=r"an estimator alone does not say how rows are encoded"):
        refit(booster, CANCER, seeds(2))
    first, second = (refit(booster, CANCER, seeds(2), encoding=ENCODING, store=tmp_path, workers=1) for _ in range(2))
    assert torch.equal(first.logits(X), second.logits(X))
    assert first.told == second.told != ""
    assert [member.own.random_state for member in first.stacks[0].models] == [4, 5]


# ---- LightGBM's own words ----


def test_the_seeds_of_lightgbm_are_those_that_it_draws():
    for seed in (0, 5, 12345):
        text = bare(classifier("lightgbm", n_estimators=2, random_state=seed).fit(ROWS, Y)).model_to_string()
        written = settings_in(text)
        assert {name: written[name] for name in _drawn(seed)} == _drawn(seed)
    estimator, _ = estimator_of(bare(classifier("lightgbm", n_estimators=2, random_state=5).fit(ROWS, Y)))
    assert estimator.random_state == 5
    estimator, _ = estimator_of(bare(classifier("lightgbm", n_estimators=2).fit(ROWS, Y)))
    assert estimator.random_state is None
    apart = classifier("lightgbm", n_estimators=2, bagging_seed=9, subsample=0.5, subsample_freq=1).fit(ROWS, Y)
    estimator, told = estimator_of(bare(apart), ROWS, Y.numpy())
    assert estimator.random_state == UNKNOWN_SEED
    assert "its seed is not known" in told


def test_what_a_text_says_of_files_and_machines_is_not_taken_over():
    text = bare(classifier("lightgbm", n_estimators=2).fit(ROWS, Y)).model_to_string()
    odd = {
        "[forcedsplits_filename: ]": "[forcedsplits_filename: /etc/passwd]",
        "[machines: ]": "[machines: 10.0.0.1:80]",
        "[device_type: cpu]": "[device_type: gpu]",
        "[num_leaves: 31]": "[num_leaves: 99999999]",
        "[learning_rate: 0.1]": "[learning_rate: nan]",
        "[objective: binary]": "[objective: __import__]",
    }
    for old, new in odd.items():
        assert old in text
        text = text.replace(old, new)
    found = settings_in(text)
    assert not {"forcedsplits_filename", "machines", "device_type", "num_leaves", "learning_rate", "objective"} & {
        *found
    }
    assert found["min_data_in_leaf"] == 20
    assert json.dumps(found)  # plain values


def test_a_text_without_parameters_says_that_all_are_assumed():
    text = bare(classifier("lightgbm", n_estimators=2).fit(ROWS, Y)).model_to_string()
    cut = text[: text.index("\nparameters:")] + "\npandas_categorical:null\n"
    _, told = estimator_of(lightgbm.Booster(model_str=cut))
    assert "its text has no parameters" in told


def test_what_is_no_booster_is_refused():
    with pytest.raises(TypeError, match=r"expected an xgboost.Booster or a lightgbm.Booster, got dict"):
        estimator_of({})
