"""LightGBM's trees, read off the dictionary that it dumps."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from holdfast.models.adapters.seen import is_of, numbers
from holdfast.models.trees.ensemble import Floats
from holdfast.models.trees.grown import Grown, UnreadableError, joined

OBJECTIVES = ("binary", "cross_entropy", "multiclass")  # of which the classes are known
ALMOST_ZERO = float(np.float32(1e-35))  # LightGBM's rows keep no number as small


def reads(final: Any) -> bool:
    return is_of(final, "lightgbm", "LGBMClassifier", "Booster")


def is_booster(model: Any) -> bool:
    return is_of(model, "lightgbm", "Booster")


def objective_of(dumped: Any) -> tuple[str, dict[str, str]]:
    """Its name and its settings, which LightGBM writes as one text: "binary sigmoid:1"."""
    name, *settings = dumped.get("objective", "custom").split()
    return name, dict(setting.split(":", 1) for setting in settings if ":" in setting)


def grown_of(final: Any) -> Grown:
    """The trees of a classifier or a booster; outputs are in the order of the class numbers."""
    booster = final if is_booster(final) else final.booster_
    dumped = booster.dump_model()
    objective, settings = objective_of(dumped)
    if objective not in OBJECTIVES:
        raise UnreadableError(f"its objective is {objective}")
    outputs = dumped["num_tree_per_iteration"]
    scale = float(settings.get("sigmoid", 1))
    if dumped["average_output"]:
        scale /= len(dumped["tree_info"]) // outputs
    trees = [
        _tree(tree["tree_structure"], scale, place % outputs, outputs) for place, tree in enumerate(dumped["tree_info"])
    ]
    zeros = {
        node["split_feature"]
        for tree in dumped["tree_info"]
        for node, _ in _flat(tree["tree_structure"])
        if node.get("missing_type") == "Zero"
    }
    seen = partial(_numbers, categories=booster.pandas_categorical, zeros=sorted(zeros))
    return replace(joined(trees, np.zeros(outputs)), numbers=seen)


def _tree(root: Any, scale: float, output: int, outputs: int) -> Grown:
    nodes = _flat(root)
    count = len(nodes)
    value = np.zeros((count, outputs))
    sets = {}
    column, threshold, left, right = np.full(count, -1), np.zeros(count), np.zeros(count, int), np.zeros(count, int)
    missing_left = np.zeros(count, dtype=bool)
    for place, (node, children) in enumerate(nodes):
        if children is None:
            if node.get("leaf_coeff"):
                raise UnreadableError("its leaves are linear models")
            value[place, output] = node["leaf_value"] * scale
            continue
        column[place], (left[place], right[place]) = node["split_feature"], children
        if node["decision_type"] == "==":
            sets[place] = np.array(str(node["threshold"]).split("||"), dtype=np.int64)
            continue  # a missing category goes right
        threshold[place] = float(node["threshold"])
        missing_left[place] = _missing_left(node)
    return Grown(
        column=column,
        threshold=threshold,
        missing_left=missing_left,
        left=left,
        right=right,
        value=value,
        roots=np.zeros(1, dtype=np.int64),
        base=np.zeros(outputs),
        link="logit",
        below=np.less_equal,
        sets=sets,
    )


def _missing_left(node: Any) -> bool:
    if node["missing_type"] == "None":  # NaN is read as 0
        return bool(float(node["threshold"]) >= 0)
    return bool(node["default_left"])


def _flat(root: Any) -> list[tuple[Any, tuple[int, int] | None]]:
    """Nodes of nested dictionaries in a list, each with the places of its children."""
    nodes: list[tuple[Any, tuple[int, int] | None]] = [(root, None)]
    place = 0
    while place < len(nodes):
        node = nodes[place][0]
        if "left_child" in node:
            nodes[place] = node, (len(nodes), len(nodes) + 1)
            nodes += [(node["left_child"], None), (node["right_child"], None)]
        place += 1
    return nodes


def _numbers(rows: Any, categories: list[list[Any]] | None, zeros: list[int]) -> Floats:
    """Categories by their place among those of the training table; what is almost 0 as 0, or, in columns where 0 says
    that a value is missing (zero_as_missing), as NaN."""
    matrix = _of_table(rows, categories) if isinstance(rows, pd.DataFrame) else numbers(rows)
    matrix = np.where(abs(matrix) <= ALMOST_ZERO, 0.0, matrix)
    matrix[:, zeros] = np.where(matrix[:, zeros] == 0, np.nan, matrix[:, zeros])
    return matrix


def _of_table(rows: pd.DataFrame, categories: list[list[Any]] | None) -> Floats:
    """All in float32 where no column needs more."""
    columns = [name for name in rows if isinstance(rows[name].dtype, pd.CategoricalDtype)]
    if columns and categories:
        pairs = zip(columns, categories, strict=True)
        rows = rows.assign(**{str(name): rows[name].cat.set_categories(known) for name, known in pairs})
    kinds = [np.dtype(np.int8) if name in columns else _kind(rows[name].dtype) for name in rows]
    return numbers(rows).astype(np.result_type(np.float32, *kinds)).astype(np.float64)


def _kind(dtype: Any) -> np.dtype[Any]:
    return dtype if isinstance(dtype, np.dtype) else np.dtype(np.float64)
