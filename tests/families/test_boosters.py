"""A bare booster, or one of a file, is fitted again with the parameters that made it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from holdfast import (
    Encoding,
    Explainer,
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
from holdfast.families.boosters import estimator_of
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


TRAINED = [
    ("xgboost", {"n_estimators": 12, "max_depth": 4, "learning_rate": 0.1}),
    ("xgboost", {"n_estimators": 40, "max_depth": 3, "learning_rate": 0.05, "min_child_weight": 5, "reg_lambda": 2.5}),
    ("xgboost", {"n_estimators": 12, "reg_alpha": 0.4, "gamma": 0.5, "num_parallel_tree": 2}),
    ("xgboost", {"n_estimators": 12, "grow_policy": "lossguide", "max_leaves": 5, "max_depth": 0}),
    ("xgboost", {"n_estimators": 12, "scale_pos_weight": 3, "base_score": 0.4, "max_depth": 1}),
    ("xgboost", {"n_estimators": 12, "tree_method": "exact", "max_depth": 3}),
    ("lightgbm", {"n_estimators": 12}),
    ("lightgbm", {"n_estimators": 12, "num_leaves": 7, "min_child_samples": 4, "reg_lambda": 1.5, "max_bin": 63}),
]


@pytest.mark.parametrize(("library", "own"), TRAINED)
def test_a_booster_of_a_file_comes_out_again(library, own, tmp_path):
    """Nothing is drawn, so a new seed gives the deployed model itself."""
    fitted = classifier(library, **own).fit(ROWS, Y)
    deployed = read_model(saved(fitted, tmp_path), ENCODING)
    params = own if library == "xgboost" else None  # LightGBM's file holds them
    with pytest.warns(UserWarning, match="all 2 refits of kind 'seeds' are one model: .*bootstrap:2 on the command"):
        family = refit(deployed, CANCER, seeds(2) + changes.bootstrap(3), params=params, workers=1)
    assert family.surrogates == ""
    margin = [logits.diff(dim=-1) for logits in (family.logits(X)[0], deployed(X))]
    torch.testing.assert_close(*margin, rtol=1e-3, atol=1e-3)
    assert torch.equal(family.predict(X)[0], predict(deployed, X))
    assert not torch.equal(family.predict(X)[2], family.predict(X)[3])


@pytest.mark.parametrize(("library", "own"), TRAINED)
def test_an_estimator_of_a_booster_has_its_parameters(library, own):
    """Those of LightGBM are stated by the booster."""
    fitted = classifier(library, **own).fit(ROWS, Y)
    params = {name: value for name, value in own.items() if name != "n_estimators"} if library == "xgboost" else None
    estimator, told = estimator_of(bare(fitted), params)
    kept = estimator.get_params()
    for name, value in own.items():
        assert kept[name] == pytest.approx(value) if isinstance(value, float) else kept[name] == value, name
    again = estimator.fit(ROWS, Y)
    np.testing.assert_allclose(again.predict_proba(ROWS), fitted.predict_proba(ROWS), rtol=1e-5, atol=1e-6)
    assert f"held by the booster: n_estimators {own['n_estimators']}" in told


def test_a_file_of_xgboost_says_that_it_needs_its_parameters(tmp_path):
    own = {"max_depth": 4, "learning_rate": 0.1}
    deployed = read_model(saved(classifier("xgboost", n_estimators=5, **own).fit(ROWS, Y), tmp_path), ENCODING)
    needed = (
        r"xgboost.Booster does not hold the parameters .* expected those of XGBClassifier, got n_estimators 5, .*"
        r"Pass params=\{'max_depth': 6, .* --params FILE. Or retrain the XGBClassifier itself, or give a function"
    )
    with pytest.raises(ValueError, match=needed):
        refit(deployed, CANCER, seeds(2))
    with pytest.raises(ValueError, match=needed):  # before any work
        Explainer(deployed.wrapped, CANCER, label="target", retrain=seeds(6))
    family = refit(deployed, CANCER, changes.bootstrap(2), params={"eta": 0.1, "max_depth": 4}, workers=1)
    assert family.told.startswith("xgboost.Booster: given: learning_rate 0.1, max_depth 4; held by the booster: n_est")
    members = [member.wrapped.get_params() for member in family.stacks[0].models]
    assert all(own.items() <= member.items() and member["n_estimators"] == 5 for member in members)
    explainer = Explainer(deployed.wrapped, CANCER, label="target", retrain=changes.bootstrap(6), params=own, workers=1)
    assert own.items() <= explainer.family.stacks[0].models[0].wrapped.get_params().items()


def test_a_booster_that_was_trained_with_the_defaults_is_told_so():
    fitted = classifier("xgboost").fit(ROWS, Y)
    with pytest.raises(ValueError, match=r"\{\} if all are the defaults"):
        estimator_of(bare(fitted))
    estimator, told = estimator_of(bare(fitted), {})
    assert told.endswith("n_estimators 100, objective binary:logistic, booster gbtree; the others are the defaults")
    np.testing.assert_allclose(estimator.fit(ROWS, Y).predict_proba(ROWS), fitted.predict_proba(ROWS), rtol=1e-5)


def test_params_that_mean_nothing_are_refused():
    linear = LogisticRegression(max_iter=5000).fit(ROWS, CANCER["target"])
    booster = bare(classifier("xgboost", n_estimators=2).fit(ROWS, Y))
    with pytest.raises(
        ValueError, match=r"'max_dept', which is no parameter of XGBClassifier \(did you mean 'max_depth'"
    ):
        estimator_of(booster, {"max_dept": 3})
    with pytest.raises(TypeError, match=r"params must be a dictionary .* got list"):
        estimator_of(booster, ["max_depth"])
    with pytest.raises(ValueError, match=r"params is for a bare booster .* this model is a LogisticRegression; leave"):
        refit(as_model(linear, ENCODING), CANCER, seeds(2), params={"C": 1.0})
    with pytest.raises(ValueError, match=r"params states how a booster was trained, .* leave params out"):
        Explainer(booster, CANCER, label="target", retrain=lambda rows, seed: booster, params={"max_depth": 3})


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_german_with_its_categories(library, tmp_path):
    german = prepare("german")
    table, encoding = german.table, Encoding.fit(german.table, german.schema)
    rows = table[list(german.schema.names)]
    text = {name: "category" for name in rows if not pd.api.types.is_numeric_dtype(rows[name])}
    more = {"enable_categorical": True} if library == "xgboost" else {}
    own = {"n_estimators": 10, "max_depth": 4}
    fitted = classifier(library, **own, **more)
    fitted.fit(rows.astype(text), encoding.labels(table).numpy())
    deployed = read_model(saved(fitted, tmp_path), encoding)
    family = refit(deployed, table, changes.bootstrap(3), params=own, workers=1)
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
    own = {"n_estimators": 6, "max_depth": 3}
    fitted = classifier(library, **own).fit(x.numpy(), y)
    deployed = read_model(saved(fitted, tmp_path), encoding, takes="encoded", classes=order)
    family = refit(deployed, table, changes.bootstrap(3), params=own, workers=1)
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


def test_a_raw_booster_needs_its_encoding_and_is_kept_like_others(tmp_path):
    booster = bare(classifier("xgboost", n_estimators=5, subsample=0.7, random_state=3).fit(ROWS, Y))
    with pytest.raises(TypeError, match=r"an estimator alone does not say how rows are encoded"):
        refit(booster, CANCER, seeds(2))
    params = {"subsample": 0.7, "random_state": 3}
    first, second = (
        refit(booster, CANCER, seeds(2), encoding=ENCODING, params=params, store=tmp_path, workers=1) for _ in range(2)
    )
    assert torch.equal(first.logits(X), second.logits(X))
    assert first.told == second.told != ""
    assert [member.wrapped.random_state for member in first.stacks[0].models] == [4, 5]


# ---- LightGBM's own words ----


def test_the_seed_of_lightgbm_is_kept():
    drawn = {"n_estimators": 4, "subsample": 0.5, "subsample_freq": 1}
    fitted = classifier("lightgbm", random_state=5, **drawn).fit(ROWS, Y)
    estimator, _ = estimator_of(bare(fitted))
    assert estimator.random_state == 5
    np.testing.assert_array_equal(estimator.fit(ROWS, Y).predict_proba(ROWS), fitted.predict_proba(ROWS))
    apart = classifier("lightgbm", bagging_seed=9, **drawn).fit(ROWS, Y)
    family = refit(as_model(bare(apart), ENCODING), CANCER, seeds(9), workers=1)
    said = apart.predict_proba(ROWS)
    assert not any(np.allclose(member.wrapped.predict_proba(ROWS), said) for member in family.stacks[0].models)


def changed(text, old, new):
    assert old in text
    return text.replace(old, new)


def test_what_a_text_says_of_files_and_machines_is_not_taken_over():
    text = bare(classifier("lightgbm", n_estimators=2, num_leaves=7).fit(ROWS, Y)).model_to_string()
    text = changed(text, "[forcedsplits_filename: ]", "[forcedsplits_filename: /etc/passwd]")
    text = changed(text, "[machines: ]", "[machines: 10.0.0.1:80]")
    text = changed(text, "[device_type: cpu]", "[device_type: gpu]")
    assert settings_in(text) == {"objective": "binary", "num_leaves": 7}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[num_leaves: 31]", "[num_leaves: 99999999]"),
        ("[learning_rate: 0.1]", "[learning_rate: nan]"),
        ("[objective: binary]", "[objective: __import__]"),
        ("[monotone_constraints: ]", "[monotone_constraints: 1,x]"),
    ],
)
def test_a_text_with_a_parameter_that_cannot_be_states_none(old, new):
    text = bare(classifier("lightgbm", n_estimators=2).fit(ROWS, Y)).model_to_string()
    assert settings_in(changed(text, old, new)) == {}


def test_a_text_without_parameters_needs_them():
    text = bare(classifier("lightgbm", n_estimators=2).fit(ROWS, Y)).model_to_string()
    cut = lightgbm.Booster(model_str=text[: text.index("\nparameters:")] + "\npandas_categorical:null\n")
    with pytest.raises(ValueError, match=r"lightgbm.Booster does not hold .* LGBMClassifier, got n_estimators 2"):
        estimator_of(cut)
    estimator, told = estimator_of(cut, {"num_leaves": 7, "lambda_l2": 1.5})
    assert (estimator.num_leaves, estimator.reg_lambda) == (7, 1.5)
    assert told.startswith("lightgbm.Booster: given: num_leaves 7, reg_lambda 1.5; held by the booster: n_estimators 2")


def test_what_is_no_booster_is_refused():
    linear = bare(classifier("xgboost", booster="gblinear", n_estimators=2).fit(ROWS, Y))
    with pytest.raises(ValueError, match=r"xgboost.Booster \(gblinear\) has no trees .* a function of your own"):
        estimator_of(linear)
    with pytest.raises(TypeError, match=r"expected an xgboost.Booster or a lightgbm.Booster, got dict"):
        estimator_of({})
