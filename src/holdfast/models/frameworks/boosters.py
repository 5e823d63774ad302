"""Bare boosters of XGBoost and LightGBM; their classifiers are estimators like others."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.adapters.adapter import Adapter, Call, How
from holdfast.models.adapters.output_spec import OutputSpec, matched_classes
from holdfast.models.frameworks import lightgbm_trees, xgboost_trees
from holdfast.models.frameworks.estimators import inputs_of
from holdfast.models.trees.reading import ensemble_of_model
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding


def knows(model: Any) -> bool:
    return bool(xgboost_trees.is_booster(model) or lightgbm_trees.is_booster(model))


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    way, outputs, scale = _xgboost(model) if xgboost_trees.is_booster(model) else _lightgbm(model)
    name, classes = _name(model), encoding.schema.classes
    if max(2, outputs) != len(classes):
        raise ValueError(
            f"this {name} tells {max(2, outputs)} classes apart, the schema has {len(classes)} ({list(classes)}); list "
            "the classes that it was trained on in the schema"
        )
    _, places, _ = matched_classes(range(len(classes)) if how.classes is None else how.classes, classes, name)
    output = OutputSpec("logits", tuple(range(len(places))), places, scale=scale)
    given = next(inputs_of(model, encoding, how, name))  # the columns that it was trained on, in their order
    return Adapter(model, encoding, name, way, call_of(model, way), given, output)


def helped(adapter: Adapter) -> WrappedModel:
    """The booster with its trees, where they can be read."""
    return WrappedModel(adapter, ensemble=ensemble_of_model(adapter))


def call_of(model: Any, way: str) -> Call:
    return partial(_margins, model) if way == "margins" else partial(model.predict, raw_score=True)


def _margins(booster: Any, rows: Any) -> NDArray[np.float32]:
    import xgboost

    names = None if isinstance(rows, pd.DataFrame) else booster.feature_names
    matrix = xgboost.DMatrix(rows, enable_categorical=True, feature_names=names)
    found: NDArray[np.float32] = booster.predict(matrix, output_margin=True)
    return found


def _name(model: Any) -> str:
    return f"{type(model).__module__.partition('.')[0]}.Booster"


def _xgboost(model: Any) -> tuple[str, int, float]:
    """How it is asked, how many outputs it has, and what they are multiplied by."""
    learner = json.loads(model.save_config())["learner"]
    objective, known = learner["objective"]["name"], (*xgboost_trees.BINARY, *xgboost_trees.MULTICLASS)
    if objective not in known:
        raise ValueError(
            f"this xgboost.Booster has the objective {objective!r}, which gives no classes; expected one of "
            f"{', '.join(known)}. A function from a table to probabilities can be asked instead"
        )
    return "margins", int(learner["learner_model_param"]["num_class"]), 1.0


def _lightgbm(model: Any) -> tuple[str, int, float]:
    objective, scale = lightgbm_trees.objective_of(model)
    if objective not in lightgbm_trees.OBJECTIVES:
        raise ValueError(
            f"this lightgbm.Booster has the objective {objective!r}, of which the classes are not known; expected "
            "binary, cross_entropy or multiclass. A function from a table to probabilities can be asked instead"
        )
    outputs = model.num_model_per_iteration()
    return "raw scores", outputs, scale
