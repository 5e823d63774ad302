"""A bare booster of XGBoost or LightGBM as an estimator that can be fitted again."""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.families import lightgbm_settings, xgboost_settings
from holdfast.families.settings_told import Settings
from holdfast.models.adapters.adapter import Adapter, Call
from holdfast.models.adapters.output_spec import OutputSpec
from holdfast.models.frameworks import xgboost_trees
from holdfast.models.frameworks.boosters import knows as is_booster
from holdfast.utils.threads import one_thread

LOG = logging.getLogger(__name__)
FIRST = 10  # rounds that are trained before all are, to see whether parameters can be right
SAME = 1e-3  # by which margins differ at most, where one booster was trained twice
UNKNOWN_SEED = 715_000_000  # far from what people choose: no refit may be the deployed model itself


def estimator_of(booster: Any, rows: Any = None, labels: NDArray[np.int64] | None = None) -> tuple[Any, str]:
    """An estimator that has not been fitted, with the parameters that made the booster, and how they are known.

    ``rows`` and ``labels`` (class numbers) are those that it was trained on, as it takes them: they show whether it saw
    all of them in every round, and whether its first rounds come out again.
    """
    library = _library(booster)
    settings = library.settings_of(booster, rows, labels)
    if settings.draws and not settings.seed_known:
        settings = _with_remark(settings, "its seed is not known, so it cannot be trained again to check all this")
        settings = replace(settings, values=settings.values | {"random_state": UNKNOWN_SEED})
    elif rows is not None and labels is not None:
        settings = _tried(library, booster, settings, rows, labels)
    told = f"{type(booster).__module__.partition('.')[0]}.Booster: {settings}"
    LOG.info("parameters of the %s", told)
    return library.classifier(settings.values), told


def adapter_for(adapter: Adapter, estimator: Any) -> Adapter:
    """How refits of a booster are asked: about the same columns, each output for the same class."""
    output = OutputSpec("probabilities", adapter.output.classes, adapter.output.places, settles=True)
    call: Call = getattr(estimator, "predict_proba", _unfitted)
    return replace(adapter, own=estimator, name=type(estimator).__name__, way="predict_proba", call=call, output=output)


def _unfitted(rows: Any) -> Any:
    raise ValueError("this estimator has not been fitted")


def _library(booster: Any) -> ModuleType:
    if not is_booster(booster):
        raise TypeError(f"expected an xgboost.Booster or a lightgbm.Booster, got {type(booster).__name__}")
    return xgboost_settings if xgboost_trees.is_booster(booster) else lightgbm_settings


def _tried(library: Any, booster: Any, settings: Settings, rows: Any, labels: NDArray[np.int64]) -> Settings:
    """With the values that give the booster again; where none do, as they are. A remark says which."""
    whole = settings.values["n_estimators"]
    for other in ({}, *settings.others):
        values = settings.values | other
        if all(
            _comes_out(library, booster, values, rows, labels, rounds) for rounds in sorted({min(FIRST, whole), whole})
        ):
            return _with_remark(
                settings.with_values(other), "trained on the table with these, the booster comes out again"
            )
    return _with_remark(settings, "trained on the table with these, another booster comes out")


def _with_remark(settings: Settings, remark: str) -> Settings:
    return replace(settings, remarks=(*settings.remarks, remark))


def _comes_out(
    library: Any, booster: Any, values: dict[str, Any], rows: Any, labels: NDArray[np.int64], rounds: int
) -> bool:
    """Whether so many rounds of a training say the same of all rows as those of the booster."""
    if "dart" in (values.get("booster"), values.get("boosting_type")) and rounds < values["n_estimators"]:
        return True  # later rounds change what the first ones say, so that is not known yet
    try:
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = library.classifier(values | {"n_estimators": rounds}).fit(rows, labels)
            ours = library.margins(library.own_booster(again), rows, rounds)
            theirs = library.margins(booster, rows, rounds)
    except Exception as error:  # whatever a library says of parameters that do not go together
        LOG.info("%s does not fit with %s: %s", type(booster).__name__, values, error)
        return False
    return ours.shape == theirs.shape and float(np.abs(ours - theirs).max()) <= SAME
