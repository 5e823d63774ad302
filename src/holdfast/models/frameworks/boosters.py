"""Bare boosters of XGBoost and LightGBM; their classifiers are estimators like others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.adapters.adapter import Adapter, Call, How
from holdfast.models.adapters.input_spec import InputSpec, one_hot_input, table_input
from holdfast.models.adapters.output_spec import OutputSpec
from holdfast.models.adapters.seen import columns_of, is_of_encoded_rows, names_in_schema, width_of
from holdfast.models.deployed import Deployed
from holdfast.models.frameworks import lightgbm_trees, xgboost_trees
from holdfast.models.trees.reading import ensemble_of_model, places_of
from holdfast.tabular.encoding import Encoding
from holdfast.utils.messages import some


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
    places = tuple(places_of(how.classes, encoding))
    output = OutputSpec("logits", tuple(range(len(places))), places, scale=scale)
    given = _input(model, encoding, None if how.takes is None else how.takes == "encoded")
    return Adapter(model, encoding, name, way, call_of(model, way), given, output)


def helped(adapter: Adapter) -> Deployed:
    """The booster with its trees, where they can be read."""
    ensemble = ensemble_of_model(adapter)
    trees = "a black box" if ensemble is None else f"{len(ensemble.roots)} trees"
    return Deployed.of(adapter, f", searched as {trees}", ensemble=ensemble)


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
    objective, known = learner["objective"]["name"], (*xgboost_trees.BINARY, *xgboost_trees.SEVERAL)
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


def _input(booster: Any, encoding: Encoding, encoded: bool | None) -> InputSpec:
    """The columns that it was trained on, in their order; ``encoded`` says of which rows where they do not."""
    names = columns_of(booster)
    if encoded is None:
        encoded = is_of_encoded_rows(booster, names, encoding)
    if encoded:
        return table_input(encoding, "encoded", "frame" if names == list(encoding.columns) else "array")
    order = None if names is None else names_in_schema(names, encoding)
    if order is not None:
        return table_input(encoding, "table", "frame", order, categories=True)
    hot = None if names is None else one_hot_input(encoding, names, categories=True)
    if hot is None:
        _check_width(booster, names, encoding)
    return hot or table_input(encoding, "table", "array")


def _check_width(booster: Any, names: Sequence[str] | None, encoding: Encoding) -> None:
    """Raise where a booster has more or fewer columns than the table: then none can be given by position."""
    width, features = width_of(booster), encoding.schema.names
    if width is None or width == len(features):
        return
    unknown = [name for name in names or () if name not in features]
    raise ValueError(
        f"the booster was trained on {width} columns, of which the schema does not have {some(unknown)}; the schema "
        f"has {len(features)} features, {some(features)}. Train it on the table's columns (text as categories), or on "
        "columns that are one-hot by name, such as pandas.get_dummies makes: 'housing_own'"
    )
