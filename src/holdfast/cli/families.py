"""`holdfast families list`, `show` and `remove`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.cli.options import errors_as_sentences
from holdfast.utils.messages import printable
from holdfast.utils.terminal import console

Folder = Annotated[
    Path | None, typer.Option("--store", help="The store's folder; by default HOLDFAST_FAMILIES, or your own folder.")
]
Name = Annotated[str, typer.Argument(help="The beginning of a family's name.")]


def list_families(store: Folder = None) -> None:
    """List the families in a store: name, size, members per kind of change."""
    with errors_as_sentences():
        from holdfast.families.entries import default_store, entries
        from holdfast.reporting.listings import family_list

        folder = store or default_store()
        found = entries(folder)
        console().print(family_list(found) if found else f"no families in {folder}")


def show_family(name: Name, store: Folder = None) -> None:
    """Show one family: networks, recipe, accuracy, versions. Its files are checked."""
    with errors_as_sentences():
        from holdfast.families.entries import default_store, find
        from holdfast.reporting.tables import family_text

        console().print(family_text(find(store or default_store(), name)))


def remove_family(
    name: Name, store: Folder = None, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False
) -> None:
    """Remove one family from a store."""
    with errors_as_sentences():
        from holdfast.families.entries import default_store, find, in_units

        entry = find(store or default_store(), name)
        if not yes:
            typer.confirm(printable(f"Remove {entry.folder} ({in_units(entry.size())})?"), abort=True)
        entry.remove()
        console().print(f"removed {entry.folder}")
