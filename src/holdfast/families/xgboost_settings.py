"""The parameters of a training that a bare booster of XGBoost holds.

A file has its trees, and of the parameters only those that are needed to answer. In memory a booster holds them all:
what it holds beyond its file is how its configuration differs from that of a copy that was read back.
"""

from __future__ import annotations

import json
from math import exp
from typing import Any

import numpy as np

from holdfast.models.frameworks.xgboost_trees import SEVERAL

# XGBClassifier's names of parameters that it has itself: given by both names, one of them would be ignored.
NAMES = {
    "eta": "learning_rate", "lambda": "reg_lambda", "alpha": "reg_alpha", "min_split_loss": "gamma",
    "seed": "random_state", "nthread": "n_jobs", "num_boost_round": "n_estimators",
}  # fmt: skip
NOT_GIVEN = ("objective", "num_class")  # the booster's own
DART = ("rate_drop", "skip_drop", "one_drop", "sample_type", "normalize_type")


def classifier(values: dict[str, Any]) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(**{"n_jobs": 1} | values)


def parameter_names() -> set[str]:
    return {*classifier({}).get_params(), *DART}


def unusual(values: dict[str, Any]) -> dict[str, Any]:
    """Those that are not the defaults: all that `settings_of` finds."""
    return values


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
    usual = _configured(type(booster)(model_file=booster.save_raw("ubj")))
    trained = {name: value for name, value in _configured(booster).items() if usual[name] != value}
    most = trained.get("max_depth", usual["max_depth"])
    if not trained or 0 < most < max(line.count("\t") for tree in booster.get_dump() for line in tree.splitlines()):
        return held, False
    return held | trained, True


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
    """How a booster would be trained further."""
    learner = json.loads(booster.save_config())["learner"]
    boosted = learner["gradient_booster"]
    inner, known = boosted.get("gbtree", boosted), parameter_names()
    parts = (inner["tree_train_param"], inner["gbtree_train_param"], boosted.get("dart_train_param", {}))
    seed = {"random_state": learner["generic_param"]["seed"]}
    return {name: _plain(text) for part in (*parts, seed) for name, text in part.items() if name in known}


def _plain(text: str) -> Any:
    """Numbers are text that has been through float32."""
    try:
        return int(text) if text.lstrip("-").isdigit() else float(f"{float(text):.7g}")
    except ValueError:
        return text
