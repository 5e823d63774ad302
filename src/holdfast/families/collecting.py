"""Members as they come, from refits, from a function that trains or from a list, and those that failed."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from holdfast.families.recipe import Retraining, checked_changes
from holdfast.families.training_data import Pool, check_material, rows_of
from holdfast.models.model import check_callable
from holdfast.utils.progress import bar
from holdfast.utils.settings import check_whole
from holdfast.utils.threads import cores, one_thread
from holdfast.utils.workers import in_workers

AnyTraining = Callable[[NDArray[np.int64], int], Any]  # rows to train on, seed -> a model, or the file of one
Member = TypeVar("Member")
STAYS = "it was trained, but cannot leave its process"
CANNOT = "what the training returned cannot be asked: "


@dataclass(frozen=True)
class Failure:
    """A member whose training raised."""

    retraining: Retraining
    error: str  # the last line
    details: str  # the whole traceback


@dataclass(frozen=True)
class Outcome:
    """What came of the training of one member."""

    index: int
    made: Any = None
    error: str = ""
    details: str = ""


Attempt = Callable[..., Outcome]
Task = Callable[[int], tuple[Any, ...]]  # from a member's index to what an attempt needs


def attempt(function: Callable[..., Any], index: int, *arguments: Any) -> Outcome:
    """What a function makes of a member, or what it raises: anything, since it is somebody else's."""
    try:
        with one_thread():
            return Outcome(index, function(*arguments))
    except Exception as error:
        return Outcome(index, error=f"{type(error).__name__}: {error}", details=traceback.format_exc())


class Collected(Generic[Member]):
    """The members that there are so far, and what went wrong with others, by their indices."""

    def __init__(
        self, changes: Sequence[Retraining], read: Callable[[Any], Member], progress: bool, what: str = "trainings"
    ) -> None:
        self.changes, self.read, self.progress, self.what = tuple(changes), read, progress, what
        self.models: dict[int, Member] = {}
        self.failures: dict[int, Failure] = {}

    def take(self, outcome: Outcome) -> None:
        """Add a member, or the reason why it cannot be one."""
        prefix = "" if outcome.error or self.what != "trainings" else CANNOT
        found = outcome if outcome.error else attempt(self.read, outcome.index, outcome.made)
        if found.error:
            self.failures[found.index] = Failure(self.changes[found.index], f"{prefix}{found.error}", found.details)
        else:
            self.models[found.index] = found.made

    def run(
        self, call: Attempt, shared: tuple[Any, ...], task: Task, workers: int | None, patience: float = 0.0
    ) -> None:
        """Make all that are missing, ``call(*shared, *task(index))``: in worker processes.

        Here, as long as that takes fewer seconds than ``patience``, and what cannot leave its process.
        """
        count, most, started = len(self.changes), workers or cores(), time.perf_counter()
        missing, again = deque(index for index in range(count) if index not in self.models), []
        verb = "Training" if self.what == "trainings" else "Fitting"
        with bar(f"{verb} {count} models", count, self.progress) as advance:
            advance(count - len(missing))

            def done(outcome: Outcome) -> None:
                if outcome.error == STAYS:
                    again.append(outcome.index)
                    return
                self.take(outcome)
                advance(1)

            while missing and (most == 1 or (workers is None and time.perf_counter() - started < patience)):
                done(call(*shared, *task(missing.popleft())))
            if missing:
                in_workers(call, map(task, missing), min(most, len(missing)), done, shared)
            in_workers(attempt, map(task, again), 1, done, shared)

    def finished(self) -> tuple[list[Member], tuple[Retraining, ...], tuple[Failure, ...]]:
        """All of them in order; those that failed are told, and if all did, that is an error."""
        count, failed = len(self.changes), tuple(self.failures[index] for index in sorted(self.failures))
        if not self.models:
            first = f"the first said:\n{failed[0].error}\n{failed[0].details}" if failed else "there were no changes"
            raise RuntimeError(f"none of {count} {self.what} gave a model; {first}")
        if failed:
            warnings.warn(
                f"{len(failed)} of {count} {self.what} failed and are left out, the first with: {failed[0].error}; "
                "see .failures",
                stacklevel=4,
            )
        kept = sorted(self.models)
        return [self.models[index] for index in kept], tuple(self.changes[index] for index in kept), failed


# ---- a function that trains ----


def collect(
    function: AnyTraining,
    changes: Sequence[Retraining],
    rows: int,
    read: Callable[[Any], Member],
    workers: int | None,
    progress: bool,
) -> tuple[list[Member], tuple[Retraining, ...], tuple[Failure, ...]]:
    """What ``function(rows, seed)`` returns for every change, read by ``read``.

    The function runs in worker processes; here, where it or what it returns cannot be handed over.
    """
    check_callable(function, "function", "one that takes (rows, seed) and returns a model")
    if workers is not None:
        check_whole("workers", workers, least=1)
    pool = Pool(torch.empty(rows, 0), torch.empty(rows), rows, 2)
    changes = checked_changes(changes)
    for change in changes:
        _check_rows_only(change, pool)
    members: Collected[Member] = Collected(changes, read, progress)
    workers = workers if _travels(function) else 1

    def task(index: int) -> tuple[Any, ...]:
        return index, rows_of(changes[index], pool).numpy(), changes[index].init_seed

    call = attempt if min(workers or cores(), len(changes)) == 1 else _attempt_elsewhere
    members.run(call, (function,), task, workers)
    return members.finished()


def _attempt_elsewhere(function: AnyTraining, index: int, rows: NDArray[np.int64], seed: int) -> Outcome:
    trained = attempt(function, index, rows, seed)
    return trained if _travels(trained.made) else Outcome(index, error=STAYS)


def _travels(value: Any) -> bool:
    """Whether it can be handed from one process to another."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        dumps(value)
    except Exception:  # each library says so in its own way
        return False
    return True


def _check_rows_only(change: Retraining, pool: Pool) -> None:
    tuned = change.settings or change.parameters
    if change.label_noise or change.weight_noise or change.tilt is not None or change.appended or tuned:
        raise ValueError(f"{change} changes more than rows and seeds; make that change inside your own function")
    check_material(change, pool)
