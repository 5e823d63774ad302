"""How many threads work on a tensor: one.

Several threads share out a tensor at places that depend on their number, and the numbers beside such a place go through
other instructions than those inside: a few rows in thousands come out with other bits. One thread gives the same bits
whatever the number of cores. It also does not wait: threads that share a small piece of work wait for one another at
every step, and on a machine that is busy with something else they take twenty times as long as one thread alone.

A process that was forked has one thread at every place: it inherits torch's belief in the other threads, but not the
threads, and would wait for ever for the first piece of work that it shares out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


_MOST: ContextVar[int | None] = ContextVar("most threads", default=None)


@contextmanager
def threads_at_most(count: int | None) -> Iterator[None]:
    """What is searched by compiled code inside shares its people out among so many threads; None for one per core."""
    token = _MOST.set(count)
    try:
        yield
    finally:
        _MOST.reset(token)


def most_threads() -> int:
    """How many threads compiled code may use."""
    return _MOST.get() or cores()


def cores() -> int:
    """How many this process may use."""
    import joblib

    return int(joblib.cpu_count())


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
