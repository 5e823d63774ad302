"""XGBoost's trees, read off the JSON that it saves."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from holdfast.models.adapters.seen import is_of, numbers
from holdfast.models.trees.ensemble import Floats
from holdfast.models.trees.grown import Grown, UnreadableError, joined, of_output

BINARY = ("binary:logistic", "binary:logitraw", "reg:logistic")
MULTICLASS = ("multi:softprob", "multi:softmax")
HALF_STEP = 2.0**-24  # the relative rounding error of a float32


def reads(final: Any) -> bool:
    return is_of(final, "xgboost", "XGBClassifier", "Booster")


def is_booster(model: Any) -> bool:
    return is_of(model, "xgboost", "Booster")


def grown_of(final: Any) -> Grown:
    """The trees of a classifier or a booster; outputs are in the order of the class numbers."""
    booster = final if is_booster(final) else final.get_booster()
    missing = np.nan if is_booster(final) else final.missing
    best = None if is_booster(final) else booster.attributes().get("best_iteration")
    booster = booster if best is None else booster[: int(best) + 1]  # rounds that its classifier asks
    saved = json.loads(booster.save_raw("json"))["learner"]
    objective, classes = saved["objective"]["name"], int(saved["learner_model_param"]["num_class"])
    if objective not in (*BINARY, *MULTICLASS):
        raise UnreadableError(f"its objective is {objective}")
    outputs = max(1, classes)
    boosted = saved["gradient_booster"]
    if boosted["name"] not in ("gbtree", "dart"):
        raise UnreadableError(f"its booster is {boosted['name']}")
    model = boosted.get("gbtree", boosted)["model"]
    weights = boosted.get("weight_drop") or [1.0] * len(model["trees"])
    parts = zip(model["trees"], weights, model["tree_info"], strict=True)
    trees = [_tree(*part, outputs) for part in parts]
    base = _base(saved["learner_model_param"]["base_score"], objective, outputs)
    largest = float(abs(base).max() + sum(abs(tree.value).max() for tree in trees))  # what their sum can reach
    rounding = len(trees) * HALF_STEP * largest
    return replace(joined(trees, base), numbers=partial(_numbers, missing=missing), rounding=rounding)


def _base(written: str, objective: str, outputs: int) -> Floats:
    score = np.broadcast_to(np.asarray(json.loads(written), dtype=np.float64), (outputs,))
    if objective in MULTICLASS or objective == "binary:logitraw":
        return score.copy()
    return np.log(score / (1 - score))


def _tree(tree: Any, weight: float, output: int, outputs: int) -> Grown:
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise UnreadableError("its leaves give several values at once")
    inner = np.array(tree["left_children"]) >= 0
    numbers_ = np.array(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    missing_left, left, right = (tree[name] for name in ("default_left", "left_children", "right_children"))
    places = (tree[f"categories_{name}"] for name in ("nodes", "segments", "sizes"))
    return Grown.of(
        inner,
        tree["split_indices"],
        numbers_,
        missing_left,
        left,
        right,
        of_output(np.where(inner, 0, numbers_ * weight), output, outputs),
        below=lambda values, thresholds: values.astype(np.float32) < thresholds.astype(np.float32),
        sets={
            node: np.array(tree["categories"][start : start + size]) for node, start, size in zip(*places, strict=True)
        },
        sets_left=False,
    )


def _numbers(rows: Any, missing: float) -> Floats:
    """What a sparse matrix leaves out is missing to XGBoost, and so is one number that a classifier can be told."""
    matrix = numbers(rows, absent=np.nan)
    return matrix if np.isnan(missing) else np.where(matrix.astype(np.float32) == np.float32(missing), np.nan, matrix)
