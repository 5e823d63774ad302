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


@dataclass(frozen=True)
class Failure:
    """A member whose training raised."""

    retraining: Retraining
    error: str  # the last line
    details: str  # the whole traceback


@dataclass(frozen=True)
class Outcome:
    """What came of the training of one member."""

    place: int
    made: Any = None
    error: str = ""
    details: str = ""


def attempt(function: Callable[..., Any], place: int, *arguments: Any) -> Outcome:
    """What a function makes of a member, or what it raises: anything, since it is somebody else's."""
    try:
        with one_thread():
            return Outcome(place, function(*arguments))
    except Exception as error:
        return Outcome(place, error=f"{type(error).__name__}: {error}", details=traceback.format_exc())


class Collected(Generic[Member]):
    """The members that there are so far, and what went wrong with others, by their places."""

    def __init__(
        self, changes: Sequence[Retraining], read: Callable[[Any], Member], what: str = "trainings", told: str = ""
    ) -> None:
        self.changes, self.read, self.what, self.told = tuple(changes), read, what, told
        self.models: dict[int, Member] = {}
        self.failures: dict[int, Failure] = {}

    def take(self, outcome: Outcome) -> None:
        """Add a member, or the reason why it cannot be one."""
        told = "" if outcome.error else self.told
        found = outcome if outcome.error else attempt(self.read, outcome.place, outcome.made)
        if found.error:
            self.failures[found.place] = Failure(self.changes[found.place], f"{told}{found.error}", found.details)
        else:
            self.models[found.place] = found.made

    def finished(self) -> tuple[list[Member], tuple[Retraining, ...], tuple[Failure, ...]]:
        """All of them in order; those that failed are told, and if all did, that is an error."""
        count, failed = len(self.changes), tuple(self.failures[place] for place in sorted(self.failures))
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
        return [self.models[place] for place in kept], tuple(self.changes[place] for place in kept), failed


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
    for change in checked_changes(changes):
        _check_rows_only(change, pool)
    tasks = [(place, rows_of(change, pool).numpy(), change.init_seed) for place, change in enumerate(changes)]
    told = "what the training returned cannot be asked: "
    members: Collected[Member] = Collected(changes, read, told=told)
    again: list[tuple[Any, ...]] = []
    with bar(f"Training {len(changes)} models", len(changes), progress) as advance:

        def done(trained: Outcome) -> None:
            if trained.error == STAYS:
                again.append(tasks[trained.place])
            else:
                members.take(trained)
                advance(1)

        most = min(workers or cores(), len(tasks)) if _travels(function) else 1
        in_workers(attempt if most == 1 else _trained_elsewhere, tasks, most, done, shared=(function,))
        in_workers(attempt, again, 1, done, shared=(function,))
    return members.finished()


def _trained_elsewhere(function: AnyTraining, place: int, rows: NDArray[np.int64], seed: int) -> Outcome:
    trained = attempt(function, place, rows, seed)
    return trained if _travels(trained.made) else Outcome(place, error=STAYS)


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
