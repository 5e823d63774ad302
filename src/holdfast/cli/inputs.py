"""The words of the commands that read a table and models: one option for one thing, in every command alike."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from holdfast.cli.options import MOST_EPOCHS, MOST_MEMBERS, MOST_ROWS, MOST_WORKERS, whole_number, widths
from holdfast.utils.terminal import console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from holdfast.families.recipe import Recipe, Retraining

Scaling = Literal["standard", "standard-numeric", "minmax", "minmax-global", "none"]
RETRAIN_KINDS = ("seeds", "bootstrap", "leave-one-out")  # changes that need no more than a count

TABLES, MODELS, RESULTS = "Tables", "Models", "Results"  # headings of --help
MOST_PLANS = 100
Check = Callable[[Any], Any]


def option(
    heading: str | None, name: str, words: str, metavar: str | None = None, *, check: Check | None = None
) -> Any:
    """An option below its heading in --help, with what it means, what it takes, and the check of what is given."""
    return typer.Option(name, rich_help_panel=heading, help=words, metavar=metavar, callback=check)


def file(heading: str, name: str, words: str) -> Any:
    return option(heading, name, words, "FILE")


def column(heading: str, name: str, words: str) -> Any:
    return option(heading, name, words, "COLUMN")


def count(heading: str | None, name: str, words: str, least: int, most: int) -> Any:
    return option(heading, name, words, "COUNT", check=whole_number(least, most))


def check_retrain(texts: list[str] | None) -> list[str] | None:
    """The check of --retrain: before any file is read."""
    try:
        counts_named(texts or ())
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return texts


# ---- tables ----

DataOption = Annotated[
    str, file(TABLES, "--data", "The table that the models were trained on (.csv or .parquet), or a dataset's name.")
]
_PEOPLE = (
    "The people who ask for advice (.csv or .parquet); by default, the test rows of a dataset that holdfast knows, or, "
    "to audit, those rows of the data that have a counterfactual."
)
PeopleOption = Annotated[Path | None, file(TABLES, "--people", _PEOPLE)]
RowsOption = Annotated[int | None, count(TABLES, "--rows", "Only the first people.", 1, MOST_ROWS)]
IndexOption = Annotated[
    str | None,
    column(TABLES, "--index", "The column that names the rows, in all tables; by default, the one they share."),
]
SchemaOption = Annotated[
    Path | None, file(TABLES, "--schema", "What the columns mean and what people can change, .toml or .json.")
]
LabelOption = Annotated[str | None, column(TABLES, "--label", "The label's column, where there is no schema.")]
ScalingOption = Annotated[
    Scaling, option(TABLES, "--scaling", f"How the models' inputs are scaled: {', '.join(get_args(Scaling))}.", "WORD")
]

# ---- models ----

_MODEL = (
    "The deployed model: a file (.safetensors, .ubj, .txt, .onnx, .keras or .skops), or the folder of a saved family "
    "with one member of kind 'base'."
)
ModelOption = Annotated[Path | None, file(MODELS, "--model", _MODEL)]
_RETRAINED = "The retrained models: files (repeat the option), a folder of such files, or the folder of a saved family."
RetrainedOption = Annotated[list[Path] | None, file(MODELS, "--retrained", _RETRAINED)]
UnconstrainedOption = Annotated[
    bool, option(RESULTS, "--unconstrained", "Do without the schema's constraints on what people can change.")
]
TrainOption = Annotated[
    bool, option(MODELS, "--train", "There is no model yet: train a network of holdfast's and use that.")
]
_HIDDEN = "With --train: widths of the hidden layers; by default, the dataset's own, or 128,64,16."
HiddenOption = Annotated[str | None, option(MODELS, "--hidden", _HIDDEN, "WIDTHS", check=widths)]
_EPOCHS = "With --train: epochs; by default, the dataset's own, or 100."
EpochsOption = Annotated[int | None, count(MODELS, "--epochs", _EPOCHS, 1, MOST_EPOCHS)]
_BATCH = "With --train: rows per batch; by default, the dataset's own, or 32."
BatchOption = Annotated[int | None, count(MODELS, "--batch", _BATCH, 1, MOST_ROWS)]
_RETRAIN = f"Number of retrainings per kind, such as seeds:96 (repeat the option; kinds: {', '.join(RETRAIN_KINDS)})."
RetrainOption = Annotated[list[str] | None, option(MODELS, "--retrain", _RETRAIN, "KIND:COUNT", check=check_retrain)]
_PARAMS = (
    "With --retrain: the parameters that a booster was trained with (.toml or .json), where its file does not hold "
    "them."
)
ParamsOption = Annotated[Path | None, file(MODELS, "--params", _PARAMS)]
_REHEARSAL = "How many retrained models of each kind the search asks; by default, about a third, 32 at most."
RehearsalOption = Annotated[int | None, count(MODELS, "--rehearsal", _REHEARSAL, 0, MOST_MEMBERS)]
_SELECTION = "How many retrained models of each kind decide which plans hold; by default, half of the others."
SelectionOption = Annotated[int | None, count(MODELS, "--selection", _SELECTION, 1, MOST_MEMBERS)]
_AUDIT = "How many retrained models of each kind judge the plans; by default, those that are left."
AuditModelsOption = Annotated[int | None, count(MODELS, "--audit", _AUDIT, 1, MOST_MEMBERS)]

# ---- work ----

_WORKERS = "Training processes; by default, one per core."
WorkersOption = Annotated[int | None, count(None, "--workers", _WORKERS, 1, MOST_WORKERS)]

# ---- results ----

_WANT = (
    "The class that people want; repeat it where any of several will do. By default, the other of two; to audit, any "
    "but their own."
)
WantOption = Annotated[list[str] | None, option(RESULTS, "--want", _WANT, "CLASS")]
_PLANS = "Plans for each person at most, which change different features."
PlansOption = Annotated[int, count(RESULTS, "--plans", _PLANS, 1, MOST_PLANS)]
_METHOD = (
    "A search, such as min-l1+sns; by default rehearsed with --hold or a promise, else min-l1. holdfast methods lists "
    "them."
)
MethodOption = Annotated[str | None, option(RESULTS, "--method", _METHOD, "NAME")]
_GROUP = "A column of the people, such as sex: the report compares its groups. Repeat it for more columns."
GroupOption = Annotated[list[str] | None, column(RESULTS, "--group", _GROUP)]
OutOption = Annotated[Path, option(RESULTS, "--out", "The folder for the results.", "FOLDER")]
JsonOption = Annotated[
    bool, option(RESULTS, "--json", "Print the summary as JSON, and nothing else, on standard output.")
]
QuietOption = Annotated[bool, option(RESULTS, "--quiet", "Print errors only; the files are written all the same.")]

# ---- what is meant by them ----


def counts_named(texts: Sequence[str]) -> dict[str, int | None]:
    """How often each kind is named: ``["seeds:96", "bootstrap"]`` is ``{"seeds": 96, "bootstrap": None}``."""
    counts: dict[str, int | None] = {}
    for text in texts:
        kind, colon, number = text.strip().partition(":")
        if kind not in RETRAIN_KINDS:
            raise ValueError(
                f"'{text}' names no kind of retraining; choose from {', '.join(RETRAIN_KINDS)}, with a count, such as "
                "seeds:96"
            )
        whole = number.isascii() and number.isdecimal() and len(number) <= len(str(MOST_MEMBERS))
        if colon and not (whole and 1 <= int(number) <= MOST_MEMBERS):
            raise ValueError(
                f"'{text[:40]}' has no count from 1 to {MOST_MEMBERS} after its colon; say how often to retrain, such "
                f"as {kind}:96"
            )
        if kind in counts:
            raise ValueError(f"--retrain names {kind} twice; name each kind once, such as {kind}:96")
        counts[kind] = int(number) if colon else None
    return counts


def changes_named(
    texts: Sequence[str], rows: int, *, count: int | None = None, after: Mapping[str, int] | None = None
) -> list[Retraining]:
    """The retrainings that ``["seeds:96", "leave-one-out:50"]`` names, for a model of so many training rows.

    A kind without a number gets the ``count``. The first ones of each kind that ``after`` counts are passed over: they
    took part in something that the others must not have seen.
    """
    from holdfast.families.changes import bootstrap, leave_one_out, seeds

    changes: list[Retraining] = []
    for kind, named in counts_named(texts).items():
        members, taken = named or count, (after or {}).get(kind, 0)
        if members is None:
            raise ValueError(f"--retrain {kind} does not say how often; give a count, such as {kind}:96")
        if kind == "seeds":
            changes += seeds(members, start=taken + 1)
        elif kind == "bootstrap":
            changes += bootstrap(members, start=taken)
        elif taken + members > rows:
            raise ValueError(
                f"{taken + members} different rows cannot be left out of {rows}; give leave-one-out:"
                f"{max(rows - taken, 1)} or fewer, or another kind, such as seeds:{members}"
            )
        else:
            changes += leave_one_out(taken + members, rows)[taken:]
    return changes


def recipe_of(hidden: str | None, epochs: int | None, batch: int | None, known: Recipe | None = None) -> Recipe:
    """How to train: the recipe that is ``known`` for the data, or the usual one, changed where something else is
    given."""
    from dataclasses import replace

    from holdfast.families.recipe import Recipe

    recipe = (known or Recipe()) if hidden is None else Recipe(tuple(map(int, hidden.split(","))))
    return replace(recipe, epochs=epochs or recipe.epochs, batch=batch or recipe.batch)


def params_of(path: Path | None) -> dict[str, Any] | None:
    """The parameters of an estimator by their names, from a file."""
    if path is None:
        return None
    import tomllib

    try:
        text = path.read_text(encoding="utf-8-sig")
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise ValueError(f"--params names {path}, which is no file") from None
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read as .toml or .json: {error}; write lines such as max_depth = 3"
        ) from None
    if not isinstance(found, dict):
        raise ValueError(f'{path} has a {type(found).__name__}; expected parameters by their names: {{"max_depth": 3}}')
    return found


def wanted_of(names: list[str] | None) -> list[str] | str | None:
    """What --want says, as `Explainer` takes it: a class, or several of which any will do."""
    return names[0] if names and len(names) == 1 else names or None


def kept(retrained: list[Path] | None) -> str:
    """What is left of the work when it is interrupted."""
    from holdfast.families.entries import default_store

    if retrained:
        return "nothing was written"
    return f"models that were trained are kept in {default_store()}; run it again to resume"


def show(
    summary: Mapping[str, Any],
    text: RenderableType,
    files: Sequence[Path],
    *,
    as_json: bool,
    quiet: bool,
    soft_wrap: bool = False,
) -> None:
    """The result on standard output: as JSON and nothing else, as text with the files below it, or not at all."""
    if as_json:
        console().print(json.dumps({**summary, "files": [str(path) for path in files]}, indent=1, allow_nan=False))
    elif not quiet:
        console(soft_wrap=soft_wrap).print(text)
        console().print("\n".join(str(path) for path in files))
