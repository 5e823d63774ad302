"""LightGBM's trees, read off the text that it saves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from holdfast.models.adapters.seen import is_of, numbers
from holdfast.models.trees.ensemble import Floats
from holdfast.models.trees.grown import Grown, UnreadableError, bits_of, joined, of_output

OBJECTIVES = ("binary", "cross_entropy", "multiclass")  # of which the classes are known
ALMOST_ZERO = float(np.float32(1e-35))  # LightGBM's rows keep no number as small


def reads(final: Any) -> bool:
    return is_of(final, "lightgbm", "LGBMClassifier", "Booster")


def is_booster(model: Any) -> bool:
    return is_of(model, "lightgbm", "Booster")


def objective_of(booster: Any) -> tuple[str, float]:
    """Its name, and what its scores are multiplied by; LightGBM writes both as one text: "binary sigmoid:1"."""
    head = next(_blocks(booster.model_to_string(num_iteration=1)))
    name, *settings = head.get("objective", "custom").split()
    scales = [float(setting.removeprefix("sigmoid:")) for setting in settings if setting.startswith("sigmoid:")]
    return name, next(iter(scales), 1.0)


def grown_of(final: Any) -> Grown:
    """The trees of a classifier or a booster; outputs are in the order of the class numbers."""
    booster = final if is_booster(final) else final.booster_
    objective, scale = objective_of(booster)
    if objective not in OBJECTIVES:
        raise UnreadableError(f"its objective is {objective}")
    head, *written = (block for block in _blocks(booster.model_to_string()) if "version" in block or "Tree" in block)
    outputs = int(head["num_tree_per_iteration"])
    if "average_output" in head:
        scale /= len(written) // outputs
    trees, zeros = [], set()
    for number, tree in enumerate(written):
        made, as_zero = _tree(tree, scale, number % outputs, outputs)
        trees.append(made)
        zeros |= as_zero
    seen = partial(_numbers, categories=booster.pandas_categorical, zeros=sorted(zeros))
    return replace(joined(trees, np.zeros(outputs)), numbers=seen)


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """The head, every tree, and what comes after them."""
    for block in text.split("\n\n"):
        yield {name: value for name, _, value in (line.partition("=") for line in block.split("\n"))}


def _tree(written: dict[str, str], scale: float, output: int, outputs: int) -> tuple[Grown, set[int]]:
    """A tree, its leaves after its splits; and the columns whose 0 is a missing value to it."""
    if written.get("is_linear", "0") != "0":
        raise UnreadableError("its leaves are linear models")

    def of(name: str, kind: type = np.int64) -> Any:
        return np.array(written.get(name, "").split(), dtype=kind)

    leaves, split, threshold, how = (
        of("leaf_value", float),
        of("split_feature"),
        of("threshold", float),
        of("decision_type"),
    )
    count = len(split)
    children = [np.where(side < 0, count + ~side, side) for side in (of("left_child"), of("right_child"))]
    by_category, default_left, missing = how & 1 == 1, how & 2 == 2, how >> 2 & 3  # 0: none, 1: zero, 2: NaN
    ends, words = of("cat_boundaries"), of("cat_threshold", np.uint32)
    known = {node: int(threshold[node]) for node in np.flatnonzero(by_category).tolist()}
    tree = Grown.of(
        inner=np.arange(count + len(leaves)) < count,
        column=split,
        threshold=np.where(by_category, 0, threshold),
        # Where nothing may be missing, NaN is read as 0; a missing category goes right.
        missing_left=~by_category & np.where(missing == 0, threshold >= 0, default_left),
        left=children[0],
        right=children[1],
        value=of_output(np.append(np.zeros(count), leaves * scale), output, outputs),
        sets={node: bits_of(words[ends[set_number] : ends[set_number + 1]]) for node, set_number in known.items()},
    )
    return tree, set(split[missing == 1].tolist())


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
    dtypes = {name: np.int8 if name in columns else rows[name].dtype for name in rows}
    kinds = [kind if isinstance(kind, (np.dtype, type)) else np.float64 for kind in dtypes.values()]
    return numbers(rows).astype(np.result_type(np.float32, *kinds)).astype(np.float64)
