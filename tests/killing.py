"""Work in a process of its own that is killed at a given moment.

Moments are counted in calls of functions, Python's and C's, not in seconds: the same ones come on every machine.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable

import pytest
import torch

from commands import HANG

posix = pytest.mark.skipif(os.name == "nt", reason="fork and SIGKILL are POSIX")
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
FORK = multiprocessing.get_context("fork") if os.name != "nt" else None


def calls_of(work: Callable[..., object], *given: object) -> int:
    """How many calls the work makes. It is done in the process that is started for this."""
    total = FORK.Value("q")

    def counted() -> None:
        with _CallsCounted() as so_far:
            work(*given)
        total.value = so_far.calls

    assert exit_code_of(counted) == 0
    return int(total.value)


def killed_at(moment: int, work: Callable[..., object], *given: object) -> bool:
    """Whether the work was killed at its call of that number, or was done before."""

    def doomed() -> None:
        with _CallsCounted(kill_at=moment):
            work(*given)

    code = exit_code_of(doomed)
    assert code in (0, -signal.SIGKILL)
    return code != 0


def killed_before(moment: int, folder: object, work: Callable[..., object], *given: object) -> bool:
    """Whether the work was killed just before its file operation of that number in the folder, or was done before."""

    def doomed() -> None:
        count = 0

        def hook(event: str, args: tuple[object, ...]) -> None:
            nonlocal count
            if event in ("open", "os.rename", "os.remove", "os.mkdir") and str(args[0]).startswith(str(folder)):
                if count == moment:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1

        sys.addaudithook(hook)
        work(*given)
        os._exit(0)

    code = exit_code_of(doomed)
    assert code in (0, -signal.SIGKILL)
    return code != 0


def exit_code_of(work: Callable[..., object], *given: object) -> int | None:
    """Do the work in a forked process, and say how that ended."""
    process = FORK.Process(target=_in_one_thread, args=(work, *given))
    process.start()
    process.join(HANG)
    if process.exitcode is None:
        process.kill()
        pytest.fail(f"{work} did not end in {HANG} s")
    return process.exitcode


def _in_one_thread(work: Callable[..., object], *given: object) -> None:
    torch.set_num_threads(1)  # a forked process waits for ever for the other threads of the one it comes from
    work(*given)


class _CallsCounted:
    def __init__(self, kill_at: int | None = None) -> None:
        self.calls, self.kill_at = 0, kill_at

    def __enter__(self) -> _CallsCounted:
        sys.setprofile(self._count)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, frame: object, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
            if self.calls == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
