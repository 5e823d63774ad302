"""The paper's whole study, one process per dataset: `holdfast paper` for each, and the rows of all joined in one file.

    python bench/paper_device.py --device cuda --settings both --bases 5 --out holdfast-paper-device

A search on a GPU spends its time on launching kernels, so processes beside one another cost little. Run the same
command again after an interruption to resume. --quick is two methods on a few rows of German Credit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from _side_by_side import check_device, parser_of, show

from holdfast.paper.declared import PAPER, PAPER_DATASETS
from holdfast.paper.reproduce import METHODS
from holdfast.paper.results import join, read
from holdfast.utils.files import write_text

# Warfarin's three classes make three searches of one; its slowest methods get a process of their own.
SLOW = {"warfarin": tuple(name for name in METHODS if "-art" in name)}
QUICK = {
    "datasets": ["german"],
    "methods": ["pgd", "pgd+confidence"],
    "rows": 5,
    "members": 2,
    "bases": 1,
    "workers": 1,
}


def asked() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--settings", default="both", choices=("text", "release", "both"))
    parser.add_argument("--bases", type=int, default=5, help="deployed networks")
    parser.add_argument("--rows", type=int, help="test rows per dataset; all if left out")
    parser.add_argument("--members", type=int, default=100, help="retrained networks per kind of change")
    parser.add_argument("--workers", type=int, default=2, help="training processes per dataset, on a CPU")
    parser.add_argument(
        "--datasets", nargs="+", default=list(PAPER_DATASETS), choices=PAPER_DATASETS, metavar="DATASET"
    )
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="METHOD")
    parser.add_argument("--out", type=Path, default=Path("holdfast-paper-device"))
    options = parser.parse_args()
    return argparse.Namespace(**vars(options) | (QUICK if options.quick else {}))


def methods_of(settings: str, wanted: Sequence[str]) -> list[str]:
    """Those of the wanted methods that this reading of the paper has: the release lacks some of the text's."""
    return [name for name in PAPER[settings].names if name in wanted]


def parts(datasets: list[str], methods: list[str]) -> list[tuple[str, str, list[str]]]:
    """A name, a dataset and methods for each process; those that take longest first."""
    slow = [(f"{name}-slow", name, [one for one in methods if one in SLOW.get(name, ())]) for name in datasets]
    rest = [(name, name, [one for one in methods if one not in SLOW.get(name, ())]) for name in datasets]
    return [part for part in slow + rest if part[2]]


def started(options: argparse.Namespace, settings: str) -> dict[Path, subprocess.Popen[bytes]]:
    processes = {}
    for name, dataset, methods in parts(options.datasets, methods_of(settings, options.methods)):
        folder = options.out / "parts" / f"{settings}-{name}"
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "holdfast", "paper", "--device", options.device, "--settings", settings]
        command += ["--bases", str(options.bases), "--members", str(options.members)]
        command += ["--workers", str(options.workers)]
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
        raise SystemExit(f"not finished; see why in {', '.join(str(folder / 'log.txt') for folder in failed)}")
    whole = join([folder / f"{settings}.jsonl" for folder in processes], options.out / f"{settings}.jsonl")
    print(f"{settings}: {time.perf_counter() - begin:.0f} s, {len(read(whole))} rows", flush=True)
    return whole


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per reading, dataset and method: means over the deployed networks."""
    table, keys = pd.DataFrame(rows), ["settings", "dataset", "method"]
    means = table.groupby(keys, sort=False)[["success", "cost_l2"]].mean()
    rates = table.pivot_table(values="rate", index=keys, columns="change", sort=False).add_prefix("invalidated ")
    return means.join(rates).reset_index().to_dict("records")


def main() -> None:
    options = asked()
    check_device(options.device)
    readings = ("release", "text") if options.settings == "both" else (options.settings,)
    readings = tuple(settings for settings in readings if methods_of(settings, options.methods))
    if not readings:
        raise SystemExit(f"the settings {options.settings} have none of {', '.join(options.methods)}")
    rows = [row for settings in readings for row in read(finished(options, settings))]
    flat = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    file = write_text(options.out / "paper.jsonl", flat)
    show("The paper's study, means over the deployed networks", summary(rows), options.json)
    print(file)


if __name__ == "__main__":
    main()
