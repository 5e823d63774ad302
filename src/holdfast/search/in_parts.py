"""A search of many rows in worker processes, a part of the rows at a time.

Rows do not depend on one another, so they can be searched apart. Parts have a fixed size, whoever searches them: the
answer is the same to the bit for any number of workers, and in this process.

What a worker needs is sent to it once: a model, or a family that is rehearsed, is prepared for its first part.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal, overload

import torch
from torch import Tensor

from holdfast.models.identity import OBJECT
from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals, Method, checked_question, one_after_another
from holdfast.search.plans import Plans
from holdfast.search.plans import plans as plans_of
from holdfast.tabular.personal import Personal
from holdfast.tabular.space import Space
from holdfast.utils.progress import Advance
from holdfast.utils.settings import check_whole
from holdfast.utils.threads import cores, one_thread, threads_at_most
from holdfast.utils.workers import in_workers

ROWS = 128  # of a part at most: fewer take longer each, and of more, a worker waits longer for the last part of another
FEW = 32  # rows that are not worth being divided
SMALL = 3.0  # seconds of work that are not worth the start of processes

Answer = Counterfactuals | Plans


@overload
def search_in_parts(
    method: Method,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    *,
    workers: int | None = None,
    rows_at_once: int | None = None,
    plans: Literal[1] = 1,
    advance: Advance | None = None,
) -> Counterfactuals: ...
@overload
def search_in_parts(
    method: Method,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    *,
    workers: int | None = None,
    rows_at_once: int | None = None,
    plans: int,
    advance: Advance | None = None,
) -> Answer: ...
def search_in_parts(
    method: Method,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    *,
    workers: int | None = None,
    rows_at_once: int | None = None,
    plans: int = 1,
    advance: Advance | None = None,
) -> Answer:
    """What ``method(model, x, target, space)`` finds, or up to so many ``plans``, searched part by part.

    Where there is enough to do, up to ``workers`` processes share the parts, by default one per core. The answer does
    not depend on their number. What cannot be handed to a process is searched in this one, and so is what lies on a
    GPU, all rows at once. ``advance`` is called with the number of rows that are done. ``calls`` of the answer is the
    sum over the parts.
    """
    for name, number in {"rows_at_once": rows_at_once, "plans": plans, "workers": workers}.items():
        if number is not None:
            check_whole(name, number, least=1)
    if not callable(method):
        raise TypeError(f"expected a method, such as MinCost(norm=1) or named('pgd+sns'), got {method!r}")
    asked, x, target = checked_question(model, x, target, space, gradient=False)  # so that errors name rows of all
    job = _Job(method, model, space, plans)
    size = rows_at_once or _even_size(len(x))
    parts = _parts(x, target, space, size if x.device.type == "cpu" else max(1, len(x)))
    found: dict[int, Answer] = {}

    def take(place: int, answer: Answer) -> None:
        found[place] = answer
        if advance is not None:
            advance(len(answer))

    _search(job, parts, workers, take)
    names = asked.names | _rehearsed(job)
    return _joined([_known_here(found[place], names) for place in range(len(parts))])


@dataclass(frozen=True)
class _Job:
    """What is the same for all parts."""

    method: Method
    model: Model
    space: Space  # without what is personal
    plans: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", replace(self.space, personal=None))

    @property
    def on_threads(self) -> bool:
        """Whether the method uses all cores by itself."""
        own = getattr(self.method, "on_threads", None)
        return own is not None and bool(own(self.model, self.space))

    def __call__(self, part: _Part) -> Answer:
        space = self.space if part.personal is None else replace(self.space, personal=part.personal)
        if self.plans > 1:
            return plans_of(self.method, self.model, part.x, part.target, space, self.plans)
        return self.method(self.model, part.x, part.target, space)


@dataclass(frozen=True, eq=False)
class _Part:
    """Some of the rows."""

    x: Tensor
    target: Tensor
    personal: Personal | None  # what the space says of these people alone


def _even_size(rows: int) -> int:
    """The size of parts that are as large as each other, an even number of them: most machines have as many cores."""
    return max(1, rows) if rows <= FEW else -(-rows // (2 * -(-rows // (2 * ROWS))))


def _parts(x: Tensor, target: Tensor, space: Space, size: int) -> list[_Part]:
    slices = [slice(start, start + size) for start in range(0, max(1, len(x)), size)]
    # Rows of their own: a slice of a tensor is written down with all that it is a slice of.
    return [_Part(x[rows].clone(), target[rows].clone(), _personal(space, rows)) for rows in slices]


def _personal(space: Space, rows: slice) -> Personal | None:
    return None if space.personal is None else space.personal.of(torch.arange(len(space.personal))[rows])


def _search(job: _Job, parts: Sequence[_Part], workers: int | None, take: Callable[[int, Answer], None]) -> None:
    """The answer to every part, as they come: here while that takes no longer than starting processes would."""
    rest = list(range(len(parts)))
    most = workers or cores()
    if job.on_threads:
        with threads_at_most(most):
            for place in rest:
                take(place, job(parts[place]))
        return
    if most > 1 and parts[0].x.device.type == "cpu" and len(rest) > 1:
        started = time.perf_counter()
        while rest and time.perf_counter() - started < SMALL:
            take(rest[0], job(parts[rest.pop(0)]))
        written = _written(job) if rest else None
        if written is not None:
            # What a worker could not read is left for this process.
            def take_elsewhere(place: int, answer: Answer) -> None:
                rest.remove(place)
                take(place, answer)

            _by_workers(written, [(place, parts[place]) for place in rest], most, take_elsewhere)
    for place in rest:
        take(place, job(parts[place]))


# ---- by way of a process ----


@dataclass(frozen=True, eq=False)
class _Written:
    """A job as bytes, which a worker reads once."""

    data: bytes

    @cached_property
    def job(self) -> _Job | None:
        """None where it cannot be read, such as a module that only the caller can import."""
        try:
            job: _Job = pickle.loads(self.data)
        except Exception:
            return None
        return job


def _written(job: _Job) -> _Written | None:
    """The job as bytes; None where something in it cannot be written down."""
    from joblib.externals.loky.backend.reduction import dumps  # it takes functions written in a notebook too

    try:
        return _Written(bytes(dumps(job)))
    except Exception:  # a user's own object may refuse in whatever way it likes
        return None


def _is_rehearsal(value: Any) -> bool:
    kind = type(value)  # not the value: an attribute of a user's object may take long
    return hasattr(kind, "logits_of") and hasattr(kind, "__len__") and not isinstance(value, type)


def _rehearsed(job: _Job) -> frozenset[str]:
    """The names of the models that a method, or a method inside it, rehearses with."""
    names: set[str] = set()
    inside: list[Any] = [job.method]
    while inside:
        value = inside.pop()
        if _is_rehearsal(value):
            names |= set(getattr(value, "fingerprints", ()))
        elif isinstance(value, tuple):
            inside += value
        elif is_dataclass(value):
            inside += [getattr(value, one.name) for one in fields(value)]
    return frozenset(names)


def _by_workers(
    written: _Written, parts: Sequence[tuple[int, _Part]], workers: int, take: Callable[[int, Answer], None]
) -> None:
    said: set[tuple[type[Warning], str]] = set()

    def done(searched: tuple[int, Answer | None, list[tuple[type[Warning], str]]]) -> None:
        place, answer, warned = searched
        for kind, text in warned:
            if (kind, text) not in said:
                said.add((kind, text))
                warnings.warn(text, kind, stacklevel=2)
        if answer is not None:
            take(place, answer)

    in_workers(_search_part, parts, min(workers, len(parts)), done, shared=(written,))


def _search_part(
    written: _Written, place: int, part: _Part
) -> tuple[int, Answer | None, list[tuple[type[Warning], str]]]:
    """In a worker: the answer, None where the job cannot be read here; and what was warned of."""
    if written.job is None:
        return place, None, []
    with warnings.catch_warnings(record=True) as caught, one_thread(), threads_at_most(1):
        warnings.simplefilter("always")
        answer = written.job(part)
    return place, answer, [(one.category, str(one.message)) for one in caught]


# ---- put together again ----


def _known_here(answer: Answer, names: frozenset[str]) -> Answer:
    """The same answer by the names that models have in this process: those of an object mean nothing in another."""
    if isinstance(answer, Plans):
        return replace(answer, answers=tuple(_renamed(one, names) for one in answer.answers))
    return _renamed(answer, names)


def _renamed(answer: Counterfactuals, names: frozenset[str]) -> Counterfactuals:
    return replace(answer, seen=names | {name for name in answer.seen if not name.startswith(OBJECT)})


def _joined(answers: Sequence[Answer]) -> Answer:
    """The answers to parts, one after another."""
    first = answers[0]
    if isinstance(first, Plans):
        several = [answer for answer in answers if isinstance(answer, Plans)]
        ranks = zip(*(answer.answers for answer in several), strict=True)
        return Plans(tuple(map(one_after_another, ranks)), torch.cat([answer.cost for answer in several]))
    return one_after_another([answer for answer in answers if isinstance(answer, Counterfactuals)])
