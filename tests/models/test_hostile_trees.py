"""XGBoost and LightGBM are given what was checked: parsed, and written anew."""

from __future__ import annotations

import json
from pathlib import Path

import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import make_classification

from holdfast.models.files.lightgbm import checked_lightgbm
from holdfast.models.files.ubjson import from_ubjson
from holdfast.models.files.xgboost import checked_xgboost

X, Y = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)
HERE = Path("model.txt")


@pytest.fixture(scope="module")
def text() -> str:
    return lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(X, Y).booster_.model_to_string()


@pytest.fixture(scope="module")
def booster() -> xgboost.Booster:
    return xgboost.XGBClassifier(n_estimators=3).fit(X, Y).get_booster()


@pytest.mark.parametrize("boosting", ["gbdt", "dart", "rf"])
def test_lightgbm_written_anew_answers_alike(boosting):
    more = {"subsample": 0.5, "subsample_freq": 1} if boosting == "rf" else {}
    x = X.copy()
    x[:, 0] = np.round(x[:, 0]) + 5
    model = lightgbm.LGBMClassifier(boosting_type=boosting, n_estimators=5, verbose=-1, **more)
    own = model.fit(x, Y, categorical_feature=[0]).booster_
    again = lightgbm.Booster(model_str=checked_lightgbm(HERE, own.model_to_string().encode()))
    assert np.array_equal(own.predict(x), again.predict(x))


@pytest.mark.parametrize("form", ["json", "ubj"])
@pytest.mark.parametrize("kind", ["gbtree", "dart", "gblinear"])
@pytest.mark.filterwarnings("ignore")
def test_xgboost_written_anew_answers_alike(form, kind):
    own = xgboost.XGBClassifier(n_estimators=5, booster=kind).fit(X, Y).get_booster()
    again = xgboost.Booster(model_file=checked_xgboost(HERE, bytes(own.save_raw(form))))
    given = xgboost.DMatrix(X)
    assert np.array_equal(own.predict(given), again.predict(given))


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("left_child=", "left_child=9999 9999\n\nleft_child="),
        ("left_child=", "left_child=9999 9999\nleft_child="),
        ("left_child=", "x=1\u2028left_child="),
        ("left_child=", "left_child=\u0661 "),
        ("left_child=", "left_child=1_0 "),
        ("num_class=3", "num_class=3\nnum_class=4"),
        ("objective=multiclass num_class:3", "objective=multiclass num_class:1000000"),
        ("max_feature_idx=5", "max_feature_idx=99999999"),
        ("leaf_value=", "leaf_value=inf "),
        ("shrinkage=1", "shrinkage=nan"),
        ("tree\n", "tree\nwhatever\n"),
        ("num_leaves=", "num_leaves=-"),
    ],
)
def test_what_lightgbm_would_read_otherwise_is_refused(was, becomes, text):
    assert was in text
    with pytest.raises(ValueError, match="model.txt is damaged"):
        checked_lightgbm(HERE, text.replace(was, becomes, 1).encode())


def learner(booster):
    return json.loads(bytes(booster.save_raw("json")))


def test_an_escaped_key_is_the_key(booster):
    contents = bytes(booster.save_raw("json"))
    again = checked_xgboost(HERE, contents.replace(b'"left_children"', b'"left\\u005fchildren"'))
    assert b"u005f" not in again
    given = xgboost.DMatrix(X)
    assert np.array_equal(booster.predict(given), xgboost.Booster(model_file=again).predict(given))


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (b'"left_children"', b'"left\\u005fchildren":[9],"left_children"'),
        (b'"num_feature":"6"', b'"num_feature":"9999999"'),
        (b'"base_score":"', b'"base_score":"nothing'),
        (b'"left_children":[1', b'"left_children":[0'),
        (b'"left_children":[1', b'"left_children":[1.5'),
        (b'"split_indices":[', b'"split_indices":[77777,'),
    ],
)
def test_what_xgboost_would_read_otherwise_is_refused(was, becomes, booster):
    contents = bytes(booster.save_raw("json"))
    assert was in contents
    with pytest.raises(ValueError, match="model.txt is damaged"):
        checked_xgboost(HERE, contents.replace(was, becomes, 1))


def test_a_key_that_comes_twice_in_ubjson_is_refused():
    with pytest.raises(ValueError, match="twice"):
        from_ubjson(b"{U\x01ai\x01U\x01ai\x02}")
