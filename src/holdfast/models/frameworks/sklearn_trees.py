"""scikit-learn's trees, forests and boosted trees, read off their own arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.models.adapters.seen import is_of
from holdfast.models.trees.cuts import Bools, Ints
from holdfast.models.trees.ensemble import Floats, Link
from holdfast.models.trees.grown import Grown, UnreadableError, joined

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
        for place, member in enumerate(row):
            value = np.zeros((member.tree_.node_count, len(row)))
            value[:, place] = member.tree_.value[:, 0, 0] * final.learning_rate * scale
            trees.append(_tree(member.tree_, value, "logit", None))
    return joined(trees, base)


def _tree(tree: Any, value: Floats, link: Link, features: Any) -> Grown:
    inner = tree.children_left >= 0
    columns = np.where(inner, tree.feature, 0)
    columns = columns if features is None else np.asarray(features)[columns]
    return Grown(
        column=np.where(inner, columns, -1).astype(np.int64),
        threshold=np.asarray(tree.threshold, dtype=np.float64),
        missing_left=np.asarray(tree.missing_go_to_left, dtype=bool),
        left=np.where(inner, tree.children_left, 0).astype(np.int64),
        right=np.where(inner, tree.children_right, 0).astype(np.int64),
        value=value,
        roots=np.zeros(1, dtype=np.int64),
        base=np.zeros(value.shape[1]),
        link=link,
        below=_below_in_float32,
    )


def _below_in_float32(numbers: Floats, thresholds: Floats) -> Bools:
    below: Bools = numbers.astype(np.float32) <= thresholds
    return below


def _hist(final: Any) -> Grown:
    outputs = final._baseline_prediction.reshape(-1)
    trees = [
        _hist_tree(final, tree, place, len(outputs)) for row in final._predictors for place, tree in enumerate(row)
    ]
    return joined(trees, outputs.astype(np.float64))


def _hist_tree(final: Any, tree: Any, place: int, outputs: int) -> Grown:
    nodes = tree.nodes
    inner = nodes["is_leaf"] == 0
    value = np.zeros((len(nodes), outputs))
    value[:, place] = nodes["value"]
    return Grown(
        column=np.where(inner, nodes["feature_idx"], -1).astype(np.int64),
        threshold=np.where(inner, nodes["num_threshold"], 0).astype(np.float64),
        missing_left=nodes["missing_go_to_left"].astype(bool),
        left=np.where(inner, nodes["left"], 0).astype(np.int64),
        right=np.where(inner, nodes["right"], 0).astype(np.int64),
        value=value,
        roots=np.zeros(1, dtype=np.int64),
        base=np.zeros(outputs),
        link="logit",
        below=np.less_equal,
        sets={
            node: _codes(tree.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
            for node in np.flatnonzero(inner & (nodes["is_categorical"] > 0)).tolist()
        },
        numbers=lambda rows: np.asarray(final._preprocess_X(rows, reset=False), dtype=np.float64),
    )


def _codes(bitset: Any) -> Ints:
    """The numbers whose bits are set in words of 32."""
    bits = np.unpackbits(np.ascontiguousarray(bitset).view(np.uint8), bitorder="little")
    return np.flatnonzero(bits)
