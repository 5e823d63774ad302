"""`holdfast audit`."""

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
from holdfast.cli.options import MOST_MEMBERS, errors_as_sentences, whole_number, writing_to
from holdfast.utils.terminal import console


def audit(
    data: DataOption,
    counterfactuals: Annotated[
        Path,
        typer.Option(
            help="The counterfactuals in the data's units, matched to people by label; DiCE's .json; or the folder of "
            "holdfast promise."
        ),
    ],
    people: PeopleOption = None,
    retrained: RetrainedOption = None,
    model: ModelOption = None,
    schema: SchemaOption = None,
    label: LabelOption = None,
    scaling: ScalingOption = "standard",
    index: IndexOption = None,
    want: WantOption = None,
    constrained: Annotated[
        bool, typer.Option("--constrained", help="Count only counterfactuals that keep the schema's constraints.")
    ] = False,
    hidden: HiddenOption = None,
    epochs: EpochsOption = None,
    batch: BatchOption = None,
    members: Annotated[
        int,
        typer.Option(
            callback=whole_number(1, MOST_MEMBERS), help="Without models: networks to train per kind of change."
        ),
    ] = 100,
    out: Annotated[Path, typer.Option(help="Folder for the audit, rows.csv and problems.csv.")] = Path(
        "holdfast-audit"
    ),
) -> None:
    """Audit counterfactuals from any source: how often do retrained models invalidate them?"""
    store = store_of_families()
    with errors_as_sentences(kept(store, retrained)), writing_to(out):
        from holdfast.auditing.audit_files import audit_files, read_counterfactuals, read_data
        from holdfast.auditing.promised import promised_points
        from holdfast.report.tables import file_audit_text
        from holdfast.tabular.reading import read_table

        points, promised = promised_points(counterfactuals)
        known = read_data(data, schema=schema, label=label, scaling=scaling, index=index)
        result = audit_files(
            known,
            read_counterfactuals(points, index),
            people=None if people is None else read_table(people, index),
            models=retrained or (),
            deployed=model,
            recipe=recipe_of(hidden, epochs, batch, known.recipe) if hidden or known.recipe else None,
            members=members,
            target=known.class_named(want),
            constrained=constrained,
            promised=promised,
            store=store,
            progress=True,
        )
        files = result.save(out)
        console().print(file_audit_text(result))
        console().print("\n".join(str(path) for path in files))
