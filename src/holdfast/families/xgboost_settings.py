"""The parameters of a training that a bare booster of XGBoost holds.

In memory it holds them all. A file has its trees, and of the parameters only those that are needed to answer; the
configuration of a booster that was read from one is that of the defaults.
"""

from __future__ import annotations

import json
from math import exp
from typing import Any

import numpy as np

from holdfast.models.frameworks.xgboost_trees import SEVERAL

CLASSIFIER = "XGBClassifier"
# XGBClassifier's names of parameters that it has itself: given by both names, one of them would be ignored.
NAMES = {
    "eta": "learning_rate", "lambda": "reg_lambda", "alpha": "reg_alpha", "min_split_loss": "gamma",
    "seed": "random_state", "nthread": "n_jobs", "num_boost_round": "n_estimators",
}  # fmt: skip
NOT_GIVEN = ("objective", "num_class")  # the booster's own
# XGBClassifier's name of what a booster's configuration holds, and the value of a booster that was read from a file.
TREE = {
    "learning_rate": 0.3, "max_depth": 6, "min_child_weight": 1.0, "gamma": 0.0, "reg_alpha": 0.0, "reg_lambda": 1.0,
    "max_delta_step": 0.0, "subsample": 1.0, "sampling_method": "uniform", "colsample_bytree": 1.0,
    "colsample_bylevel": 1.0, "colsample_bynode": 1.0, "grow_policy": "depthwise", "max_leaves": 0, "max_bin": 256,
    "max_cat_to_onehot": 4, "max_cat_threshold": 64, "monotone_constraints": "()", "interaction_constraints": "",
}  # fmt: skip
DART = {"rate_drop": 0.0, "skip_drop": 0.0, "one_drop": 0, "sample_type": "uniform", "normalize_type": "tree"}
DEFAULTS = TREE | DART | {"tree_method": "auto", "random_state": 0}


def classifier(values: dict[str, Any]) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(**{"n_jobs": 1} | values)


def parameter_names() -> set[str]:
    return {*classifier({}).get_params(), *DEFAULTS}


def unusual(values: dict[str, Any]) -> dict[str, Any]:
    """Those that are not the defaults."""
    return {name: value for name, value in values.items() if DEFAULTS.get(name) != value}


def settings_of(booster: Any) -> tuple[dict[str, Any], bool]:
    """The parameters that a booster holds, and whether they are all of its training."""
    learner = json.loads(booster.save_raw("json"))["learner"]
    kind = learner["gradient_booster"]["name"]
    if kind not in ("gbtree", "dart"):
        raise ValueError(
            f"this xgboost.Booster ({kind}) has no trees to fit again; train it with a function of your own that takes "
            "(rows, seed), or pass the XGBClassifier"
        )
    model = learner["gradient_booster"].get("gbtree", learner["gradient_booster"])["model"]
    held = _of_answers(learner, kind, model)
    trained = _configured(booster)
    deep = trained["max_depth"] and _depth(model["trees"]) > trained["max_depth"]
    if deep or not unusual(trained):
        return held, False
    return held | {name: value for name, value in trained.items() if value not in ("", "()")}, True


def _of_answers(learner: dict[str, Any], kind: str, model: dict[str, Any]) -> dict[str, Any]:
    """What every booster holds."""
    about, objective = learner["learner_model_param"], learner["objective"]
    parallel = int(model["gbtree_model_param"]["num_parallel_tree"])
    found: dict[str, Any] = {
        "n_estimators": len(model["iteration_indptr"]) - 1,
        "objective": "multi:softprob" if objective["name"] in SEVERAL else "binary:logistic",
        "booster": kind,
    }
    weight = float(objective.get("reg_loss_param", {}).get("scale_pos_weight", 1))
    if "c" in learner.get("feature_types", ()):
        found["enable_categorical"] = True
    if parallel > 1:
        found["num_parallel_tree"] = parallel
    if any(int(tree["tree_param"].get("size_leaf_vector", 1)) > 1 for tree in model["trees"]):
        found["multi_strategy"] = "multi_output_tree"
    if weight != 1:
        found["scale_pos_weight"] = weight
    base = np.atleast_1d(np.asarray(json.loads(about["base_score"]), dtype=np.float64))
    if about.get("boost_from_average") == "0" and len(base) == 1:
        # A probability for XGBClassifier: for this one objective the score is kept as a margin.
        share = 1 / (1 + exp(-base[0])) if objective["name"] == "binary:logitraw" else base[0]
        found["base_score"] = float(f"{share:.7g}")
    return found


def _configured(booster: Any) -> dict[str, Any]:
    learner = json.loads(booster.save_config())["learner"]
    boosted = learner["gradient_booster"]
    inner = boosted.get("gbtree", boosted)
    given = _typed(inner["tree_train_param"], TREE) | _typed(boosted.get("dart_train_param", {}), DART)
    seed = int(learner["generic_param"]["seed"])
    return given | {"tree_method": inner["gbtree_train_param"]["tree_method"], "random_state": seed}


def _typed(given: dict[str, str], known: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a configuration, which are text that has been through float32."""
    found: dict[str, Any] = {}
    for name, default in known.items():
        if name in given:
            text = given[name]
            found[name] = text if isinstance(default, str) else type(default)(float(f"{float(text):.7g}"))
    return found


def _depth(trees: list[dict[str, Any]]) -> int:
    """Of the deepest tree. XGBoost numbers a parent before its children."""
    deepest = 0
    for tree in trees:
        depth = [0] * len(tree["left_children"])
        for node, (left, right) in enumerate(zip(tree["left_children"], tree["right_children"], strict=True)):
            if left >= 0:
                depth[left] = depth[right] = depth[node] + 1
        deepest = max(deepest, *depth)
    return deepest
