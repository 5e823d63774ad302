"""Work shared out among processes, one single-threaded worker a core.

The processes are loky's: they need no `if __name__ == "__main__"` in the user's script, take functions written in a
notebook, and survive from one call to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.process_executor import TerminatedWorkerError


def in_workers(tasks: Iterable[Any], workers: int) -> Iterator[Any]:
    """Results of ``joblib.delayed`` calls as they come. What ends the caller, Ctrl-C too, ends the workers at once."""
    # mmap_mode "c" hands large arrays over as shared memory that can be written to.
    pool = joblib.Parallel(workers, backend="loky", return_as="generator_unordered", mmap_mode="c", batch_size=1)
    try:
        yield from pool(tasks)
    except TerminatedWorkerError as error:
        raise RuntimeError("a worker process was killed, most likely for want of memory; try fewer workers") from error
    except BaseException:
        get_reusable_executor().shutdown(wait=False, kill_workers=True)
        raise
