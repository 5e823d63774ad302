"""Trees of every library over numbers and levels, behind pipelines and bare: read, they say the same."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from reading import adapter, asking, assert_same, read

from holdfast import Encoding
from holdfast.datasets.prepared import prepare
from holdfast.models.adapters.seen import Inputs, as_fitted, numbers, seen
from holdfast.models.adapting import as_model

ensemble = pytest.importorskip("sklearn.ensemble")
trees = pytest.importorskip("sklearn.tree")
lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")

CLASSIFIERS = {
    "tree": lambda: trees.DecisionTreeClassifier(random_state=0),
    "forest": lambda: ensemble.RandomForestClassifier(20, random_state=0),
    "extra trees": lambda: ensemble.ExtraTreesClassifier(10, random_state=0),
    "bagging": lambda: ensemble.BaggingClassifier(n_estimators=5, max_features=0.5, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0),
    "exponential": lambda: ensemble.GradientBoostingClassifier(loss="exponential", n_estimators=5, random_state=0),
    "hist": lambda: ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0),
    "xgboost": lambda: xgboost.XGBClassifier(n_estimators=20, random_state=0),
    "dart": lambda: xgboost.XGBClassifier(booster="dart", rate_drop=0.3, n_estimators=10, random_state=0),
    "xgboost forest": lambda: xgboost.XGBRFClassifier(n_estimators=10, random_state=0),
    "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1, random_state=0),
    "lightgbm forest": lambda: lightgbm.LGBMClassifier(
        boosting_type="rf", bagging_freq=1, bagging_fraction=0.7, n_estimators=10, verbose=-1, n_jobs=1, random_state=0
    ),
}


@pytest.fixture(scope="module")
def german():
    return prepare("german")


@pytest.fixture(scope="module")
def with_categories(german):
    """The same table with pandas categories, which some libraries split as they are."""
    levels = {feature.name: "category" for feature in german.schema.features if not feature.is_numeric}
    return german.train.astype(levels), Encoding.fit(german.train.astype(levels), german.schema)


def columns(schema, numeric: bool) -> list[str]:
    return [feature.name for feature in schema.features if feature.is_numeric == numeric]


def piped(way: str, schema, classifier):
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    levels = columns(schema, numeric=False)
    if way == "one-hot":
        before = make_column_transformer((OneHotEncoder(), levels), (StandardScaler(), columns(schema, numeric=True)))
    else:
        before = make_column_transformer((OrdinalEncoder(), levels), remainder="passthrough")
    return make_pipeline(before, classifier)


def fitted(model, table, encoding: Encoding):
    """Some libraries take their classes by name, XGBoost by number."""
    named = not isinstance(getattr(model, "_final_estimator", model), xgboost.XGBModel)
    labels = table[encoding.schema.label] if named else encoding.labels(table).numpy()
    return model.fit(table[list(encoding.schema.names)], labels)


QUICK = {("one-hot", "boosting"), ("ordinal", "forest"), ("one-hot", "xgboost"), ("ordinal", "lightgbm")}


def ways() -> list[object]:
    """Every classifier behind either pipeline; few of them outside the slow run."""
    every = [(way, name) for way in ("one-hot", "ordinal") for name in CLASSIFIERS]
    return [pytest.param(*each, marks=() if each in QUICK else pytest.mark.slow) for each in every]


@pytest.mark.parametrize(("way", "name"), ways())
def test_trees_behind_a_pipeline(german, way, name):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        model = fitted(piped(way, german.schema, CLASSIFIERS[name]()), german.train, german.encoding)
        assert_same(read(model, german.encoding), asking(model, german.encoding))


@pytest.mark.parametrize(
    "classifier",
    [
        lambda: ensemble.HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype"),
        lambda: xgboost.XGBClassifier(n_estimators=20, n_jobs=1, enable_categorical=True),
        lambda: xgboost.XGBClassifier(n_estimators=20, n_jobs=1, enable_categorical=True, max_cat_to_onehot=1),
        lambda: lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1, min_data_per_group=1, cat_smooth=1),
    ],
    ids=["hist", "xgboost one by one", "xgboost sets", "lightgbm"],
)
def test_categories_as_libraries_split_them(with_categories, classifier):
    table, encoding = with_categories
    model = fitted(classifier(), table, encoding)
    own = read(model, encoding)
    assert_same(own, asking(model, encoding))
    by_level = [not encoding.schema.features[place].is_numeric for place in own.feature if place >= 0]
    assert any(by_level)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_text_is_asked_as_categories_where_a_library_takes_no_text(german, with_categories, library):
    """The encoding knows the table as it was read, the model was fitted on categories."""
    table, _ = with_categories
    classifier = {
        "xgboost": lambda: xgboost.XGBClassifier(n_estimators=5, enable_categorical=True, n_jobs=1),
        "lightgbm": lambda: lightgbm.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1),
    }[library]
    model = fitted(classifier(), table, german.encoding)
    assert_same(read(model, german.encoding), asking(model, german.encoding))


def test_a_model_of_encoded_rows(german):
    encoding = german.encoding
    x, y = encoding.encode(german.train).numpy(), german.train[encoding.schema.label]
    model = ensemble.RandomForestClassifier(20, random_state=0).fit(x, y)
    assert_same(read(model, encoding), asking(model, encoding))


def test_classes_in_another_order(german):
    turned = Encoding.fit(
        german.train, german.schema.__class__(german.schema.features, german.schema.label, ("good", "bad"))
    )
    assert turned.schema.classes == german.schema.classes[::-1]
    for name in ("tree", "boosting"):
        model = fitted(piped("ordinal", german.schema, CLASSIFIERS[name]()), german.train, turned)
        assert_same(read(model, turned), asking(model, turned))


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_bare_boosters_are_models(with_categories, library):
    table, encoding = with_categories
    x, y = table[list(encoding.schema.names)], encoding.labels(table).numpy()
    if library == "xgboost":
        settings = {"objective": "binary:logistic", "max_depth": 3}
        booster = xgboost.train(settings, xgboost.DMatrix(x, y, enable_categorical=True), 10)
    else:
        booster = lightgbm.train({"objective": "binary", "verbose": -1, "num_threads": 1}, lightgbm.Dataset(x, y), 10)
    model = as_model(booster, encoding)
    assert "searched as Ensemble(10 trees" in repr(model)
    assert_same(model.ensemble, model.adapter)
    rows = encoding.encode(table.iloc[:50])
    np.testing.assert_allclose(model(rows).numpy(), model.ensemble(rows).numpy(), atol=1e-5)


def test_a_search_over_settings_is_read_as_what_it_chose(german):
    from sklearn.model_selection import GridSearchCV

    pipe = piped("one-hot", german.schema, trees.DecisionTreeClassifier(random_state=0))
    model = fitted(
        GridSearchCV(pipe, {"decisiontreeclassifier__max_depth": [2, 3]}, cv=2), german.train, german.encoding
    )
    assert_same(read(model, german.encoding), asking(model, german.encoding))


def test_what_mixes_columns_is_not_read(german, caplog):
    from sklearn.decomposition import PCA
    from sklearn.pipeline import make_pipeline

    before = piped("one-hot", german.schema, "passthrough")[:-1]
    model = make_pipeline(before, PCA(5), trees.DecisionTreeClassifier(random_state=0))
    caplog.set_level("INFO")
    assert read(fitted(model, german.train, german.encoding), german.encoding) is None
    assert "depends on several columns" in caplog.text


def test_every_column_of_a_matrix_has_its_feature(german):
    model = fitted(piped("one-hot", german.schema, CLASSIFIERS["tree"]()), german.train, german.encoding)
    see, final = seen(model, adapter(model, german.encoding).rows)
    inputs = Inputs.of(lambda table: numbers(see(table)), german.encoding)
    names = model[:-1].get_feature_names_out()
    for name, place in zip(names, inputs.source, strict=True):
        assert name.split("__")[1].startswith(german.schema.features[place].name)
    assert final is model[-1]
    for place, feature in enumerate(german.schema.features):
        if not feature.is_numeric:
            hot = inputs.of_levels[place][:, inputs.source == place]
            np.testing.assert_array_equal(hot.sum(axis=1), 1)  # one column for each level


def test_a_decoded_table_has_the_dtypes_of_the_training_table(with_categories):
    table, encoding = with_categories
    decoded = as_fitted(encoding.decode(encoding.encode(table)), encoding)
    pd.testing.assert_frame_equal(decoded, table[list(encoding.schema.names)].reset_index(drop=True))
