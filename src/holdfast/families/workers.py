"""Work shared out among processes, one single-threaded worker per core.

The processes are loky's: they need no `if __name__ == "__main__"` in the user's script, take functions written in a
notebook, and survive from one call to the next. joblib is imported when there is work: small families need none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def cores() -> int:
    """How many this process may use."""
    import joblib

    return int(joblib.cpu_count())


def in_workers(function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: int) -> Iterator[Any]:
    """``function(*task)`` for every task, as they come. What ends the caller, Ctrl-C too, ends the workers at once."""
    import joblib
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # mmap_mode "c" hands large arrays over as shared memory that can be written to.
    pool = joblib.Parallel(workers, backend="loky", return_as="generator_unordered", mmap_mode="c", batch_size=1)
    try:
        yield from pool(joblib.delayed(function)(*task) for task in tasks)
    except TerminatedWorkerError as error:
        raise RuntimeError("a worker process was killed, most likely for want of memory; try fewer workers") from error
    except BaseException:
        get_reusable_executor().shutdown(wait=False, kill_workers=True)
        raise
