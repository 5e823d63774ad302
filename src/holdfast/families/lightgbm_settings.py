"""The parameters that made a booster of LightGBM, which its text holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.families.settings_told import Settings
from holdfast.models.files.lightgbm_settings import settings_in

Floats = NDArray[np.float64]
# LightGBM draws these from `seed` in this order where it is given; else they are these numbers.
SEEDS = {
    "data_random_seed": 1, "bagging_seed": 3, "drop_seed": 4, "feature_fraction_seed": 2, "objective_seed": 5,
    "extra_seed": 6,
}  # fmt: skip
# LGBMClassifier's names of parameters that it has itself: given by both names, one of them would be ignored.
NAMES = {
    "boosting": "boosting_type", "min_data_in_leaf": "min_child_samples", "min_sum_hessian_in_leaf": "min_child_weight",
    "bagging_fraction": "subsample", "bagging_freq": "subsample_freq", "feature_fraction": "colsample_bytree",
    "lambda_l1": "reg_alpha", "lambda_l2": "reg_lambda", "min_gain_to_split": "min_split_gain",
    "bin_construct_sample_cnt": "subsample_for_bin",
}  # fmt: skip
# What is said of a booster, unless it has this value.
OWN = {
    "n_estimators": None, "random_state": None, "boosting_type": "gbdt", "learning_rate": 0.1, "num_leaves": 31,
    "max_depth": -1, "min_child_samples": 20, "min_child_weight": 1e-3, "subsample": 1.0, "subsample_freq": 0,
    "colsample_bytree": 1.0, "reg_alpha": 0.0, "reg_lambda": 0.0, "min_split_gain": 0.0, "max_bin": 255,
    "scale_pos_weight": 1.0, "is_unbalance": False, "extra_trees": False, "path_smooth": 0.0, "max_delta_step": 0.0,
    "monotone_constraints": None,
}  # fmt: skip
NOT_GIVEN = ("num_class", "categorical_feature")  # the labels say the one, the columns the other


def classifier(values: dict[str, Any]) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, n_jobs=1, **values)


def margins(booster: Any, rows: Any, rounds: int) -> Floats:
    """What the first rounds say of rows: (n,) or (n, c)."""
    return np.asarray(booster.predict(rows, raw_score=True, num_iteration=rounds), dtype=np.float64)


def own_booster(estimator: Any) -> Any:
    return estimator.booster_


def settings_of(booster: Any, rows: Any = None, labels: NDArray[np.int64] | None = None) -> Settings:
    """From its text; a file that `read_model` has read keeps them beside the booster."""
    written = settings_in(booster.model_to_string()) or dict(booster.params)
    counted = {"n_estimators": int(booster.current_iteration())}
    if "learning_rate" not in written:
        return Settings(
            counted, tuple(counted), assumed=("learning_rate", "num_leaves", "min_child_samples", "all others"),
            remarks=("its text has no parameters",),
        )  # fmt: skip
    own = {name: value for name, value in written.items() if name not in (*SEEDS, "seed", *NOT_GIVEN)}
    values = counted | {NAMES.get(name, name): value for name, value in own.items()}
    seed, seed_known = _seed(written)
    if seed is not None:
        values["random_state"] = seed
    categories = written.get("categorical_feature") and not hasattr(rows, "columns") and rows is not None
    remark = ("it took some numbers of its rows as categories, which its refits do not",) if categories else ()
    usual = tuple(name for name in values if name not in OWN or values[name] == OWN[name])
    given = tuple(name for name in values if name not in usual)
    return Settings(values, given, usual, remarks=remark, seed_known=seed_known, draws=_draws(written))


def _seed(written: dict[str, Any]) -> tuple[int | None, bool]:
    """The random_state, and whether it gives the seeds that the booster has."""
    own = {name: written.get(name, SEEDS[name]) for name in SEEDS}
    if own == SEEDS:
        return None, True
    seed = int(written.get("seed", 0))
    return (seed, True) if own == _drawn(seed) else (None, False)


def _drawn(seed: int) -> dict[str, int]:
    """What LightGBM makes of a seed: a linear congruential generator, of which it takes 15 bits."""
    state, found = seed, {}
    for name in SEEDS:
        state = (214013 * state + 2531011) % 2**32
        found[name] = (state >> 16 & 0x7FFF) % 32767
    return found


def _draws(written: dict[str, Any]) -> bool:
    """Whether anything is drawn while it is trained."""
    bagging = written.get("bagging_freq", 0) > 0 and any(
        written.get(name, 1) < 1 for name in ("bagging_fraction", "pos_bagging_fraction", "neg_bagging_fraction")
    )
    columns = any(written.get(name, 1) < 1 for name in ("feature_fraction", "feature_fraction_bynode"))
    sampled = "goss" in (written.get("boosting"), written.get("data_sample_strategy"))
    return bool(bagging or columns or sampled or written.get("extra_trees") or written.get("boosting") == "dart")
