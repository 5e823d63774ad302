"""Attacks by company: several writers at once, in threads, in processes, and in containers that share a folder."""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import holdfast as hf
from _attack import material
from _attack.processes import FORK, PATIENCE, Forked, command, end, in_fork, start
from _attack.trying import Try, judged, kind_of, outcome, short

ROUNDS = 12
DAY = 24 * 3600
NOBODY = "99999999"  # no process has this number here


def races(folder: Path, draw: random.Random) -> Iterator[Try]:
    """Nothing is mixed up, lost or written twice; a writer that must not go on is told so."""
    expected = material.family_parts(material.family())
    for number in range(ROUNDS):
        yield _threads_train(folder / f"store-{number}", expected)
    yield _two_at_once("a study", [_runner(folder / "rows.jsonl", folder / "families")] * 2, folder / "rows.jsonl")
    words = ("paper", "--quick", "--rows", 2, "--members", 1, "--methods", "pgd", "--no-figures", "--workers", 1)
    paper = command(*words, "--out", folder / "paper")
    yield _two_at_once("`holdfast paper --out`", [paper] * 2, folder / "paper" / "quick.jsonl")
    for name, write in _writers().items():
        yield _beside_a_stranger(name, write, folder / f"{name} at once")
        yield from _old_files_go(name, write, folder / name)


def _threads_train(store: Path, expected: dict[str, object]) -> Try:
    together, found = threading.Barrier(3), []

    def train() -> None:
        together.wait()
        found.append(outcome(lambda: material.family_parts(material.family(store=store))))

    threads = [threading.Thread(target=train) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wrong = [one for one in found if one != expected]
    happened = kind_of(wrong[0]) if wrong and isinstance(wrong[0], Exception) else "other weights"
    detail = short(wrong[0]) if wrong and isinstance(wrong[0], Exception) else ""
    return judged("three threads train one family", not wrong, "the same family for each", happened, detail)


# Waits for a word before it runs, so that two of them run at once.
RUNNER = """
import sys
from pathlib import Path
from _attack.material import run_study
print("ready", flush=True)
sys.stdin.readline()
try:
    run_study(Path(sys.argv[1]), Path(sys.argv[2]), only=("near",))
except (ValueError, OSError) as error:
    sys.exit(f"told: {error}")
"""


def _runner(file: Path, store: Path) -> list[object]:
    return [sys.executable, "-c", RUNNER, file, store]


def _two_at_once(what: str, commands: list[list[object]], file: Path) -> Try:
    """Both end well, or one is told in a sentence; either way each cell has one line."""
    started = [start(words, file.parent if file.parent.exists() else file.parent.parent) for words in commands]
    for process in started:
        if RUNNER in commands[0] and process.stdout is not None:
            process.stdout.readline()
    for process in started:
        if RUNNER in commands[0] and process.stdin is not None:
            process.stdin.write("go\n")
            process.stdin.flush()
    ended = [end(process) for process in started]
    codes = sorted(one.code if one.code is not None else -1 for one in ended)
    lines = outcome(lambda: [json.loads(line)["cell"] for line in file.read_bytes().splitlines()])
    twice = isinstance(lines, list) and max(Counter(lines).values(), default=0) > 1
    fine = codes in ([0, 0], [0, 1]) and isinstance(lines, list) and len(lines) == 1
    fine &= not any(one.traceback for one in ended)
    happened = "a line that is there twice" if twice else f"{lines}; {'; '.join(map(str, ended))}"
    return judged(f"two processes write {what}", fine, "one line, and whoever must not write is told", happened)


# ---- temporary files ----


def _writers() -> dict[str, Callable[[Path], object]]:
    family, audit, schema = material.family(), material.audit(), material.schema()
    return {
        "save_family": lambda place: hf.save_family(family, place),
        "save_audit": lambda place: hf.save_audit(audit, place),
        "Schema.save": lambda place: schema.save(place / "schema.toml"),
    }


def _beside_a_stranger(name: str, write: Callable[[Path], object], place: Path) -> Try:
    """A writer waits in the middle of its work, while one of another container, which cannot see it, does the same."""
    waits, goes_on = FORK.Event(), FORK.Event()

    def slow() -> None:
        sync = os.fsync
        os.fsync = lambda file: (waits.set(), goes_on.wait(PATIENCE), sync(file))[-1]
        write(place)

    def stranger() -> None:
        os.kill = _no_such_process
        write(place)

    first = Forked(slow)
    waits.wait(PATIENCE)
    second = Forked(stranger)
    second.process.join(3)  # it is done, or waits for the first
    goes_on.set()
    answers = [one.end()[1] or ("ended", "by a signal") for one in (first, second)]
    wrong = [answer[1] for answer in answers if answer[0] != "gave"]
    happened = ": ".join(wrong[0]) if wrong and isinstance(wrong[0], tuple) else str(wrong)
    return judged(f"{name} while one in another container writes", not wrong, "both to end well", happened)


def _no_such_process(process: int, number: int) -> None:
    raise ProcessLookupError


def _old_files_go(name: str, write: Callable[[Path], object], folder: Path) -> Iterator[Try]:
    """What a killed writer has left is swept by the next one, a few days later."""
    for temporary in _temporary_files(write, folder / "seen"):
        place = folder / temporary.name
        write(place)
        left = place / temporary
        left.write_text("half")
        os.utime(left, (time.time() - 3 * DAY,) * 2)
        write(place)
        what = f"{name} beside an old temporary file of nobody's"
        yield judged(what, not left.exists(), "it to be swept", "it was left", temporary.name)


def _temporary_files(write: Callable[[Path], object], place: Path) -> list[Path]:
    """The files that a writer opens and that are not there afterwards, below its folder, as if another wrote them."""

    def watched() -> list[str]:
        opened: list[str] = []
        own = str(os.getpid())

        def heard(event: str, given: tuple[object, ...]) -> None:
            if event == "open" and isinstance(given[0], (str, os.PathLike)) and str(given[0]).startswith(str(place)):
                opened.append(re.sub(rf"(?<!\d){own}(?!\d)", NOBODY, str(given[0])))

        sys.addaudithook(heard)
        write(place)
        return opened

    _, answer = in_fork(watched)
    opened = answer[1] if answer and answer[0] == "gave" else []
    gone = {Path(path).relative_to(place) for path in opened if not Path(path).exists()}
    return sorted(path for path in gone if path.name.startswith(".") and path.suffix != ".lock")
