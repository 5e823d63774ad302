"""Retrain with a function of the user's that returns a model of any kind: an estimator, a booster, a module, a file."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import nn

from holdfast.families.external_models import Failure, check_rows_only
from holdfast.families.family import Family
from holdfast.families.judging import compared_rows, judged, say_what_is_one_model
from holdfast.families.reading_members import family_of, read_like
from holdfast.families.recipe import Retraining
from holdfast.families.training_data import Pool, rows_of
from holdfast.models.identity import identities
from holdfast.models.model import Model, check_callable
from holdfast.tabular.encoding import Encoding
from holdfast.utils.progress import bar
from holdfast.utils.settings import check_whole
from holdfast.utils.threads import one_thread
from holdfast.utils.workers import cores, in_workers

AnyTraining = Callable[[NDArray[np.int64], int], Any]  # rows to train on, seed -> a model, or the file of one


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
    members = _Members(tuple(changes), encoding, deployed)
    with bar(f"Training {len(changes)} models", len(changes), progress) as advance:
        for trained in _trained(function, changes, len(table), workers):
            members.take(trained)
            advance(1)
    family = members.family()
    x, y, where = compared_rows(encoding, table, held_out)
    say_what_is_one_model(family, x, "this training does not notice such a change")
    return judged(family, deployed, x, y, where)


# ---- calling the function ----


@dataclass(frozen=True)
class _Trained:
    """What came of one call."""

    place: int
    model: Any = None
    error: str = ""
    details: str = ""
    stays: bool = False  # it was trained, but cannot leave its process


def _trained(
    function: AnyTraining, changes: Sequence[Retraining], rows: int, workers: int | None
) -> Iterator[_Trained]:
    pool = Pool(torch.empty(rows, 0), torch.empty(rows), rows, 2)
    tasks = [(function, place, rows_of(change, pool).numpy(), change.init_seed) for place, change in enumerate(changes)]
    most = min(workers or cores(), len(tasks))
    if most == 1 or not _travels(function):
        yield from (_attempt(*task) for task in tasks)
        return
    again = []
    for trained in in_workers(_attempt_elsewhere, tasks, most):
        if trained.stays:
            again.append(tasks[trained.place])
        else:
            yield trained
    yield from (_attempt(*task) for task in again)


def _attempt(function: AnyTraining, place: int, rows: NDArray[np.int64], seed: int) -> _Trained:
    try:
        with one_thread():
            model = function(rows, seed)
        return _Trained(place, model.eval() if isinstance(model, nn.Module) else model)
    except Exception as error:  # whatever somebody's training raises
        return _Trained(place, error=f"{type(error).__name__}: {error}", details=traceback.format_exc())


def _attempt_elsewhere(function: AnyTraining, place: int, rows: NDArray[np.int64], seed: int) -> _Trained:
    trained = _attempt(function, place, rows, seed)
    return trained if _travels(trained.model) else _Trained(place, stays=True)


def _travels(value: Any) -> bool:
    """Whether it can be handed from one process to another."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        dumps(value)
    except Exception:  # each library says so in its own way
        return False
    return True


# ---- what it returns ----


class _Members:
    """Models as they come, each read as the deployed model is."""

    def __init__(self, changes: tuple[Retraining, ...], encoding: Encoding, deployed: Model) -> None:
        self.changes, self.encoding, self.deployed = changes, encoding, deployed
        self.models: dict[int, Model] = {}
        self.failures: dict[int, Failure] = {}

    def take(self, trained: _Trained) -> None:
        change = self.changes[trained.place]
        if trained.error:
            self.failures[trained.place] = Failure(change, trained.error, trained.details)
            return
        try:
            self.models[trained.place] = self._read(trained.model)
        except Exception as error:  # whatever reading somebody's model raises
            told = f"what the training returned cannot be asked: {type(error).__name__}: {error}"
            self.failures[trained.place] = Failure(change, told, traceback.format_exc())

    def _read(self, given: Any) -> Model:
        if given is None:
            raise TypeError("the training returned nothing; it must return the model, or the name of its file")
        model = read_like(given, self.encoding, self.deployed)
        if identities(model) & identities(self.deployed):
            raise ValueError("the training returned the deployed model itself; it must train another one")
        model(self.encoding.encode(_one_row(self.encoding)))
        return model

    def family(self) -> Family:
        failed = tuple(self.failures[place] for place in sorted(self.failures))
        if not self.models:
            raise RuntimeError(
                f"none of {len(self.changes)} trainings gave a model; the first said:\n{failed[0].error}\n"
                f"{failed[0].details}"
            )
        if failed:
            warnings.warn(
                f"{len(failed)} of {len(self.changes)} trainings failed and are left out, the first with: "
                f"{failed[0].error}; see .failures",
                stacklevel=3,
            )
        kept = sorted(self.models)
        family = family_of([self.models[place] for place in kept], tuple(self.changes[place] for place in kept))
        return replace(family, failures=failed)


def _one_row(encoding: Encoding) -> pd.DataFrame:
    """To see that a model answers."""
    return encoding.decode(torch.zeros(1, encoding.width))


def _check(function: Any, changes: Any, table: Any, workers: Any) -> None:
    check_callable(function, "function", "one that takes (rows, seed) and returns a model")
    if isinstance(function, type):
        raise TypeError(f"function must take (rows, seed) and return a model, got {function!r}")
    if not isinstance(changes, Sequence) or not all(isinstance(change, Retraining) for change in changes):
        raise TypeError(f"changes must be a list of Retrainings, such as seeds(20), got {changes!r}")
    if not changes:
        raise ValueError("changes is empty, so there is nothing to train; try seeds(20)")
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be the one that the deployed model was trained on, got {type(table).__name__}")
    for change in changes:
        check_rows_only(change, len(table))
    if workers is not None:
        check_whole("workers", workers, least=1)
