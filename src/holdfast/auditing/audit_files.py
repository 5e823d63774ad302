"""Counterfactuals and models from files, whoever made them: read, judged, audited. What `holdfast audit` runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast import datasets
from holdfast.auditing.audit import Audit, audit
from holdfast.auditing.storage import save_audit
from holdfast.datasets.prepared import prepare
from holdfast.external.dice import from_dice
from holdfast.external.judging import ImportedCounterfactuals
from holdfast.external.tables import from_tables
from holdfast.families.family import Family
from holdfast.families.model_files import Models
from holdfast.families.recipe import PAPER_RECIPES, Recipe, Retraining
from holdfast.tabular.encoding import Encoding, Scaling
from holdfast.tabular.feature import Level
from holdfast.tabular.identifying import matched, row_labels
from holdfast.tabular.reading import read_table
from holdfast.tabular.schema import Schema
from holdfast.utils.files import all_or_none, no_empty_folders, write_text
from holdfast.utils.messages import plain
from holdfast.utils.spreadsheets import as_csv

# Columns of a table of advice that are no features; one that a feature is called like has an underscore more.
NO_FEATURES = ("promised", "plan", "cost", "cost_l1", "cost_l2", "hold", "low", "high", "why_not", "status")


@dataclass(frozen=True)
class Excluded:
    """Which retrained models took part in advice, so that no audit of it may ask them; and the rate promised of it."""

    promised_rate: float | None  # None where advice was given without a promise
    kinds: tuple[str, ...]
    taken: dict[str, int]  # kind of change -> trained members, from the first on, that rehearsed or selected
    members: frozenset[str]  # the fingerprints of all members that did

    def without_extra(self, plans: pd.DataFrame, features: tuple[str, ...]) -> pd.DataFrame:
        """The table without what was written beside the features."""
        return plans.drop(
            columns=[name for name in plans if str(name).rstrip("_") in NO_FEATURES and name not in features]
        )


@dataclass(frozen=True, eq=False, repr=False)
class FileAudit:
    """Counterfactuals from a file, what is wrong with them, and how well they hold."""

    imported: ImportedCounterfactuals
    audit: Audit
    excluded: Excluded | None = None  # where the counterfactuals are advice of holdfast
    model: str = ""  # where the deployed model comes from
    retrained: str = ""  # and the retrained ones
    matched: str = ""  # how rows of the tables were matched
    constrained: bool = True

    @property
    def promised_rate(self) -> float | None:
        return None if self.excluded is None else self.excluded.promised_rate

    @property
    def problems(self) -> pd.DataFrame:
        """What is wrong with the counterfactuals: row (its label; None for the whole table), problem, detail."""
        return self.imported.problems

    def __repr__(self) -> str:
        told = [f"{self.imported}", *([self.matched] if self.matched else []), f"{self.audit}"]
        return "\n".join(told)

    def table(self) -> pd.DataFrame:
        """One row per counterfactual, with the label of the row it is for, and the rate promised where there is one."""
        table = self.audit.table().set_index(self.imported.labels.rename("row"))
        return table if self.promised_rate is None else table.assign(promised_rate=self.promised_rate)

    def summary(self) -> dict[str, Any]:
        """The figures of the audit and what they are about, as JSON has them."""
        answer, problems = self.imported.counterfactuals, self.imported.problems["problem"].value_counts()
        return {
            "model": self.model,
            "retrained": self.retrained,
            "matched": self.matched,
            "constrained": self.constrained,
            "counterfactuals": len(answer),
            "valid": int(answer.found.sum()),
            "problems": {str(problem): int(count) for problem, count in problems.items()},
            "changes": [
                {name: _as_json(value) for name, value in row.items()}
                for row in self.audit.summary().to_dict("records")
            ],
            "promised_rate": self.promised_rate,
        }

    def save(self, folder: str | Path) -> list[Path]:
        """The audit itself, one row per counterfactual, every problem, and the summary: all of them, or none."""
        folder = Path(folder)
        texts = {
            "rows.csv": as_csv(self.table()),
            "problems.csv": as_csv(self.imported.problems, index=False),
            "summary.json": json.dumps(self.summary(), indent=1, allow_nan=False) + "\n",
        }
        with no_empty_folders(folder / "audit"), all_or_none(folder) as parts:
            for name, text in texts.items():
                write_text(parts / name, text)
            saved = save_audit(self.audit, folder / "audit")  # itself whole or not at all
        return [saved, *(folder / name for name in texts)]


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

    A file's schema is read from ``schema``, or off the table, whose ``label`` must then be named. The column ``index``
    names rows, and is no feature unless the schema says so.
    """
    own = _dataset(data)
    return own or _encoded(*_described(data, schema, label), scaling, index)


@dataclass(frozen=True, eq=False)
class Tables:
    """What a command is given: the data, the people who ask, and their counterfactuals, by the same labels."""

    data: Data
    people: pd.DataFrame | None  # None for rows of the data
    points: pd.DataFrame | str | None  # None where there are none yet; a text is DiCE's
    matched: str  # how rows are matched, in a sentence


