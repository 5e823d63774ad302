"""The five lines of Python, with models that other libraries trained: what they say themselves of the advice."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import holdfast as hf
import outsiders
from outsiders import LABEL, features, in_categories, one_hot, people, train_rows, x_and_y

ESTIMATORS = {
    "sklearn": (outsiders.pipeline, lambda rows, _: rows),
    "xgboost": (outsiders.xgb_classifier, in_categories),
    "xgboost one-hot": (lambda name: outsiders.xgb_classifier(name, hot=True), one_hot),
    "lightgbm": (outsiders.lgbm_classifier, in_categories),
}


def explainer(model, name="cancer", **other):
    return hf.Explainer(model, train_rows(name), **{"label": LABEL[name], "want": 1, "workers": 1, **other})


@pytest.mark.filterwarnings("ignore:the members are surrogates")
@pytest.mark.parametrize(
    ("library", "name"),
    [
        pytest.param(library, name, marks=pytest.mark.slow if name == "german" and library != "sklearn" else ())
        for library in ESTIMATORS
        for name in ("cancer", "german")
    ],
)
def test_an_estimator_and_its_refits_say_what_the_advice_says(library, name):
    make, shown = ESTIMATORS[library]
    own, (x, _) = make(name), x_and_y(name)
    asking = people(name, lambda rows: own.predict(shown(rows, x)))
    its = explainer(own, name, retrain=hf.changes.bootstrap(6))
    plans = its.explain(asking, hold=0.5).wide()
    plans = plans[plans["found"]]
    rows = shown(plans[features(name)], x)
    assert len(plans)
    assert set(plans["id"]) <= set(asking["id"])
    assert (own.predict(rows) == 1).all()
    each = [its.roles.audit[place].wrapped.predict(rows) == 1 for place in range(2)]
    np.testing.assert_allclose(plans["hold"].to_numpy(float), np.mean(each, axis=0))


@pytest.fixture(scope="module")
def module():
    return outsiders.torch_module("cancer")


def says(module):
    encoded = outsiders.standardised("cancer")
    return lambda rows: module(torch.tensor(encoded(rows))).argmax(1).numpy()


def test_modules_that_were_retrained_elsewhere(module):
    others = [outsiders.torch_module("cancer", seed) for seed in range(1, 7)]
    its = explainer(module, retrain=others)
    asking = people("cancer", says(module))
    advice = its.explain(asking, hold=0.5)
    plans = advice.wide()
    plans = plans[plans["found"]]
    assert len(plans)
    rows = plans[features("cancer")]
    assert (says(module)(rows) == 1).all()
    np.testing.assert_allclose(plans["hold"].to_numpy(float), np.mean([says(own)(rows) for own in others[4:]], axis=0))
    # What is listed as a change is one: more than a hundred-thousandth of what the column can be.
    told, known = advice.table(), train_rows("cancer")
    wide = (known.max() - known.min())[told["feature"]].to_numpy(float)
    assert ((told["now"] - told["then"]).abs().to_numpy(float) > 0.99e-5 * wide).all()


@pytest.mark.filterwarnings("ignore:the members are surrogates")
def test_a_module_is_trained_anew_by_a_recipe(module):
    recipe = hf.Recipe(network=module, epochs=40, batch=50)
    advice = explainer(module, recipe=recipe, retrain=hf.seeds(6)).explain(people("cancer", says(module)), hold=0.5)
    plans = advice.wide()
    assert plans["found"].any()
    assert (says(module)(plans[plans["found"]][features("cancer")]) == 1).all()
    assert advice.summary()["decided"]["retrained"]["audit"] == {"seeds": 2}


def test_a_module_does_not_say_how_it_is_trained_and_the_error_names_three_ways(module):
    with pytest.raises(TypeError) as told:
        explainer(module, retrain=hf.seeds(6))
    for way in ("recipe=hf.Recipe(network=module", "retrain=function", "retrain=[model, model, ...]"):
        assert way in str(told.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras's own
def test_keras_models_that_were_retrained_elsewhere():
    pytest.importorskip("keras")
    own, others = (outsiders.keras_model("cancer", 0), [outsiders.keras_model("cancer", seed) for seed in range(1, 7)])
    encoded = outsiders.standardised("cancer")

    def said(model, rows):
        return (np.asarray(model.predict(encoded(rows), verbose=0))[:, 0] > 0.5).astype(int)

    advice = explainer(own, retrain=others).explain(people("cancer", lambda rows: said(own, rows)), hold=0.5)
    plans = advice.wide()
    plans = plans[plans["found"]]
    rows = plans[features("cancer")]
    assert len(plans)
    assert (said(own, rows) == 1).all()
    np.testing.assert_allclose(plans["hold"].to_numpy(float), np.mean([said(one, rows) for one in others[4:]], axis=0))


# ---- what is meant by the classes ----


@pytest.mark.parametrize("source", ["object", "path"])
def test_classes_in_another_order_are_refused_until_their_order_is_given(module, source, tmp_path):
    from safetensors.torch import save_file

    save_file(module.state_dict(), tmp_path / "model.safetensors")
    model = module if source == "object" else tmp_path / "model.safetensors"
    rows = train_rows("cancer").assign(diagnosis=train_rows("cancer")["diagnosis"].map({1: "benign", 0: "malignant"}))
    given = {"label": "diagnosis", "want": "benign", "workers": 1}
    with warnings.catch_warnings(action="error"), pytest.raises(ValueError, match="does not name its classes") as told:
        hf.Explainer(model, rows, **given)
    assert "classes=('malignant', 'benign')" in str(told.value)
    asking = people("cancer", says(module))
    with warnings.catch_warnings(action="error"):
        plans = hf.Explainer(model, rows, classes=("malignant", "benign"), **given).explain(asking).wide()
    assert plans["found"].any()
    assert (says(module)(plans[plans["found"]][features("cancer")]) == 1).all()


def test_a_model_that_names_its_classes_is_bad_but_not_out_of_order():
    x, y = x_and_y("cancer")
    wrong = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, 1 - y)
    with pytest.warns(UserWarning, match="is right for"):
        its = hf.as_model(
            wrong, hf.Encoding.fit(train_rows("cancer"), hf.Schema.infer(train_rows("cancer"), "diagnosis"))
        )
    assert explainer(its).deployed is its


@pytest.mark.parametrize("classes", [("a", "b"), ("malignant",), "malignant", (1, 1)])
def test_an_order_of_other_classes_is_refused(module, classes):
    with pytest.raises(ValueError, match="order"):
        explainer(module, classes=classes)


@pytest.mark.parametrize(
    ("label", "want"),
    [(bool, True), (bool, "True"), (bool, "true"), (bool, np.True_), (int, 1), (int, "1"), (int, 1.0), (float, 1)],
)
def test_a_class_is_wanted_by_its_value_or_its_text(label, want):
    x, y = x_and_y("cancer")
    own = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y.astype(label))
    rows = train_rows("cancer").assign(diagnosis=y.astype(label))
    its = hf.Explainer(own, rows, label="diagnosis", want=want, workers=1)
    plans = its.explain(people("cancer", own.predict).head(2)).wide()
    assert plans["found"].any()
    assert own.predict(plans[plans["found"]][features("cancer")]).all()


def test_any_of_several_classes_and_the_advice_as_a_table_is_audited():
    wine = load_wine(as_frame=True)
    rows = wine.data.assign(kind=np.array(["a", "b", "c"])[wine.target])
    own = RandomForestClassifier(12, max_depth=4, random_state=0).fit(wine.data, rows["kind"])
    its = hf.Explainer(own, rows, label="kind", want=["a", "b"], retrain=hf.seeds(6), workers=1)
    asking = rows[rows["kind"] == "c"].head(4)
    advice = its.explain(asking, hold=0.5)
    plans = advice.wide()
    given = plans[plans["found"]]
    assert len(given)
    assert set(own.predict(given[list(wine.data)])) <= {"a", "b"}
    # The labels of the people are those of their index, which has no name: the table calls them "id".
    np.testing.assert_array_equal(its.audit(given, asking).audit.per_row, its.audit(advice).per_row)
    with pytest.raises(ValueError, match="3 classes"):
        hf.Explainer(own, rows, label="kind").explain(asking)


# ---- what cannot be explained, or tells little ----


@pytest.mark.parametrize(
    "regressor", [RandomForestRegressor(3), make_pipeline(StandardScaler(), LinearRegression())], ids=["forest", "line"]
)
def test_a_regressor_is_refused(regressor):
    with pytest.raises(ValueError, match="regressor"):
        explainer(regressor.fit(*x_and_y("cancer")))


def test_a_label_of_probabilities_is_refused(module):
    rows = train_rows("cancer").assign(diagnosis=np.linspace(0, 1, outsiders.TRAIN))
    with pytest.raises(ValueError, match="number"):
        hf.Explainer(module, rows, label="diagnosis", want=1)


def test_surrogates_are_told_in_the_advice(tmp_path):
    """The file was trained on other rows and labels than the table has, so its refits are other models."""
    xgboost = pytest.importorskip("xgboost")
    x, y = x_and_y("cancer")
    noisy = np.where(np.random.default_rng(0).random(len(y)) < 0.25, 1 - y, y)
    own = xgboost.XGBClassifier(n_estimators=12, max_depth=3, n_jobs=1).fit(x, noisy)
    own.save_model(tmp_path / "model.ubj")
    with pytest.warns(UserWarning, match="members are surrogates"):
        advice = explainer(tmp_path / "model.ubj", retrain=hf.changes.bootstrap(6), params={"max_depth": 3}).explain(
            people("cancer", own.predict)
        )
    (told,) = advice.summary()["decided"]["warnings"]
    assert told.startswith("surrogates: the deployed model gives")
    assert told in repr(advice)


def test_refits_that_are_one_model_are_told_in_the_advice():
    own = outsiders.pipeline("cancer")
    with pytest.warns(UserWarning, match="are one model"):
        advice = explainer(own, retrain=hf.seeds(6)).explain(people("cancer", own.predict).head(2), hold=0.5)
    (told,) = advice.summary()["decided"]["warnings"]
    assert told.startswith("one model: the 2 retrained models of kind 'seeds'")
    assert "bootstrap:6" in told


def test_one_of_several_is_singular(module):
    others = [outsiders.torch_module("cancer", seed) for seed in range(1, 7)]
    advice = explainer(module, retrain=others).explain(people("cancer", says(module)))
    text = " ".join(str(advice.of(label)) for label in advice.people.index)
    assert "so do 1 of" not in text
    assert pd.Series(text).str.contains("so do|so does").all()
