"""Counterfactuals and models from files, whoever made them: read, judged, audited. What `holdfast audit` runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast import datasets
from holdfast.auditing.audit import Audit, audit
from holdfast.auditing.promised import Promised
from holdfast.auditing.storage import save_audit
from holdfast.datasets.prepared import prepare
from holdfast.external.dice import from_dice
from holdfast.external.judging import ImportedCounterfactuals
from holdfast.external.tables import from_tables
from holdfast.families.changes import leave_one_out, seeds
from holdfast.families.external_models import read_perceptron
from holdfast.families.family import Family
from holdfast.families.recipe import PAPER_RECIPES, Recipe, Retraining
from holdfast.families.store import load_family
from holdfast.families.training import train
from holdfast.models.files.reading import FORMATS, PROGRAMS, read_model
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding, Scaling
from holdfast.tabular.feature import Level
from holdfast.tabular.reading import read_table
from holdfast.tabular.schema import Schema
from holdfast.utils.files import write_text
from holdfast.utils.spreadsheets import as_csv


@dataclass(frozen=True, eq=False)
class FileAudit:
    """Counterfactuals from a file, what is wrong with them, and how well they hold."""

    imported: ImportedCounterfactuals
    audit: Audit
    promised: Promised | None = None  # what `holdfast promise` has said of them

    def table(self) -> pd.DataFrame:
        """One row per counterfactual, with the label of the row it is for, and the rate promised where there is one."""
        table = self.audit.table().set_index(self.imported.labels.rename("row"))
        return table if self.promised is None else table.assign(promised_rate=self.promised.rate)

    def save(self, folder: str | Path) -> list[Path]:
        """The audit itself, one row per counterfactual, and every problem."""
        folder = Path(folder)
        return [
            save_audit(self.audit, folder / "audit"),
            write_text(folder / "rows.csv", as_csv(self.table())),
            write_text(folder / "problems.csv", as_csv(self.imported.problems, index=False)),
        ]


@dataclass(frozen=True, eq=False)
class Data:
    """A table, which of its rows models are trained on, and how it is encoded."""

    table: pd.DataFrame
    known: pd.DataFrame
    encoding: Encoding
    recipe: Recipe | None  # the one that goes with it
    test: pd.DataFrame | None = None  # rows that no model is trained on, where they are known

    def class_named(self, name: str | None) -> Level | None:
        """The class that is spelt so."""
        if name is None:
            return None
        classes = self.encoding.schema.classes
        named = [one for one in classes if str(one) == name]
        if not named:
            raise ValueError(f"no class is called '{name}'; the classes are {', '.join(map(str, classes))}")
        return named[0]


def read_data(
    data: str | Path,
    *,
    schema: str | Path | None = None,
    label: str | None = None,
    scaling: Scaling = "standard",
    index: str | None = None,
) -> Data:
    """One of our datasets by its name, or a file with the rows that the models were trained on.

    A file's schema is read from ``schema``, or off the table, whose ``label`` must then be named.
    """
    if str(data) in datasets.DATASETS:
        own = prepare(str(data))
        return Data(own.table, own.train, own.encoding, PAPER_RECIPES.get(own.card.name), own.test)
    if not Path(data).suffix:
        raise ValueError(
            f"no dataset is called '{data}' (there are {', '.join(datasets.DATASETS)}); for your own table, name "
            "its .csv or .parquet file"
        )
    table = read_table(data)
    if index in table:  # rows that nobody asks about need no labels
        table = table.set_index(index)
    if schema is None and label is None:
        raise ValueError(f"{data} needs a label: name its column (--label NAME), or give a schema file (--schema FILE)")
    described = Schema.load(schema) if schema is not None else Schema.infer(table, str(label))
    return Data(table, table, Encoding.fit(table, described, scaling), None)


def read_counterfactuals(path: str | Path, index: str | None = None) -> pd.DataFrame | str:
    """A table, or the text that DiCE wrote."""
    path = Path(path)
    return path.read_text(encoding="utf-8") if path.suffix == ".json" else read_table(path, index)


def audit_files(
    data: Data,
    counterfactuals: pd.DataFrame | str,
    *,
    people: pd.DataFrame | None = None,
    models: Sequence[str | Path] = (),
    deployed: str | Path | None = None,
    recipe: Recipe | None = None,
    members: int = 100,
    target: Any = None,
    constrained: bool = False,
    promised: Promised | None = None,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> FileAudit:
    """Audit counterfactuals from any source, a table or the text of DiCE's ``to_json()``, for ``people`` who asked.

    ``people`` left out are those rows of the data that a counterfactual names: then a search that passes over hard rows
    looks better than it is. ``models`` are a folder of `save_family` or files that `read_model` reads (safetensors of
    rectified layers); without any, ``members`` networks per kind of change are trained by the recipe and kept in the
    ``store``, a folder: after an interruption only the others are trained. ``deployed`` is the model that the
    counterfactuals were found for: a file, or the member of kind "base" of a family, or the recipe's network of seed 0.
    ``constrained`` counts points as found only if they keep the schema's constraints. Counterfactuals that were
    ``promised`` a rate are audited by models that took no part in the promise.
    """
    if promised is not None and isinstance(counterfactuals, pd.DataFrame):
        counterfactuals = promised.without_extra(counterfactuals, data.encoding.schema.names)
    if people is None:
        if isinstance(counterfactuals, str):
            raise ValueError(
                "DiCE's JSON does not say whom it is for; give the table of people that DiCE was asked about: "
                "--people FILE, or people=..."
            )
        people = _named(data.table, counterfactuals)
    if models:
        base, family = read_models(models, deployed, data.encoding)
    else:
        base, family = read_deployed(data, checked_recipe(recipe or data.recipe), deployed), None
    space = data.encoding.space if constrained else None
    if isinstance(counterfactuals, str):
        imported = from_dice(people, counterfactuals, data.encoding, base, target=target, space=space)
    else:
        imported = from_tables(people, counterfactuals, data.encoding, base, target=target, space=space)
    if family is None:  # now that all that was given has been read: training takes long
        changes = _changes(len(data.known), members, promised)
        family = _retrained(data, checked_recipe(recipe or data.recipe), changes, store, workers, progress)
    answer = imported.counterfactuals
    if promised is not None:
        answer = replace(answer, seen=answer.seen | promised.seen)
    return FileAudit(imported, audit(answer, family), promised)


def read_models(
    models: Sequence[str | Path], deployed: str | Path | None = None, encoding: Encoding | None = None
) -> tuple[Model, Family]:
    """The deployed model and the retrained ones, from files; estimators need the encoding that they were made with."""
    folders = [Path(path) for path in models if Path(path).is_dir()]
    files = [Path(path) for path in models if not Path(path).is_dir()]
    if len(folders) > 1 or (folders and files):
        raise ValueError(f"expected one folder of a family, or files of models, got {', '.join(map(str, models))}")
    base = None if deployed is None else _read(deployed, encoding)
    if files:
        if base is None:
            raise ValueError(
                "files of models do not say which model the counterfactuals were found for; name the file of the "
                "deployed model: --deployed FILE, or deployed=..."
            )
        return base, Family.from_models([_read(path, encoding) for path in files])
    family = load_family(folders[0], encoding=encoding)
    places = [place for place, kind in enumerate(family.kinds) if kind == "base"]
    if base is None and len(places) != 1:
        raise ValueError(
            f"{folders[0]} holds {len(places)} members of kind 'base', so it does not say which model the "
            "counterfactuals were found for; name the deployed model's file: --deployed FILE, or deployed=..."
        )
    retrained = [place for place in range(len(family)) if place not in places]
    return base or family[places[0]], family.chosen(retrained)


def _read(path: str | Path, encoding: Encoding | None) -> Model:
    """A network of safetensors as the network it is; a file of another library as what `read_model` makes of it."""
    suffix = Path(path).suffix.lower()
    if encoding is None or suffix == ".safetensors" or suffix not in (*FORMATS, *PROGRAMS):
        return read_perceptron(path)
    return read_model(path, encoding)


def checked_recipe(recipe: Recipe | None) -> Recipe:
    if recipe is None:
        raise ValueError(
            "there are no models to audit with: name their files (--models), or the hidden layers of networks to train "
            "(--hidden 128,64,16)"
        )
    return recipe


def read_deployed(data: Data, recipe: Recipe, file: str | Path | None, store: str | Path | None = None) -> Model:
    """The model of a file, or the recipe's network of seed 0."""
    if file is not None:
        return _read(file, data.encoding)
    x, y = data.encoding.encode(data.known), data.encoding.labels(data.known)
    return train(x, y, recipe, [Retraining()], store=store)[0]


