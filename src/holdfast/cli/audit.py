"""`holdfast audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.cli.options import (
    MOST_EPOCHS,
    MOST_MEMBERS,
    MOST_ROWS,
    errors_as_sentences,
    whole_number,
    widths,
    writing_to,
)
from holdfast.utils.terminal import console

if TYPE_CHECKING:
    from holdfast.families.recipe import Recipe

Scaling = Literal["standard", "standard-numeric", "minmax", "minmax-global", "none"]


def audit(
    data: Annotated[
        str, typer.Option(help="The table that the models were trained on (.csv or .parquet), or a dataset's name.")
    ],
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
    models: Annotated[
        list[Path] | None,
        typer.Option(help="The retrained models: a saved family, or files of models (repeat the option)."),
    ] = None,
    deployed: Annotated[
        Path | None,
        typer.Option(
            help="The model that the counterfactuals were found for (.safetensors, .ubj, .txt, .onnx, .keras or "
            ".skops); by default, the saved family's member of kind 'base'."
        ),
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="What the columns mean, .toml or .json.")] = None,
    label: Annotated[str | None, typer.Option(help="The label's column, where there is no schema.")] = None,
    scaling: Annotated[Scaling, typer.Option(help="How the models' inputs are scaled.")] = "standard",
    index: Annotated[str | None, typer.Option(help="The column of row labels in all tables.")] = None,
    target: Annotated[
        str | None, typer.Option(help="The class that everybody wants; by default, any class but their own.")
    ] = None,
    constrained: Annotated[
        bool, typer.Option("--constrained", help="Count only counterfactuals that keep the schema's constraints.")
    ] = False,
    hidden: Annotated[
        str | None,
        typer.Option(callback=widths, help="Without models: widths of the hidden layers to train, such as 128,64,16."),
    ] = None,
    epochs: Annotated[int, typer.Option(callback=whole_number(1, MOST_EPOCHS), help="Without models: epochs.")] = 100,
    batch: Annotated[
        int, typer.Option(callback=whole_number(1, MOST_ROWS), help="Without models: rows per batch.")
    ] = 32,
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
    from holdfast.families.entries import default_store

    store = default_store()
    kept = (
        "nothing was written" if models else f"networks that were trained are kept in {store}; run it again to resume"
    )
    with errors_as_sentences(kept), writing_to(out):
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
            recipe=None if hidden is None else recipe_of(hidden, epochs, batch),
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


def recipe_of(hidden: str, epochs: int, batch: int) -> Recipe:
    from holdfast.families.recipe import Recipe

    return Recipe(tuple(int(width) for width in hidden.split(",")), epochs=epochs, batch=batch)
