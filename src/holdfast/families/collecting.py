"""Members as they come, from refits, from a function that trains or from a list, and those that failed."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from holdfast.families.recipe import Retraining
from holdfast.families.training_data import Pool, rows_of
from holdfast.utils.progress import bar
from holdfast.utils.threads import cores, one_thread
from holdfast.utils.workers import in_workers

AnyTraining = Callable[[NDArray[np.int64], int], Any]  # rows to train on, seed -> a model, or the file of one
Member = TypeVar("Member")


@dataclass(frozen=True)
class Failure:
    """A member whose training raised."""

    retraining: Retraining
    error: str  # the last line
    details: str  # the whole traceback


class Collected(Generic[Member]):
    """The members that there are so far, and what went wrong with others, by their places."""

    def __init__(self, changes: Sequence[Retraining], what: str = "trainings") -> None:
        self.changes, self.what = tuple(changes), what
        self.models: dict[int, Member] = {}
        self.failures: dict[int, Failure] = {}

    def take(self, place: int, read: Callable[[], Member], told: str = "") -> bool:
        """Add a member, or the reason why it cannot be one."""
        try:
            self.models[place] = read()
        except Exception as error:  # whatever reading somebody's model raises
            self.fail(place, f"{told}{type(error).__name__}: {error}", traceback.format_exc())
        return place in self.models

    def fail(self, place: int, error: str, details: str) -> None:
        self.failures[place] = Failure(self.changes[place], error, details)

    def finished(self, stacklevel: int) -> tuple[list[Member], tuple[Retraining, ...], tuple[Failure, ...]]:
        """All of them in order; those that failed are told, and if all did, that is an error."""
        count, failed = len(self.changes), tuple(self.failures[place] for place in sorted(self.failures))
        if not self.models:
            first = f"the first said:\n{failed[0].error}\n{failed[0].details}" if failed else "there were no changes"
            raise RuntimeError(f"none of {count} {self.what} gave a model; {first}")
        if failed:
            warnings.warn(
                f"{len(failed)} of {count} {self.what} failed and are left out, the first with: {failed[0].error}; "
                "see .failures",
                stacklevel=stacklevel + 1,
            )
        kept = sorted(self.models)
        return [self.models[place] for place in kept], tuple(self.changes[place] for place in kept), failed


# ---- a function that trains ----


@dataclass(frozen=True)
class _Trained:
    """What came of one call."""

    place: int
    model: Any = None
    error: str = ""
    details: str = ""
    stays: bool = False  # it was trained, but cannot leave its process


def collect(
    function: AnyTraining,
    changes: Sequence[Retraining],
    rows: int,
    read: Callable[[Any], Member],
    workers: int | None,
    progress: bool,
) -> Collected[Member]:
    """What ``function(rows, seed)`` returns for every change, read by ``read``.

    The function runs in worker processes; here, where it or what it returns cannot be handed over.
    """
    for change in changes:
        _check_rows_only(change, rows)
    pool = Pool(torch.empty(rows, 0), torch.empty(rows), rows, 2)
    tasks = [(place, rows_of(change, pool).numpy(), change.init_seed) for place, change in enumerate(changes)]
    members: Collected[Member] = Collected(changes)
    again: list[tuple[Any, ...]] = []
    with bar(f"Training {len(changes)} models", len(changes), progress) as advance:

        def done(trained: _Trained) -> None:
            if trained.stays:
                again.append(tasks[trained.place])
                return
            if trained.error:
                members.fail(trained.place, trained.error, trained.details)
            else:
                told = "what the training returned cannot be asked: "
                members.take(trained.place, lambda: read(trained.model), told)
            advance(1)

        most = min(workers or cores(), len(tasks)) if _travels(function) else 1
        in_workers(_attempt if most == 1 else _attempt_elsewhere, tasks, most, done, shared=(function,))
        in_workers(_attempt, again, 1, done, shared=(function,))
    return members


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


def _check_rows_only(change: Retraining, rows: int) -> None:
    tuned = change.settings or change.parameters
    if change.label_noise or change.weight_noise or change.tilt is not None or change.appended or tuned:
        raise ValueError(f"{change} changes more than rows and seeds; make that change inside your own function")
    if change.left_out is not None and not 0 <= change.left_out < rows:
        raise ValueError(f"{change} leaves out a row that is not there; there are {rows}")
