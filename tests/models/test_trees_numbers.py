"""Trees over real numbers: every threshold is read to the last bit, missing values go where the library sends them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from reading import asking, assert_same, numbers, read, shares

from holdfast import Encoding, Feature, Schema
from holdfast.models.adapting import as_model

ensemble = pytest.importorskip("sklearn.ensemble")
trees = pytest.importorskip("sklearn.tree")
lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

BARE = {
    "tree": lambda: trees.DecisionTreeClassifier(random_state=0),
    "deep forest": lambda: ensemble.RandomForestClassifier(30, random_state=0),
    "extra trees": lambda: ensemble.ExtraTreesClassifier(10, random_state=0),
    "hist": lambda: ensemble.HistGradientBoostingClassifier(max_iter=10, random_state=0),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=10, num_parallel_tree=2, subsample=0.8, n_jobs=1),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1),
}
MISSING = [pytest.param(False, id="full", marks=pytest.mark.slow), pytest.param(True, id="missing")]


def fitted(model, table: pd.DataFrame, encoding: Encoding):
    return model.fit(table[list(encoding.schema.names)], table[encoding.schema.label])


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("name", BARE)
@pytest.mark.parametrize("data", ["breast_cancer", pytest.param("wine", marks=pytest.mark.slow)])
def test_bare_classifiers(data, name, missing):
    table, encoding = numbers(data, missing)
    model = fitted(BARE[name](), table, encoding)
    assert_same(read(model, encoding), asking(model, encoding))


@pytest.mark.parametrize(
    "name",
    [
        "hist",
        "xgboost",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("deep forest", "boosting", "lightgbm")),
    ],
)
def test_three_classes(name):
    table, encoding = numbers("wine", missing=name != "boosting")
    bare = BARE | {"boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0)}
    model = fitted(bare[name](), table, encoding)
    own = read(model, encoding)
    assert own.value.shape[1] == 3
    assert_same(own, asking(model, encoding))


STEPS = {
    "standard": lambda: preprocessing().StandardScaler(),
    "quantiles": lambda: preprocessing().QuantileTransformer(n_quantiles=20),
    "power": lambda: preprocessing().PowerTransformer(),
    "falling": lambda: preprocessing().FunctionTransformer(falling),
    "ranks": lambda: preprocessing().FunctionTransformer(np.floor),
}


def preprocessing():
    import sklearn.preprocessing

    return sklearn.preprocessing


def falling(rows):
    return -np.log1p(rows)


@pytest.mark.parametrize(
    "step",
    ["standard", "falling", *(pytest.param(step, marks=pytest.mark.slow) for step in ("quantiles", "power", "ranks"))],
)
@pytest.mark.parametrize("name", ["xgboost", pytest.param("boosting", marks=pytest.mark.slow)])
def test_steps_that_rise_or_fall(step, name):
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline

    table, encoding = numbers("wine", missing=True)
    last = BARE[name]() if name in BARE else ensemble.GradientBoostingClassifier(n_estimators=5, random_state=0)
    model = fitted(make_pipeline(SimpleImputer(add_indicator=True), STEPS[step](), last), table, encoding)
    assert_same(read(model, encoding), asking(model, encoding))


def test_what_swings_is_not_read(caplog):
    """Between known numbers, such a column does what nobody has seen."""
    from sklearn.pipeline import make_pipeline

    table, encoding = numbers("wine")
    swinging = preprocessing().FunctionTransformer(lambda rows: np.sin(1e4 * rows))
    caplog.set_level("INFO")
    assert read(fitted(make_pipeline(swinging, BARE["tree"]()), table, encoding), encoding) is None
    assert "black box" in caplog.text


def counted(missing: bool) -> tuple[pd.DataFrame, Encoding]:
    """Numbers of which many are 0, and a category of many levels: one-hot columns make a sparse matrix."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "count": draw.poisson(1.5, 400) - 1,
            "amount": np.where(draw.random(400) < 0.4, 0.0, draw.normal(0, 3, 400)),
            "place": draw.choice([f"p{i}" for i in range(20)], 400),
        }
    )
    if missing:
        table = table.astype({"count": float}).mask(draw.random(table.shape) < 0.1)
    hit = (table["count"] == 0).astype(float) + (table["amount"] == 0) + 0.3 * table["amount"].fillna(1).clip(-2, 2)
    table["label"] = (hit + draw.normal(0, 0.3, 400) > 0.7).astype(int)
    schema = Schema(
        (Feature("count", "integer", missing=missing), Feature("amount", "real", missing=missing),
         Feature("place", "categorical", levels=tuple(f"p{i}" for i in range(20)), missing=missing)),
        "label",
        (0, 1),
    )  # fmt: skip
    return table, Encoding.fit(table, schema)


