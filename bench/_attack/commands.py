"""Attacks on programs and commands: signals at any moment, and odd words."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired

from _attack.processes import PATIENCE, command, end, holdfast, kill, start, wait_for_workers, wait_until_gone
from _attack.trying import Try, judged

GONE = 60  # seconds after which a worker counts as left behind
QUICK = 60  # seconds that an answer to a silly number may take on a busy machine
MEMORY = 8 << 30  # bytes of address space for a command that may try to take all there is
TRAINING = """
import torch, holdfast as hf
x = torch.randn(64, 4)
hf.train(x, (x[:, 0] > 0).long(), hf.Recipe((8,), epochs=10**7), hf.seeds(4), workers=2)
"""
PAPER = ("paper", "--quick", "--rows", 2, "--members", 1, "--methods", "pgd", "--no-figures", "--workers", 1)


# ---- signals ----


def signals(folder: Path, draw: random.Random) -> Iterator[Try]:
    """However a program ends, its workers end too; a command says that it was interrupted."""
    yield from _workers_end(folder)
    commands = {"demo": ("demo", "--members", 300), "paper": ("paper", "--quick", "--no-figures")}
    for name, words in commands.items():
        for number in (signal.SIGTERM, signal.SIGINT):
            yield from _interrupted(name, [*words, "--workers", 2, "--out", folder / name], number, folder)
    yield _killed_and_again(folder, draw)


def _workers_end(folder: Path) -> Iterator[Try]:
    left: dict[signal.Signals, list[int]] = {}
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        process = start([sys.executable, "-c", TRAINING], folder)
        left[number] = wait_for_workers(process)
        process.send_signal(number)
        ended = _ended_itself(process)
        yield judged(f"{number.name} while workers train", bool(left[number]) and ended, "the program to end", "no end")
    patience = GONE
    for number, workers in left.items():
        still = wait_until_gone(workers, patience)
        patience = 1  # the others have had as much time
        yield judged(f"{number.name} while workers train", not still, f"no worker after {GONE} s", f"{len(still)} left")
        _kill_all(still)


def _ended_itself(process: Popen[str]) -> bool:
    """Whether it ended; its pipes may be held open by workers, so only the process counts."""
    with suppress(TimeoutExpired):
        process.wait(PATIENCE)
        return True
    kill(process)
    return False


def _kill_all(processes: list[int]) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _interrupted(name: str, words: list[object], number: signal.Signals, folder: Path) -> Iterator[Try]:
    process = start(command(*words), folder)
    workers = wait_for_workers(process)
    process.send_signal(number)
    ended = _ended_itself(process)
    still = wait_until_gone(workers, GONE)
    _kill_all(still)
    ran = end(process)
    what = f"`holdfast {name}` under {number.name}"
    fine = bool(workers) and ended and ran.code not in (0, None) and "interrupted" in ran.err and not ran.traceback
    yield judged(what, fine, "a sentence that says interrupted", ran)
    yield judged(what, not still, f"no worker after {GONE} s", f"{len(still)} left")


def _killed_and_again(folder: Path, draw: random.Random) -> Try:
    process, moment = start(command(*PAPER, "--out", folder / "killed"), folder), draw.uniform(0, 12)
    with suppress(TimeoutExpired):
        process.wait(moment)
    kill(process)
    ran = holdfast(*PAPER, "--out", folder / "killed", cwd=folder)
    return judged("`holdfast paper` killed, and again", ran.code == 0, "exit code 0", ran, f"after {moment:.2f} s")


# ---- odd words ----


def texts(folder: Path, draw: random.Random) -> Iterator[Try]:
    """Brackets stay, escape codes do not reach the terminal, silly numbers are refused at once."""
    escape = f"\x1b[{draw.choice(['31m', '2J', '1;1H'])}"
    _write_tables(folder, escape)
    small = ("demo", "--rows", 1, "--members", 1, "--workers", 1)
    for out in ("o[/x]", "o[v2]"):
        ran = holdfast(*small, "--out", out, cwd=folder)
        fine = ran.code == 0 and f"{out}/counterfactuals.csv" in ran.out and not ran.traceback
        yield judged(f"`demo --out {out}`", fine, "the path as it was given", ran)
    given = ("audit", "--data", "data.csv", "--label", "y", "--counterfactuals", "points.csv", "--train", "--hidden", 4)
    audit = (*given, "--epochs", 1, "--retrain", "seeds:1")
    for out in ("o[/x]", "o[v2]"):
        ran = holdfast(*audit, "--out", out, cwd=folder)
        yield judged(
            f"`audit --out {out}`", ran.code == 0 and f"{out}/rows.csv" in ran.out, "the path as it was given", ran
        )
    for what, words in {
        "a class with an escape code": (*audit, "--out", "o"),
        "a target with an escape code": (*audit, "--want", f"{escape}x", "--out", "o"),
        "a file with an escape code": ("audit", "--data", f"{escape}.csv", "--counterfactuals", "points.csv"),
        "a folder with an escape code": (*audit, "--out", f"o{escape}"),
        "a schema with an escape code": (*given, "--schema", f"{escape}.toml"),
        "a family with an escape code": ("families", "show", f"{escape}x"),
        "a store with an escape code": ("families", "list", "--store", f"{escape}x"),
    }.items():
        ran = holdfast(*words, cwd=folder)
        happened = "an escape code in the output" if "\x1b" in ran.out + ran.err else ran
        yield judged(
            what, "\x1b" not in ran.out + ran.err and not ran.traceback, "no escape code, no traceback", happened
        )
    yield from _silly_numbers(folder, given, small)


def _silly_numbers(folder: Path, audit: tuple[object, ...], demo: tuple[object, ...]) -> Iterator[Try]:
    header = 'label = "y"\nclasses = ["no", "yes"]\n'
    bound = f'[[features]]\nname = "a"\nkind = "real"\nupper = 1{"0" * 400}\n[[features]]\nname = "b"\nkind = "real"\n'
    (folder / "bound.toml").write_text(header + bound)
    digits = "9" * 5000
    for what, words in {
        "audit --retrain seeds:1000000000": (*audit, "--retrain", f"seeds:{10**9}"),
        "audit --retrain seeds: and 5,000 digits": (*audit, "--retrain", f"seeds:{digits}"),
        "audit --epochs of 4,000 digits": (*audit, "--epochs", digits[:4000]),
        "audit --hidden of 5,000 digits": (*audit[:-1], digits),
        "audit --hidden 1000000000": (*audit[:-1], 10**9),
        "audit with a bound of 400 digits": (*audit, "--schema", "bound.toml"),
        "demo --members 1000000000": ("demo", "--members", 10**9),
        "demo --members of 5,000 digits": ("demo", "--members", digits),
        "demo --seed of 4,000 digits": (*demo, "--seed", digits[:4000]),
        "paper --members of 4,000 digits": ("paper", "--quick", "--members", digits[:4000]),
        "plan --width of 400 digits": ("plan", "--width", f"1{'0' * 400}"),
    }.items():
        ran = holdfast(*words, cwd=folder, memory=MEMORY, patience=QUICK)
        fine = ran.code in (1, 2) and bool(ran.err.strip()) and not ran.traceback
        yield judged(f"`{what}`", fine, "exit code 1 or 2 with a sentence, quickly", ran)


def _write_tables(folder: Path, escape: str) -> None:
    rows = [f"{a},{a % 7},{'no' if a % 3 else f'{escape}yes[/b]'}" for a in range(30)]
    (folder / "data.csv").write_text("\n".join([",a,b,y", *(f"{place},{row}" for place, row in enumerate(rows))]))
    (folder / "points.csv").write_text(f",a,b\n0,3,4\n1,5,6\n2,7,{escape}\n")
