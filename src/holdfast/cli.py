"""The command line: parse, make one library call, show and write what came back.

Exit codes: 0 done, 1 could not be done (a file, a download, the data), 2 the command was not understood,
130 interrupted.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console
from rich.markup import escape

from holdfast import __version__, datasets
from holdfast.brought import read_table
from holdfast.checkup import checkup, read_data
from holdfast.datasets.fetch import fetch as fetch_dataset
from holdfast.demo import CARD, PAPER
from holdfast.demo import demo as run_demo
from holdfast.encoding import Scaling
from holdfast.families import Recipe
from holdfast.families.store import default_store, entries, find
from holdfast.files import write_text
from holdfast.intervals import members_needed
from holdfast.methods import METHODS
from holdfast.progress import bar
from holdfast.report.paper import LEGEND, document, sheets, summary, terminal
from holdfast.report.tables import (
    checkup_text,
    dataset_list,
    family_list,
    family_text,
    method_list,
    method_table,
    story_text,
)
from holdfast.schema import Level
from holdfast.stabilise import STABILISERS
from holdfast.studies.paper import DATASETS, QUICK
from holdfast.studies.reproduce import METHODS as PAPER_METHODS
from holdfast.studies.reproduce import (
    SEEDS,
    Device,
    Reading,
    check_files,
    declared,
    declared_sensitivity,
    file_of,
    reproduce,
    size,
)

app = typer.Typer(
    help="Counterfactual explanations that still hold after the model is retrained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
datasets_app = typer.Typer(help="The paper's six datasets: list them, or fetch one.")
app.add_typer(datasets_app, name="datasets")
families_app = typer.Typer(
    help="Retrained networks kept on disk: list them, show one, remove one.", no_args_is_help=True
)
app.add_typer(families_app, name="families")


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without "→" shows "?" and goes on
    app()


@contextmanager
def _told(interrupted: str = "nothing was written") -> Iterator[None]:
    """A user's mistake ends in a sentence and an exit code, not in a traceback; Ctrl-C in what is left of the work."""
    try:
        yield
    except KeyboardInterrupt:
        _complain(f"interrupted; {interrupted}")
        raise typer.Exit(130) from None
    except (ValueError, OSError, RuntimeError) as error:
        _complain(str(error))
        raise typer.Exit(1) from None


