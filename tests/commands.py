"""The command line, in this process or in one of its own."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from subprocess import PIPE, CompletedProcess, Popen

import pytest
from typer.testing import CliRunner

HANG = 280  # seconds; less than the timeout of a test in pyproject.toml, so that nothing outlives a test that hangs
TERMINAL = {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}


def holdfast(*words, cwd, program=("-m", "holdfast"), **environment) -> CompletedProcess[str]:
    """Run a command as a user does: a new process, which takes seconds to import torch."""
    return subprocess.run(
        [sys.executable, *map(str, program), *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=HANG,
        env=os.environ | TERMINAL | environment,
    )


def invoke(*words, cwd, **environment) -> CompletedProcess[str]:
    """Run a command in this process. An error that the command does not turn into a sentence is raised here."""
    from holdfast.cli.app import app

    given = [str(word) for word in words]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(cwd)
        patch.setattr(sys, "argv", ["holdfast", *given])
        done = CliRunner().invoke(app, given, env=TERMINAL | environment, catch_exceptions=False)
    return CompletedProcess(given, done.exit_code, done.stdout, done.stderr)


def interrupted(*words, at: str, after: int = 0, cwd, **environment) -> CompletedProcess[str]:
    """Run a command in this process, and interrupt it as Ctrl-C does where `paused` would have it wait.

    That a signal comes to this is a matter of `interrupt`, once for all commands.
    """
    module, name = at.split(":")
    home = import_module(module)
    original, calls = getattr(home, name), itertools.count()

    def ending(*given, **more):
        if next(calls) < after:
            return original(*given, **more)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, name, ending)
        return invoke(*words, cwd=cwd, **environment)


# Runs a command in which one function, after so many calls, says so and waits for ever.
PAUSING = """
import os, sys, time
from importlib import import_module

(module, name), after, calls = sys.argv[1].split(":"), int(sys.argv[2]), 0
original = getattr(import_module(module), name)

def pausing(*given):
    global calls
    calls += 1
    if calls <= after:
        return original(*given)
    os.write(1, b"paused\\n")  # in one piece, since several workers may come here at once
    while True:
        time.sleep(1)

setattr(import_module(module), name, pausing)
sys.argv = ["holdfast", *sys.argv[3:]]
from holdfast.cli import main
main()
"""


def interrupt(*words, by: int = signal.SIGINT, **settings) -> CompletedProcess[str]:
    """Run a command in a process of its own, and send it Ctrl-C, or another signal, where `paused` has it wait."""
    with paused(*words, **settings) as running:
        running.send_signal(by)
        output, errors = running.communicate()
    return CompletedProcess(words, running.returncode, output, errors)


@contextmanager
def paused(*words, at: str, after: int = 0, cwd, **environment) -> Iterator[Popen[str]]:
    """A command in a process of its own that has come to a known point, and waits there until the block ends it.

    That is the call of ``at`` ("module:function") that follows the first ``after`` ones; a worker process may make it.
    """
    program = [sys.executable, "-c", PAUSING, at, str(after), *map(str, words)]
    with started(program, cwd=cwd, env=os.environ | TERMINAL | environment) as running:
        if "paused\n" not in iter(running.stdout.readline, ""):
            pytest.fail(f"the command ended and never came to {at}:\n{running.stderr.read()}")
        yield running


@contextmanager
def started(command, **settings) -> Iterator[Popen[str]]:
    """A process with pipes for its output, in a group of its own. Nothing of the group outlives the block or a hang."""
    with Popen(command, stdout=PIPE, stderr=PIPE, text=True, start_new_session=True, **settings) as running:
        hung = threading.Event()
        guard = threading.Timer(HANG, lambda: (hung.set(), _kill_group(running.pid)))
        guard.start()
        try:
            yield running
        finally:
            guard.cancel()
            _kill_group(running.pid)
        assert not hung.is_set(), f"{command} did not end in {HANG} s"


def runs(process: int) -> bool:
    """Whether a process is there and has not ended."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True)
    return listed.stdout.strip()[:1] not in ("", "Z")


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # all of them have ended
        os.killpg(leader, signal.SIGKILL)
