"""`holdfast demo`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.inputs import WorkersOption, count, option
from holdfast.cli.options import GERMAN_SPLIT, MOST_SEED, command_again, errors_as_sentences, whole_number, writing_to
from holdfast.utils.terminal import console

KNOWN, ASKED = GERMAN_SPLIT
ROWS = f"How many test applicants to explain, 1 to {ASKED}."
MEMBERS = f"Retrained networks per kind of change, from 1 to {KNOWN}."
SEEDS = whole_number(0, MOST_SEED)
OUT = "Folder for counterfactuals.csv, results.json, report.html and letter.html."
SAID = {
    "counterfactuals.csv": "every applicant",
    "results.json": "every number",
    "report.html": "the report",
    "letter.html": "a letter",
}


def demo(
    rows: Annotated[int, count(None, "--rows", ROWS, 1, ASKED)] = ASKED,
    members: Annotated[int, count(None, "--members", MEMBERS, 1, KNOWN)] = 100,
    seed: Annotated[int, option(None, "--seed", "Seed of the deployed network.", "NUMBER", check=SEEDS)] = 0,
    workers: WorkersOption = None,
    out: Annotated[Path, typer.Option(help=OUT)] = Path("holdfast-demo"),
) -> None:
    """Show the whole package on German Credit: train, explain, retrain, audit, write the report and a letter."""
    with errors_as_sentences(), writing_to(out):
        from holdfast.demo import demo as run
        from holdfast.demo import demo_text

        start = time.perf_counter()
        result = run(rows=rows, members=members, seed=seed, workers=workers, progress=True)
        files = result.save(out, command_again(sys.argv))  # before showing: nothing on the terminal loses the work
        console(soft_wrap=False).print(demo_text(result))
        console().print(f"{time.perf_counter() - start:.0f} s")
        console().print("\n".join(f"{SAID[path.name]:<15}  {path}" for path in files))
