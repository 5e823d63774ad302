"""Workers share out the work of one call, which always ends, and no worker outlives it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from commands import runs, started
from holdfast.utils.workers import in_workers
from killing import FORK, forks, posix
from light_tasks import be_stubborn, fork_and_die, give_pid_and_wait, half, pids, work_on

SECONDS = 60  # in which an error must come: the start of processes on a busy machine, and a second or two
NUMBERS = [(number,) for number in range(6)]


def tasks(count=12):
    """Each with 1.6 MB of its own, made when it is asked for."""
    return ((number, np.full(200_000, float(number))) for number in range(count))


def shared_memory() -> set[str]:
    folder = Path("/dev/shm")
    mine = f"-{os.getpid()}-", f"_{os.getpid()}_"  # other programs use it too
    return (
        {path.name for path in folder.iterdir() if any(name in path.name for name in mine)}
        if folder.is_dir()
        else set()
    )


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    assert multiprocessing.active_children() == []
    assert shared_memory() == set()


# ---- what is done ----


def test_every_task_is_done_once_in_another_process_and_what_tasks_share_comes_first():
    results = []
    in_workers(lambda *given: (*given, os.getpid()), NUMBERS, 2, results.append, shared=("power", 3))
    assert sorted(result[:-1] for result in results) == [("power", 3, number) for number in range(6)]
    processes = {process for *_, process in results}
    assert os.getpid() not in processes
    assert not any(map(runs, processes))


def test_one_worker_is_this_process():
    results = []
    in_workers(lambda number: (number, os.getpid()), NUMBERS, 1, results.append)
    assert results == [(number, os.getpid()) for number in range(6)]


@pytest.mark.slow
def test_no_task_is_made_before_a_worker_can_take_it():
    made, results, ahead = [], [], []

    def one_after_another():
        for number in range(12):
            made.append(number)
            yield (number,)

    def done(result):
        results.append(result)
        ahead.append(len(made) - len(results))

    in_workers(half, one_after_another(), 2, done)
    assert len(results) == 12
    assert max(ahead) <= 2


@pytest.mark.slow
@posix
@forks
def test_a_task_may_start_processes():
    def started_one(number):
        process = multiprocessing.get_context("fork").Process(target=os.getpid)
        process.start()
        process.join()
        return process.exitcode

    results = []
    in_workers(started_one, NUMBERS[:2], 2, results.append)
    assert results == [0, 0]


def results_of_two_workers(number=0):
    results = []
    in_workers(half, NUMBERS, 2, results.append)
    return sorted(result for result, _ in results)


@pytest.mark.slow
@posix
@forks
def test_a_forked_process_has_workers_and_a_daemon_does_without():
    results_of_two_workers()  # the process that is forked has had workers too
    with FORK.Pool(1) as daemons:
        assert daemons.apply_async(results_of_two_workers).get(SECONDS) == [0, 0.5, 1, 1.5, 2, 2.5]
    process = FORK.Process(target=results_of_two_workers)
    process.start()
    process.join(SECONDS)
    assert process.exitcode == 0


# ---- calls at the same time ----


@pytest.mark.slow
def test_a_call_that_is_kept_in_a_traceback_does_not_disturb_another():
    """As a notebook keeps the last error, and drops it when the next comes, in whatever thread."""
    kept = []

    def fail(result):
        raise ValueError("the consumer is not pleased")

    try:
        in_workers(work_on, tasks(), 2, fail)
    except ValueError as error:
        kept.append(error)
    dropping = threading.Thread(target=kept.clear)
    results = []

    def done(result):
        results.append(result)
        if len(results) == 4:  # others are being worked on
            dropping.start()
            dropping.join()

    in_workers(work_on, tasks(), 2, done)
    assert kept == []
    assert sorted(results) == [(number, float(number)) for number in range(12)]


@pytest.mark.slow
def test_a_call_in_the_middle_of_another_and_in_another_thread_are_apart():
    """The first is half done when the second begins, and fails when the second is half done."""
    results = {"first": [], "second": []}
    second_began, first_failed, errors = threading.Event(), threading.Event(), []

    def first_done(result):
        results["first"].append(result)
        if len(results["first"]) == 4:
            assert second_began.wait(SECONDS)
            raise ValueError("the first fails")

    def first():
        try:
            in_workers(work_on, tasks(), 2, first_done)
        except ValueError as error:
            errors.append(error)
        first_failed.set()

    def second_done(result):
        results["second"].append(result)
        second_began.set()
        if len(results["second"]) == 4:
            assert first_failed.wait(SECONDS)

    thread = threading.Thread(target=first)
    thread.start()
    in_workers(work_on, tasks(), 2, second_done)
    thread.join(SECONDS)
    assert [str(error) for error in errors] == ["the first fails"]
    assert len(results["first"]) == 4
    assert sorted(results["second"]) == [(number, float(number)) for number in range(12)]


@pytest.mark.slow
def test_threads_that_work_at_once_each_get_their_own_results():
    counts = [Counter() for _ in range(3)]

    def work(place):
        add = lambda result: counts[place].update([result])  # noqa: E731
        in_workers(lambda number: (place, number), [(number,) for number in range(40)], 2, add)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert counts == [Counter((place, number) for number in range(40)) for place in range(3)]


# ---- what goes wrong ----


def test_an_error_of_a_task_is_raised_and_says_where_it_was():
    with pytest.raises(ZeroDivisionError) as raised:
        in_workers(lambda number: 1 / number, NUMBERS, 2, lambda result: None)
    assert "lambda number: 1 / number" in raised.value.__notes__[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "error"),
    [
        pytest.param(be_stubborn, "more words", id="an error that cannot be read again"),
        pytest.param(lambda number: threading.Lock(), "pickle", id="a result that cannot be sent"),
    ],
)
def test_what_cannot_be_sent_back_is_an_error(function, error):
    with pytest.raises((RuntimeError, TypeError), match=error):
        in_workers(function, NUMBERS, 2, lambda result: None)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("where", ["done", "tasks"])
def test_an_exception_of_the_consumer_ends_the_workers_and_is_raised(where, tmp_path):
    """While one worker is in the middle of a task that never ends."""

    def work(number):
        if number == 0:
            give_pid_and_wait(number, tmp_path)
        return number

    def failing(*given):
        if where == "done" or given:
            pids(tmp_path, 1)
            raise ValueError("the consumer is not pleased")

    def some_tasks():
        yield from NUMBERS[:2]
        if where == "tasks":
            failing("tasks")
        yield from NUMBERS[2:]

    done = failing if where == "done" else lambda result: None
    with pytest.raises(ValueError, match="not pleased"):
        in_workers(work, some_tasks(), 2, done)
    assert not any(map(runs, pids(tmp_path, 1)))


@posix
@pytest.mark.parametrize(
    ("how", "message"),
    [
        (signal.SIGKILL, "killed.*fewer workers"),
        pytest.param(
            signal.SIGSEGV,
            "signal 11",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_worker_that_is_killed_at_work_is_an_error_within_seconds(how, message, tmp_path):
    killed_at = []

    def kill_one():
        process = pids(tmp_path, 2)[0]
        killed_at.append(time.monotonic())
        os.kill(process, how)

    killer = threading.Thread(target=kill_one)
    killer.start()
    with pytest.raises(RuntimeError, match=message):
        in_workers(give_pid_and_wait, [(0, tmp_path), (1, tmp_path)], 2, lambda result: None)
    assert time.monotonic() - killed_at[0] < SECONDS / 4
    killer.join()
    assert not any(map(runs, pids(tmp_path, 2)))


@pytest.mark.slow
@posix
@forks
def test_a_worker_that_dies_is_an_error_even_if_a_process_it_has_forked_lives_on(tmp_path):
    try:
        with pytest.raises(RuntimeError, match="exit code 3"):
            in_workers(fork_and_die, [(tmp_path,)], 2, lambda result: None)
    finally:
        for process in pids(tmp_path, 1):
            os.kill(process, signal.SIGKILL)


@pytest.mark.slow
@posix
def test_a_worker_that_cannot_begin_is_an_error_within_seconds(monkeypatch):
    results_of_two_workers()  # what is started once for all calls is there
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="exit code 1"):
        in_workers(half, NUMBERS, 2, lambda result: None, shared=(np.zeros(10_000_000),))


# ---- what ends the caller ----

WORKING = """
import os, signal, time
from holdfast.utils.workers import in_workers

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, or a shell, may have made this process deaf to them
signal.signal(signal.SIGINT, signal.default_int_handler)

