"""What a letter is about: one person's advice, from `Advice` or from the folder that `holdfast explain` has written."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.explaining.advice_files import ADVICE, PEOPLE, SCHEMA, SUMMARY, read_people
from holdfast.explaining.person import ALREADY, PersonAdvice, PersonPlan
from holdfast.tabular.schema import Schema
from holdfast.utils.digests import file_digest
from holdfast.utils.files import as_path
from holdfast.utils.messages import did_you_mean, some
from holdfast.utils.sealing import unsealed

MOST_PLANS = 3  # a letter is one page


@dataclass(frozen=True)
class Case:
    """One person's advice as a letter tells it. Plans that do not hold as was asked are never told."""

    advice: PersonAdvice
    schema: Schema
    audited: bool = True  # False: what the retrained models say tells nothing, and is not told
    sample: bool = False  # the model is one that decides about nobody

    @property
    def plans(self) -> tuple[PersonPlan, ...]:
        return self.advice.plans[:MOST_PLANS]


def case_of(advice: PersonAdvice, schema: Schema, decided: Mapping[str, Any]) -> Case:
    """Raise where there is nothing to write, or where it must not be written; else what is written about."""
    if advice.status == ALREADY:
        raise ValueError(
            f"{advice.person!r} has the class that was wanted already, so there is nothing to change and no letter to "
            "write"
        )
    if decided.get("constraints") == "off":
        raise ValueError(
            "this advice was made without the schema's constraints, so it may tell people to change what nobody can; "
            "make it again with them (constrained=True, or without --unconstrained)"
        )
    if decided.get("schema") == "read off the table":
        warnings.warn(
            "the schema was read off the table, so the letter may tell people to change what nobody can change; write "
            "a schema first: docs/howto/schema.md",
            stacklevel=3,
        )
    return Case(advice, schema, audited=not decided.get("warnings"), sample=bool(decided.get("model_is_ours")))


@dataclass(frozen=True, eq=False)
class AdviceFolder:
    """What the files of advice say of each person, by the text of their label."""

    folder: Path
    schema: Schema
    summary: Mapping[str, Any]
    people: Mapping[str, PersonAdvice]

    @classmethod
    def read(cls, folder: str | Path, schema: str | Path | None = None) -> AdviceFolder:
        """The files, if they are those that the summary describes. The schema is that of the folder, unless another
        is named."""
        folder = as_path(folder, "the folder of advice")
        if not (folder / SUMMARY).is_file():
            raise ValueError(f"there is no {SUMMARY} in {folder}; name a folder that holdfast explain has written")
        summary = unsealed(ADVICE, (folder / SUMMARY).read_bytes(), str(folder / SUMMARY))
        people = read_people(_unchanged(folder / PEOPLE, summary))
        instead = ", or name a schema with other phrases: --schema FILE"
        known = Schema.load(_unchanged(folder / SCHEMA, summary, instead) if schema is None else schema)
        for change in (change for person in people.values() for plan in person.plans for change in plan.changes):
            if change.feature not in known.names:
                raise ValueError(
                    f"the schema has no feature {change.feature!r}, which {folder / PEOPLE} has; name the schema that "
                    "the advice was made with: --schema FILE"
                )
        return cls(folder, known, summary, people)

    @property
    def with_a_plan(self) -> list[str]:
        return [label for label, person in self.people.items() if person.plans]

    def case(self, label: str) -> Case:
        if label not in self.people:
            raise ValueError(
                f"nobody in {self.folder} is labelled {label!r}{did_you_mean(label, self.people)}; the people are "
                f"{some(self.people)}"
            )
        return case_of(self.people[label], self.schema, self.summary["decided"])


def _unchanged(path: Path, summary: Mapping[str, Any], instead: str = "") -> Path:
    if not path.is_file() or file_digest(path) != summary["files"].get(path.name):
        raise ValueError(
            f"{path} is not the file that {path.parent / SUMMARY} describes (missing, or changed later); make the "
            f"advice again: holdfast explain{instead}"
        )
    return path
