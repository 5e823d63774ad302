"""`holdfast promise`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from holdfast.cli.inputs import (
    BatchOption,
    DataOption,
    EpochsOption,
    HiddenOption,
    IndexOption,
    LabelOption,
    ModelOption,
    PeopleOption,
    RetrainedOption,
    ScalingOption,
    SchemaOption,
    WantOption,
    kept,
    recipe_of,
    store_of_families,
)
from holdfast.cli.options import MOST_MEMBERS, MOST_ROWS, errors_as_sentences, whole_number, writing_to
from holdfast.utils.terminal import console

NOTHING_PROMISED = 3  # exit code
MOST_PLANS = 100


def promise(
    data: DataOption,
    rate: Annotated[
        float,
        typer.Option(help="The share of counterfactuals that one more retrained model may invalidate, on average."),
    ] = 0.05,
    people: PeopleOption = None,
    rows: Annotated[
        int, typer.Option(callback=whole_number(1, MOST_ROWS), help="How many of them, from the first on.")
    ] = 100,
    retrained: RetrainedOption = None,
    model: ModelOption = None,
    rehearsals: Annotated[
        int, typer.Option(callback=whole_number(0, MOST_MEMBERS), help="Models that the search asks; 0 for none.")
    ] = 32,
    calibration: Annotated[
        int,
        typer.Option(callback=whole_number(1, MOST_MEMBERS), help="Models per kind of change that choose the value."),
    ] = 100,
    members: Annotated[
        int,
        typer.Option(
            callback=whole_number(0, MOST_MEMBERS), help="Models per kind that audit the choice; 0 for no audit."
        ),
    ] = 100,
    changes: Annotated[
        Literal["seeds", "leave-one-out", "both"], typer.Option(help="Without models: how networks are retrained.")
    ] = "seeds",
    norm: Annotated[int, typer.Option(callback=whole_number(1, 2), help="The cost to make small: 1 or 2.")] = 1,
    least_found: Annotated[
        float, typer.Option(help="Turn the search up while it finds this share of the rows that it finds at first.")
    ] = 0.5,
    plans: Annotated[
        int, typer.Option(callback=whole_number(1, MOST_PLANS), help="Counterfactuals per person; all must hold.")
    ] = 1,
    want: WantOption = None,
    schema: SchemaOption = None,
    label: LabelOption = None,
    scaling: ScalingOption = "standard",
    index: IndexOption = None,
    hidden: HiddenOption = None,
    epochs: EpochsOption = None,
    batch: BatchOption = None,
    out: Annotated[Path, typer.Option(help="Folder for counterfactuals.csv and promise.json.")] = Path(
        "holdfast-promise"
    ),
) -> None:
    """Find counterfactuals with a promised invalidation rate, or say why none can be promised (exit code 3)."""
    store = store_of_families()
    with errors_as_sentences(kept(store, retrained)), writing_to(out):
        from holdfast.auditing.audit_files import read_data
        from holdfast.guarantees.promise_files import Sizes, promise_files
        from holdfast.report.tables import file_promise_text
        from holdfast.tabular.reading import read_table

        known = read_data(data, schema=schema, label=label, scaling=scaling, index=index)
        result = promise_files(
            known,
            None if people is None else read_table(people, index),
            rows=rows,
            models=retrained or (),
            deployed=model,
            recipe=recipe_of(hidden, epochs, batch, known.recipe) if hidden or known.recipe else None,
            target=known.class_named(want),
            rate=rate,
            sizes=Sizes(rehearsals, calibration, members),
            changes=changes,
            norm=1 if norm == 1 else 2,
            least_found=least_found,
            plans=plans,
            store=store,
            progress=True,
        )
        files = result.save(out)
        console(soft_wrap=False).print(file_promise_text(result))
        console().print("\n".join(str(path) for path in files))
    if not result.promise.promised:
        raise typer.Exit(NOTHING_PROMISED)
