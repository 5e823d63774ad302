"""`holdfast explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.inputs import (
    BatchOption,
    DataOption,
    EpochsOption,
    HiddenOption,
    IndexOption,
    JsonOption,
    LabelOption,
    ModelOption,
    PeopleOption,
    QuietOption,
    RetrainedOption,
    RetrainOption,
    Scaling,
    SchemaOption,
    TrainOption,
    UnconstrainedOption,
    changes_named,
    kept,
    recipe_of,
    store_of_families,
)
from holdfast.cli.options import MOST_ROWS, errors_as_sentences, whole_number, writing_to
from holdfast.utils.terminal import console

NOTHING_PROMISED = 3  # exit code
MOST_PLANS = 100


def explain(
    data: DataOption,
    people: PeopleOption = None,
    model: ModelOption = None,
    retrain: RetrainOption = None,
    retrained: RetrainedOption = None,
    want: Annotated[
        list[str] | None,
        typer.Option(
            "--want",
            help="The class that people want; repeat it where any of several will do. By default, the other of two.",
        ),
    ] = None,
    hold: Annotated[
        float | None,
        typer.Option("--hold", help="Give only plans that this share of the selection models accept, such as 0.95."),
    ] = None,
    promise: Annotated[
        float | None,
        typer.Option("--promise", help="Promise that a retrained model invalidates at most this share, on average."),
    ] = None,
    plans: Annotated[
        int, typer.Option("--plans", callback=whole_number(1, MOST_PLANS), help="Plans for each person at most.")
    ] = 1,
    method: Annotated[
        str | None,
        typer.Option("--method", help="A search, such as min-l1+sns (holdfast methods); by default, chosen by a rule."),
    ] = None,
    schema: SchemaOption = None,
    label: LabelOption = None,
    index: IndexOption = None,
    unconstrained: UnconstrainedOption = False,
    rows: Annotated[
        int | None, typer.Option("--rows", callback=whole_number(1, MOST_ROWS), help="Only the first people.")
    ] = None,
    sizes: Annotated[
        str | None,
        typer.Option("--sizes", help="How many models rehearse, select and audit, of each kind, such as 32,32,32."),
    ] = None,
    train: TrainOption = False,
    hidden: HiddenOption = None,
    epochs: EpochsOption = None,
    batch: BatchOption = None,
    scaling: Annotated[
        Scaling | None, typer.Option("--scaling", help="How inputs of networks are scaled; by default, standard.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the advice.")] = Path("holdfast-advice"),
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find advice for people whom a model turns down, and say how many retrained models accept it."""
    store = store_of_families()
    with errors_as_sentences(kept(store, retrained)), writing_to(out):
        from holdfast.explaining.advice_files import summary_of
        from holdfast.explaining.explainer import Explainer
        from holdfast.explaining.from_files import read_known, read_people
        from holdfast.explaining.roles import sizes_named
        from holdfast.report.advice_text import advice_text

        _check_models(model, train, retrain, retrained)
        known = read_known(data, schema, scaling)
        asked = read_people(people, known, rows)
        trained = recipe_of(hidden, epochs, batch, known.recipe) if train or hidden else None
        explainer = Explainer(
            trained if train else model,
            known.table,
            label=label,
            want=want[0] if want and len(want) == 1 else want or None,
            schema=known.schema,
            retrain=changes_named(retrain, len(known.table)) if retrain else retrained or None,
            recipe=None if train else trained,
            sizes=sizes_named(sizes),
            constrained=not unconstrained,
            scaling=known.scaling,
            store=store,
            progress=not (quiet or as_json),
        )
        advice = explainer.explain(asked, hold=hold, promise=promise, plans=plans, method=method, index=index)
        files = advice.save(out)  # before showing: nothing that happens to the terminal loses the work
        if as_json:
            print(json.dumps({**summary_of(advice), "out": str(out)}, indent=1, default=str))
        elif not quiet:
            console(soft_wrap=False).print(advice_text(advice))
            console().print("\n".join(str(path) for path in files))
    if advice.promise is not None and not advice.promise.promised:
        raise typer.Exit(NOTHING_PROMISED)


def _check_models(model: Path | None, train: bool, retrain: list[str] | None, retrained: list[Path] | None) -> None:
    if (model is None) != train:
        said = "both --model and --train were given" if train else "there is no model"
        raise ValueError(
            f"{said}; name the file of the deployed model (--model FILE), or, where there is none yet, have a network "
            "trained (--train)"
        )
    if retrain and retrained:
        raise ValueError("--retrain makes retrained models and --retrained names some that exist; give one of them")
