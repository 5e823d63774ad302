"""Files of XGBoost and LightGBM, checked before they are read: both libraries end the process on some damaged ones.

What is checked is what their code relies on: every list has the length that it should have, every child of a node is a
node or leaf of its tree and of no other node, every split is of a column that there is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.models.files.untrusted import check_json, damaged, from_ubjson

MOST_CLASSES, MOST_COLUMNS = 10_000, 10_000_000


def check_xgboost(path: Path, contents: bytes) -> None:
    """Raise unless these are the bytes of a model of XGBoost, as JSON or UBJSON, whose trees are trees."""
    try:
        if contents[1:2] in (b'"', b" ", b"\n", b"\r", b"\t", b"}"):
            check_json(path, contents)
            model = json.loads(contents)
        else:
            model = from_ubjson(contents)
        _check_learner(model["learner"])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise damaged(path, error) from None


def _check_learner(learner: Any) -> None:
    shape = learner["learner_model_param"]
    columns, classes = int(shape["num_feature"]), max(1, int(shape["num_class"]), int(shape.get("num_target", 1)))
    _expect(0 < columns <= MOST_COLUMNS and classes <= MOST_CLASSES, "the number of columns or of classes")
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        _expect(len(booster["model"]["weights"]) == (columns + 1) * classes, "the number of weights")
        return
    if booster["name"] == "dart":
        _expect(len(booster["weight_drop"]) == len(booster["gbtree"]["model"]["trees"]), "the weights of the trees")
        booster = booster["gbtree"]
    model = booster["model"]
    trees, groups = model["trees"], _whole(model["tree_info"])
    counted = model["gbtree_model_param"]
    _expect(int(counted["num_trees"]) == len(trees) == len(groups), "the number of trees")
    _expect(_inside(groups, 0, classes), "the class of a tree")
    rounds = _whole(model.get("iteration_indptr", [0, len(trees)]))
    _expect(_rises(rounds) and rounds[0] == 0 and rounds[-1] == len(trees), "the rounds of trees")
    _expect(1 <= int(counted["num_parallel_tree"]) <= max(1, len(trees)), "the number of trees in a round")
    for number, tree in enumerate(trees):
        _expect(int(tree["id"]) == number, "the numbers of the trees")
        _check_xgboost_tree(tree, columns, classes)


def _check_xgboost_tree(tree: Any, columns: int, classes: int) -> None:
    shape = tree["tree_param"]
    size, leaf = int(shape["num_nodes"]), max(1, int(shape.get("size_leaf_vector", 1)))
    left, right = _whole(tree["left_children"]), _whole(tree["right_children"])
    _expect(int(shape["num_feature"]) == columns and leaf in (1, classes), "the columns of a tree")
    for name in ("parents", "split_indices", "default_left", "split_type", "sum_hessian", "loss_changes"):
        _expect(len(tree[name]) == size, f"the length of {name}")
    for name in ("split_conditions", "base_weights"):
        _expect(len(tree[name]) in (size, size * leaf), f"the length of {name}")
    inner = left >= 0
    _expect(len(left) == len(right) == size and bool((inner == (right >= 0)).all()), "the children of nodes")
    _check_is_tree(np.concatenate([left[inner], right[inner]]), size)
    parents, nodes = _whole(tree["parents"]), np.flatnonzero(inner)
    _expect(bool((parents[left[inner]] == nodes).all() and (parents[right[inner]] == nodes).all()), "the parents")
    _expect(parents[0] in (-1, 2**31 - 1), "the parents")
    _expect(_inside(_whole(tree["split_indices"])[inner], 0, columns), "the column of a split")
    _expect(_inside(_whole(tree["split_type"]), 0, 2), "the kind of a split")
    codes = _whole(tree["categories"])
    owners, starts, sizes = (_whole(tree[f"categories_{part}"]) for part in ("nodes", "segments", "sizes"))
    _expect(len(owners) == len(starts) == len(sizes) and _inside(owners, 0, size), "the nodes of categories")
    _expect(
        _inside(starts, 0, len(codes) + 1) and _inside(starts + sizes, 0, len(codes) + 1), "the places of categories"
    )
    _expect(_inside(codes, 0, 1 << 24) and bool((sizes >= 0).all()), "the categories")
    by_category = np.flatnonzero(inner & (_whole(tree["split_type"]) == 1))
    _expect(set(by_category.tolist()) <= set(owners.tolist()), "the nodes of categories")


def check_lightgbm(path: Path, contents: bytes) -> str:
    """The text of a model of LightGBM, if it is whole and its trees are trees; without the settings of its training."""
    try:
        text = contents.decode()
        head, _, rest = text.partition("\nTree=0\n")
        known = _fields(head)
        columns, classes = int(known["max_feature_idx"]) + 1, int(known["num_tree_per_iteration"])
        names, sizes = known["feature_names"].split(" "), _whole(known["tree_sizes"].split())
        _expect(0 < columns == len(names) == len(known["feature_infos"].split(" ")), "the number of columns")
        _expect(0 < classes == int(known["num_class"]) <= MOST_CLASSES, "the number of classes")
        _expect(len(sizes) > 0 and len(sizes) % classes == 0, "the number of trees")
        trees = f"Tree=0\n{rest}".encode()
        _expect(bool((sizes > 0).all()) and trees[sizes.sum() :].startswith(b"end of trees\n"), "the end of the trees")
        for number, end in enumerate(sizes.cumsum().tolist()):
            _check_lightgbm_tree(_fields(trees[end - sizes[number] : end].decode()), number, columns)
        levels = text.rpartition("\npandas_categorical:")[2] if "\npandas_categorical:" in text else "null"
        _expect(isinstance(json.loads(levels), list | type(None)), "the levels of columns")
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise damaged(path, error) from None
    whole = trees[: sizes.sum()].decode()
    return f"{head}\n{whole}end of trees\n\npandas_categorical:{levels.strip()}\n"


def _check_lightgbm_tree(tree: Mapping[str, str], number: int, columns: int) -> None:
    leaves, sets = int(tree["num_leaves"]), int(tree["num_cat"])
    _expect(int(tree["Tree"]) == number, "the numbers of the trees")
    _expect(int(tree.get("is_linear", 0)) == 0, "its leaves: linear ones are not read from a file")
    _numbers(tree["leaf_value"].split(), leaves)
    float(tree["shrinkage"])
    if leaves == 1:
        return
    for name in ("leaf_weight", "leaf_count"):
        _numbers(tree.get(name, "").split(), leaves if tree.get(name) else 0)
    for name in ("split_gain", "internal_value", "internal_weight", "internal_count"):
        _numbers(tree.get(name, "").split(), leaves - 1 if tree.get(name) else 0)
    threshold = _numbers(tree["threshold"].split(), leaves - 1)
    split, kind, left, right = (
        _whole(tree[name].split()) for name in ("split_feature", "decision_type", "left_child", "right_child")
    )
    _expect(len(split) == len(kind) == len(left) == len(right) == leaves - 1, "the number of splits")
    _expect(_inside(split, 0, columns) and _inside(kind, 0, 16), "the column of a split")
    children = np.concatenate([left, right])
    _check_is_tree(children[children >= 0], leaves - 1)
    _expect(sorted((~children[children < 0]).tolist()) == list(range(leaves)), "the leaves")
    if sets or bool((kind & 1).any()):
        codes, starts = _whole(tree["cat_threshold"].split()), _whole(tree["cat_boundaries"].split())
        _expect(len(starts) == sets + 1 and starts[0] == 0 and starts[-1] == len(codes), "the categories")
        _expect(_rises(starts) and _inside(threshold[(kind & 1) == 1], 0, sets), "the categories of a split")


def _fields(text: str) -> dict[str, str]:
    return {name: value for name, found, value in (line.partition("=") for line in text.splitlines()) if found}


def _check_is_tree(children: NDArray[np.int64], size: int) -> None:
    """Every node but the first is the child of one other: so whoever goes down from the first arrives at a leaf."""
    _expect(sorted(children.tolist()) == list(range(1, size)), "the children of nodes")


def _whole(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64]:
    found = np.asarray([int(value) for value in values] if isinstance(values, list) else values)
    _expect((found.ndim == 1 and found.dtype.kind in "iub") or not len(found), "a list of whole numbers")
    return found.astype(np.int64)


def _numbers(values: Sequence[str], count: int) -> NDArray[np.float64]:
    _expect(len(values) == count, "the length of a list")
    return np.array([float(value) for value in values])


def _inside(values: NDArray[Any], least: int, end: int) -> bool:
    return bool(((values >= least) & (values < end)).all())


def _rises(values: NDArray[np.int64]) -> bool:
    return bool((np.diff(values) >= 0).all())


def _expect(true: bool, what: str) -> None:
    if not true:
        raise ValueError(f"it is wrong about {what}")
