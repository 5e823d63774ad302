"""Attack the whole package: damaged and hostile files, kills, signals, races, full disks, odd tables, misuse.

    python bench/attack.py --minutes 10
    python bench/attack.py --minutes 1 --only flips,kills --seed 7

Each attack runs in a process of its own, in a temporary folder, and repeats with new random numbers until its share of
the minutes is over; each is done at least once. A surprise is one line: what was done, what was expected, what
happened; then the exit code is 1. `--src DIR` attacks the package of another checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
ATTACKS = {  # each is a function of that name in the module
    "nan": "answers",
    "bits": "answers",
    "empties": "answers",
    "misuses": "answers",
    "csvs": "tables",
    "flips": "files",
    "versions": "files",
    "store": "files",
    "pickles": "outside",
    "network": "outside",
    "kills": "kills",
    "disks": "kills",
    "races": "races",
    "signals": "commands",
    "texts": "commands",
    "hostile": "model_files",
    "mutants": "model_files",
    "letters": "people",
    "folders": "people",
    "forks": "people",
}
HANG = 900  # seconds without the end of one try; it only ends an attack that hangs


def some_of(given: str) -> list[str]:
    names = given.split(",")
    unknown = [name for name in names if name not in ATTACKS]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no attack '{unknown[0]}'; choose from {', '.join(ATTACKS)}")
    return names


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="for all attacks together (default: 10)")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers (default: 0)")
    parser.add_argument("--only", type=some_of, default=list(ATTACKS), metavar="A,B", help=", ".join(ATTACKS))
    parser.add_argument("--src", type=Path, metavar="DIR", help="the folder that holds the package to attack")
    return parser.parse_args()


def environment(folder: Path, src: Path | None) -> dict[str, str]:
    """Of the attacks' processes: our modules, the package under attack, and a store of families in the folder."""
    paths = [str(BENCH), *([str(src.resolve())] if src else []), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "HOLDFAST_FAMILIES": str(folder / "families")}
    return os.environ | own | {"OMP_NUM_THREADS": "1", "NO_COLOR": "1", "TERM": "dumb", "COLUMNS": "200"}


def carried_out(name: str, folder: Path, seconds: float, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Every try of one attack."""
    folder.mkdir()
    tries, errors = folder / "tries.jsonl", folder / "errors.txt"
    tries.touch()
    words = [sys.executable, "-m", "_attack", ATTACKS[name], name, str(options.seed), str(seconds), str(tries)]
    with errors.open("w") as said:
        process = subprocess.Popen(
            words, cwd=folder, env=environment(folder, options.src), stdout=said, stderr=said, start_new_session=True
        )
        try:
            ended = _watched(process, tries)
        finally:
            left = _ended_group(process.pid, patience=0 if process.poll() is None else 30)
            process.wait()
    done = [json.loads(line) for line in tries.read_text().splitlines()]
    last = done[-1]["what"] if done else "the start"
    if not ended:
        done.append({"what": f"the try after '{last}'", "surprise": f"expected it to end; it hung for {HANG} s"})
    elif process.returncode:
        final = (errors.read_text().strip().splitlines() or ["nothing"])[-1]
        done.append({"what": f"the try after '{last}'", "surprise": f"the attack broke off, saying: {final}"})
    if left and ended:
        done.append({"what": "the end of the attack", "surprise": "expected no process; some were left behind"})
    return done


def _watched(process: subprocess.Popen[bytes], tries: Path) -> bool:
    """Wait for the end; False if no try has ended for too long."""
    size, since = 0, time.monotonic()
    while time.monotonic() - since < HANG:
        with suppress(subprocess.TimeoutExpired):
            process.wait(1)
            return True
        if tries.stat().st_size > size:
            size, since = tries.stat().st_size, time.monotonic()
    return False


def _ended_group(leader: int, patience: float) -> bool:
    """End what the process has started and left; whether there was anything after some patience."""
    until = time.monotonic() + patience
    while _group_runs(leader) and time.monotonic() < until:
        time.sleep(0.2)
    left = _group_runs(leader)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    return left


def _group_runs(leader: int) -> bool:
    listed = subprocess.run(["ps", "-e", "-o", "pgid=,stat="], capture_output=True, text=True).stdout
    return any(line.split()[0] == str(leader) and line.split()[1][0] != "Z" for line in listed.splitlines())


def told(name: str, tries: list[dict[str, Any]]) -> int:
    """Print an attack's surprises, each once, and how many different ones there are."""
    counted = Counter((one["what"], one["surprise"]) for one in tries if one["surprise"])
    details: dict[tuple[str, str], str] = {}
    for one in tries:
        details.setdefault((one["what"], one["surprise"]), one.get("detail", ""))
    for (what, surprise), times in counted.items():
        detail = details[what, surprise]
        print(f"  {name}: {what}: {surprise}{f' ({detail})' if detail else ''} [{times} times]", flush=True)
    return len(counted)


def main() -> None:
    asked = options()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts its background jobs deaf to it
    end = time.monotonic() + 60 * asked.minutes
    counts = {}
    with tempfile.TemporaryDirectory(prefix="holdfast-attack-") as folder:
        for place, name in enumerate(asked.only):
            share = (end - time.monotonic()) / (len(asked.only) - place)
            tries = carried_out(name, Path(folder) / name, max(0.0, share), asked)
            counts[name] = (len(tries), sum(bool(one["surprise"]) for one in tries), told(name, tries))
    for name, (tried, surprises, different) in counts.items():
        print(f"{name}: {tried} tried, {surprises} surprises" + (f" of {different} kinds" if surprises else ""))
    raise SystemExit(any(surprises for _, surprises, _ in counts.values()))


if __name__ == "__main__":
    main()
