"""A .skops file makes nothing but estimators that are on a list, and their parts are sound."""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from pathlib import Path

import lightgbm
import numpy as np
import pytest
import skops.io
import xgboost
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from holdfast.models.files.skops import KNOWN, known_types, loaded
from holdfast.models.files.untrusted import RefusedError

X, Y = make_classification(120, 6, random_state=0)
HERE = Path("model.skops")


def rewritten(contents, change):
    """The file with another description: ``change`` is given every node."""
    with zipfile.ZipFile(io.BytesIO(contents)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(parts["schema.json"])
    left = [schema]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            change(value, parts)
            left += value.values()
        elif isinstance(value, list):
            left += value
    parts["schema.json"] = json.dumps(schema).encode()
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return written.getvalue()


def node(loader, module, name, **more):
    return {"__loader__": loader, "__module__": module, "__class__": name, **more}


def plain(value):
    return node("JsonNode", "builtins", "str", content=json.dumps(value), is_json=True)


def calling(module, name, *arguments):
    """A logistic regression with an attribute that calls something with arguments."""
    content = node("TupleNode", "builtins", "tuple", content=[plain(one) for one in arguments])
    called = node("ConstructorFromReduceNode", module, name, content=content)

    def change(value, parts):
        if value.get("__class__") == "LogisticRegression" and "coef_" in value.get("content", {}).get("content", {}):
            value["content"]["content"]["C"] = called

    return rewritten(skops.io.dumps(LogisticRegression().fit(X, Y)), change)


@pytest.mark.parametrize(
    ("module", "name", "arguments"),
    [
        ("subprocess", "Popen", [["touch", "ran"]]),
        ("numpy.distutils.fcompiler.gnu", "Popen", [["touch", "ran"]]),
        ("numpy", "memmap", ["ran", "uint8", "w+", 0, 4]),
        ("sklearn.datasets._covtype", "GzipFile", ["ran", "wb"]),
        ("xgboost.core", "DMatrix", ["ran?format=csv"]),
        ("sklearn.linear_model._logistic", "LogisticRegression", []),
    ],
)
def test_nothing_is_called_with_arguments_of_a_file(module, name, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RefusedError, match="no estimator"):
        loaded(HERE, calling(module, name, *arguments))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("module", ["numpy.f2py.__main__", "antigravity", "this"])
def test_nothing_is_imported_to_decide(module):
    import sys

    with pytest.raises(RefusedError, match="no estimator"):
        loaded(HERE, calling(module, "main"))
    assert module not in sys.modules


@pytest.mark.parametrize(
    "given",
    [
        node("MethodNode", "sklearn.linear_model._logistic", "LogisticRegression", content={}),
        node("PartialNode", "functools", "partial", content={}),
        node("OperatorFuncNode", "operator", "methodcaller", attrs=plain(["x"])),
        node("TypeNode", "os", "system"),
        node("FunctionNode", "numpy", "save"),
        node("CachedNode", "builtins", "str", __id__=1),
        {"__class__": "LogisticRegression", "__module__": "sklearn.linear_model._logistic"},
    ],
)
def test_no_other_way_to_call_is_known(given):
    def change(value, parts):
        if value.get("__class__") == "LogisticRegression" and "coef_" in value.get("content", {}).get("content", {}):
            value["content"]["content"]["C"] = given

    with pytest.raises(RefusedError, match="no estimator"):
        loaded(HERE, rewritten(skops.io.dumps(LogisticRegression().fit(X, Y)), change))


HONEST = [
    LogisticRegression(), RandomForestClassifier(5), GradientBoostingClassifier(n_estimators=3), SVC(probability=False),
    HistGradientBoostingClassifier(max_iter=3), KNeighborsClassifier(), DecisionTreeClassifier(),
    make_pipeline(FunctionTransformer(np.abs), StandardScaler(), LogisticRegression()),
    make_pipeline(make_column_transformer((OneHotEncoder(max_categories=4, handle_unknown="ignore"), [0])),
                  DecisionTreeClassifier(max_depth=3)),
    xgboost.XGBClassifier(n_estimators=3), lightgbm.LGBMClassifier(n_estimators=3, verbose=-1),
]  # fmt: skip


@pytest.mark.parametrize("model", HONEST, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore")
def test_an_honest_estimator_answers_alike_after_reading(model, classes):
    x, y = make_classification(120, 6, n_informative=4, n_classes=classes, random_state=1)
    fitted = clone(model).fit(np.round(x, 1), y)  # XGBoost keeps the number of classes of an earlier fit
    again = loaded(HERE, skops.io.dumps(fitted))
    ask = "decision_function" if isinstance(model, SVC) else "predict_proba"
    assert np.array_equal(getattr(fitted, ask)(x), getattr(again, ask)(x))


def harmed_array(model, key, change):
    """The file of a model whose array of this name was changed."""

    def harm(value, parts):
        found = value.get(key)
        if isinstance(found, dict) and str(found.get("file", "")).endswith(".npy"):
            array = np.load(io.BytesIO(parts[found["file"]]))
            written = io.BytesIO()
            np.save(written, change(array.copy()))
            parts[found["file"]] = written.getvalue()

    return rewritten(skops.io.dumps(model.fit(X, Y)), harm)


def with_field(name, value):
    def change(array):
        array[name][0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("model", "key", "change"),
    [
        (DecisionTreeClassifier(), "nodes", with_field("left_child", 10**7)),
        (DecisionTreeClassifier(), "nodes", with_field("right_child", 0)),
        (DecisionTreeClassifier(), "nodes", with_field("feature", 10**6)),
        (RandomForestClassifier(3), "nodes", with_field("left_child", 10**7)),
        (GradientBoostingClassifier(n_estimators=2), "nodes", with_field("feature", -5)),
        (HistGradientBoostingClassifier(max_iter=2), "nodes", with_field("left", 10**6)),
        (HistGradientBoostingClassifier(max_iter=2), "nodes", with_field("right", 0)),
        (HistGradientBoostingClassifier(max_iter=2), "nodes", with_field("feature_idx", 1000)),
        (SVC(), "_n_support", lambda array: array + 10**6),
        (SVC(), "_dual_coef_", lambda array: array[:, :1]),
        (SVC(), "_intercept_", lambda array: array[:0]),
        (KNeighborsClassifier(algorithm="brute"), "_y", lambda array: array + 10**6),
        (OneHotEncoder(), "_n_features_outs", lambda array: array),
    ],
    ids=lambda given: type(given).__name__ if hasattr(given, "fit") else str(given)[:20],
)
def test_parts_that_compiled_code_trusts_are_checked(model, key, change):
    if isinstance(model, OneHotEncoder):

        def harm(value, parts):
            if key in value:
                value[key] = node("ListNode", "builtins", "list", content=[plain(-(10**6)) for _ in range(6)])

        contents = rewritten(skops.io.dumps(model.fit(np.round(X))), harm)
    else:
        contents = harmed_array(model, key, change)
    with pytest.raises(ValueError, match="model.skops is damaged"):
        loaded(HERE, contents)


def test_a_number_of_nodes_beyond_the_array_is_not_believed():
    def harm(value, parts):
        if "node_count" in value:
            value["node_count"] = plain(10**6)

    model = DecisionTreeClassifier().fit(X, Y)
    again = loaded(HERE, rewritten(skops.io.dumps(model), harm))  # scikit-learn counts the nodes itself
    assert again.tree_.node_count == model.tree_.node_count


def test_a_tree_of_lightgbm_that_goes_in_circles_is_refused():
    def harm(value, parts):
        if "_handle" in value:
            text = json.loads(value["_handle"]["content"])
            value["_handle"]["content"] = json.dumps(text.replace("left_child=1", "left_child=0"))

    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(X, Y)
    with pytest.raises(ValueError, match="children of nodes"):
        loaded(HERE, rewritten(skops.io.dumps(model), harm))


@pytest.mark.parametrize("key", ["memory", "machines", "forcedsplits_filename"])
def test_settings_that_reach_outside_are_refused(key):
    def harm(value, parts):
        if value.get("__class__") == "LogisticRegression" and "coef_" in value.get("content", {}).get("content", {}):
            value["content"]["content"][key] = plain("/tmp/elsewhere")

    with pytest.raises(RefusedError, match=key):
        loaded(HERE, rewritten(skops.io.dumps(LogisticRegression().fit(X, Y)), harm))


def test_an_array_that_announces_more_than_it_holds_is_refused():
    def harm(value, parts):
        if str(value.get("file", "")).endswith(".npy"):
            parts[value["file"]] = parts[value["file"]].replace(b"(1, 6)", b"(9, 6)")

    with pytest.raises(ValueError, match="does not fit"):
        loaded(HERE, rewritten(skops.io.dumps(LogisticRegression().fit(X, Y)), harm))


def test_every_known_name_is_that_of_its_own_module():
    """A name that a module merely imports would be another way in."""
    listed = json.loads(KNOWN.read_text())
    assert set(listed) == set(known_types())
    assert not {"ConstructorFromReduceNode", "MethodNode", "PartialNode", "OperatorFuncNode", "CachedNode"} & set(
        listed
    )
    for name in listed["ObjectNode"]:
        module, _, own = name.rpartition(".")
        found = getattr(importlib.import_module(module), own)
        assert isinstance(found, type), name
        assert found.__module__ == module, name
        assert module.partition(".")[0] in ("sklearn", "xgboost", "lightgbm", "scipy"), name
