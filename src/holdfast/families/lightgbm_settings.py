"""The parameters that made a booster of LightGBM, which its text holds."""

from __future__ import annotations

from typing import Any

from holdfast.models.files.lightgbm_settings import FLAGS, NUMBERS, WHOLE, WORDS, settings_in

# LightGBM draws these from `seed` where that is given; else they are these numbers.
SEEDS = {
    "data_random_seed": 1, "feature_fraction_seed": 2, "bagging_seed": 3, "drop_seed": 4, "objective_seed": 5,
    "extra_seed": 6,
}  # fmt: skip
# LGBMClassifier's names of parameters that it has itself: given by both names, one of them would be ignored.
NAMES = {
    "boosting": "boosting_type", "min_data_in_leaf": "min_child_samples", "min_sum_hessian_in_leaf": "min_child_weight",
    "bagging_fraction": "subsample", "bagging_freq": "subsample_freq", "feature_fraction": "colsample_bytree",
    "lambda_l1": "reg_alpha", "lambda_l2": "reg_lambda", "min_gain_to_split": "min_split_gain",
    "bin_construct_sample_cnt": "subsample_for_bin", "num_iterations": "n_estimators", "seed": "random_state",
}  # fmt: skip
# What is said of a booster, unless it has this value or the one that LGBMClassifier has by default.
OWN = {
    "n_estimators": None, "max_bin": 255, "scale_pos_weight": 1.0, "is_unbalance": False, "extra_trees": False,
    "path_smooth": 0.0, "max_delta_step": 0.0, "monotone_constraints": None,
}  # fmt: skip
NOT_GIVEN = ("objective", "num_class", "categorical_feature")  # the booster's own; the labels and the columns say them


def classifier(values: dict[str, Any]) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(**{"verbose": -1, "n_jobs": 1} | values)


def parameter_names() -> set[str]:
    named = {*WHOLE, *NUMBERS, *FLAGS, *WORDS}
    return {*classifier({}).get_params(), *OWN, *(NAMES.get(name, name) for name in named)}


def unusual(values: dict[str, Any]) -> dict[str, Any]:
    """Those that are not the defaults, of the parameters that people set."""
    usual = classifier({}).get_params() | OWN | {"objective": values.get("objective")}
    return {name: value for name, value in values.items() if name in usual and usual[name] != value}


def settings_of(booster: Any) -> tuple[dict[str, Any], bool]:
    """The parameters that a booster holds, and whether they are all of its training: from its text; a file that
    `read_model` has read keeps them beside the booster.
    """
    written = settings_in(booster.model_to_string()) or dict(booster.params)
    values: dict[str, Any] = {"n_estimators": int(booster.current_iteration())}
    if "learning_rate" not in written:
        return values, False
    own = {name: value for name, value in written.items() if name not in (*SEEDS, "seed", *NOT_GIVEN[1:])}
    values |= {NAMES.get(name, name): value for name, value in own.items()}
    if any(written.get(name, seed) != seed for name, seed in SEEDS.items()):
        values["random_state"] = int(written.get("seed", 0))
    return values, True
