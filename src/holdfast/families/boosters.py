"""A bare booster of XGBoost or LightGBM as an estimator that can be fitted again, with the parameters that are stated.

LightGBM writes those of the training into its text. XGBoost writes only what is needed to answer, so that the others
have to be given.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from math import exp
from typing import Any

import numpy as np

from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapters.output_spec import OutputSpec
from holdfast.models.files.lightgbm_settings import DEFAULTS, settings_in
from holdfast.models.frameworks import xgboost_trees
from holdfast.models.frameworks.boosters import knows as is_booster
from holdfast.utils.messages import did_you_mean

LOG = logging.getLogger(__name__)
# The classifiers' names of parameters that their libraries name otherwise: given by both, one of them would be ignored.
NAMES = {
    "eta": "learning_rate", "lambda": "reg_lambda", "alpha": "reg_alpha", "min_split_loss": "gamma",
    "nthread": "n_jobs", "num_boost_round": "n_estimators",
    "boosting": "boosting_type", "min_data_in_leaf": "min_child_samples", "min_sum_hessian_in_leaf": "min_child_weight",
    "bagging_fraction": "subsample", "bagging_freq": "subsample_freq", "feature_fraction": "colsample_bytree",
    "lambda_l1": "reg_alpha", "lambda_l2": "reg_lambda", "min_gain_to_split": "min_split_gain",
    "bin_construct_sample_cnt": "subsample_for_bin", "num_iterations": "n_estimators", "seed": "random_state",
}  # fmt: skip
NOT_GIVEN = ("objective", "num_class", "categorical_feature")  # the booster's own; the labels and the columns say them
DART = ("rate_drop", "skip_drop", "one_drop", "sample_type", "normalize_type")  # XGBClassifier does not list these


def estimator_of(booster: Any, params: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """An estimator that has not been fitted, with the parameters that made the booster, and how they are known.

    ``params`` states them by the names of XGBClassifier or LGBMClassifier, or of the library; what they leave out, and
    the booster does not hold, has the default. Without them, a booster that does not hold its parameters is refused.
    """
    if not is_booster(booster):
        raise TypeError(f"expected an xgboost.Booster or a lightgbm.Booster, got {type(booster).__name__}")
    name = f"{type(booster).__module__.partition('.')[0]}.Booster"
    if xgboost_trees.is_booster(booster):
        estimator, held, complete = _xgboost_classifier(), _held_by_xgboost(booster), False
        known = {*estimator.get_params(), *DART}
    else:
        estimator, (held, complete) = _lightgbm_classifier(), _held_by_lightgbm(booster)
        known = {*estimator.get_params(), *(NAMES.get(parameter, parameter) for parameter in DEFAULTS)}
    kind = type(estimator).__name__
    if params is None and not complete:
        raise ValueError(
            f"this {name} does not hold the parameters that it was trained with (one of XGBoost has none): expected "
            f"those of {kind}, got {_listed(held)}. Pass params={{'max_depth': 6, 'learning_rate': 0.3}} with the "
            "right values, {} if all are the defaults; on the command line, --params FILE. Or retrain the "
            f"{kind} itself, or give a function (rows, seed) that trains"
        )
    given = {} if params is None else _checked(params, kind, known)
    kept = {parameter: value for parameter, value in held.items() if parameter not in given}
    parts = {"given": _listed(given), "held by the booster": _listed(kept)}
    sources = [f"{how}: {values}" for how, values in parts.items() if values]
    about = f"{name}: {'; '.join([*sources, 'the others are the defaults'])}"
    LOG.info("parameters of the %s", about)
    return estimator.set_params(**kept | given), about


def check_params(model: Any, params: Mapping[str, Any] | None) -> None:
    """Raise where a model cannot be fitted again with the parameters that are given, or without them."""
    if is_booster(model):
        estimator_of(model, params)
    elif params is not None:
        raise ValueError(
            f"params is for a bare booster of XGBoost or LightGBM, and this model is a {type(model).__name__}; "
            "leave params out: an estimator holds its own parameters, and changes.parameters varies them"
        )


def adapter_for(adapter: Adapter, estimator: Any) -> Adapter:
    """How refits of a booster are asked: about the same columns, each output for the same class."""
    output = OutputSpec("probabilities", adapter.output.classes, adapter.output.places, settles=True)
    return replace(
        adapter,
        model=estimator,
        name=type(estimator).__name__,
        way="predict_proba",
        call=estimator.predict_proba,
        output=output,
    )


def _checked(params: Any, kind: str, known: set[str]) -> dict[str, Any]:
    """By the estimator's own names."""
    if not isinstance(params, Mapping):
        raise TypeError(
            f"params must be a dictionary such as {{'max_depth': 6}}, the parameters of {kind}, got "
            f"{type(params).__name__}"
        )
    given = {NAMES.get(str(name), str(name)): value for name, value in params.items() if name not in NOT_GIVEN}
    for name in given.keys() - known:
        hint = did_you_mean(name, known) or "; get_params() of one lists them"
        raise ValueError(f"params names {name!r}, which is no parameter of {kind}{hint}")
    return given


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _lightgbm_classifier() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(verbose=-1, n_jobs=1)


def _held_by_lightgbm(booster: Any) -> tuple[dict[str, Any], bool]:
    """The parameters that a booster holds, and whether they are all of its training: its text states them; of one that
    `read_model` has read, they lie beside the booster."""
    stated = settings_in(booster.model_to_string()) or booster.params
    held: dict[str, Any] = {"n_estimators": int(booster.current_iteration())}
    held |= {NAMES.get(name, name): stated[name] for name in DEFAULTS if name in stated}
    return held, "objective" in stated


def _xgboost_classifier() -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_jobs=1)


def _held_by_xgboost(booster: Any) -> dict[str, Any]:
    """What every booster holds: never all."""
    learner = json.loads(booster.save_raw("json"))["learner"]
    about, objective, boosted = learner["learner_model_param"], learner["objective"], learner["gradient_booster"]
    if boosted["name"] not in ("gbtree", "dart"):
        raise ValueError(
            f"this xgboost.Booster ({boosted['name']}) has no trees to fit again; train it with a function of your own "
            "that takes (rows, seed), or pass the XGBClassifier"
        )
    model = boosted.get("gbtree", boosted)["model"]
    parallel = int(model["gbtree_model_param"]["num_parallel_tree"])
    weight = float(objective.get("reg_loss_param", {}).get("scale_pos_weight", 1))
    held: dict[str, Any] = {
        "n_estimators": len(model["iteration_indptr"]) - 1,
        "objective": "multi:softprob" if objective["name"] in xgboost_trees.MULTICLASS else "binary:logistic",
        "booster": boosted["name"],
    }
    if "c" in learner.get("feature_types", ()):
        held["enable_categorical"] = True
    if parallel > 1:
        held["num_parallel_tree"] = parallel
    if weight != 1:
        held["scale_pos_weight"] = weight
    base = np.atleast_1d(np.asarray(json.loads(about["base_score"]), dtype=np.float64))
    if about.get("boost_from_average") == "0" and len(base) == 1:
        # A probability for XGBClassifier: for this one objective the score is kept as a margin.
        share = 1 / (1 + exp(-base[0])) if objective["name"] == "binary:logitraw" else base[0]
        held["base_score"] = float(f"{share:.7g}")
    return held
