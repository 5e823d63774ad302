"""`holdfast demo`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import (
    GERMAN_SPLIT,
    MOST_SEED,
    MOST_WORKERS,
    command_again,
    errors_as_sentences,
    whole_number,
    writing_to,
)
from holdfast.utils.terminal import console

KNOWN, ASKED = GERMAN_SPLIT
SAID = {
    "counterfactuals.csv": "every applicant",
    "results.json": "every number",
    "report.html": "the report",
    "letter.html": "a letter",
}


def demo(
    rows: Annotated[
        int, typer.Option(callback=whole_number(1, ASKED), help=f"How many test applicants to explain, 1 to {ASKED}.")
    ] = ASKED,
    members: Annotated[
        int,
        typer.Option(
            callback=whole_number(1, KNOWN), help=f"Retrained networks per kind of change, from 1 to {KNOWN}."
        ),
    ] = 100,
    seed: Annotated[int, typer.Option(callback=whole_number(0, MOST_SEED), help="Seed of the deployed network.")] = 0,
    workers: Annotated[
        int | None,
        typer.Option(callback=whole_number(1, MOST_WORKERS), help="Training processes; by default, one per core."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for counterfactuals.csv, results.json, report.html and letter.html.")
    ] = Path("holdfast-demo"),
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
