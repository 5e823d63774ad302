"""The parameters that a model of LightGBM was trained with, as its text states them at the end."""

from __future__ import annotations

import math
import re
from typing import Any

# Those that say how it was trained, and LightGBM's defaults. What names files or machines is not among them.
DEFAULTS: dict[str, Any] = {
    "boosting": "gbdt", "objective": None, "data_sample_strategy": "bagging", "learning_rate": 0.1,
    "num_leaves": 31, "max_depth": -1, "min_data_in_leaf": 20, "min_sum_hessian_in_leaf": 0.001,
    "bagging_fraction": 1.0, "pos_bagging_fraction": 1.0, "neg_bagging_fraction": 1.0, "bagging_freq": 0,
    "feature_fraction": 1.0, "feature_fraction_bynode": 1.0, "extra_trees": False, "max_delta_step": 0.0,
    "lambda_l1": 0.0, "lambda_l2": 0.0, "min_gain_to_split": 0.0, "drop_rate": 0.1, "max_drop": 50, "skip_drop": 0.5,
    "xgboost_dart_mode": False, "uniform_drop": False, "top_rate": 0.2, "other_rate": 0.1, "min_data_per_group": 100,
    "max_cat_threshold": 32, "cat_l2": 10.0, "cat_smooth": 10.0, "max_cat_to_onehot": 4, "monotone_constraints": None,
    "monotone_constraints_method": "basic", "monotone_penalty": 0.0, "path_smooth": 0.0, "max_bin": 255,
    "min_data_in_bin": 3, "bin_construct_sample_cnt": 200_000, "is_enable_sparse": True, "enable_bundle": True,
    "use_missing": True, "zero_as_missing": False, "feature_pre_filter": True, "is_unbalance": False,
    "scale_pos_weight": 1.0, "sigmoid": 1.0, "boost_from_average": True, "seed": 0,
}  # fmt: skip
WORDS = {
    "boosting": ("gbdt", "dart", "rf", "goss"),
    "objective": ("binary", "cross_entropy", "multiclass"),
    "data_sample_strategy": ("bagging", "goss"),
    "monotone_constraints_method": ("basic", "intermediate", "advanced"),
}
LARGEST = {"num_leaves": 131_072, "max_bin": 65_535}
_LINE = re.compile(r"^\[(\w+): (.*)\]$", re.MULTILINE)
_WHOLE_NUMBERS = re.compile(r"-?\d{1,9}(,-?\d{1,9})*")


def settings_in(text: str) -> dict[str, Any]:
    """Those that are not the defaults; none where the text states one that cannot be: it may come from anywhere."""
    written = dict(_LINE.findall(text.partition("\nparameters:\n")[2].partition("\nend of parameters")[0]))
    try:
        stated = {name: _value(name, written[name]) for name in DEFAULTS if name in written}
    except ValueError:
        return {}
    return {name: value for name, value in stated.items() if value != DEFAULTS[name]}


def _value(name: str, written: str) -> Any:
    """A parameter of the type of its default."""
    if name == "monotone_constraints":
        if written and not _WHOLE_NUMBERS.fullmatch(written):
            raise ValueError(written)
        return [int(part) for part in written.split(",")] if written else None
    if name in WORDS:
        return WORDS[name][WORDS[name].index(written)]
    value = float(written)
    if not math.isfinite(value) or value > LARGEST.get(name, 2**31):
        raise ValueError(written)
    return type(DEFAULTS[name])(value)
