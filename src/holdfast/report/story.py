"""What one person is told, in words and in their own units."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from holdfast.auditing.audit import Audit
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Level


@dataclass(frozen=True)
class Change:
    feature: str
    before: Level
    after: Level

    def __str__(self) -> str:
        return f"{self.feature.replace('_', ' ')}: {_text(self.before)} → {_text(self.after)}"


@dataclass(frozen=True)
class Advice:
    """What one method tells a person to do, and how many retrained networks would honour it."""

    method: str
    changes: tuple[Change, ...]
    held: int
    members: int
    usual: float  # share of the networks that honour the method's advice to people like this one, on average


@dataclass(frozen=True)
class Story:
    """One person, and what each method tells them."""

    person: Hashable  # the row's name in the table
    wanted: Level
    advice: tuple[Advice, ...]
    people: int  # how many like this one there are


def tell(audits: dict[str, Audit], row: int, alike: list[int], person: Hashable, encoding: Encoding) -> Story:
    """The story of one row, one piece of advice for each method's audit, beside that of the rows alike."""
    first = next(iter(audits.values())).counterfactuals
    advice = tuple(_advice(method, audit, row, alike, encoding) for method, audit in audits.items())
    return Story(person, encoding.schema.classes[int(first.target[row])], advice, len(alike))


def _advice(method: str, audit: Audit, row: int, alike: list[int], encoding: Encoding) -> Advice:
    counterfactuals = audit.counterfactuals
    if not counterfactuals.found[row]:
        raise ValueError(f"method '{method}' found nothing for row {row}; there is no story to tell")
    told = counterfactuals.changes(encoding)
    changes = told[told["row"] == row].drop(columns="row").itertuples(index=False, name=None)
    held = int((audit.predictions[:, row] == counterfactuals.target[row]).sum())
    usual = 1 - float(audit.per_row[alike].mean())
    return Advice(method, tuple(Change(*change) for change in changes), held, len(audit.kinds), usual)


def _text(value: Level) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
