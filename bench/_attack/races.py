"""Attacks by company: several writers at once, and temporary files of writers that this machine does not know."""

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
from _attack.processes import command, end, in_fork, start
from _attack.trying import Try, judged, kind_of, outcome, short

ROUNDS = 12
DAY = 24 * 3600
NOBODY = "99999999"  # no process has this number here, but one of another container may


def races(folder: Path, draw: random.Random) -> Iterator[Try]:
    """Nothing is mixed up, lost or written twice; a writer that must not go on is told so."""
    expected = material.family_parts(material.family())
    for number in range(ROUNDS):
        yield _threads_train(folder / f"store-{number}", expected)
    yield _two_at_once("a study", [_runner(folder / "rows.jsonl", folder / "families")] * 2, folder / "rows.jsonl")
    words = ("paper", "--quick", "--rows", 2, "--members", 1, "--methods", "pgd", "--no-figures", "--workers", 1)
    paper = command(*words, "--out", folder / "paper")
    yield _two_at_once("`holdfast paper --out`", [paper] * 2, folder / "paper" / "quick.jsonl")
    yield from _fresh_files_stay(folder)


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


def _fresh_files_stay(folder: Path) -> Iterator[Try]:
    """Whose process does not run here may run in another container: only what is older than a day is swept."""
    family, audit, schema = material.family(), material.audit(), material.schema()
    writers: dict[str, Callable[[Path], object]] = {
        "save_family": lambda place: hf.save_family(family, place),
        "save_audit": lambda place: hf.save_audit(audit, place),
        "Schema.save": lambda place: schema.save(place / "schema.toml"),
    }
    for name, write in writers.items():
        for temporary in _temporary_files(write, folder / name / "seen"):
            for age, stays in {0: True, 3 * DAY: False}.items():
                place = folder / name / f"{temporary.name}-{age}"
                write(place)
                left = place / temporary
                left.parent.mkdir(parents=True, exist_ok=True)
                left.write_text("half")
                os.utime(left, (time.time() - age,) * 2)
                write(place)
                what = f"{name} beside {'a fresh' if stays else 'an old'} temporary file of nobody's"
                happened = "it was removed" if stays else "it was left"
                expected = "it to stay" if stays else "it to be swept"
                yield judged(what, left.exists() == stays, expected, happened, temporary.name)


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
    return sorted(path for path in gone if path.name.startswith("."))
