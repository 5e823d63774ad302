"""Processes of one's own: commands, workers to wait for, and work that is killed at a moment of its file operations."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

PATIENCE = 300  # seconds for what takes a few; it only ends what hangs
FORK = multiprocessing.get_context("fork")
KILLED = -signal.SIGKILL


# ---- commands ----


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int | None  # None where it hung
    out: str
    err: str

    @property
    def traceback(self) -> bool:
        return self.code is None or "Traceback" in self.err

    def __str__(self) -> str:
        if self.code is None:
            return "no end: it hung"
        last = (self.err.strip() or self.out.strip() or "nothing").splitlines()[-1]
        return f"exit code {self.code}, {'a traceback' if 'Traceback' in self.err else 'saying'}: {last!r}"


def start(words: Sequence[object], cwd: Path, memory: int | None = None) -> subprocess.Popen[str]:
    limit = None if memory is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    pipe = subprocess.PIPE
    return subprocess.Popen(
        list(map(str, words)), cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe, text=True, errors="replace",
        preexec_fn=limit,
    )  # fmt: skip


def end(process: subprocess.Popen[str], patience: float = PATIENCE) -> Ran:
    """Wait for a command to end; kill it, and what it started, if it does not."""
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        kill(process)
        return Ran(None, "", "")
    return Ran(process.returncode, out, err)


def kill(process: subprocess.Popen[str]) -> None:
    for one in [process.pid, *descendants(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    process.communicate()


def command(*words: object) -> list[object]:
    return [sys.executable, "-m", "holdfast", *words]


def holdfast(*words: object, cwd: Path, memory: int | None = None, patience: float = PATIENCE) -> Ran:
    return end(start(command(*words), cwd, memory), patience)


# ---- who runs ----


def descendants(process: int) -> list[int]:
    """Children, their children, and so on; not those that have ended."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid=,stat="], capture_output=True, text=True).stdout
    lines = [line.split() for line in listed.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, state in lines if state[0] != "Z"}
    found, new = [], [process]
    while new:
        new = [pid for pid, parent in parents.items() if parent in new]
        found += new
    return found


def running(processes: Sequence[int]) -> list[int]:
    listed = subprocess.run(["ps", "-e", "-o", "pid=,stat="], capture_output=True, text=True).stdout
    there = {int(line.split()[0]) for line in listed.splitlines() if line.split()[1][0] != "Z"}
    return [pid for pid in processes if pid in there]


def wait_for_workers(process: subprocess.Popen[str], count: int = 2) -> list[int]:
    """All descendants, as soon as so many workers are there; none if the process ends before."""
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        found = descendants(process.pid)
        if sum(not _is_tracker(one) for one in found) >= count:
            return found
        time.sleep(0.05)
    return []


def _is_tracker(process: int) -> bool:
    """joblib has one more process, which only looks after files."""
    with suppress(OSError):
        return b"resource_tracker" in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def wait_until_gone(processes: Sequence[int], patience: float) -> list[int]:
    """Those that still run when the patience is over."""
    until = time.monotonic() + patience
    while (left := running(processes)) and time.monotonic() < until:
        time.sleep(0.2)
    return left


# ---- work in a forked process ----


class Forked:
    """Work in a forked process, and how it ended."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._answers, there = FORK.Pipe(duplex=False)

        def worked() -> None:
            torch.set_num_threads(1)  # a forked process waits for ever for the other threads of the one it comes from
            try:
                there.send(("gave", work()))
            except Exception as error:
                there.send(("raised", (type(error).__name__, str(error))))

        self.process = FORK.Process(target=worked)
        self.process.start()
        there.close()

    def end(self) -> tuple[int | None, Any]:
        """The exit code (None where it hung), and ("gave", what the work gave) or ("raised", (type, words))."""
        answer = None
        with suppress(EOFError):  # it was killed
            answer = self._answers.recv() if self._answers.poll(PATIENCE) else None
        self.process.join(1 if answer is None and self.process.is_alive() else PATIENCE)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            self.process.join()
        return code, answer


def in_fork(work: Callable[[], Any]) -> tuple[int | None, Any]:
    return Forked(work).end()


class _Moments:
    """Counts operations on files, and kills the process before the one of a given number."""

    WATCHED = frozenset({"os.rename", "os.remove", "os.truncate", "os.mkdir", "os.rmdir", "os.link", "shutil.rmtree"})

    def __init__(self, at: int | None = None, renamed_to: str | None = None) -> None:
        self.count, self.at, self.renamed_to = 0, at, renamed_to
        sync, self.done = os.fsync, False
        os.fsync = lambda file: (self.passed(), sync(file))[1]
        sys.addaudithook(self.heard)

    def heard(self, event: str, given: tuple[Any, ...]) -> None:
        if event in self.WATCHED or (event == "open" and _writes(*given)):
            target = str(given[1]) if event == "os.rename" else ""
            if self.renamed_to is not None and Path(target).name == self.renamed_to:
                os.kill(os.getpid(), signal.SIGKILL)
            self.passed()

    def passed(self) -> None:
        self.count += not self.done
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def _writes(path: object, mode: object, flags: object) -> bool:
    return isinstance(path, (str, bytes, os.PathLike)) and isinstance(flags, int) and bool(flags & 3)


def moments_of(work: Callable[[], Any]) -> int:
    """How many operations on files the work does. It is done, in a forked process."""

    def counted() -> int:
        moments = _Moments()
        work()
        return moments.count

    code, answer = in_fork(counted)
    if code != 0 or answer is None or answer[0] != "gave":
        raise RuntimeError(f"the work to be killed does not even work: {answer}")
    return int(answer[1])


def killed_at(moment: int, work: Callable[[], Any]) -> bool:
    """Whether the work was killed before its file operation of that number, or was done before."""

    def doomed() -> None:
        _Moments(at=moment)
        work()

    return in_fork(doomed)[0] == KILLED


def killed_at_rename(name: str, work: Callable[[], Any]) -> None:
    """Do the work in a forked process that is killed before a file takes this name."""

    def doomed() -> None:
        _Moments(renamed_to=name)
        work()

    if in_fork(doomed)[0] != KILLED:
        raise RuntimeError(f"no file has taken the name {name}")
