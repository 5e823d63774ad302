"""What every benchmark shares: its flags, a table of rows that hold both sides and their ratio, a JSON file."""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from holdfast import Audit
from holdfast.utils.files import write_text


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser with the flags that every benchmark takes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a run of seconds that shows the same columns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there")
    return parser


def flags(description: str | None) -> argparse.Namespace:
    return parser_of(description).parse_args()


def check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("torch finds no CUDA device here; run with --device cpu")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return work(), time.perf_counter() - start


def resident(name: str) -> float:
    """Megabytes this process holds (VmRSS) or held at most (VmHWM), as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith(name))


def rated(dataset: str, method: str, result: Audit) -> dict[str, Any]:
    """How often a method's counterfactuals are invalidated, and what they cost: the first columns of a table."""
    answer, (low, high) = result.counterfactuals, result.interval()
    return {
        "dataset": dataset,
        "method": method,
        "found": int(answer.found.sum()),
        "invalidated": result.rate,
        "low": low,
        "high": high,
        "l2": float(answer.cost(2)[answer.found].mean()),
    }


def show(title: str, rows: list[dict[str, Any]], file: Path | None = None) -> None:
    table = Table(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(name.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()))
    console = Console(width=max(160, Console().width))
    console.print(table)
    console.print(f"{os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}", style="dim")
    if file is not None:
        keep(file, rows)


def keep(file: Path, rows: Any) -> None:
    write_text(file, json.dumps(rows, indent=2) + "\n")
