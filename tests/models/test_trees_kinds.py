"""Every kind of column, in every dtype that pandas keeps it in: a model is asked in the dtypes it was fitted on."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from conftest import EVERYTHING, everything
from reading import asking, assert_same, read

from holdfast import Encoding
from holdfast.models.adapters.seen import as_fitted

ensemble = pytest.importorskip("sklearn.ensemble")
lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

GRADES = pd.CategoricalDtype(["low", "middle", "high"], ordered=True)
CATEGORIES = {"grade": GRADES, "job": "category", "delay": "category"}
DTYPES = {
    "as read": {},
    "nullable": {"income": "Float64", "age": "Int64", "debt": "Int32", "owner": "boolean"},
    "narrow": {"income": "float32", "age": "float32", "debt": "int16", "owner": "int8"},
}
BOOSTED = {
    "hist": lambda: ensemble.HistGradientBoostingClassifier(max_iter=10),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=10, enable_categorical=True, n_jobs=1),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1),
}


def with_missing(dtypes: dict[str, object]) -> tuple[pd.DataFrame, Encoding]:
    draw = np.random.default_rng(0)
    table = everything(300)
    for name in ("income", "age", "grade", "job"):
        table.loc[draw.random(len(table)) < 0.1, name] = None
    schema = EVERYTHING.revise("income", "age", "grade", "job", missing=True)
    table = table.astype(CATEGORIES | dtypes)
    return table, Encoding.fit(table, schema)


@pytest.mark.parametrize(
    "dtypes", ["nullable", *(pytest.param(each, marks=pytest.mark.slow) for each in ("as read", "narrow"))]
)
@pytest.mark.parametrize("name", BOOSTED)
def test_trees_over_every_kind_of_column(name, dtypes):
    table, encoding = with_missing(DTYPES[dtypes])
    model = BOOSTED[name]().fit(table[list(EVERYTHING.names)], (table["outcome"] == "yes").astype(int))
    assert_same(read(model, encoding), asking(model, encoding))


@pytest.mark.parametrize("dtypes", DTYPES)
def test_decoding_and_casting_gives_the_table_back(dtypes):
    table, encoding = with_missing(DTYPES[dtypes])
    back = as_fitted(encoding.decode(encoding.encode(table)), encoding)
    pd.testing.assert_frame_equal(back, table[list(EVERYTHING.names)])


def test_a_value_that_a_dtype_cannot_hold_leaves_its_column_as_it_is():
    table, encoding = with_missing(DTYPES["narrow"])
    odd = table.iloc[:2].astype({"debt": "int64"}).assign(debt=[100, 40_000], job=["clerk", "pilot"])
    cast = as_fitted(odd, encoding)
    assert cast["debt"].tolist() == [100, 40_000]
    assert cast["job"].tolist() == ["clerk", "pilot"]
    assert cast["grade"].dtype == GRADES


def test_an_encoding_that_knows_no_rows_cannot_say_what_trees_see():
    table, known = with_missing({})
    encoding = Encoding.fit(table, known.schema, plausible=None)
    model = BOOSTED["xgboost"]().fit(table[list(EVERYTHING.names)], (table["outcome"] == "yes").astype(int))
    assert read(model, encoding) is None
