"""What one person is told, in words and in their own units."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

from holdfast.tabular.feature import Level
from holdfast.tabular.relations import Determines, Follows, Relation
from holdfast.tabular.wishes import Wish
from holdfast.utils.messages import plain

GIVEN, NOT_DURABLE, ALREADY, NOTHING = "plan", "not durable", "has the class", "nothing found"
STATUS = (GIVEN, NOT_DURABLE, ALREADY, NOTHING)


@dataclass(frozen=True)
class Change:
    """One feature that becomes another value."""

    feature: str
    before: Level
    after: Level
    follows: bool = False  # moves with another change, and is nothing to do by itself
    cost: float | None = None  # what it adds to the plan's cost; None where a cost is no sum (l2)

    def __str__(self) -> str:
        words = f"{self.feature.replace('_', ' ')}: {in_words(self.before)} → {in_words(self.after)}"
        return f"{words} (follows)" if self.follows else words


@dataclass(frozen=True)
class PersonPlan:
    """One way for one person, and how many of the audit models accept it."""

    plan: int
    changes: tuple[Change, ...]
    cost: float
    held: int | None = None  # None where there are no retrained models to ask
    members: int | None = None
    low: float | None = None  # 95 % limits of the share that accept it
    high: float | None = None

    @property
    def holding(self) -> str:
        """Whether models accept the plan, as a sentence."""
        if not self.members:
            return "The deployed model accepts. Whether a retrained model does is not known."
        do = "does" if self.held == 1 else "do"
        return (
            f"The deployed model accepts, and so {do} {self.held} of {self.members} audit models "
            f"(95 % interval {self.low:.1%} to {self.high:.1%})."
        )

    def lines(self) -> Iterator[str]:
        yield f"  Plan {self.plan}, at a cost of {self.cost:.3g}:"
        yield from (f"    {change}" for change in self.changes)
        yield f"    {self.holding}"


@dataclass(frozen=True, repr=False)
class PersonAdvice:
    """All that one person is told. Printing it shows the sentences."""

    person: Hashable
    now: str  # the class that the deployed model gives them
    wanted: str
    plans: tuple[PersonPlan, ...]
    not_durable: tuple[PersonPlan, ...] = ()  # the best there is where no plan holds as was asked
    why_not: str | None = None  # where there is no plan
    wish: Wish | None = None  # what they asked for themselves

    @property
    def status(self) -> str:
        """What became of the person: one of STATUS."""
        if self.plans:
            return GIVEN
        if self.not_durable:
            return NOT_DURABLE
        return ALREADY if self.now == self.wanted else NOTHING

    def __str__(self) -> str:
        lines = [f"{self.person}: the deployed model says '{self.now}'; wanted is '{self.wanted}'."]
        if self.wish is not None:
            lines.append(f"  Their wish: {self.wish}.")
        lines += [line for plan in self.plans for line in plan.lines()]
        if self.why_not is not None:
            lines.append(f"  No plan: {self.why_not}.")
        if self.not_durable:
            lines.append("  Not durable, the best that was found:")
            lines += [f"  {line}" for plan in self.not_durable for line in plan.lines()]
        return "\n".join(lines)

    __repr__ = __str__


def changes_of(
    changed: Iterable[tuple[str, Any, Any]],
    relations: tuple[Relation, ...],
    costs: Iterable[float | None] = repeat(None),
) -> tuple[Change, ...]:
    """Name, before and after of each feature, with those that only follow marked."""
    changed = list(changed)
    following = _following({name for name, _, _ in changed}, relations)
    return tuple(
        Change(name, before, after, name in following, cost)
        for (name, before, after), cost in zip(changed, costs, strict=False)
    )


def _following(changed: set[str], relations: tuple[Relation, ...]) -> set[str]:
    """Which of the changes others bring with them: what follows, and what is fixed by something that changes."""
    leaders = {relation.column: {relation.of} for relation in relations if isinstance(relation, Follows)}
    for relation in relations:
        if isinstance(relation, Determines):
            # Of two columns that fix each other, the second follows.
            others = {name for name in relation.by if relation.column not in leaders.get(name, ())}
            leaders.setdefault(relation.column, set()).update(others)
    return {column for column, others in leaders.items() if others & changed}


def in_words(value: Any) -> str:
    value = plain(value)
    if value is None or value != value:
        return "not known"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"
