"""The cases in a folder that `Advice.save` or `holdfast explain` has written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast.explaining.advice import ALREADY
from holdfast.explaining.advice_files import SCHEMA
from holdfast.explaining.advice_folder import ADVICE, PLANS, SUMMARY
from holdfast.explaining.frames import as_text
from holdfast.explaining.person import PersonPlan, changes_of
from holdfast.reporting.letters.cases import Case, case
from holdfast.tabular.feature import Feature
from holdfast.tabular.reading import read_table
from holdfast.tabular.schema import Schema
from holdfast.utils.digests import file_digest
from holdfast.utils.files import as_path
from holdfast.utils.messages import did_you_mean, plain, some
from holdfast.utils.sealing import unsealed

CHANGES, NOT_DURABLE = "changes.csv", "not_durable.csv"
# The first columns of advice.csv. They are known by their places: one that a feature is called like has another name.
ID, PLAN, FOUND, COST, HOLD, LOW, HIGH, WHY_NOT, STATUS = range(9)


@dataclass(frozen=True, eq=False)
class AdviceFolder:
    """What the files of advice say of each person."""

    folder: Path
    schema: Schema
    summary: Mapping[str, Any]
    plans: pd.DataFrame  # advice.csv
    changes: pd.DataFrame
    not_durable: pd.DataFrame

    @classmethod
    def read(cls, folder: str | Path, schema: str | Path | None = None) -> AdviceFolder:
        """The files, if they are those that the summary describes. The schema is that of the folder, unless another
        is named."""
        folder = as_path(folder, "the folder of advice")
        if not (folder / SUMMARY).is_file():
            raise ValueError(f"there is no {SUMMARY} in {folder}; name a folder that holdfast explain has written")
        summary = unsealed(ADVICE, (folder / SUMMARY).read_bytes(), str(folder / SUMMARY))
        tables = [read_table(_unchanged(folder / name, summary)) for name in (PLANS, CHANGES, NOT_DURABLE)]
        found = cls(folder, _schema(folder, schema, summary), summary, *tables)
        unknown = [name for name in found.changes.iloc[:, 2].map(str) if name not in found.schema.names]
        if unknown:
            raise ValueError(
                f"the schema has no feature {unknown[0]!r}, which {folder / CHANGES} has; name the schema that the "
                "advice was made with: --schema FILE"
            )
        return found

    @cached_property
    def labels(self) -> dict[str, Any]:
        """Who the advice is for, in their order: the label as text, and as it is."""
        return {as_text(label): plain(label) for label in self.plans.iloc[:, ID]}

    @cached_property
    def with_a_plan(self) -> list[str]:
        return [person for person, rows in self._rows.items() if rows[0][PLAN] > 0]

    def case(self, person: str) -> Case:
        """The case of one person, by the label of their row."""
        if person not in self.labels:
            raise ValueError(
                f"nobody in {self.folder} is labelled {person!r}{did_you_mean(person, self.labels)}; the people are "
                f"{some(self.labels)}"
            )
        rows = self._rows[person]
        return case(
            self.labels[person],
            tuple(self._plan(person, row) for row in rows if row[PLAN] > 0),
            self.schema,
            self.summary["decided"],
            already=rows[0][STATUS] == ALREADY,
            not_durable=person in self._not_durable,
        )

    def _plan(self, person: str, row: tuple[Any, ...]) -> PersonPlan:
        plan = int(row[PLAN])
        told = [
            (name, _value(now, self.schema[name]), _value(then, self.schema[name]))
            for name, now, then in self._changes_by_plan.get((person, plan), ())
        ]
        changes = changes_of(told, self.schema.relations)
        members = sum(int(kind["models"]) for kind in self.summary["audited"])
        if not members or row[HOLD] != row[HOLD]:
            return PersonPlan(plan, changes, float(row[COST]))
        held = round(float(row[HOLD]) * members)
        return PersonPlan(plan, changes, float(row[COST]), held, members, float(row[LOW]), float(row[HIGH]))

    @cached_property
    def _rows(self) -> dict[str, list[tuple[Any, ...]]]:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for row in self.plans.itertuples(index=False, name=None):
            found.setdefault(as_text(row[ID]), []).append(row)
        return found

    @cached_property
    def _not_durable(self) -> set[str]:
        return set(map(as_text, self.not_durable.iloc[:, ID]))

    @cached_property
    def _changes_by_plan(self) -> dict[tuple[str, int], list[tuple[str, Any, Any]]]:
        found: dict[tuple[str, int], list[tuple[str, Any, Any]]] = {}
        for label, plan, name, now, then in self.changes.itertuples(index=False, name=None):
            found.setdefault((as_text(label), int(plan)), []).append((str(name), now, then))
        return found


def _unchanged(path: Path, summary: Mapping[str, Any]) -> Path:
    known = summary["files"].get(path.name)
    if not path.is_file() or (known and file_digest(path) != known):
        raise ValueError(
            f"{path} is not the file that {path.parent / SUMMARY} describes (missing, or changed later); make the "
            "advice again: holdfast explain"
        )
    return path


def _schema(folder: Path, named: str | Path | None, summary: Mapping[str, Any]) -> Schema:
    if named is not None:
        return Schema.load(named)
    if not (folder / SCHEMA).is_file():
        raise ValueError(
            f"there is no {SCHEMA} in {folder}; name the schema that the advice was made with: --schema FILE"
        )
    try:
        return Schema.load(_unchanged(folder / SCHEMA, summary))
    except ValueError as error:
        raise ValueError(f"{error}; or name a schema with other phrases: --schema FILE") from error


def _value(cell: Any, feature: Feature) -> Any:
    """A cell of a file as the value of its feature: the column of a file has several features' values, as text."""
    cell = plain(cell)
    if cell is None or cell != cell:
        return None
    if feature.is_numeric:
        return float(cell)
    return next((level for level in feature.values if as_text(level) == as_text(cell)), cell)
