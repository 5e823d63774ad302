"""What the commands that read a table and models, or train some, have in common: their options, and how they begin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from holdfast.cli.options import MOST_EPOCHS, MOST_ROWS, whole_number, widths

if TYPE_CHECKING:
    from holdfast.families.recipe import Recipe

Scaling = Literal["standard", "standard-numeric", "minmax", "minmax-global", "none"]

DataOption = Annotated[
    str, typer.Option(help="The table that the models were trained on (.csv or .parquet), or a dataset's name.")
]
ModelsOption = Annotated[
    list[Path] | None,
    typer.Option(help="The retrained models: a saved family, or files of models (repeat the option)."),
]
SchemaOption = Annotated[Path | None, typer.Option(help="What the columns mean, .toml or .json.")]
LabelOption = Annotated[str | None, typer.Option(help="The label's column, where there is no schema.")]
ScalingOption = Annotated[Scaling, typer.Option(help="How the models' inputs are scaled.")]
IndexOption = Annotated[str | None, typer.Option(help="The column of row labels in all tables.")]
HiddenOption = Annotated[
    str | None,
    typer.Option(callback=widths, help="Without models: widths of the hidden layers to train, such as 128,64,16."),
]
EpochsOption = Annotated[int, typer.Option(callback=whole_number(1, MOST_EPOCHS), help="Without models: epochs.")]
BatchOption = Annotated[int, typer.Option(callback=whole_number(1, MOST_ROWS), help="Without models: rows per batch.")]


def store_of_families() -> Path:
    from holdfast.families.entries import default_store

    return default_store()


def kept(store: Path, models: list[Path] | None) -> str:
    """What is left of the work when it is interrupted."""
    if models:
        return "nothing was written"
    return f"networks that were trained are kept in {store}; run it again to resume"


def recipe_of(hidden: str | None, epochs: int, batch: int) -> Recipe | None:
    """How to train, where the widths of layers are given."""
    from holdfast.families.recipe import Recipe

    return None if hidden is None else Recipe(tuple(map(int, hidden.split(","))), epochs=epochs, batch=batch)