def _complain(message: str) -> None:
    Console(stderr=True, soft_wrap=True).print(f"[bold red]holdfast:[/] {escape(message)}", highlight=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _holdfast(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None: ...


def _from(low: int, high: int | None = None) -> Callable[[int | None], int | None]:
    """A check that says what came, which typer's own does not."""

    def check(value: int | None) -> int | None:
        if value is not None and (value < low or (high is not None and value > high)):
            allowed = f"from {low} to {high}" if high is not None else f"{low} or more"
            raise typer.BadParameter(f"got {value}; choose a whole number {allowed}")
        return value

    return check


KNOWN, ASKED = CARD.split


@app.command()
def demo(
    rows: Annotated[
        int, typer.Option(callback=_from(1, ASKED), help=f"How many test applicants to explain, 1 to {ASKED}.")
    ] = ASKED,
    members: Annotated[
        int, typer.Option(callback=_from(1, KNOWN), help=f"Retrained networks a kind of change, 1 to {KNOWN}.")
    ] = 100,
    seed: Annotated[int, typer.Option(callback=_from(0), help="Seed of the deployed network.")] = 0,
    workers: Annotated[
        int | None, typer.Option(callback=_from(1), help="Training processes; one a core if left out.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for counterfactuals.csv and results.json.")] = Path("holdfast-demo"),
) -> None:
    """Run the whole road on German Credit: train, retrain, explain with PGD and PGD + SNS, audit."""
    console = Console()
    with _told():
        _check_folder(out)
        start = time.perf_counter()
        result = run_demo(rows=rows, members=members, seed=seed, workers=workers, progress=True)
        table, numbers = result.save(out)  # before showing: nothing that happens to the terminal loses the work
        low, high = result.accuracy_retrained
        console.print(
            f"[bold]{CARD.title}[/]: a network trained on {KNOWN} applicants, right for {result.accuracy:.0%} "
            f"of {rows} others; {2 * members} networks retrained, right for {low:.0%} to {high:.0%}.\n"
        )
        console.print(method_table([row for row in result.rows if row["space"] == "free"], PAPER))
        console.print(
            "These are in the paper's free space, where any number may take any value. What follows keeps to what a "
            "person can do: categories stay categories, amounts stay whole, age and sex stay as they are.\n",
            style="dim",
        )
        if result.story is None:
            console.print("None of these applicants was turned down and helped by both methods; try more --rows.")
        else:
            console.print(story_text(result.story, "the middle one by how well PGD's advice holds"))
        console.print(f"{time.perf_counter() - start:.0f} s\nevery applicant  {table}\nevery number     {numbers}")


def _some_of(what: str, known: tuple[str, ...]) -> Callable[[list[str] | None], list[str]]:
    """Names with commas between them, or the option repeated; none for all."""

    def check(given: list[str] | None) -> list[str]:
        names = [name.strip() for text in given or () for name in text.split(",")]
        unknown = [name for name in names if name not in known]
        if unknown:
            raise typer.BadParameter(f"there is no {what} '{unknown[0]}'; choose from {', '.join(known)}")
        return names

    return check


@app.command()
def paper(
    some_datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", callback=_some_of("dataset", DATASETS), help=f"Some of {', '.join(DATASETS)}."),
    ] = None,
    some_methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods", callback=_some_of("method", PAPER_METHODS), help=f"Some of {', '.join(PAPER_METHODS)}."
        ),
    ] = None,
    settings: Annotated[
        Reading, typer.Option(help="As the paper's text says, as the authors' released code does, or both.")
    ] = "text",
    rows: Annotated[
        int | None, typer.Option(callback=_from(1), help="Test rows of a dataset to explain: 200 on cpu, all on cuda.")
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(callback=_from(1, KNOWN), help="Retrained networks a kind of change: 100."),
    ] = None,
    bases: Annotated[
        int | None,
        typer.Option(callback=_from(1, len(SEEDS)), help="Deployed networks: 1 on cpu, 5 on cuda."),
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "cpu",
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"The minute's version: German Credit, {QUICK.rows} rows, {QUICK.changes[0][1]} networks a change.",
        ),
    ] = False,
    figures: Annotated[
        bool, typer.Option(help="Draw the figures too, for which SNS's settings are varied (some minutes on a CPU).")
    ] = True,
    workers: Annotated[
        int | None, typer.Option(callback=_from(1), help="Training processes; one a core if left out.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for rows, tables and figures; run again to go on.")] = Path(
        "holdfast-paper"
    ),
) -> None:
    """Reproduce the paper's tables and figures, and show the tables beside what it prints."""
    from holdfast.report.gallery import draw  # here, since no other command should wait for matplotlib

    again = shlex.join(["holdfast", *sys.argv[1:]])
    console = Console(highlight=False)
    wide = Console(width=max(console.width, 120), highlight=False)  # tables are wider than most terminals
    with _told(f"what is done is kept in {out}, and the same command goes on from there: {again}"):
        studies = declared(settings, quick=quick, rows=rows, members=members, bases=bases, device=device)
        varied = declared_sensitivity(quick=quick, rows=rows, members=members, device=device)
        more = [varied] if figures and settings != "release" else []  # SNS's settings are varied as the text has it
        _check_folder(out)
        check_files([*studies, *more], out)
        for study in studies:
            console.print(f"[bold]settings {study.settings}[/]: {size(study)}")
        names = [*(some_datasets or ()), *(some_methods or ())]
        results = reproduce(studies, out, only=names, workers=workers, progress=True)
        for result in results:
            console.print(f"\n[bold]Settings {result.study.settings}[/]\n")
            wide.print(*(terminal(sheet) for sheet in sheets(result.rows, result.study)))
        console.print(LEGEND, style="dim")
        for result in results:
            path = write_text(out / f"tables-{file_of(result.study, out).stem}.md", document(result))
            console.print(f"settings {result.study.settings}, {summary(result.rows)}")
            console.print(f"every table   {path}", soft_wrap=True, markup=False)
        if figures:
            done = reproduce(more, out, only=some_datasets or (), workers=workers, progress=True)
            drawn = draw(results, [one.rows for one in done], out / "figures", progress=True)
            console.print(f"{len(drawn) // 2} figures     {out / 'figures'}", soft_wrap=True, markup=False)


@app.command("methods")
def list_methods() -> None:
    """List the methods and what can be added to them with +: one line each, where it comes from, its defaults."""
    with _told():
        Console(soft_wrap=True).print(method_list(METHODS, STABILISERS))


@app.command("audit")
def audit_files(
    data: Annotated[
        str, typer.Option(help="The table that the models were trained on, .csv or .parquet, or a dataset's name.")
    ],
    counterfactuals: Annotated[
        Path,
        typer.Option(help="The counterfactuals in the data's units, matched to people by label; or DiCE's .json."),
    ],
    people: Annotated[
        Path | None, typer.Option(help="Everybody who asked; if left out, the rows of the data that have an answer.")
    ] = None,
    models: Annotated[
        list[Path] | None,
        typer.Option(help="The retrained models: a saved family, or .safetensors files (repeat the option)."),
    ] = None,
    deployed: Annotated[
        Path | None, typer.Option(help="The model they were found for, if it is not the saved family's base.")
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="What the columns mean, .toml or .json.")] = None,
    label: Annotated[str | None, typer.Option(help="The label's column, where there is no schema.")] = None,
    scaling: Annotated[Scaling, typer.Option(help="How the models' inputs are scaled.")] = "standard",
    index: Annotated[str | None, typer.Option(help="The column of row labels in all tables.")] = None,
    target: Annotated[str | None, typer.Option(help="The class that everybody wants; else any other.")] = None,
    constrained: Annotated[
        bool, typer.Option("--constrained", help="Count only points that keep the schema's constraints.")
    ] = False,
    hidden: Annotated[
        str | None, typer.Option(help="Without models: widths of the hidden layers to retrain with, such as 128,64,16.")
    ] = None,
    epochs: Annotated[int, typer.Option(callback=_from(1), help="Without models: epochs.")] = 100,
    batch: Annotated[int, typer.Option(callback=_from(1), help="Without models: rows a batch.")] = 32,
    members: Annotated[
        int, typer.Option(callback=_from(1), help="Without models: networks to retrain, a kind of change.")
    ] = 100,
    out: Annotated[Path, typer.Option(help="Folder for the audit, rows.csv and problems.csv.")] = Path(
        "holdfast-audit"
    ),
) -> None:
    """Audit anybody's counterfactuals: how often retrained models undo them."""
    console = Console(soft_wrap=True)
    with _told():
        _check_folder(out)
        told = read_data(data, schema=schema, label=label, scaling=scaling, index=index)
        result = checkup(
            told,
            _points(counterfactuals, index),
            people=None if people is None else read_table(people, index),
            models=models or (),
            deployed=deployed,
            recipe=_recipe(hidden, epochs, batch),
            members=members,
            target=_class(target, told.encoding.schema.classes),
            constrained=constrained,
            progress=True,
        )
        files = result.save(out)
        console.print(checkup_text(result))
        console.print("\n".join(str(path) for path in files), highlight=False)


