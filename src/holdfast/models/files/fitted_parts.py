"""Parts of estimators that scikit-learn's compiled code trusts: checked after they are read, before anybody asks them.

Trees, neighbours, support vectors and sparse matrices are arrays of places in other arrays. A wrong place ends the
process, or is read from elsewhere in its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from holdfast.models.files.checking import check_is_tree, expect, inside, splits_of


def check_fitted(model: Any) -> None:
    """Raise where a part of a model that was read from a file is not what compiled code takes it for."""
    for part in _parts(model):
        for kind in type(part).__mro__:
            needed, check = CHECKS.get(f"{kind.__module__.partition('.')[0]}.{kind.__name__}", ("", None))
            if check is not None and (not needed or getattr(part, needed, None) is not None):  # else it is not fitted
                check(part)


def _parts(model: Any) -> Iterator[Any]:
    """Everything that a model is made of."""
    seen: set[int] = set()
    left = [model]
    while left:
        part = left.pop()
        if id(part) in seen or isinstance(part, (str, bytes, bytearray, int, float, type(None))):
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, (list, tuple, set)) or (isinstance(part, np.ndarray) and part.dtype.hasobject):
            left += list(part)
        else:
            left += getattr(part, "__dict__", {}).values()


def _check_tree(tree: Any) -> None:
    size = tree.node_count
    expect(0 < size <= tree.capacity, "the number of nodes")  # before its arrays are looked at
    inner = splits_of(tree.children_left, tree.children_right, size)
    expect(inside(tree.feature[inner], 0, tree.n_features), "the column of a split")


def _check_decision_tree(estimator: Any) -> None:
    tree = estimator.tree_
    expect(type(tree).__name__ == "Tree" and tree.n_features == estimator.n_features_in_, "the columns of a tree")


def _check_forest(forest: Any) -> None:
    """Which asks its trees without looking at their columns again."""
    for estimator in np.asarray(forest.estimators_, dtype=object).reshape(-1):
        expect(type(estimator).__name__ in TREES, "the trees of a forest")
        expect(estimator.tree_.n_features == forest.n_features_in_, "the columns of a tree")


def _check_boosting(boosting: Any) -> None:
    _check_forest(boosting)
    trees = boosting.estimators_
    expect(isinstance(trees, np.ndarray) and trees.ndim == 2, "the trees of a boosted model")
    expect(trees.shape[1] == boosting.n_trees_per_iteration_, "the number of trees in a round")
    shapes = {estimator.tree_.value.shape[1:] for estimator in trees.reshape(-1)}
    expect(shapes <= {(1, 1)}, "the leaves of a tree")


def _check_histogram_boosting(boosting: Any) -> None:
    categorical = np.asarray(boosting._bin_mapper.is_categorical_, dtype=bool)
    columns = boosting.n_features_in_
    expect(categorical.shape == (columns,) and boosting._n_features == columns, "the number of columns")
    for predictor in [tree for trees in boosting._predictors for tree in trees]:
        expect(type(predictor).__name__ == "TreePredictor", "the trees of a boosted model")
        nodes = predictor.nodes
        inner = nodes["is_leaf"] == 0
        check_is_tree(np.concatenate([nodes["left"][inner], nodes["right"][inner]]).astype(np.int64), len(nodes))
        expect(inside(nodes["feature_idx"][inner], 0, columns), "the column of a split")
        by_category = inner & (nodes["is_categorical"] != 0)
        expect(bool(categorical[nodes["feature_idx"][by_category]].all()), "the column of a split by category")
        for sets in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
            expect(sets.ndim == 2 and sets.shape[1] == 8 and sets.dtype == np.uint32, "the categories")
            expect(inside(nodes["bitset_idx"][by_category], 0, len(sets)), "the categories of a split")


def _check_neighbour_tree(tree: Any) -> None:
    data, places, nodes, bounds, _, levels, count = tree.__getstate__()[:7]
    expect(data.ndim == 2 and count == len(nodes) == 2**levels - 1, "the nodes of neighbours")
    expect(bool((np.sort(places) == np.arange(len(data))).all()), "the places of neighbours")
    expect(bounds.shape[1:] == (count, data.shape[1]), "the bounds of neighbours")
    starts, ends = nodes["idx_start"], nodes["idx_end"]
    expect(inside(starts, 0, len(data) + 1) and inside(ends, 0, len(data) + 1), "the places of neighbours")
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    expect(inside(2 * inner + 2, 0, count), "the nodes of neighbours")


def _check_neighbours(estimator: Any) -> None:
    rows = estimator._fit_X
    expect(rows.ndim == 2 and rows.shape == (estimator.n_samples_fit_, estimator.n_features_in_), "the rows it keeps")
    tree = getattr(estimator, "_tree", None)
    expect(tree is None or tree.__getstate__()[0].shape == rows.shape, "the rows it keeps")
    labels = getattr(estimator, "_y", None)
    if labels is not None:
        lists = estimator.classes_ if isinstance(estimator.classes_, list) else [estimator.classes_]
        columns = np.asarray(labels).reshape(len(rows), -1).T
        expect(len(columns) == len(lists), "the labels it keeps")
        expect(all(inside(column, 0, len(listed)) for column, listed in zip(columns, lists, strict=True)), "the labels")


def _check_support_vectors(machine: Any) -> None:
    counts = machine._n_support
    expect(not machine._sparse, "its support vectors: sparse ones are not read from a file")
    vectors, classes = machine.support_vectors_, len(counts)
    pairs = classes * (classes - 1) // 2
    expect(classes > 1 and counts.min() >= 0 and counts.sum() == len(vectors) == len(machine.support_), "the vectors")
    expect(vectors.shape[1] == machine.n_features_in_ == machine.shape_fit_[1], "the columns of vectors")
    expect(len(machine.classes_) == classes and inside(machine.support_, 0, machine.shape_fit_[0]), "the vectors")
    for weights in (machine.dual_coef_, machine._dual_coef_):
        expect(np.shape(weights) == (classes - 1, len(vectors)), "the weights of vectors")
    for constants in (machine.intercept_, machine._intercept_):
        expect(np.shape(constants) == (pairs,), "the constants")
    for name in ("_probA", "_probB"):
        expect(len(getattr(machine, name)) in (0, pairs), "the constants of probabilities")


def _check_one_hot(encoder: Any) -> None:
    counts = encoder._n_features_outs
    expect(list(counts) == list(encoder._compute_n_features_outs()) and min(counts) >= 0, "the number of columns")
    expect(len(counts) == len(encoder.categories_) == encoder.n_features_in_, "the number of columns")
    groups = getattr(encoder, "_default_to_infrequent_mappings", None) or []
    expect(not groups or len(groups) == len(counts), "the rare categories")
    for group, levels, count in zip(groups, encoder.categories_, counts, strict=False):
        expect(group is None or (len(group) == len(levels) and inside(group, 0, count + 1)), "the rare categories")


def _check_spline(spline: Any) -> None:
    knots, degree = np.asarray(spline.t), spline.k
    expect(type(degree) is int and 0 <= degree <= 20 and knots.ndim == 1, "the knots of a spline")
    expect(bool((np.diff(knots) >= 0).all()) and 0 < len(knots) - degree - 1 <= len(spline.c), "the knots of a spline")


TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
# class -> what it has when it is fitted, and what is checked then
CHECKS: dict[str, tuple[str, Callable[[Any], None]]] = {
    "sklearn.Tree": ("", _check_tree),
    "sklearn.BaseDecisionTree": ("tree_", _check_decision_tree),
    "sklearn.BaseForest": ("estimators_", _check_forest),
    "sklearn.BaseGradientBoosting": ("estimators_", _check_boosting),
    "sklearn.BaseHistGradientBoosting": ("_predictors", _check_histogram_boosting),
    "sklearn.BinaryTree64": ("", _check_neighbour_tree),
    "sklearn.BinaryTree32": ("", _check_neighbour_tree),
    "sklearn.NeighborsBase": ("_fit_X", _check_neighbours),
    "sklearn.BaseLibSVM": ("_n_support", _check_support_vectors),
    "sklearn.OneHotEncoder": ("_n_features_outs", _check_one_hot),
    "scipy.sparray": ("check_format", lambda matrix: matrix.check_format(full_check=True)),
    "scipy.spmatrix": ("check_format", lambda matrix: matrix.check_format(full_check=True)),
    "scipy.BSpline": ("", _check_spline),
}