@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("name", ["xgboost sparse", "xgboost missing=0", "lightgbm zero_as_missing", "bins"])
def test_numbers_that_change_sides_several_times(name, missing):
    """A 0 that a sparse matrix leaves out is missing to XGBoost; a bin is left on both sides."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline

    table, encoding = counted(missing)
    hot = preprocessing().OneHotEncoder(handle_unknown="ignore")
    if name == "bins":
        cut = preprocessing().FunctionTransformer(binned)
        before, last = [(cut, ["count", "amount"])], BARE["deep forest"]()
    else:
        before = [("passthrough", ["count", "amount"])]
        last = {
            "xgboost sparse": lambda: xgboost.XGBClassifier(n_estimators=10, n_jobs=1),
            "xgboost missing=0": lambda: xgboost.XGBClassifier(n_estimators=10, n_jobs=1, missing=0.0),
            "lightgbm zero_as_missing": lambda: lightgbm.LGBMClassifier(
                n_estimators=10, zero_as_missing=True, verbose=-1, n_jobs=1
            ),
        }[name]()
    threshold = 1.0 if name == "xgboost sparse" else 0.0
    model = make_pipeline(make_column_transformer((hot, ["place"]), *before, sparse_threshold=threshold), last)
    own = read(fitted(model, table, encoding), encoding)
    assert_same(own, asking(model, encoding))
    assert {0.0, -1.0} <= set(own.edges[0]) or name == "bins"


def binned(rows):
    """Columns for: below −0.5, between, above 0.5; a missing value is in none."""
    numbers_ = np.asarray(rows, dtype=np.float64)
    return np.concatenate([numbers_ < -0.5, abs(numbers_) <= 0.5, numbers_ > 0.5], axis=1).astype(np.float64)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "sklearn"])
def test_numbers_on_a_threshold_and_one_float_beside_it(library):
    """Thresholds as the library writes them, not as they were read."""
    table, encoding = numbers("breast_cancer")
    name = {"xgboost": "xgboost", "lightgbm": "lightgbm", "sklearn": "tree"}[library]
    model = fitted(BARE[name](), table, encoding)
    own = read(model, encoding)
    for column, cuts in thresholds(model, library).items():
        near = [cuts, np.nextafter(cuts, -np.inf), np.nextafter(cuts, np.inf)]
        single = cuts.astype(np.float32)
        near += [single, np.nextafter(single, np.float32(-np.inf)), np.nextafter(single, np.float32(np.inf))]
        values = np.concatenate([each.astype(np.float64) for each in near])
        rows = table.iloc[np.arange(len(values)) * 7 % len(table)].reset_index(drop=True).assign(**{column: values})
        ours = shares(own.logits(own.raw(own.cells(rows))))
        np.testing.assert_allclose(ours, shares(asking(model, encoding)(rows)), rtol=0, atol=1e-6)


def thresholds(model, library: str) -> dict[str, np.ndarray]:
    if library == "sklearn":
        found = pd.DataFrame({"column": model.feature_names_in_[model.tree_.feature], "cut": model.tree_.threshold})[
            model.tree_.feature >= 0
        ]
    else:
        own = model.get_booster() if library == "xgboost" else model.booster_
        names = ("Feature", "Split") if library == "xgboost" else ("split_feature", "threshold")
        found = own.trees_to_dataframe().dropna(subset=[names[1]])
        found = pd.DataFrame({"column": found[names[0]], "cut": found[names[1]]})
    return {str(column): cuts.unique() for column, cuts in found.groupby("column")["cut"]}


def test_an_xgboost_classifier_that_stopped_early():
    table, encoding = numbers("breast_cancer")
    x, y = table[list(encoding.schema.names)], table["label"]
    model = xgboost.XGBClassifier(n_estimators=60, learning_rate=1.0, early_stopping_rounds=2, n_jobs=1)
    model.fit(x[:400], y[:400], eval_set=[(x[400:], y[400:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    own = read(model, encoding)
    assert len(own.roots) == model.best_iteration + 1
    assert_same(own, asking(model, encoding))


def test_a_booster_of_three_classes():
    table, encoding = numbers("wine", missing=True)
    x, y = table[list(encoding.schema.names)], table["label"]
    one = xgboost.train({"objective": "multi:softmax", "num_class": 3, "nthread": 1}, xgboost.DMatrix(x, y), 5)
    settings_ = {"objective": "multiclass", "num_class": 3, "verbose": -1, "num_threads": 1}
    other = lightgbm.train(settings_, lightgbm.Dataset(x, y), 5)
    for booster in (one, other):
        model = as_model(booster, encoding)
        assert_same(model.ensemble, model.adapter)


def test_a_booster_without_classes_is_refused():
    table, encoding = numbers("wine")
    x, y = table[list(encoding.schema.names)], table["label"]
    with pytest.raises(ValueError, match="objective 'reg:squarederror', which gives no classes"):
        as_model(xgboost.train({"nthread": 1}, xgboost.DMatrix(x, y), 2), encoding)
    with pytest.raises(ValueError, match="objective 'regression', of which the classes are not known"):
        as_model(lightgbm.train({"verbose": -1, "num_threads": 1}, lightgbm.Dataset(x, y), 2), encoding)


def test_a_booster_of_other_classes_is_refused():
    table, encoding = numbers("wine")
    x, y = table[list(encoding.schema.names)], (table["label"] > 0).astype(int)
    one = xgboost.train({"objective": "binary:logistic", "nthread": 1}, xgboost.DMatrix(x, y), 2)
    other = lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1}, lightgbm.Dataset(x, y), 2)
    for booster in (one, other):
        with pytest.raises(ValueError, match="tells 2 classes apart, the schema has 3"):
            as_model(booster, encoding)


ODD = [0.0, -0.0, 0.1, 1 / 3, 16777217.0, 16777216.0, -1e-30, 1e-30, 2.5, -7.0, 1e15, 123456.789]


@settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    values=st.lists(
        st.tuples(st.sampled_from(ODD), st.floats(-1e6, 1e6, width=64), st.integers(-3, 3)), min_size=12, max_size=40
    ),
    name=st.sampled_from(["tree", "forest", "xgboost", "lightgbm", "hist"]),
    seed=st.integers(0, 100),
)
def test_small_ensembles_of_odd_numbers(values, name, seed):
    draw = np.random.default_rng(seed)
    table = pd.DataFrame(values, columns=["odd", "any", "whole"]).assign(
        level=draw.choice(["a", "b", "c"], len(values))
    )
    table["label"] = np.arange(len(table)) % 2
    schema = Schema(
        (Feature("odd", "real"), Feature("any", "real"), Feature("whole", "integer"),
         Feature("level", "categorical", levels=("a", "b", "c"))),
        "label",
        (0, 1),
    )  # fmt: skip
    try:
        encoding = Encoding.fit(table, schema)
    except ValueError:  # numbers that float32 cannot tell apart
        return
    model = small(name, seed)
    model.fit(table[["odd", "any", "whole"]], table["label"])
    assert_same(read(model, encoding), asking(model, encoding))


def small(name: str, seed: int):
    match name:
        case "forest":
            return ensemble.RandomForestClassifier(4, random_state=seed)
        case "xgboost":
            return xgboost.XGBClassifier(n_estimators=3, min_child_weight=0, random_state=seed, n_jobs=1)
        case "lightgbm":
            return lightgbm.LGBMClassifier(
                n_estimators=3, min_child_samples=1, min_data_in_bin=1, random_state=seed, verbose=-1, n_jobs=1
            )
        case "hist":
            return ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=1, early_stopping=False)
    return trees.DecisionTreeClassifier(random_state=seed)


def test_a_model_asked_in_the_dtypes_it_was_fitted_on():
    """float32 columns: the tree sees what the user's table would hold, and so do the cells."""
    table, _ = numbers("breast_cancer")
    narrow = table.astype(dict.fromkeys([name for name in table if name != "label"], np.float32))
    encoding = Encoding.fit(narrow, Schema.infer(narrow, "label"))
    model = fitted(BARE["hist"](), narrow, encoding)
    assert_same(read(model, encoding), asking(model, encoding))
    seen = []

    class Listening:
        classes_ = model.classes_

        def predict_proba(self, rows):
            seen.append(rows.dtypes.unique().tolist())
            return model.predict_proba(rows)

    as_model(Listening(), encoding)(encoding.encode(narrow.iloc[:3]))
    assert seen[-1] == [np.dtype(np.float32)]
