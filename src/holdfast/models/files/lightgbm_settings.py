"""The parameters that a model of LightGBM was trained with, as its text writes them at the end."""

from __future__ import annotations

import math
import re
from typing import Any

WHOLE = (
    "num_leaves", "max_depth", "min_data_in_leaf", "bagging_freq", "max_drop", "min_data_per_group",
    "max_cat_threshold", "max_cat_to_onehot", "max_bin", "min_data_in_bin", "bin_construct_sample_cnt", "num_class",
    "seed", "data_random_seed", "bagging_seed", "drop_seed", "feature_fraction_seed", "objective_seed", "extra_seed",
)  # fmt: skip
NUMBERS = (
    "learning_rate", "min_sum_hessian_in_leaf", "bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction",
    "feature_fraction", "feature_fraction_bynode", "max_delta_step", "lambda_l1", "lambda_l2", "min_gain_to_split",
    "drop_rate", "skip_drop", "top_rate", "other_rate", "cat_l2", "cat_smooth", "monotone_penalty", "path_smooth",
    "scale_pos_weight", "sigmoid",
)  # fmt: skip
FLAGS = (
    "extra_trees", "xgboost_dart_mode", "uniform_drop", "is_enable_sparse", "enable_bundle", "use_missing",
    "zero_as_missing", "feature_pre_filter", "is_unbalance", "boost_from_average",
)  # fmt: skip
WORDS = {
    "boosting": ("gbdt", "dart", "rf", "goss"),
    "objective": ("binary", "cross_entropy", "multiclass"),
    "data_sample_strategy": ("bagging", "goss"),
    "monotone_constraints_method": ("basic", "intermediate", "advanced"),
}
LISTS = ("monotone_constraints", "categorical_feature")  # of whole numbers
MOST = {"num_leaves": 131_072, "max_bin": 65_535, "num_class": 10_000}
_LINE = re.compile(r"^\[(\w+): (.*)\]$", re.MULTILINE)


def settings_in(text: str) -> dict[str, Any]:
    """Those that say how it was trained, as plain values. What names files or machines is left out, as is what is odd:
    the text may come from anywhere.
    """
    written = text.partition("\nparameters:\n")[2].partition("\nend of parameters")[0]
    values = {match[1]: _plain(match[1], match[2]) for match in _LINE.finditer(written)}
    return {name: value for name, value in values.items() if value is not None}


def _plain(name: str, written: str) -> Any:
    """The value of a parameter; None where it is none that is known, or none that could be."""
    if name in LISTS:
        parts = written.split(",")
        return [int(part) for part in parts] if all(re.fullmatch(r"-?\d{1,9}", part) for part in parts) else None
    if name not in (*WHOLE, *NUMBERS, *FLAGS):
        return written if written in WORDS.get(name, ()) else None
    try:
        value = float(written)
    except ValueError:
        return None
    if not math.isfinite(value) or value > MOST.get(name, 2**31):
        return None
    return bool(value) if name in FLAGS else int(value) if name in WHOLE else value
