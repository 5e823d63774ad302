"""Work shared out among processes, one single-threaded worker per core.

The processes are loky's: they need no `if __name__ == "__main__"` in the user's script, take functions written in a
notebook, and survive from one call to the next. joblib is imported when there is work: small families need none.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing.connection import Connection
from typing import Any


def cores() -> int:
    """How many this process may use."""
    import joblib

    return int(joblib.cpu_count())


def in_workers(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """``function(*task)`` for every task, as they come. What ends the caller, kill -9 too, ends the workers at once."""
    import joblib
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    pool = joblib.Parallel(
        workers,
        backend="loky",
        return_as="generator_unordered",
        mmap_mode="c",  # hands large arrays over as shared memory that can be written to
        batch_size=1,
        initializer=_end_with_the_caller,
        initargs=_line_to_workers(os.getpid())[:1],
    )
    try:
        yield from pool(joblib.delayed(function)(*task) for task in tasks)
    except TerminatedWorkerError as error:
        raise RuntimeError("a worker process was killed, most likely for want of memory; try fewer workers") from error
    except BaseException:
        get_reusable_executor().shutdown(wait=False, kill_workers=True)
        raise


@cache
def _line_to_workers(process: int) -> tuple[Connection, Connection]:
    """Two ends of a pipe: one for the workers, and one that only this process holds and that closes with it.

    A process that was forked has a line of its own.
    """
    from multiprocessing import Pipe

    return Pipe(duplex=False)


def _end_with_the_caller(line: Connection) -> None:
    """In a worker: wait beside the work for the other end to close, whichever way its process dies."""
    threading.Thread(target=_wait_and_end, args=(line,), daemon=True).start()


def _wait_and_end(line: Connection) -> None:
    try:
        line.recv_bytes()  # nothing is ever sent
    except (EOFError, OSError):
        os._exit(1)
