"""Workers share out the work, and none outlives the process that it works for."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from commands import runs, started
from holdfast.utils.workers import in_workers
from killing import posix

WORKING = """
import os, signal, time
from holdfast.utils.workers import in_workers

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, or a shell, may have made this process deaf to them
signal.signal(signal.SIGINT, signal.default_int_handler)

def work_for_ever(number):
    os.write(1, f"{os.getpid()}\\n".encode())
    while True:
        time.sleep(1)

list(in_workers(work_for_ever, [(0,), (1,)], 2))
"""


def half(number):
    return number / 2, os.getpid()


def test_every_task_is_done_in_another_process():
    done = list(in_workers(half, [(number,) for number in range(6)], 2))
    assert sorted(result for result, _ in done) == [0, 0.5, 1, 1.5, 2, 2.5]
    assert os.getpid() not in {process for _, process in done}


@posix
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_workers_end_with_their_caller_whichever_way_it_dies(way):
    with started([sys.executable, "-c", WORKING]) as caller:
        workers = [int(caller.stdout.readline()) for _ in range(2)]
        caller.send_signal(way)
        caller.stdout.read()  # returns when the last process that could write to it has ended
        caller.wait()
        assert not any(map(runs, workers))
    assert caller.returncode != 0
