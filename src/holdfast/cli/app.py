"""Every command by its name."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast import __version__
from holdfast.cli.audit import audit
from holdfast.cli.datasets import fetch, list_datasets
from holdfast.cli.demo import demo
from holdfast.cli.families import list_families, remove_family, show_family
from holdfast.cli.methods import list_methods
from holdfast.cli.paper import paper
from holdfast.cli.plan import plan

app = typer.Typer(
    help="Counterfactual explanations that still hold after the model is retrained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _holdfast(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


app.command()(demo)
app.command()(paper)
app.command("methods")(list_methods)
app.command()(audit)
app.command()(plan)

datasets_app = typer.Typer(help="List the paper's six datasets, or fetch one.")
datasets_app.callback(invoke_without_command=True)(list_datasets)
datasets_app.command()(fetch)
app.add_typer(datasets_app, name="datasets")

families_app = typer.Typer(help="List, show or remove the retrained networks kept on disk.", no_args_is_help=True)
families_app.command("list")(list_families)
families_app.command("show")(show_family)
families_app.command("remove")(remove_family)
app.add_typer(families_app, name="families")
