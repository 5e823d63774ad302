"""`holdfast datasets` and `holdfast datasets fetch`."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.options import DATASETS, errors_as_sentences
from holdfast.utils.terminal import console


def list_datasets(context: typer.Context) -> None:
    """List the datasets: rows, features, licence, whether the file is here and correct, where to get it."""
    if context.invoked_subcommand is not None:
        return
    with errors_as_sentences():
        from holdfast import datasets
        from holdfast.reporting.listings import dataset_list

        console().print(dataset_list(list(datasets.DATASETS.values())))


def fetch(name: Annotated[str, typer.Argument(help=f"One of {', '.join(DATASETS)}.")]) -> None:
    """Download a dataset from its public source, where its licence allows that, and check its checksum."""
    with errors_as_sentences():
        from holdfast import datasets
        from holdfast.datasets.fetch import fetch as download
        from holdfast.utils.progress import bar

        card = datasets.card(name)
        with bar(f"Fetching {name}", 0) as advance:
            path = download(card, progress=advance)
        console().print(f"{name}: {path}")
