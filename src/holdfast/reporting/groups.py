"""Who bears the broken advice, and at what cost: the advice of groups of people beside one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from holdfast.auditing.audit import Audit
from holdfast.auditing.intervals import clopper_pearson, rate_interval
from holdfast.explaining.advice import Advice
from holdfast.explaining.person import ALREADY, GIVEN, in_words
from holdfast.utils.messages import did_you_mean, some

FEWEST_PEOPLE = 20  # people of a group that is shown: of fewer, a rate says little and may point at single persons
MOST_BANDS = 4  # that the numbers of a column are sorted into, or fewer, so that each has people enough
MOST_VALUES = 8  # different numbers that are groups by themselves
UNKNOWN = "not known"
Limits = tuple[float, float, float]  # a rate, and its 95 % limits


@dataclass(frozen=True)
class Group:
    """The advice of one group. A rate has its 95 % limits; None where there is nothing to count."""

    name: str
    people: int
    refused: int  # who lack the class that they want
    refusal: Limits  # share of the people
    planned: int  # of these, who have a plan
    plans: int  # that they have together
    served: Limits | None  # share of the refused who have a plan
    cost: float | None  # median of their cheapest plans
    invalidated: Limits | None  # share of pairs of a plan and an audit model
    beyond: Limits | None  # by how much that exceeds the share of everybody else


@dataclass(frozen=True, eq=False)
class Grouping:
    """The people by one column."""

    column: str
    groups: tuple[Group, ...]
    hidden: int  # groups of fewer than FEWEST_PEOPLE people, which are not shown
    hidden_people: int
    member: NDArray[np.int64]  # (n,) the number of each person's group among those shown; -1 for the others


def check_groups(columns: Any, people: pd.DataFrame) -> tuple[str, ...]:
    """The columns to compare people by; raises where the people have no such column."""
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise TypeError(f"groups is {columns!r}; give a list of columns of the people, such as ['sex', 'age']")
    named = tuple(dict.fromkeys(columns))
    for name in named:
        if name not in people.columns and name != people.index.name:
            raise ValueError(
                f"the people have no column {name!r} to be grouped by{did_you_mean(name, people.columns)}; they have "
                f"{some(people.columns, 12)}"
            )
    return named


def groupings(advice: Advice, columns: Sequence[str]) -> list[Grouping]:
    return [_grouping(advice, column) for column in check_groups(columns, advice.people)]


def _grouping(advice: Advice, column: str) -> Grouping:
    names = _named(advice.people[column] if column in advice.people else advice.people.index.to_series())
    counts = names.value_counts(sort=False)
    shown = [name for name in dict.fromkeys(names.cat.categories) if counts.get(name, 0) >= FEWEST_PEOPLE]
    member = pd.Index(shown).get_indexer_for(names.to_numpy(dtype=object)).astype(np.int64)
    groups = tuple(_group(advice, str(name), member == number) for number, name in enumerate(shown))
    hidden = [count for count in counts if 0 < count < FEWEST_PEOPLE]
    return Grouping(str(column), groups, len(hidden), int(sum(hidden)), member)


def _named(values: pd.Series[Any]) -> pd.Series[Any]:
    """Each person's group: their level, or the band that their number lies in, in order; the last who has none."""
    number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if number and values.nunique() > MOST_VALUES:
        names = _bands(values.astype(float))
        return names.cat.add_categories([UNKNOWN]).fillna(UNKNOWN)
    known = sorted(values.dropna().unique(), key=None if number else str)
    order = dict.fromkeys([*map(in_words, known), UNKNOWN])
    return pd.Series(pd.Categorical(list(map(in_words, values)), categories=list(order)), index=values.index)


def _bands(values: pd.Series[float]) -> pd.Series[Any]:
    """Bands of about as many people each, called by the least and the greatest number in them."""
    bands = min(MOST_BANDS, max(2, int(values.notna().sum()) // FEWEST_PEOPLE))
    codes = pd.qcut(values, bands, labels=False, duplicates="drop")
    ends = values.groupby(codes).agg(["min", "max"])
    called = {code: f"{in_words(low)} to {in_words(high)}" for code, low, high in ends.itertuples(name=None)}
    return pd.Series(pd.Categorical(codes.map(called), categories=list(called.values())), index=values.index)


def _group(advice: Advice, name: str, members: NDArray[np.bool_]) -> Group:
    status = advice.status.to_numpy()[members]
    refused, planned = int((status != ALREADY).sum()), int((status == GIVEN).sum())
    answers = advice.given
    their_plans = members[answers.place]  # (m,) which plans are theirs
    first = their_plans & (answers.plan == 1)
    costs = advice.counterfactuals.cost(advice.norm).double().cpu().numpy()[first]
    inside, outside = (_part(advice.audit, rows) for rows in (their_plans, ~their_plans))
    return Group(
        name,
        int(members.sum()),
        refused,
        _share(refused, int(members.sum())) or (0.0, 0.0, 1.0),
        planned,
        int(their_plans.sum()),
        _share(planned, refused),
        float(np.median(costs)) if len(costs) else None,
        None if inside is None else (inside.rate, *inside.interval()),
        None if inside is None or outside is None else _difference(inside, outside),
    )


def _part(audit: Audit | None, rows: NDArray[np.bool_]) -> Audit | None:
    return None if audit is None or not rows.any() else audit.of_rows(torch.from_numpy(rows))


def _share(part: int, whole: int) -> Limits | None:
    if not whole:
        return None
    low, high = clopper_pearson(np.array([part]), whole)
    return part / whole, float(low[0]), float(high[0])


def _difference(group: Audit, other: Audit) -> Limits:
    """By how much the group's rate exceeds the other's. Models are paired, as in `Comparison.differences`: a model that
    is hard on everybody is hard on both."""
    difference = group.per_member - other.per_member
    low, high = (2 * limit - 1 for limit in rate_interval((difference + 1) / 2, group.kinds))
    return float(difference.mean()), low, high
