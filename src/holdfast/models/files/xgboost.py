"""Files of XGBoost: parsed, checked, and written anew. XGBoost is given what was checked, and nothing else.

XGBoost ends the process on some damaged files, and reads others otherwise than Python would: the key
"left\\u005fchildren" is another one for it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.models.files.checking import (
    MOST_CLASSES,
    MOST_COLUMNS,
    expect,
    inside,
    rises,
    splits_of,
    whole_numbers,
    without_repeats,
)
from holdfast.models.files.ubjson import from_ubjson
from holdfast.models.files.untrusted import check_json, damaged

MOST_CATEGORIES = 1 << 16  # XGBoost makes a table as long as the largest code
PROBABILITIES = ("binary:logistic", "binary:logitraw", "reg:logistic")  # whose base_score is one


def checked_xgboost(path: Path, contents: bytes, within: str | None = None) -> bytearray:
    """The bytes of a model of XGBoost, written anew as JSON, if its trees are trees; ``within`` names the part of the
    file that is the model."""
    try:
        if contents[1:2] in (b'"', b" ", b"\n", b"\r", b"\t", b"}"):
            check_json(path, contents)
            model = json.loads(contents, object_pairs_hook=without_repeats)
        else:
            model = from_ubjson(contents)
        model = model if within is None else model[within]
        check_learner(model["learner"])
        return bytearray(json.dumps(model, ensure_ascii=False, default=np.ndarray.tolist).encode())
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, RecursionError, AttributeError) as error:
        raise damaged(path, error) from None


def check_learner(learner: Any) -> None:
    shape = learner["learner_model_param"]
    columns, classes = int(shape["num_feature"]), max(1, int(shape["num_class"]), int(shape.get("num_target", 1)))
    expect(0 < columns <= MOST_COLUMNS and classes <= MOST_CLASSES, "the number of columns or of classes")
    _check_base_score(str(shape.get("base_score", "0.5")), str(learner["objective"]["name"]), classes)
    booster = learner["gradient_booster"]
    if booster["name"] == "gblinear":
        expect(len(booster["model"]["weights"]) == (columns + 1) * classes, "the number of weights")
        return
    if booster["name"] == "dart":
        expect(len(booster["weight_drop"]) == len(booster["gbtree"]["model"]["trees"]), "the weights of the trees")
        booster = booster["gbtree"]
    model = booster["model"]
    trees, groups = model["trees"], whole_numbers(model["tree_info"])
    counted = model["gbtree_model_param"]
    expect(int(counted["num_trees"]) == len(trees) == len(groups), "the number of trees")
    expect(inside(groups, 0, classes), "the class of a tree")
    rounds = whole_numbers(model.get("iteration_indptr", [0, len(trees)]))
    expect(len(rounds) > 0 and rises(rounds) and rounds[0] == 0 and rounds[-1] == len(trees), "the rounds of trees")
    expect(1 <= int(counted["num_parallel_tree"]) <= max(1, len(trees)), "the number of trees in a round")
    for number, tree in enumerate(trees):
        expect(int(tree["id"]) == number, "the numbers of the trees")
        _check_tree(tree, columns, classes)


def _check_base_score(text: str, objective: str, classes: int) -> None:
    """One number, or one for each class in brackets."""
    numbers = [float(score) for score in text.strip("[]").split(",")]
    expect(len(numbers) in (1, classes) and all(map(math.isfinite, numbers)), "its base_score")
    expect(objective not in PROBABILITIES or all(0 < score < 1 for score in numbers), "its base_score: no probability")


def _check_tree(tree: Any, columns: int, classes: int) -> None:
    shape = tree["tree_param"]
    size, leaf = int(shape["num_nodes"]), max(1, int(shape.get("size_leaf_vector", 1)))
    left, right = whole_numbers(tree["left_children"]), whole_numbers(tree["right_children"])
    expect(int(shape["num_feature"]) == columns and leaf in (1, classes), "the columns of a tree")
    expect(int(shape.get("num_deleted", 0)) >= 0, "the deleted nodes")
    for name in ("parents", "split_indices", "default_left", "split_type", "sum_hessian", "loss_changes"):
        expect(len(tree[name]) == size, f"the length of {name}")
    for name in ("split_conditions", "base_weights"):
        expect(len(tree[name]) in (size, size * leaf), f"the length of {name}")
    inner = splits_of(left, right, size)
    parents, nodes = whole_numbers(tree["parents"]), np.flatnonzero(inner)
    expect(bool((parents[left[inner]] == nodes).all() and (parents[right[inner]] == nodes).all()), "the parents")
    expect(parents[0] in (-1, 2**31 - 1), "the parents")
    expect(inside(whole_numbers(tree["split_indices"])[inner], 0, columns), "the column of a split")
    expect(inside(whole_numbers(tree["split_type"]), 0, 2), "the kind of a split")
    _check_categories(tree, inner, size)


def _check_categories(tree: Any, inner: Any, size: int) -> None:
    codes = whole_numbers(tree["categories"])
    owners, starts, sizes = (whole_numbers(tree[f"categories_{part}"]) for part in ("nodes", "segments", "sizes"))
    expect(len(owners) == len(starts) == len(sizes) and inside(owners, 0, size), "the nodes of categories")
    expect(inside(sizes, 0, len(codes) + 1) and inside(starts, 0, len(codes) + 1), "the places of categories")
    expect(inside(starts + sizes, 0, len(codes) + 1), "the places of categories")
    expect(inside(codes, 0, MOST_CATEGORIES), "the categories")
    by_category = np.flatnonzero(inner & (whole_numbers(tree["split_type"]) == 1))
    expect(set(by_category.tolist()) <= set(owners.tolist()), "the nodes of categories")
