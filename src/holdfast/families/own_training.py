"""Retrain with a function of the user's that returns a model of any kind: an estimator, a booster, a module, a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import torch

from holdfast.families.collecting import AnyTraining, collect
from holdfast.families.family import Family
from holdfast.families.judging import compared_rows, judged, say_what_is_one_model
from holdfast.families.reading_members import family_of, read_like
from holdfast.families.recipe import Retraining, checked_changes
from holdfast.models.identity import identities
from holdfast.models.model import Model, check_callable
from holdfast.tabular.encoding import Encoding
from holdfast.utils.settings import check_whole


def train_by(
    function: AnyTraining,
    changes: Sequence[Retraining],
    encoding: Encoding,
    deployed: Model,
    table: pd.DataFrame,
    *,
    held_out: pd.DataFrame | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Family:
    """A family of what ``function(rows, seed)`` returns, once for every change: rows of the table by their numbers.

    It returns a model of any framework, or the name of a file that `read_model` reads. Each is asked as the deployed
    model is. The function runs in worker processes; here, where it or what it returns cannot be handed over, or with
    ``workers=1``. A member whose training raises, or whose model cannot be read, is in ``failures``.

    If the members do not resemble the deployed model, ``surrogates`` says why, as for `refit`.
    """
    _check(function, changes, table, workers)

    def read(given: Any) -> Model:
        if given is None:
            raise TypeError("the training returned nothing; it must return the model, or the name of its file")
        model = read_like(given, encoding, deployed)
        if identities(model) & identities(deployed):
            raise ValueError("the training returned the deployed model itself; it must train another one")
        model(encoding.encode(_one_row(encoding)))
        return model

    models, kept, failures = collect(function, changes, len(table), read, workers, progress).finished(2)
    family = replace(family_of(models, kept), failures=failures)
    x, y, where = compared_rows(encoding, table, held_out)
    say_what_is_one_model(family, x, "this training does not notice such a change")
    return judged(family, deployed, x, y, where)


def _one_row(encoding: Encoding) -> pd.DataFrame:
    """To see that a model answers."""
    return encoding.decode(torch.zeros(1, encoding.width))


def _check(function: Any, changes: Any, table: Any, workers: Any) -> None:
    check_callable(function, "function", "one that takes (rows, seed) and returns a model")
    if isinstance(function, type):
        raise TypeError(f"function must take (rows, seed) and return a model, got {function!r}")
    checked_changes(changes)
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be the one that the deployed model was trained on, got {type(table).__name__}")
    if workers is not None:
        check_whole("workers", workers, least=1)
