"""scikit-learn's trees, forests and boosted trees, read off their own arrays."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from holdfast.models.adapters.seen import is_of
from holdfast.models.trees.ensemble import Floats, Link
from holdfast.models.trees.grown import Grown, UnreadableError, bits_of, joined, of_output

FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")


def reads(final: Any) -> bool:
    return any(_is(final, name) for name in (*FORESTS, *TREES, "GradientBoostingClassifier", HIST, "BaggingClassifier"))


HIST = "HistGradientBoostingClassifier"


def grown_of(final: Any) -> Grown:
    """The trees of a fitted classifier; its outputs are in the order of its ``classes_``."""
    if isinstance(final.classes_, list):
        raise UnreadableError("it predicts several labels at once")
    if _is(final, HIST):
        return _hist(final)
    if _is(final, "GradientBoostingClassifier"):
        return _boosted(final)
    if _is(final, "BaggingClassifier"):
        return _bagged(final)
    return _averaged([(tree, None) for tree in getattr(final, "estimators_", [final])], len(final.classes_))


def _is(final: Any, name: str) -> bool:
    """Whether an estimator is of a class of scikit-learn's."""
    return is_of(final, "sklearn.tree" if name in TREES else "sklearn.ensemble", name)


def _bagged(final: Any) -> Grown:
    members = list(zip(final.estimators_, final.estimators_features_, strict=True))
    for tree, _ in members:
        if not any(_is(tree, name) for name in TREES):
            raise UnreadableError(f"it averages {type(tree).__name__}, which is no tree")
        if len(tree.classes_) != len(final.classes_):
            raise UnreadableError("not every tree of it knows all classes")
    return _averaged(members, len(final.classes_))


def _averaged(members: list[tuple[Any, Any]], classes: int) -> Grown:
    """Trees that give shares of classes, averaged; ``features`` of each are the columns that it sees."""
    trees = []
    for member, features in members:
        counts = member.tree_.value[:, 0, :]
        shares = counts / counts.sum(axis=1, keepdims=True) / len(members)
        value = shares[:, 1:] if classes == 2 else shares
        trees.append(_tree(member.tree_, value, "probability", features))
    return joined(trees, np.zeros(trees[0].value.shape[1]))


def _boosted(final: Any) -> Grown:
    init = final.init_
    if not (isinstance(init, str) and init == "zero") and type(init).__name__ != "DummyClassifier":
        raise UnreadableError(f"its first prediction is that of a {type(init).__name__}")
    scale = 2.0 if final.loss == "exponential" else 1.0  # p = σ(2 raw)
    base = final._raw_predict_init(np.zeros((1, final.n_features_in_), dtype=np.float32))[0] * scale
    trees = []
    for row in final.estimators_:
        for output, member in enumerate(row):
            values = member.tree_.value[:, 0, 0] * final.learning_rate * scale
            trees.append(_tree(member.tree_, of_output(values, output, len(row)), "logit", None))
    return joined(trees, base)


def _tree(tree: Any, value: Floats, link: Link, features: Any) -> Grown:
    inner = tree.children_left >= 0
    columns = tree.feature if features is None else np.asarray(features)[np.where(inner, tree.feature, 0)]
    children = tree.children_left, tree.children_right
    grown = Grown.of(inner, columns, tree.threshold, tree.missing_go_to_left, *children, value, link=link)
    return replace(grown, below=lambda values, thresholds: values.astype(np.float32) <= thresholds)


def _hist(final: Any) -> Grown:
    outputs = final._baseline_prediction.reshape(-1)
    trees = [_hist_tree(tree, output, len(outputs)) for row in final._predictors for output, tree in enumerate(row)]
    seen = partial(final._preprocess_X, reset=False)
    return replace(joined(trees, outputs.astype(np.float64)), numbers=lambda rows: np.asarray(seen(rows), np.float64))


def _hist_tree(tree: Any, output: int, outputs: int) -> Grown:
    nodes = tree.nodes
    inner = nodes["is_leaf"] == 0
    by_category = np.flatnonzero(inner & (nodes["is_categorical"] > 0)).tolist()
    names = ("feature_idx", "num_threshold", "missing_go_to_left", "left", "right")
    column, threshold, missing_left, left, right = (nodes[name] for name in names)
    sets = {node: bits_of(tree.raw_left_cat_bitsets[nodes["bitset_idx"][node]]) for node in by_category}
    value = of_output(nodes["value"], output, outputs)
    return Grown.of(inner, column, threshold, missing_left, left, right, value, sets=sets)