def work_for_ever(number):
    os.write(1, f"{os.getpid()}\\n".encode())
    while True:
        time.sleep(1)

in_workers(work_for_ever, [(0,), (1,)], 2, print)
"""

IN_A_THREAD = (
    WORKING.replace("in_workers(work_for_ever", "waiting = lambda: in_workers(work_for_ever")
    + """
import threading
threading.Thread(target=waiting, daemon=True).start()
input()
"""
)

CAUGHT = (
    WORKING.replace("in_workers(work_for_ever", "try: in_workers(work_for_ever")
    + """
except KeyboardInterrupt as error:
    kept = error  # as a notebook does
    print("interrupted", flush=True)
    input()
"""
)


@posix
@pytest.mark.parametrize(
    "way",
    [
        signal.SIGKILL,
        *(pytest.param(way, marks=pytest.mark.slow) for way in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)),
    ],
)
def test_workers_end_with_their_caller_whichever_way_it_dies(way):
    with started([sys.executable, "-c", WORKING]) as caller:
        workers = [int(caller.stdout.readline()) for _ in range(2)]
        caller.send_signal(way)
        caller.stdout.read()  # returns when the last process that could write to it has ended
        caller.wait()
        assert not any(map(runs, workers))
    assert caller.returncode != 0


@pytest.mark.slow
@posix
def test_a_program_ends_while_a_thread_of_it_waits_for_workers():
    with started([sys.executable, "-c", IN_A_THREAD], stdin=-1) as caller:
        workers = [int(caller.stdout.readline()) for _ in range(2)]
        caller.stdin.write("\n")
        caller.stdin.close()
        caller.stdout.read()
        assert caller.wait() == 0
        assert not any(map(runs, workers))


@pytest.mark.slow
@posix
def test_ctrl_c_ends_the_workers_of_a_program_that_goes_on():
    with started([sys.executable, "-c", CAUGHT], stdin=-1) as caller:
        workers = [int(caller.stdout.readline()) for _ in range(2)]
        os.killpg(caller.pid, signal.SIGINT)  # as a terminal does: to the workers too
        assert caller.stdout.readline() == "interrupted\n"
        assert not any(map(runs, workers))
        caller.stdin.write("\n")
        caller.stdin.close()
        assert caller.wait() == 0
        assert "Traceback" not in caller.stderr.read()
