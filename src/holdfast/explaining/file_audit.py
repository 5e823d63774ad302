"""Counterfactuals in a table, whoever made them: judged, and audited. What `holdfast audit` runs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from holdfast.auditing.audit import Audit, audit
from holdfast.auditing.storage import save_audit
from holdfast.explaining.wanted import wanted
from holdfast.external.dice import from_dice
from holdfast.external.judging import ImportedCounterfactuals
from holdfast.external.tables import from_tables
from holdfast.families.family import Family
from holdfast.utils.files import all_or_none, no_empty_folders, write_text
from holdfast.utils.sealing import without_nan
from holdfast.utils.spreadsheets import as_csv

if TYPE_CHECKING:
    from holdfast.explaining.explainer import Explainer

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
        lines = [f"{self.imported}", *([self.matched] if self.matched else []), f"{self.audit}"]
        return "\n".join(lines)

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
            "changes": without_nan(self.audit.summary().to_dict("records")),
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


def audit_points(
    explainer: Explainer,
    people: pd.DataFrame,
    points: pd.DataFrame | str,
    *,
    want: Any = None,
    matched: str = "",
    excluded: Excluded | None = None,
    audit_models_only: bool = False,
) -> FileAudit:
    """Audit counterfactuals from any source, a table or the text of DiCE's ``to_json()``, for ``people`` who asked.

    Where no class is wanted, any will do but the person's own. All retrained models are asked but those ``excluded``,
    or the audit models alone. ``matched`` is how rows were matched.
    """
    schema, encoding = explainer.encoding.schema, explainer.encoding
    if excluded is not None and isinstance(points, pd.DataFrame):
        points = excluded.without_extra(points, schema.names)
    want = explainer.want if want is None else want
    goal = None if want is None else wanted(want, schema, people.index)
    model = explainer.deployed if goal is None else goal.model(explainer.deployed)
    target = None if goal is None else goal.targets(model, encoding.encode(people), people.index)
    space = encoding.space if explainer.constrained else None
    if isinstance(points, str):
        imported = from_dice(people, points, encoding, model, target=target, space=space)
    else:
        imported = from_tables(people, points, encoding, model, target=target, space=space)
    answer = imported.counterfactuals
    # From here on it takes long: whatever is wrong with the tables is told by now.
    family = explainer.roles.audit if audit_models_only else explainer.family
    retrained = explainer.retrained_from(family)
    if excluded is not None:
        answer, all_members = replace(answer, seen=answer.seen | excluded.members), len(family)
        family = _audit_models(family, excluded)
        if len(family) < all_members:
            retrained += f", without the {all_members - len(family)} that chose the counterfactuals"
    result = audit(answer, family if goal is None else goal.family(family))
    return FileAudit(imported, result, excluded, explainer.named, retrained, matched, explainer.constrained)


def _audit_models(family: Family, excluded: Excluded) -> Family:
    """The members that took no part in the advice: whoever keeps all retrained models in one folder names them all."""
    others = [number for number, name in enumerate(family.fingerprints) if name not in excluded.members]
    if not others:
        raise ValueError(
            f"all {len(family)} retrained models took part in the counterfactuals, and a model agrees with itself; "
            "name other models (--retrained FILE), or retrain more (--retrain KIND:COUNT)"
        )
    return family.chosen(others)


def rows_named(table: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """The rows that a counterfactual names; all of them if none is, for the reader of both to complain. A search that
    passes over hard rows looks better so than it is."""
    named = table.index.isin(points.index)
    return table[named] if named.any() else table


def named_as_in_advice(people: pd.DataFrame, points: pd.DataFrame) -> pd.DataFrame:
    """The people with their index called id, as `Advice.wide` calls an index without a name, where the points do so."""
    nameless = "id" in points and "id" not in people and people.index.name is None
    return people.rename_axis("id") if nameless and points["id"].isin(people.index).all() else people
