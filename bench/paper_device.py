"""The paper's whole study, one process a dataset: `holdfast paper` for each, and the rows of all joined in one file.

    python bench/paper_device.py --device cuda --settings both --bases 5 --out holdfast-paper-device

What a search takes on a GPU is the time to launch its kernels, so processes beside one another cost little. Run again
after an interruption, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from holdfast.studies.paper import DATASETS
from holdfast.studies.reproduce import METHODS
from holdfast.studies.results import join, read
from holdfast.utils.files import write_text

# Warfarin's three classes make three searches of one; its dearest methods get a process of their own.
DEAR = {"warfarin": tuple(name for name in METHODS if "-art" in name)}


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--settings", default="both", choices=("text", "release", "both"))
    parser.add_argument("--bases", type=int, default=5)
    parser.add_argument("--rows", type=int, help="test rows of a dataset, all if left out")
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--out", type=Path, default=Path("holdfast-paper-device"))
    return parser.parse_args()


def parts(datasets: list[str], methods: list[str]) -> list[tuple[str, str, list[str]]]:
    """A name, a dataset and methods for each process; those that take longest first."""
    dear = [(f"{name}-dear", name, [one for one in methods if one in DEAR.get(name, ())]) for name in datasets]
    rest = [(name, name, [one for one in methods if one not in DEAR.get(name, ())]) for name in datasets]
    return [part for part in dear + rest if part[2]]


def started(options: argparse.Namespace, settings: str) -> dict[Path, subprocess.Popen[bytes]]:
    processes = {}
    for name, dataset, methods in parts(options.datasets, options.methods):
        folder = options.out / "parts" / f"{settings}-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "holdfast", "paper", "--device", options.device, "--settings", settings]
        command += ["--bases", str(options.bases), "--members", str(options.members), "--workers", "2"]
        command += ["--rows", str(options.rows)] if options.rows else []
        command += ["--datasets", dataset, "--methods", ",".join(methods), "--no-figures", "--out", str(folder)]
        with open(folder / "log.txt", "ab") as log:
            processes[folder] = subprocess.Popen(command, stdout=log, stderr=log)
    return processes


def finished(options: argparse.Namespace, settings: str) -> Path:
    """One file with all cells."""
    begin, processes, failed = time.perf_counter(), started(options, settings), []
    try:
        for folder, process in processes.items():
            if process.wait():
                failed.append(folder)
            print(f"{folder.name}: done after {time.perf_counter() - begin:.0f} s", flush=True)
    finally:
        for process in processes.values():
            process.terminate()
    if failed:
        raise SystemExit(f"not finished: {', '.join(str(folder / 'log.txt') for folder in failed)}")
    whole = join([folder / f"{settings}.jsonl" for folder in processes], options.out / f"{settings}.jsonl")
    print(f"{settings}: {time.perf_counter() - begin:.0f} s, {len(read(whole))} rows", flush=True)
    return whole


def main() -> None:
    options = asked()
    readings = ("release", "text") if options.settings == "both" else (options.settings,)
    rows = [row for settings in readings for row in read(finished(options, settings))]
    flat = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    print(write_text(options.out / "paper.jsonl", flat))


if __name__ == "__main__":
    main()
