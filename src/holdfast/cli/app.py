"""Every command by its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from holdfast import __version__
from holdfast.cli.audit import audit
from holdfast.cli.datasets import fetch, list_datasets
from holdfast.cli.demo import demo
from holdfast.cli.explain import explain
from holdfast.cli.families import list_families, remove_family, show_family
from holdfast.cli.init import init
from holdfast.cli.letter import letter
from holdfast.cli.methods import list_methods
from holdfast.cli.paper import paper
from holdfast.cli.plan import plan
from holdfast.cli.promise import promise
from holdfast.cli.verbose import log_to_stderr
from holdfast.utils.messages import printable
from holdfast.utils.terminal import console


class PlainGroup(TyperGroup):
    """typer shows what it did not understand; here without the control characters of what was typed."""

    def make_context(self, *given: Any, **settings: Any) -> Any:
        with _printable_errors():
            return super().make_context(*given, **settings)

    def invoke(self, *given: Any, **settings: Any) -> Any:
        with _printable_errors():
            return super().invoke(*given, **settings)


@contextmanager
def _printable_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if isinstance(getattr(error, "message", None), str):  # typer's own errors; their base class has no public name
            error.message = printable(error.message)  # type: ignore[attr-defined]
        raise


app = typer.Typer(
    cls=PlainGroup,
    help="Counterfactual explanations that still hold after the model is retrained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        console().print(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _holdfast(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log each step and when it began to standard error.")
    ] = False,
) -> None:
    log_to_stderr(verbose)


app.command()(init)
app.command()(explain)
app.command()(letter)
app.command()(audit)
app.command()(promise)
app.command()(plan)
app.command("methods")(list_methods)
app.command()(demo)
app.command()(paper)

datasets_app = typer.Typer(help="List the paper's six datasets, or fetch one.")
datasets_app.callback(invoke_without_command=True)(list_datasets)
datasets_app.command()(fetch)
app.add_typer(datasets_app, name="datasets")

families_app = typer.Typer(help="List, show or remove the retrained models kept on disk.", no_args_is_help=True)
families_app.command("list")(list_families)
families_app.command("show")(show_family)
families_app.command("remove")(remove_family)
app.add_typer(families_app, name="families")
