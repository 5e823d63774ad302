"""Models of columns that were made one-hot before training, known by the names of these columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import EVERYTHING, everything
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from holdfast import Encoding, Feature, Schema, as_model
from holdfast.models.adapters.one_hot import Source, one_hot

TABLE = everything(200)
NAMES, LABEL = list(EVERYTHING.names), EVERYTHING.label
ENCODING = Encoding.fit(TABLE, EVERYTHING)
TEXT = [name for name in NAMES if not pd.api.types.is_numeric_dtype(TABLE[name])]


def dummies(table: pd.DataFrame, **how) -> pd.DataFrame:
    return pd.get_dummies(table[NAMES], columns=TEXT, dtype=float, **how)


def says_the_same(model, own, rows) -> None:
    asked = as_model(model, ENCODING)
    share = asked(ENCODING.encode(TABLE)).softmax(1).numpy()
    order = [list(own.classes_).index(label) for label in EVERYTHING.classes]
    np.testing.assert_allclose(share, own.predict_proba(rows)[:, order], atol=1e-3)
    return asked


@pytest.mark.parametrize("how", [{}, {"drop_first": True}, {"prefix_sep": "__"}, {"prefix_sep": " "}])
def test_an_estimator_of_dummies_is_asked_about_the_table(how):
    rows = dummies(TABLE, **how).fillna(0)
    whole = TABLE.assign(**{name: TABLE[name].fillna(0) for name in NAMES if name not in TEXT})
    if not whole[NAMES].notna().all().all():
        pytest.skip("the table has missing text")
    own = RandomForestClassifier(5, max_depth=4, random_state=0).fit(rows, TABLE[LABEL])
    asked = says_the_same(own, own, rows)
    assert "one-hot by their names" in repr(asked)
    assert asked.ensemble is not None


def test_columns_in_another_order_are_found_by_their_names():
    rows = dummies(TABLE).fillna(0)
    rows = rows[sorted(rows, reverse=True)]
    own = LogisticRegression(max_iter=5000).fit(rows, TABLE[LABEL])
    assert "one-hot by their names" in repr(says_the_same(own, own, rows))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_booster_of_dummies_is_searched_by_its_trees(library):
    module = pytest.importorskip(library)
    rows, y = dummies(TABLE), (TABLE[LABEL] == EVERYTHING.classes[1]).astype(int)
    if library == "xgboost":
        booster = module.XGBClassifier(n_estimators=5, max_depth=3).fit(rows, y).get_booster()
        share = booster.predict(module.DMatrix(rows))
    else:
        booster = module.LGBMClassifier(n_estimators=5, num_leaves=4, verbose=-1).fit(rows, y).booster_
        share = booster.predict(rows)
    asked = as_model(booster, ENCODING)
    assert asked.ensemble is not None
    np.testing.assert_allclose(asked(ENCODING.encode(TABLE)).softmax(1)[:, 1].numpy(), share, atol=1e-5)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_booster_of_other_columns_says_which(library):
    module = pytest.importorskip(library)
    y = (TABLE[LABEL] == EVERYTHING.classes[1]).astype(int)
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(len(y), 3)), columns=["height", "weight", "shoe"])
    make = {"xgboost": "XGBClassifier", "lightgbm": "LGBMClassifier"}[library]
    quiet = {} if library == "xgboost" else {"verbose": -1}
    own = getattr(module, make)(n_estimators=2, **quiet).fit(rows, y)
    booster = own.get_booster() if library == "xgboost" else own.booster_
    with pytest.raises(ValueError, match=r"columns that the schema does not have: 'height', 'weight'"):
        as_model(booster, ENCODING)


def test_names_that_could_mean_two_things_mean_none():
    features = (Feature("a", "categorical", levels=("b_c", "d")), Feature("a_b", "categorical", levels=("c", "e")))
    table = pd.DataFrame({"a": ["b_c", "d"] * 4, "a_b": ["c", "c", "e", "e"] * 2, "y": ["no", "yes"] * 4})
    encoding = Encoding.fit(table, Schema(features, label="y", classes=("no", "yes")))
    assert one_hot(["a_b_c", "a_d"], encoding) is None
    assert one_hot(["a_d", "a_b_e"], encoding) == (Source("a", True, "d"), Source("a_b", True, "e"))
    assert one_hot(["a", "a_b"], encoding) is None  # the table's own columns
    assert one_hot(["a_d", "a_d"], encoding) is None
    assert one_hot(["A d", "a.b.e"], encoding) == (Source("a", True, "d"), Source("a_b", True, "e"))
