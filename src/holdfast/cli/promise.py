"""`holdfast promise`."""

from __future__ import annotations

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
    OutOption,
    ParamsOption,
    PeopleOption,
    QuietOption,
    RetrainedOption,
    RetrainOption,
    ScalingOption,
    SchemaOption,
    TrainOption,
    WantOption,
    changes_named,
    check_training,
    kept,
    params_of,
    recipe_of,
    show,
    store_of_families,
)
from holdfast.cli.options import MOST_MEMBERS, MOST_ROWS, errors_as_sentences, whole_number, writing_to

NOTHING_PROMISED = 3  # exit code
MOST_PLANS = 100


def promise(
    data: DataOption,
    rate: Annotated[
        float,
        typer.Option(
            "--rate", help="The share of counterfactuals that one more retrained model may invalidate, on average."
        ),
    ] = 0.05,
    people: PeopleOption = None,
    rows: Annotated[
        int, typer.Option("--rows", callback=whole_number(1, MOST_ROWS), help="How many of them, from the first on.")
    ] = 100,
    model: ModelOption = None,
    retrained: RetrainedOption = None,
    retrain: RetrainOption = None,
    params: ParamsOption = None,
    train: TrainOption = False,
    rehearsals: Annotated[
        int,
        typer.Option(
            "--rehearsals", callback=whole_number(0, MOST_MEMBERS), help="Models that the search asks; 0 for none."
        ),
    ] = 32,
    calibration: Annotated[
        int,
        typer.Option(
            "--calibration",
            callback=whole_number(1, MOST_MEMBERS),
            help="Models per kind of change that choose the value.",
        ),
    ] = 100,
    members: Annotated[
        int,
        typer.Option(
            "--members",
            callback=whole_number(0, MOST_MEMBERS),
            help="Models per kind that audit the choice; 0 for no audit.",
        ),
    ] = 100,
    norm: Annotated[
        int, typer.Option("--norm", callback=whole_number(1, 2), help="The cost to make small: 1 or 2.")
    ] = 1,
    least_found: Annotated[
        float,
        typer.Option(
            "--least-found", help="Turn the search up while it finds this share of the rows that it finds at first."
        ),
    ] = 0.5,
    plans: Annotated[
        int,
        typer.Option(
            "--plans", callback=whole_number(1, MOST_PLANS), help="Counterfactuals per person; all must hold."
        ),
    ] = 1,
    want: WantOption = None,
    schema: SchemaOption = None,
    label: LabelOption = None,
    index: IndexOption = None,
    scaling: ScalingOption = "standard",
    hidden: HiddenOption = None,
    epochs: EpochsOption = None,
    batch: BatchOption = None,
    out: OutOption = Path("holdfast-promise"),
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find counterfactuals with a promised invalidation rate, or say why none can be promised (exit code 3).

    Of the retrained models of each kind, the first rehearse, the next
    calibrate and the others audit. A kind of --retrain without a count gets
    as many as that takes; with --train, the kind is seeds unless another is
    named.
    """
    store = store_of_families()
    with errors_as_sentences(kept(store, retrained)), writing_to(out):
        check_training(train, {"--hidden": hidden, "--epochs": epochs, "--batch": batch})
        from holdfast.auditing.audit_files import read_tables
        from holdfast.auditing.model_files import find_models
        from holdfast.guarantees.promise_files import Sizes, promise_files
        from holdfast.reporting.tables import file_promise_text

        tables = read_tables(data, people=people, schema=schema, label=label, scaling=scaling, index=index)
        known, sizes = tables.data, Sizes(rehearsals, calibration, members)
        wanted = known.class_named(want)
        models = find_models(
            known.known,
            known.encoding,
            model=model,
            retrained=retrained or (),
            recipe=recipe_of(hidden, epochs, batch, known.recipe) if train else None,
            retrain=bool(retrain),
            params=params_of(params),
            store=store,
        )
        kinds = retrain or ["seeds"]
        result = promise_files(
            known,
            models,
            tables.people,
            rows=rows,
            changes=[] if retrained else changes_named(kinds, len(known.known), count=sum(sizes.of(len(kinds)))),
            want=wanted,
            rate=rate,
            sizes=sizes,
            norm=1 if norm == 1 else 2,
            least_found=least_found,
            plans=plans,
            told=tables.matched,
            store=store,
            progress=not quiet,
        )
        files = result.save(out)
        show(result.summary(), file_promise_text(result), files, as_json=json, quiet=quiet)
    if not result.promise.promised:
        raise typer.Exit(NOTHING_PROMISED)