def read_tables(
    data: str | Path,
    *,
    people: str | Path | None = None,
    points: str | Path | None = None,
    schema: str | Path | None = None,
    label: str | None = None,
    scaling: Scaling = "standard",
    index: str | None = None,
) -> Tables:
    """The tables of a command. Their rows are matched by the column ``index``, or by the one that they share.

    Rows whose labels the other table does not know are an error: matched by their numbers, one person's counterfactual
    would be judged as another's.
    """
    own = _dataset(data)
    table, described = (own.table.rename_axis(index), own.encoding.schema) if own else _described(data, schema, label)
    asked = None if people is None else read_table(people)
    found = None if points is None else _read_points(Path(points))
    features = {described} if isinstance(described, str) else {*described.names, described.label}
    key, told = index, ""
    if isinstance(found, pd.DataFrame):
        names = ("data" if asked is None else "people", "counterfactuals")
        whose = named_as_in_advice(table if asked is None else asked, found)
        whose, found, told = matched(whose, found, features, index, names, table)
        asked, key = None if asked is None else whose, _name_of(whose)
    elif asked is not None:
        asked, told = row_labels(asked, features, index, "people", table)
        key = _name_of(asked)
    return Tables(own or _encoded(table, described, scaling, key), asked, found, told)


def named_as_in_advice(people: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """The people with their index called id, as `Advice.wide` calls an index without a name, where the points do so."""
    nameless = "id" in points and "id" not in people and people.index.name is None
    return people.rename_axis("id") if nameless and points["id"].isin(people.index).all() else people


def _dataset(name: str | Path) -> Data | None:
    """One of ours, or None for a file."""
    if str(name) in datasets.DATASETS:
        own = prepare(str(name))
        return Data(own.table, own.train, own.encoding, PAPER_RECIPES.get(own.card.name), own.test)
    if Path(name).is_dir():
        raise ValueError(f"{name} is a folder; name the .csv or .parquet file in it")
    if not Path(name).suffix:
        raise ValueError(
            f"no dataset is called '{name}' (there are {', '.join(datasets.DATASETS)}); for your own table, name "
            "its .csv or .parquet file"
        )
    return None


def _described(data: str | Path, schema: str | Path | None, label: str | None) -> tuple[pd.DataFrame, Schema | str]:
    """The table of a file with its schema, or the name of the label, with which a schema can be inferred."""
    table = read_table(data)
    if schema is not None:
        return table, Schema.load(schema)
    if label is None:
        raise ValueError(f"{data} needs a label: name its column (--label NAME), or give a schema file (--schema FILE)")
    return table, label


def _encoded(table: pd.DataFrame, described: Schema | str, scaling: Scaling, key: str | None) -> Data:
    """The table by the labels of its rows, if it has some: what names a row never becomes a feature unsaid."""
    if key in table and (isinstance(described, str) or key not in described.names):
        table = table.set_index(key)
    schema = Schema.infer(table, described) if isinstance(described, str) else described
    return Data(table, table, Encoding.fit(table, schema, scaling), None)


def _read_points(path: Path) -> pd.DataFrame | str:
    """A table, or the text that DiCE wrote."""
    return path.read_text(encoding="utf-8") if path.suffix == ".json" else read_table(path)


def _name_of(table: pd.DataFrame) -> str | None:
    return None if table.index.name is None else str(table.index.name)


def audit_files(
    data: Data,
    counterfactuals: pd.DataFrame | str,
    models: Models,
    *,
    people: pd.DataFrame | None = None,
    changes: Sequence[Retraining] = (),
    want: Any = None,
    constrained: bool = True,
    excluded: Excluded | None = None,
    matched: str = "",
    progress: bool = False,
) -> FileAudit:
    """Audit counterfactuals from any source, a table or the text of DiCE's ``to_json()``, for ``people`` who asked.

    ``people`` left out are those rows of the data that a counterfactual names: then a search that passes over hard rows
    looks better than it is. ``models`` are those of `find_models`; where the retrained ones are not there yet, there is
    one for each of the ``changes``. ``constrained`` counts points as found only if they keep the schema's constraints.
    Models that took part in advice are ``excluded`` from its audit. ``matched`` is how rows were matched.
    """
    if excluded is not None and isinstance(counterfactuals, pd.DataFrame):
        counterfactuals = excluded.without_extra(counterfactuals, data.encoding.schema.names)
    if people is None:
        if isinstance(counterfactuals, str):
            raise ValueError(
                "DiCE's JSON does not say whom it is for; give the table of people that DiCE was asked about: "
                "--people FILE, or people=..."
            )
        people = _named(data.table, counterfactuals)
    space = data.encoding.space if constrained else None
    if isinstance(counterfactuals, str):
        imported = from_dice(people, counterfactuals, data.encoding, models.deployed, target=want, space=space)
    else:
        imported = from_tables(people, counterfactuals, data.encoding, models.deployed, target=want, space=space)
    family, retrained = models.retrained(changes, progress=progress), models.family_name
    answer = imported.counterfactuals
    if excluded is not None:
        answer = replace(answer, seen=answer.seen | excluded.members)
        asked = len(family)
        family = _audit_models(family, excluded)
        if len(family) < asked:
            retrained += f", without the {asked - len(family)} that chose the counterfactuals"
    return FileAudit(imported, audit(answer, family), excluded, models.name, retrained, matched, constrained)


def _audit_models(family: Family, excluded: Excluded) -> Family:
    """The members that took no part in the advice: whoever keeps all retrained models in one folder names them all."""
    others = [number for number, name in enumerate(family.fingerprints) if name not in excluded.members]
    if not others:
        raise ValueError(
            f"all {len(family)} retrained models took part in the counterfactuals, and a model agrees with itself; "
            "name other models (--retrained FILE), or retrain more (--retrain KIND:COUNT)"
        )
    return family.chosen(others)


def _named(table: pd.DataFrame, counterfactuals: pd.DataFrame) -> pd.DataFrame:
    """The rows that a counterfactual names; all of them if none is, for the reader of both to complain."""
    named = table[table.index.isin(counterfactuals.index)]
    return named if len(named) else table


def _as_json(value: Any) -> Any:
    """A cell of a table: NaN, which JSON does not have, is null."""
    value = plain(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
