"""What the tests of workers have done. A worker imports this module, and nothing here takes long to import."""

from __future__ import annotations

import os
import time
from pathlib import Path


def half(number):
    return number / 2, os.getpid()


def work_on(number, array):
    time.sleep(0.1)
    return number, float(array[0])


def give_pid_and_wait(number, *processes):
    """Write this process into a file, and work for ever."""
    Path(*processes, str(os.getpid())).touch()
    time.sleep(3600)


def pids(folder: Path, count: int) -> list[int]:
    """The processes that `give_pid_and_wait` has written down, when there are so many."""
    while len(found := [int(path.name) for path in folder.iterdir()]) < count:
        time.sleep(0.05)
    return found


def fork_and_die(folder):
    """Leave a process behind that holds whatever the worker has held."""
    if not os.fork():
        Path(folder, str(os.getpid())).touch()
        time.sleep(3600)
    pids(folder, 1)
    os._exit(3)


class StubbornError(Exception):
    """Cannot be made again from what it was made of."""

    def __init__(self, first, second):
        super().__init__(first)


def be_stubborn(number):
    raise StubbornError("words", "more words")
