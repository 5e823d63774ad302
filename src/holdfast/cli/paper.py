"""`holdfast paper`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from holdfast.cli.inputs import WorkersOption, count, option
from holdfast.cli.options import (
    DATASETS,
    GERMAN_SPLIT,
    MOST_ROWS,
    PAPER_BASES,
    PAPER_METHODS,
    QUICK_MEMBERS,
    QUICK_ROWS,
    command_again,
    errors_as_sentences,
    some_of,
    writing_to,
)
from holdfast.utils.terminal import console

if TYPE_CHECKING:
    from holdfast.paper.reproduce import Reproduction

SOME_DATASETS = f"Some of {', '.join(DATASETS)}."
SOME_METHODS = f"Some of {', '.join(PAPER_METHODS)}."
SETTINGS = "As the paper's text says, as the authors' released code does, or both."
ROWS = "Test rows to explain per dataset: 200 on cpu, all on cuda."
MEMBERS = "Retrained networks per kind of change; by default 100."
BASES = "Deployed networks: 1 on cpu, 5 on cuda."
QUICK = f"The one-minute version: German Credit, {QUICK_ROWS} rows, {QUICK_MEMBERS} networks per change."
FIGURES = "Draw the figures too, for which SNS's settings are varied (some minutes on a CPU)."
OUT = "Folder for rows, tables and figures; run again to resume."


def paper(
    some_datasets: Annotated[
        list[str] | None, option(None, "--datasets", SOME_DATASETS, check=some_of("dataset", DATASETS))
    ] = None,
    some_methods: Annotated[
        list[str] | None, option(None, "--methods", SOME_METHODS, check=some_of("method", PAPER_METHODS))
    ] = None,
    settings: Annotated[Literal["text", "release", "both"], typer.Option(help=SETTINGS)] = "text",
    rows: Annotated[int | None, count(None, "--rows", ROWS, 1, MOST_ROWS)] = None,
    members: Annotated[int | None, count(None, "--members", MEMBERS, 1, GERMAN_SPLIT[0])] = None,
    bases: Annotated[int | None, count(None, "--bases", BASES, 1, PAPER_BASES)] = None,
    device: Annotated[Literal["cpu", "cuda"], typer.Option(help="Where to compute.")] = "cpu",
    quick: Annotated[bool, typer.Option("--quick", help=QUICK)] = False,
    figures: Annotated[bool, typer.Option(help=FIGURES)] = True,
    workers: WorkersOption = None,
    out: Annotated[Path, typer.Option(help=OUT)] = Path("holdfast-paper"),
) -> None:
    """Reproduce the paper's tables and figures, and show our tables beside the printed ones."""
    again = command_again(sys.argv)
    with errors_as_sentences(f"finished work is kept in {out}; to resume, run the same command again: {again}"):
        from holdfast.paper.reproduce import check_files, declared, declared_sensitivity, reproduce, size

        studies = declared(settings, quick=quick, rows=rows, members=members, bases=bases, device=device)
        varied = declared_sensitivity(quick=quick, rows=rows, members=members, device=device)
        more = [varied] if figures and settings != "release" else []  # SNS's settings are varied as the text has it
        with writing_to(out):
            check_files([*studies, *more], out)
            for study in studies:
                sentence = Text(f"settings {study.settings}", style="bold").append(f": {size(study)}", "")
                console(soft_wrap=False).print(sentence)
            names = [*(some_datasets or ()), *(some_methods or ())]
            results = reproduce(studies, out, only=names, workers=workers, progress=True)
            _show_tables(results, out)
            if figures:
                done = reproduce(more, out, only=some_datasets or (), workers=workers, progress=True)
                _draw_figures(results, done, out / "figures")


def _show_tables(results: Sequence[Reproduction], out: Path) -> None:
    """On the terminal, and as one Markdown file per reading of the paper."""
    from holdfast.paper.reproduce import file_of
    from holdfast.paper.tables import document, overview
    from holdfast.utils.files import write_text

    width = max(console().width, 120)  # tables are wider than most terminals
    for result in results:
        console(soft_wrap=False, width=width).print(*overview(result))
    for result in results:
        path = write_text(out / f"tables-{file_of(result.study, out).stem}.md", document(result))
        console().print(f"every table   {path}")


def _draw_figures(results: Sequence[Reproduction], varied: Sequence[Reproduction], folder: Path) -> None:
    from holdfast.paper.figures.gallery import draw  # no other command should wait for matplotlib

    drawn = draw(results, [reproduction.rows for reproduction in varied], folder, progress=True)
    console().print(f"{len(drawn) // 2} figures     {folder}")
