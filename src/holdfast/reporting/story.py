"""What one person is told, in words and in their own units."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import torch

from holdfast.auditing.audit import Audit
from holdfast.explaining.person import PersonPlan, changes_of
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Level


@dataclass(frozen=True)
class MethodAdvice:
    """What one method tells a person to do, beside what it tells people like this one."""

    method: str
    plan: PersonPlan  # its cost is l1, in the encoded space
    usual: float  # share of the networks that honour the method's advice to people like this one, on average
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
    frame = counterfactuals[torch.tensor([row])].changes(encoding).drop(columns="row")
    changes = changes_of(frame.itertuples(index=False, name=None), encoding.schema.relations)
    held = int((audit.predictions[:, row] == counterfactuals.target[row]).sum())
    low, high = (1 - float(limit[row]) for limit in reversed(audit.per_row_interval()))
    cost = counterfactuals.cost(1).double()
    plan = PersonPlan(1, changes, float(cost[row]), held, len(audit.kinds), low, high)
    return MethodAdvice(method, plan, 1 - float(audit.per_row[alike].mean()), float(cost[alike].mean()))