def _points(path: Path, index: str | None) -> pd.DataFrame | str:
    """A table, or the text that DiCE wrote."""
    return path.read_text(encoding="utf-8") if path.suffix == ".json" else read_table(path, index)


def _recipe(hidden: str | None, epochs: int, batch: int) -> Recipe | None:
    if hidden is None:
        return None
    if not all(width.strip().isdigit() and int(width) for width in hidden.split(",")):
        raise ValueError(f"--hidden is '{hidden}'; give widths above 0 with commas between them, such as 128,64,16")
    return Recipe(tuple(int(width) for width in hidden.split(",")), epochs=epochs, batch=batch)


def _class(name: str | None, classes: tuple[Level, ...]) -> Level | None:
    """The class that is spelt so."""
    if name is None:
        return None
    named = [one for one in classes if str(one) == name]
    if not named:
        raise ValueError(f"no class is called '{name}'; there are {', '.join(map(str, classes))}")
    return named[0]


@app.command()
def plan(
    width: Annotated[float, typer.Option(help="How wide the interval of the rate may be, such as 0.05.")] = 0.05,
    rate: Annotated[float, typer.Option(help="The rate of undoing that is expected.")] = 0.1,
    spread: Annotated[
        float | None, typer.Option(help="How much members differ (standard deviation); the worst case if left out.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the interval.")] = 0.95,
) -> None:
    """Say how many retrainings an audit needs."""
    with _told():
        needed = members_needed(width, rate, spread, confidence)
        told = "in the worst case" if spread is None else f"if members differ by {spread:g}"
        Console(soft_wrap=True).print(
            f"{needed} retrained networks for an interval {width:g} wide around a rate of {rate:g}, {told}",
            highlight=False,
        )


def _check_folder(folder: Path) -> None:
    """Before the work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out {folder} is a file; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"--out {folder} cannot be written to ({error.strerror}); name another folder") from error


@datasets_app.callback(invoke_without_command=True)
def _list_datasets(context: typer.Context) -> None:
    """List the datasets: rows, features, licence, whether the file is here and right, where to get it."""
    if context.invoked_subcommand is None:
        with _told():
            Console(soft_wrap=True).print(dataset_list(list(datasets.DATASETS.values())))


@datasets_app.command()
def fetch(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(datasets.DATASETS)}.")],
) -> None:
    """Download a dataset from its public home, where its licence allows that, and check what came."""
    with _told():
        card = datasets.card(name)
        with bar(f"Fetching {name}", 0) as advance:
            done = 0

            def report(so_far: int, total: int | None) -> None:
                nonlocal done
                advance(so_far - done)
                done = so_far

            path = fetch_dataset(card, progress=report)
        Console().print(f"{name}: {path}")


Folder = Annotated[Path | None, typer.Option("--store", help="The store; HOLDFAST_FAMILIES or a folder of yours.")]
Name = Annotated[str, typer.Argument(help="The beginning of a family's name.")]


@families_app.command("list")
def list_families(store: Folder = None) -> None:
    """List the families of a store: name, size, members by kind of change."""
    with _told():
        folder = store or default_store()
        found = entries(folder)
        Console(soft_wrap=True).print(family_list(found) if found else f"no families in {folder}")


@families_app.command("show")
def show_family(name: Name, store: Folder = None) -> None:
    """Show one family: networks, recipe, accuracy, versions; its files are checked."""
    with _told():
        Console(soft_wrap=True).print(family_text(find(store or default_store(), name)))


@families_app.command("remove")
def remove_family(
    name: Name, store: Folder = None, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False
) -> None:
    """Remove one family from a store."""
    with _told():
        entry = find(store or default_store(), name)
        if not yes:
            typer.confirm(f"Remove {entry.folder} ({entry.size() / 1e6:.1f} MB)?", abort=True)
        entry.remove()
        Console(soft_wrap=True).print(f"removed {entry.folder}")
