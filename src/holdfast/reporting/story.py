"""What one person is told, in words and in their own units."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import torch

from holdfast.auditing.audit import Audit
from holdfast.explaining.person import Change, changes_of
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Level


@dataclass(frozen=True)
class MethodAdvice:
    """What one method tells a person to do, and how many retrained networks would honour it."""

    method: str
    changes: tuple[Change, ...]
    held: int
    members: int
    usual: float  # share of the networks that honour the method's advice to people like this one, on average
    cost: float  # l1, in the encoded space
    usual_cost: float  # of the method's advice to people like this one, on average


@dataclass(frozen=True)
class Story:
    """One person, and what each method tells them."""

    person: Hashable  # the row's name in the table
    wanted: Level
    advice: tuple[MethodAdvice, ...]
    people: int  # how many like this one there are
    unlikeness: float | None = None  # to people of the wanted class, as the person is; 1 is the limit of advice


def tell(audits: dict[str, Audit], row: int, alike: list[int], person: Hashable, encoding: Encoding) -> Story:
    """The story of one row, one piece of advice for each method's audit, beside that of the rows alike."""
    first = next(iter(audits.values())).counterfactuals
    advice = tuple(_advice(method, audit, row, alike, encoding) for method, audit in audits.items())
    unlikeness = None if first.unlikeness is None else float(first.unlikeness[row, 0])
    return Story(person, encoding.schema.classes[int(first.target[row])], advice, len(alike), unlikeness)


def _advice(method: str, audit: Audit, row: int, alike: list[int], encoding: Encoding) -> MethodAdvice:
    counterfactuals = audit.counterfactuals
    if not counterfactuals.found[row]:
        raise ValueError(f"method '{method}' found nothing for row {row}; there is no story to tell")
    table = counterfactuals[torch.tensor([row])].changes(encoding)
    changes = list(table.drop(columns="row").itertuples(index=False, name=None))
    held = int((audit.predictions[:, row] == counterfactuals.target[row]).sum())
    usual = 1 - float(audit.per_row[alike].mean())
    advised = changes_of(changes, encoding.schema.relations)
    cost = counterfactuals.cost(1)
    usual_cost = float(cost[alike].double().mean())
    return MethodAdvice(method, advised, held, len(audit.kinds), usual, float(cost[row]), usual_cost)
