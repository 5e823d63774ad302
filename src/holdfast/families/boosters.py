"""A bare booster of XGBoost or LightGBM as an estimator that can be fitted again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from holdfast.families import lightgbm_settings, xgboost_settings
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapters.output_spec import OutputSpec
from holdfast.models.frameworks import xgboost_trees
from holdfast.models.frameworks.boosters import knows as is_booster
from holdfast.utils.messages import did_you_mean

LOG = logging.getLogger(__name__)


def estimator_of(booster: Any, params: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """An estimator that has not been fitted, with the parameters that made the booster, and how they are known.

    ``params`` states them by the names of XGBClassifier or LGBMClassifier, or of the library; what they leave out, and
    the booster does not hold, has the default. Without them, a booster that does not hold its parameters is refused.
    """
    if not is_booster(booster):
        raise TypeError(f"expected an xgboost.Booster or a lightgbm.Booster, got {type(booster).__name__}")
    library = xgboost_settings if xgboost_trees.is_booster(booster) else lightgbm_settings
    name = f"{type(booster).__module__.partition('.')[0]}.Booster"
    held, complete = library.settings_of(booster)
    if params is None and not complete:
        kind = type(library.classifier({})).__name__
        raise ValueError(
            f"this {name} does not hold the parameters that it was trained with (a file of XGBoost has none): expected "
            f"those of {kind}, got {_listed(held)}. Pass params={{'max_depth': 6, 'learning_rate': 0.3}} with the "
            "right values, {} if all are the defaults; on the command line, --params FILE. Or retrain the "
            f"{kind} itself, or give a function (rows, seed) that trains"
        )
    given = {} if params is None else _checked(params, library)
    held = {name: value for name, value in held.items() if name not in given}
    parts = {"given": _listed(given), "held by the booster": _listed(library.unusual(held))}
    told = [f"{how}: {values}" for how, values in parts.items() if values]
    about = f"{name}: {'; '.join([*told, 'the others are the defaults'])}"
    LOG.info("parameters of the %s", about)
    return library.classifier(held | given), about


def check_params(own: Any, params: Mapping[str, Any] | None) -> None:
    """Raise where a model cannot be fitted again with the parameters that are given, or without them."""
    if is_booster(own):
        estimator_of(own, params)
    elif params is not None:
        raise ValueError(
            f"params is for a bare booster of XGBoost or LightGBM, and this model is a {type(own).__name__}; "
            "leave params out: an estimator holds its own parameters, and changes.parameters varies them"
        )


def adapter_for(adapter: Adapter, estimator: Any) -> Adapter:
    """How refits of a booster are asked: about the same columns, each output for the same class."""
    output = OutputSpec("probabilities", adapter.output.classes, adapter.output.places, settles=True)
    return replace(
        adapter,
        own=estimator,
        name=type(estimator).__name__,
        way="predict_proba",
        call=estimator.predict_proba,
        output=output,
    )


def _checked(params: Any, library: ModuleType) -> dict[str, Any]:
    """By the estimator's own names."""
    kind = type(library.classifier({})).__name__
    if not isinstance(params, Mapping):
        raise TypeError(
            f"params must be a dictionary such as {{'max_depth': 6}}, the parameters of {kind}, got "
            f"{type(params).__name__}"
        )
    given = {library.NAMES.get(name, name): value for name, value in params.items() if name not in library.NOT_GIVEN}
    known = library.parameter_names()
    for name in given.keys() - known:
        hint = did_you_mean(name, known) or "; get_params() of one lists them"
        raise ValueError(f"params names {name!r}, which is no parameter of {kind}{hint}")
    return given


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
