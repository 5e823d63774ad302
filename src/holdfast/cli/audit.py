"""`holdfast audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import MOST_MEMBERS, errors_as_sentences, whole_number, writing_to
from holdfast.cli.training import (
    BatchOption,
    DataOption,
    EpochsOption,
    HiddenOption,
    IndexOption,
    LabelOption,
    ModelsOption,
    ScalingOption,
    SchemaOption,
    kept,
    recipe_of,
    store_of_families,
)
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
    people: Annotated[
        Path | None,
        typer.Option(help="Everybody who asked; by default, the rows of the data that have a counterfactual."),
    ] = None,
    models: ModelsOption = None,
    deployed: Annotated[
        Path | None,
        typer.Option(
            help="The model that the counterfactuals were found for (.safetensors, .ubj, .txt, .onnx, .keras or "
            ".skops); by default, the saved family's member of kind 'base'."
        ),
    ] = None,
    schema: SchemaOption = None,
    label: LabelOption = None,
    scaling: ScalingOption = "standard",
    index: IndexOption = None,
    target: Annotated[
        str | None, typer.Option(help="The class that everybody wants; by default, any class but their own.")
    ] = None,
    constrained: Annotated[
        bool, typer.Option("--constrained", help="Count only counterfactuals that keep the schema's constraints.")
    ] = False,
    hidden: HiddenOption = None,
    epochs: EpochsOption = 100,
    batch: BatchOption = 32,
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
    with errors_as_sentences(kept(store, models)), writing_to(out):
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
            models=models or (),
            deployed=deployed,
            recipe=recipe_of(hidden, epochs, batch),
            members=members,
            target=known.class_named(target),
            constrained=constrained,
            promised=promised,
            store=store,
            progress=True,
        )
        files = result.save(out)
        console().print(file_audit_text(result))
        console().print("\n".join(str(path) for path in files))
