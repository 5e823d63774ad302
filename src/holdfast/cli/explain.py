"""`holdfast explain`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.inputs import (
    MODELS,
    RESULTS,
    TABLES,
    BatchOption,
    DataOption,
    EpochsOption,
    HiddenOption,
    IndexOption,
    JsonOption,
    LabelOption,
    ModelOption,
    OutOption,
    ParamsOption,
    PeopleOption,
    QuietOption,
    RetrainedOption,
    RetrainOption,
    ScalingOption,
    SchemaOption,
    TrainOption,
    UnconstrainedOption,
    changes_named,
    kept,
    params_of,
    recipe_of,
    show,
    store_of_families,
)
from holdfast.cli.options import DATASETS, MOST_ROWS, command_again, errors_as_sentences, whole_number, writing_to

if TYPE_CHECKING:
    import pandas as pd

USUAL = 96  # retrained models of a kind, where their number is not given
NOTHING_PROMISED = 3  # exit code
MOST_PLANS = 100
REPORT = "report.html"


def explain(
    data: DataOption,
    people: PeopleOption = None,
    model: ModelOption = None,
    retrain: RetrainOption = None,
    params: ParamsOption = None,
    retrained: RetrainedOption = None,
    want: Annotated[
        list[str] | None,
        typer.Option(
            "--want",
            metavar="CLASS",
            rich_help_panel=RESULTS,
            help="The class that people want; repeat it where any of several will do. By default, the other of two.",
        ),
    ] = None,
    hold: Annotated[
        float | None,
        typer.Option(
            "--hold",
            metavar="SHARE",
            rich_help_panel=RESULTS,
            help="Give a person only plans that at least this share of the selection models accepts, such as 0.9.",
        ),
    ] = None,
    promise: Annotated[
        float | None,
        typer.Option(
            "--promise",
            metavar="SHARE",
            rich_help_panel=RESULTS,
            help="Promise that one more retrained model invalidates at most this share of all plans, on average.",
        ),
    ] = None,
    plans: Annotated[
        int,
        typer.Option(
            "--plans",
            metavar="COUNT",
            rich_help_panel=RESULTS,
            callback=whole_number(1, MOST_PLANS),
            help="Plans for each person at most, which change different features.",
        ),
    ] = 1,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            rich_help_panel=RESULTS,
            help="A search, such as min-l1+sns; by default rehearsed with --hold or --promise, else min-l1. holdfast "
            "methods lists them.",
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="COLUMN",
            rich_help_panel=RESULTS,
            help="A column of the people, such as sex: the report compares its groups. Repeat it for more columns.",
        ),
    ] = None,
    schema: SchemaOption = None,
    label: LabelOption = None,
    index: IndexOption = None,
    unconstrained: UnconstrainedOption = False,
    rows: Annotated[
        int | None,
        typer.Option(
            "--rows",
            metavar="COUNT",
            rich_help_panel=TABLES,
            callback=whole_number(1, MOST_ROWS),
            help="Only the first people.",
        ),
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="N,N,N",
            rich_help_panel=MODELS,
            help="How many retrained models of each kind rehearse, select and audit; by default, about a third each.",
        ),
    ] = None,
    train: TrainOption = False,
    hidden: HiddenOption = None,
    epochs: EpochsOption = None,
    batch: BatchOption = None,
    scaling: ScalingOption = "standard",
    out: OutOption = Path("holdfast-advice"),
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find advice for people whom a model turns down.

    The files say what each person could change, what it costs, and how many
    retrained models accept it; report.html is for a browser. For example:

    holdfast explain --data train.csv --schema schema.toml --people rows.csv
      --model model.skops --retrain bootstrap:96 --want yes --hold 0.95

    A third of the retrained models rehearse: the search asks them. A third
    select: they decide which plans hold. A third audit: they choose nothing,
    and judge what was chosen.
    """
    store = store_of_families()
    with errors_as_sentences(kept(store, retrained)), writing_to(out):
        from holdfast.auditing.audit_files import read_tables
        from holdfast.explaining.advice_files import save_advice, summary_of
        from holdfast.explaining.explainer import Explainer
        from holdfast.explaining.roles import sizes_named
        from holdfast.reporting.advice_text import advice_text
        from holdfast.reporting.groups import check_groups
        from holdfast.reporting.html.page import report_text

        _check_models(model, train, retrain, retrained)
        tables = read_tables(data, people=people, schema=schema, label=label, scaling=scaling, index=index)
        known, asked = tables.data, _people(tables.people, tables.data.test).iloc[:rows]
        groups = check_groups(group or (), asked)
        recipe = recipe_of(hidden, epochs, batch, known.recipe) if train or hidden else None
        with _retrainable(model, retrain):
            explainer = Explainer(
                recipe if train else model,
                known.known,
                label=label,
                want=want[0] if want and len(want) == 1 else want or None,
                schema=known.encoding.schema,
                retrain=changes_named(retrain, len(known.known), count=USUAL) if retrain else retrained or None,
                recipe=None if train else recipe,
                params=params_of(params),
                sizes=sizes_named(sizes),
                constrained=not unconstrained,
                scaling=known.encoding.scaling,
                store=store,
                progress=not quiet,
            )
        read = _digests([None if data in DATASETS else data, people, schema, model, params, *(retrained or ())])
        advice = explainer.explain(asked, hold=hold, promise=promise, plans=plans, method=method)
        advice = replace(advice, decided={**advice.decided, "command": command_again(sys.argv), "files": read})
        try:
            report = report_text(advice, groups=groups)
        except Exception:
            save_advice(advice, out)  # whatever is wrong with the page, hours of search are not lost by it
            raise
        # Before showing: nothing that happens to the terminal loses the work.
        files = save_advice(advice, out, also={REPORT: report})
        show(summary_of(advice), advice_text(advice, out / REPORT), files, as_json=json, quiet=quiet)
    if advice.promise is not None and not advice.promise.promised:
        raise typer.Exit(NOTHING_PROMISED)


def _people(given: pd.DataFrame | None, test: pd.DataFrame | None) -> pd.DataFrame:
    found = test if given is None else given
    if found is None:
        raise ValueError("a table of your own does not say whom advice is for; name them: --people FILE")
    return found


def _digests(paths: Sequence[str | Path | None]) -> dict[str, str]:
    """What tells each file that is read, by the name that was typed, from another one; a dataset's name is no file."""
    from holdfast.utils.digests import file_digest

    return {str(path): file_digest(path) for path in paths if path is not None}


@contextmanager
def _retrainable(model: Path | None, retrain: list[str] | None) -> Iterator[None]:
    """Say in the words of the command what is wrong with --retrain for this model."""
    try:
        yield
    except TypeError as error:
        if not (model and retrain):
            raise
        raise ValueError(
            f"{model} cannot be retrained ({' '.join(retrain)}): a network's file does not say how it was trained. "
            "Name retrained models that you have (--retrained FILE, or a folder of them), or say how to train networks "
            "like it: --hidden 128,64,16 --epochs 100 --batch 32. In Python, retrain= may be a function that trains"
        ) from error


def _check_models(model: Path | None, train: bool, retrain: list[str] | None, retrained: list[Path] | None) -> None:
    if (model is None) != train:
        said = "both --model and --train were given" if train else "there is no model"
        raise ValueError(
            f"{said}; name the file of the deployed model (--model FILE), or, where there is none yet, have a network "
            "trained (--train)"
        )
    if retrain and retrained:
        raise ValueError("--retrain makes retrained models and --retrained names some that exist; give one of them")