def _retrained(
    data: Data,
    recipe: Recipe,
    changes: list[Retraining],
    store: str | Path | None,
    workers: int | None,
    progress: bool,
) -> Family:
    x, y = data.encoding.encode(data.known), data.encoding.labels(data.known)
    return train(x, y, recipe, changes, store=store, workers=workers, progress=progress)


def _changes(rows: int, members: int, promised: Promised | None) -> list[Retraining]:
    """Members of every kind of change; of a promise, those that come after the ones that took part in it."""
    if promised is None:
        return seeds(members) + leave_one_out(min(members, rows), rows)
    made: list[Retraining] = []
    for kind in promised.kinds:
        taken = promised.taken.get(kind, 0)
        if kind == "seeds":
            made += seeds(members, start=taken + 1)
        elif kind == "leave-one-out":
            made += leave_one_out(min(taken + members, rows), rows)[taken:]
    if not made:
        raise ValueError(
            f"the promise is for models of kind {', '.join(promised.kinds)}, of which no others can be trained here; "
            "name the files of such models: --models FILE, or models=..."
        )
    return made


def _named(table: pd.DataFrame, counterfactuals: pd.DataFrame) -> pd.DataFrame:
    """The rows that a counterfactual names; all of them if none is, for the reader of both to complain."""
    named = table[table.index.isin(counterfactuals.index)]
    return named if len(named) else table
