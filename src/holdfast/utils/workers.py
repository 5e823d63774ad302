"""Work shared out among processes, one single-threaded worker per core.

A pool of workers belongs to one call of `in_workers`. The call starts them, and when it returns or raises none is left.

The calling thread talks with each worker over a pipe of its own, and hands it one task at a time. Between them is no
thread, no queue and no lock that could wait for a process that has ended. The processes are loky's: they need no
`if __name__ == "__main__"` in the user's script, and take functions written in a notebook. joblib, which brings loky,
is imported when there is work: small families need none.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from functools import partial
from multiprocessing import Pipe, current_process
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

from holdfast.utils.threads import cores

CHECK = 1.0  # seconds after which it is checked that the workers are alive, whatever their pipes say
LAST_SECONDS = 5.0  # for workers that have no more tasks, to end by themselves
NO_MORE_TASKS = b"no more tasks"
THREAD_COUNTS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS",
)  # fmt: skip


def in_workers(
    function: Callable[..., Any],
    tasks: Iterable[tuple[Any, ...]],
    workers: int,
    done: Callable[[Any], object],
    shared: tuple[Any, ...] = (),
) -> None:
    """Call ``function(*shared, *task)`` for every task in worker processes, and ``done`` here with each result.

    Results come in the order in which they are ready. Tasks are taken from the iterable when a worker is free.
    ``shared`` is sent to each worker once. With one worker, and in a daemon, which may not start processes (those of
    `multiprocessing.Pool` are daemons), this process does the tasks.

    An error of a task, of ``tasks`` or of ``done``, and Ctrl-C, end all workers of this call and are raised. A worker
    that dies is a RuntimeError. What ends this process, kill -9 too, ends the workers at once.
    """
    if workers == 1 or current_process().daemon:
        for arguments in tasks:
            done(function(*shared, *arguments))
        return
    from joblib.externals.loky.backend.reduction import dumps

    beginning = dumps(partial(function, *shared))
    remaining = iter(tasks)
    threads = str(max(1, cores() // workers))
    environment = {name: os.environ.get(name, threads) for name in THREAD_COUNTS}
    pool = [_Worker(environment) for _ in range(workers)]
    with ExitStack() as at_the_end:
        for worker in pool:
            at_the_end.callback(worker.end)
        for worker in pool:
            worker.start()
        for worker in pool:
            worker.send(beginning)
        del beginning  # it may be large
        busy = set(pool)
        while busy:
            for worker in _answering(busy):
                kind, value = worker.receive()
                if kind == "error":
                    raise value
                task = next(remaining, None)
                if task is None:
                    busy.remove(worker)
                else:
                    worker.send(dumps(task))  # first, so that it works while the result is looked at
                if kind == "result":
                    done(value)
        _let_end(pool)


# ---- in the calling process ----


class _Worker:
    """A process, and the caller's end of the pipe to it."""

    def __init__(self, environment: dict[str, str]) -> None:
        from joblib.externals.loky.backend import get_context

        self.pipe, self.far_end = Pipe()
        # A daemon is ended when this program ends, whatever thread of it is still waiting for results.
        self.process = get_context("loky").Process(target=_work, args=(self.far_end,), daemon=True, env=environment)

    def start(self) -> None:
        self.process.start()
        self.far_end.close()  # the worker alone holds it, so that it closes when the worker ends

    def send(self, message: bytes | memoryview) -> None:
        try:
            self.pipe.send_bytes(message)
        except OSError as error:
            raise self.death() from error

    def receive(self) -> tuple[str, Any]:
        try:
            message = self.pipe.recv_bytes()
        except (EOFError, OSError) as error:
            raise self.death() from error
        kind, value = pickle.loads(message)
        return kind, value

    def death(self) -> RuntimeError:
        """The error that says how the process ended."""
        self.process.join(CHECK)
        code = self.process.exitcode
        if code is None or code == -getattr(signal, "SIGKILL", 9):
            return RuntimeError("a worker process was killed, most likely for want of memory; try fewer workers")
        how = f"exit code {code}" if code >= 0 else f"signal {-code}, {signal.strsignal(-code)}"
        return RuntimeError(f"a worker process ended in the middle of a task ({how}); try workers=1 to see where")

    def end(self) -> None:
        """Kill the process, if it is still there, and those that it has started."""
        from joblib.externals.loky.backend.utils import kill_process_tree

        try:
            if self.process.pid is not None and self.process.is_alive():
                kill_process_tree(self.process)
        finally:
            self.pipe.close()
            self.far_end.close()


def _answering(busy: Collection[_Worker]) -> list[_Worker]:
    """Wait for workers that have an answer. If one has died instead, raise."""
    while True:
        ready = wait([end for worker in busy for end in (worker.pipe, worker.process.sentinel)], CHECK)
        answering = [worker for worker in busy if worker.pipe in ready]
        if answering:  # an answer that was given before death counts
            return answering
        for worker in busy:
            # A process that a task has forked may hold both open after the worker's death.
            if worker.process.sentinel in ready or not worker.process.is_alive():
                raise worker.death()


def _let_end(pool: Iterable[_Worker]) -> None:
    """Let workers that have no more tasks end by themselves, so that their libraries can put things away."""
    started = time.perf_counter()
    for worker in pool:
        try:
            worker.pipe.send_bytes(NO_MORE_TASKS)
        except OSError:  # it has ended before
            continue
    for worker in pool:
        worker.process.join(max(0.0, started + LAST_SECONDS - time.perf_counter()))


# ---- in a worker ----


def _work(pipe: Connection) -> None:
    """Do the tasks that come, one after another, until there are no more."""
    import joblib

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the caller too, and the caller ends this process
    current_process().daemon = False  # its tasks may start processes
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=pipe.close)  # it closes when this process ends
    messages: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_receive_all, args=(pipe, messages), daemon=True).start()
    call: Callable[..., Any]

    def begin(beginning: bytes) -> None:
        nonlocal call
        call = pickle.loads(beginning)

    def perform(task: bytes) -> Any:
        return call(*pickle.loads(task))

    with joblib.parallel_config(backend="threading"):  # no processes for the parts of a task: this is one of several
        pipe.send_bytes(_answer("ready", begin, messages.get()))
        while (message := messages.get()) != NO_MORE_TASKS:
            pipe.send_bytes(_answer("result", perform, message))
    # As at the end of a program, but without taking torch apart, which takes a second.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _receive_all(pipe: Connection, messages: SimpleQueue[bytes]) -> None:
    """Beside the work: take what the caller sends, and end this process when the caller's end of the pipe closes.

    It closes whichever way the caller dies.
    """
    try:
        while True:
            messages.put(pipe.recv_bytes())
    except (EOFError, OSError):
        os._exit(1)


def _answer(kind: str, call: Callable[[bytes], Any], message: bytes) -> Any:
    """What a call returns, or the error that it raises, as bytes."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        return dumps((kind, call(message)))
    except BaseException as error:
        details = traceback.format_exc()
        try:
            error.add_note(f"In a worker process:\n{details}")
            answer = dumps(("error", error))
            pickle.loads(answer)
        except Exception:  # an error of somebody's own class may refuse either
            return dumps(("error", RuntimeError(f"a task in a worker process failed:\n{details}")))
        return answer
