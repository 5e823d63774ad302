"""Relations compiled to tensors: does a row keep them, and if not, how little has to change until it does.

Rows are values ``v`` (n, m), float64: one column for each feature that a relation names, a number as it is, a level as
its place among the feature's values. A missing value is NaN, and a relation with a missing value counts as holding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from holdfast.tabular.feature import Feature, Level
from holdfast.tabular.relations import (
    TOLERANCE,
    Between,
    Determines,
    Exclusive,
    Follows,
    Implies,
    Ordered,
    Relation,
    Sums,
)

EXACT = 1e-9  # of the largest number in a row: what rounding does to numbers that lie on a grid
CHOICES = 4  # of several ways to mend a rule, how many are tried where another rule refuses the first
PAIRS_AT_ONCE = 1 << 22  # pairs of a person and a row of a table that are compared at a time


@dataclass(frozen=True, eq=False)
class Limits:
    """Where every person may go, in the units of ``v``.

    A column may hold [lower, upper] on its grid, and what it holds at the origin; lower > upper: only that. Levels
    count from 0. A column that follows another is moved by that relation alone, within its bounds, though it is not
    movable.
    """

    lower: Tensor  # (n, m)
    upper: Tensor  # (n, m)
    movable: Tensor  # (n, m) bool
    step: Tensor  # (m,), 0: any value
    slack: Tensor  # (m,), by how much two numbers may differ and still be the same

    def of(self, rows: Tensor) -> Limits:
        """Those of some rows."""
        return Limits(self.lower[rows], self.upper[rows], self.movable[rows], self.step, self.slack)


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """One relation on ``v``. Each kind says how badly a row breaks it, and completes a row that does."""

    relation: Relation
    features: tuple[Feature, ...]  # those that the relation names
    places: tuple[int, ...]  # where they stand in v
    slack: float = 0.0  # by how much numbers that are not on a grid may differ, on top of what rounding does
    leads: ClassVar[int] = 0  # how many of the first columns the rule may change although they are not movable

    def holds(self, v: Tensor) -> Tensor:
        """(n,) bool."""
        x = v[:, self.places]
        return (self.breach(x) <= self.tolerance(x)) | x.sum(1).isnan()

    def acceptable(self, v: Tensor, origin: Tensor) -> Tensor:
        """(n,) bool: it holds, or it did not hold at the origin either and is no worse."""
        ok = self.holds(v)
        broken = torch.nonzero(~ok).flatten()
        if len(broken):
            x, start = v[broken], origin[broken]
            ok[broken] = ~self.holds(start) & self.no_worse(x[:, self.places], start[:, self.places])
        return ok

    @property
    def choices(self) -> int:
        """In how many ways a row can be mended, at most."""
        return 1

    def mended(self, v: Tensor, origin: Tensor, kept: Tensor, limits: Limits, choice: int) -> Tensor:
        """The rows, of which none is acceptable, made acceptable where that is possible; all others as they are.

        Changes no column that is kept (n, m), and none that may not move. Returns ``v`` itself if nothing changes.
        A choice above 0 asks for the next best way, where there are several.
        """
        result, rows = v, torch.arange(len(v), device=v.device)
        # The last resort is to go back to the origin, which every person may.
        for complete in (self.completed, _back):
            if not len(rows):
                break
            changed, start = v[rows], origin[rows]
            changed[:, self.places] = complete(self._cells(changed, start, kept[rows], limits.of(rows), choice))
            good = self.acceptable(changed, start)
            if bool(good.any()):
                result = result.clone() if result is v else result
                result[rows[good]] = changed[good]
            rows = rows[~good]
        return result

    @abstractmethod
    def breach(self, x: Tensor) -> Tensor:
        """How badly each row of the rule's own columns (n, k) breaks it: (n,), 0 where it holds."""

    def no_worse(self, x: Tensor, origin: Tensor) -> Tensor:
        """(n,) bool, for rows that break it at the origin."""
        return self.breach(x) <= self.breach(origin) + self.tolerance(x)

    @abstractmethod
    def completed(self, cells: Cells) -> Tensor:
        """The rule's own columns with as little changed as it takes: (n, k). What does not help is not used."""

    def tolerance(self, x: Tensor) -> Tensor:
        """(n,)"""
        return self.slack + self._relative * x.abs().nan_to_num(0.0).amax(1)

    @cached_property
    def _relative(self) -> float:
        on_grid = all(feature.grid or not feature.is_numeric for feature in self.features)
        return EXACT if on_grid else TOLERANCE

    def _cells(self, v: Tensor, origin: Tensor, kept: Tensor, limits: Limits, choice: int) -> Cells:
        places = list(self.places)
        levels = torch.tensor([not feature.is_numeric for feature in self.features], device=v.device)
        movable = limits.movable[:, places].clone()
        movable[:, : self.leads] = True
        x = v[:, places]
        return Cells(
            x=x,
            origin=origin[:, places],
            free=movable & ~kept[:, places],
            lower=limits.lower[:, places],
            upper=limits.upper[:, places],
            step=torch.where(levels, 1.0, limits.step[places].to(x)),
            slack=torch.where(levels, 0.0, limits.slack[places].to(x)),
            tolerance=self.tolerance(x),
            avoid=tuple(tuple(map(feature.values.index, feature.avoid)) for feature in self.features),
            choice=choice,
        )


@dataclass(frozen=True, eq=False)
class Cells:
    """The columns of one rule, of the rows that break it, and what each may hold."""

    x: Tensor  # (n, k)
    origin: Tensor  # (n, k)
    free: Tensor  # (n, k) bool: may change
    lower: Tensor  # (n, k)
    upper: Tensor  # (n, k)
    step: Tensor  # (k,)
    slack: Tensor  # (k,)
    tolerance: Tensor  # (n,)
    avoid: tuple[tuple[int, ...], ...]  # levels of each column that nobody is moved to
    choice: int  # 0 for the best of several values, 1 for the next, ...

    def nearest(self, column: int, bound: Tensor, sign: int) -> Tensor:
        """The value nearest to bound (n,) among those a column may hold at or above it (sign 1) or below (-1).

        Infinite where there is none.
        """
        x, origin, slack = (sign * part for part in (self.x[:, column], self.origin[:, column], self.slack[column]))
        low, high = self.lower[:, column], self.upper[:, column]
        low, high = (low, high) if sign > 0 else (-high, -low)
        bound, slack = sign * bound, slack.abs()
        inside = _up(torch.maximum(bound, low), self.step[column], slack + self.tolerance)
        inside = torch.where(inside <= high + slack, torch.minimum(inside, torch.maximum(high, bound)), torch.inf)
        inside = torch.where(low <= high, inside, torch.inf)
        home = torch.where(origin >= bound - self.tolerance, origin, torch.inf)
        there = torch.where(x >= bound - self.tolerance, x, torch.inf)
        return sign * torch.where(self.free[:, column], torch.minimum(inside, home), there)

    def may_hold(self, column: int, values: Tensor) -> Tensor:
        """Which values (r,) or (n, r) a column may hold: (n, r) bool."""
        step, slack, close = self.step[column], self.slack[column], (self.tolerance + self.slack[column])[:, None]
        low, high = self.lower[:, column, None], self.upper[:, column, None]
        grain = torch.where(step > 0, step, 1.0)
        on_grid = ((values - (values / grain).round() * grain).abs() <= slack + EXACT * values.abs()) | (step <= 0)
        inside = (values >= low - slack) & (values <= high + slack) & (low <= high) & on_grid
        for level in self.avoid[column]:
            inside = inside & (values != level)
        reachable = inside | ((values - self.origin[:, column, None]).abs() <= close)
        same = (values - self.x[:, column, None]).abs() <= close
        return torch.where(self.free[:, column, None], reachable, same)

    def of(self, rows: Tensor) -> Cells:
        """Those of some rows."""
        parts = ("x", "origin", "free", "lower", "upper", "tolerance")
        return replace(self, **{name: getattr(self, name)[rows] for name in parts})

    def chosen(self, rank: Tensor) -> tuple[Tensor, Tensor]:
        """The least rank (n, r), or the one after it that the choice asks for: its value and its place, (n,) each."""
        if not self.choice:
            return rank.min(1)
        ranks, order = rank.sort(stable=True, dim=1)
        at = (rank.isfinite().sum(1, keepdim=True) - 1).clamp(0, self.choice)
        return ranks.gather(1, at)[:, 0], order.gather(1, at)[:, 0]


def compiled(
    relations: Sequence[Relation], features: tuple[Feature, ...], slack: Sequence[float] = ()
) -> tuple[Rule, ...]:
    """The rules for rows whose columns are these features, in this order.

    slack   by how much the values of each feature may be off, in raw units: what encoding does to a number without grid
    """
    column_of = {feature.name: number for number, feature in enumerate(features)}
    rules = []
    for relation in relations:
        places = tuple(column_of[name] for name in relation.columns)
        named = tuple(features[number] for number in places)
        loose = max((slack[number] for number in places), default=0.0) if slack else 0.0
        rules.append(_rule(relation, named, places, float(loose)))
    return tuple(rules)


def _rule(relation: Relation, features: tuple[Feature, ...], places: tuple[int, ...], slack: float) -> Rule:
    match relation:
        case Determines():
            if not relation.rows:
                raise ValueError(f"relation '{relation}' has no rows yet; learn them with schema.learned(table)")
            rows = [list(map(_number, features, row)) for row in relation.rows]
            return DeterminesRule(relation, features, places, slack, torch.tensor(rows, dtype=torch.float64))
        case Implies():
            named = {feature.name: number for number, feature in enumerate(features)}
            when, then = (
                tuple(_condition(features[named[name]], named[name], allowed) for name, allowed in side.items())
                for side in (relation.when, relation.then)
            )
            return ImpliesRule(relation, features, places, slack, when, then)
        case Exclusive():
            return ExclusiveRule(relation, features, places, slack)
        case Ordered():
            return OrderedRule(relation, features, places, slack)
        case Sums():
            absorbs = None if relation.absorbs is None else relation.columns.index(relation.absorbs)
            return SumsRule(relation, features, places, slack * len(places), absorbs)
        case Follows():
            if relation.rate is not None:
                slack = slack * (1 + abs(relation.rate))
                return FollowsRule(relation, features, places, slack, None, float(relation.rate))
            gains = torch.tensor([float(relation.by[level]) for level in features[1].values], dtype=torch.float64)
            return FollowsRule(relation, features, places, slack, gains)


def _number(feature: Feature, value: Level) -> float:
    """A number as it is, a level as its place."""
    return float(value) if feature.is_numeric else float(feature.values.index(value))


def mended(
    rules: Sequence[Rule], broken: Tensor, v: Tensor, origin: Tensor, kept: Tensor, limits: Limits
) -> tuple[Tensor, Tensor]:
    """The rows completed until every rule is acceptable: (n, m), and where that succeeded: (n,) bool.

    ``broken`` (n, r) says which rules each row breaks. Rows that break none, and rows that cannot be mended, come back
    as they were.
    """
    ok, result = ~broken.any(1), v
    rows = torch.nonzero(~ok).flatten()
    for choice in range(_choices(rules)):
        if not len(rows):
            break
        part, good, moved = _settled(rules, broken[rows], v[rows], origin[rows], kept[rows], limits.of(rows), choice)
        if bool(good.any()):
            result = result.clone() if result is v else result
            result[rows[good]] = part[good]
            ok[rows[good]] = True
        rows = rows[~good & moved]  # whom no rule could move, no other choice moves either
    return result, ok


def _settled(
    rules: Sequence[Rule],
    broken: Tensor,
    v: Tensor,
    origin: Tensor,
    kept: Tensor,
    limits: Limits,
    choice: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Rule after rule until nothing changes: the rows (n, m), which are acceptable (n,) and which moved at all (n,).

    Only rows that break a rule are shown to it: those that broke it from the start, and those whose columns moved.
    """
    result, broken, moved = v.clone(), broken.clone(), torch.zeros(len(v), dtype=torch.bool, device=v.device)
    for _ in range(len(rules) + 1):
        still = torch.zeros_like(moved)
        for number, rule in enumerate(rules):
            rows = torch.nonzero(broken[:, number]).flatten()
            if not len(rows):
                continue
            before = result[rows]
            after = rule.mended(before, origin[rows], kept[rows], limits.of(rows), choice)
            changed = _differ(after, before)
            broken[rows, number] = ~changed
            rows, after = rows[changed], after[changed]
            if len(rows):
                result[rows], moved[rows], still[rows] = after, True, True
                _look_again(rules, number, broken, rows, after, origin[rows])
        if not bool((still & broken.any(1)).any()):
            break
    return result, ~broken.any(1), moved


def _look_again(
    rules: Sequence[Rule], mended: int, broken: Tensor, rows: Tensor, values: Tensor, origin: Tensor
) -> None:
    """Write down which rules that share a column with the mended one these rows break now."""
    for number, rule in enumerate(rules):
        if number != mended and set(rule.places) & set(rules[mended].places):
            broken[rows, number] = ~rule.acceptable(values, origin)


def _differ(first: Tensor, second: Tensor) -> Tensor:
    """(n,) bool."""
    if first is second:
        return torch.zeros(len(first), dtype=torch.bool, device=first.device)
    return ((first != second) & ~first.isnan()).any(1)


def _choices(rules: Sequence[Rule]) -> int:
    """How many ways to try: more than one only where a rule that has several shares a column with another."""
    shared = [
        rule.choices
        for rule in rules
        if any(other is not rule and set(rule.places) & set(other.places) for other in rules)
    ]
    return min(CHOICES, max(shared, default=1))


def _back(cells: Cells) -> Tensor:
    return torch.where(cells.free, cells.origin, cells.x)


def _up(values: Tensor, step: Tensor, slack: Tensor) -> Tensor:
    """The next value of the grid, or the value itself where it lies on the grid or there is none."""
    grain = torch.where(step > 0, step, 1.0)
    return torch.where(step > 0, torch.ceil((values - slack) / grain) * grain, values)


# ---- determines ----


@dataclass(frozen=True, eq=False)
class DeterminesRule(Rule):
    """The columns of ``by``, then the one they fix."""

    table: Tensor = field(default_factory=lambda: torch.zeros(0, 2, dtype=torch.float64))  # (r, k)

    @property
    def choices(self) -> int:
        return len(self.table)

    def breach(self, x: Tensor) -> Tensor:
        row = self._row(x)
        wanted = self.table.to(x)[row.clamp_min(0), -1]
        return torch.where((row >= 0) & ((wanted - x[:, -1]).abs() <= self.tolerance(x)), 0.0, torch.inf)

    def no_worse(self, x: Tensor, origin: Tensor) -> Tensor:
        return _as_before(x, origin, self.tolerance(x))

    def completed(self, cells: Cells) -> Tensor:
        x, table = cells.x.clone(), self.table.to(cells.x)
        row = self._row(x)
        wanted = table[row.clamp_min(0), -1]
        simple = (row >= 0) & cells.may_hold(x.shape[1] - 1, wanted[:, None])[:, 0]
        x[:, -1] = torch.where(simple, wanted, x[:, -1])
        others = torch.nonzero(~simple).flatten()
        for part in torch.split(others, max(1, PAIRS_AT_ONCE // len(table))):
            x[part] = self._nearest_row(cells.of(part), table)
        return x

    @cached_property
    def _index(self) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """For each column of ``by`` its values and the combinations up to it, sorted; the row of each combination."""
        codes, steps = torch.zeros(len(self.table), dtype=torch.int64), []
        for column in self.table.T[:-1]:
            listed, value_index = torch.unique(column, return_inverse=True)
            # Combinations are numbered anew after each column, so that the numbers stay small.
            together, codes = torch.unique(codes * len(listed) + value_index, return_inverse=True)
            steps.append((listed, together))
        rows = torch.empty_like(codes)
        rows[codes] = torch.arange(len(self.table))
        return steps, rows

    def _row(self, x: Tensor) -> Tensor:
        """Which row of the table has these values of ``by``: (n,), -1 for none."""
        steps, rows = self._index
        code = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        known, close = torch.ones_like(code, dtype=torch.bool), self.tolerance(x)
        for column, (listed, together) in enumerate(steps):
            listed, together = listed.to(x), together.to(x.device)
            value_index = _closest(listed, x[:, column])
            known &= (listed[value_index] - x[:, column]).abs() <= close
            wanted = code * len(listed) + value_index
            code = torch.searchsorted(together, wanted).clamp_max(len(together) - 1)
            known &= together[code] == wanted
        return torch.where(known, rows.to(x.device)[code], -1)

    def _nearest_row(self, cells: Cells, table: Tensor) -> Tensor:
        """The row of the table that a person can reach with the fewest changes of ``by``, and then the smallest."""
        possible = torch.ones(len(cells.x), len(table), dtype=torch.bool, device=table.device)
        changes = torch.zeros_like(possible, dtype=table.dtype)
        last = table.shape[1] - 1
        for column in range(table.shape[1]):
            possible &= cells.may_hold(column, table[:, column])
            away = (table[:, column] - cells.x[:, column, None]).abs()
            span = (table[:, column].max() - table[:, column].min()).clamp_min(1e-12)
            moved = (away > cells.tolerance[:, None]) * (1e-6 if column == last else 1.0)
            changes += moved + 1e-3 * moved * away / (span + away)
        changes = torch.where(possible, changes, torch.inf)
        least, row = cells.chosen(changes)
        return torch.where(least.isfinite()[:, None], table[row], cells.x)


def _closest(listed: Tensor, values: Tensor) -> Tensor:
    """The place of the nearest number in a sorted list."""
    right = torch.searchsorted(listed, values.contiguous()).clamp(0, len(listed) - 1)
    left = (right - 1).clamp_min(0)
    return torch.where((values - listed[left]).abs() <= (listed[right] - values).abs(), left, right)


def _as_before(x: Tensor, origin: Tensor, close: Tensor) -> Tensor:
    return (((x - origin).abs() <= close[:, None]) | (x.isnan() & origin.isnan())).all(1)


# ---- implies ----


@dataclass(frozen=True, eq=False)
class Condition:
    """What one column of a rule may be: between two numbers, or one of some levels."""

    column: int  # of the rule's own
    low: float
    high: float
    levels: tuple[int, ...]  # () for a number
    others: tuple[int, ...]  # all other levels
    ordinal: bool

    def met(self, x: Tensor, close: Tensor) -> Tensor:
        values = x[:, self.column]
        if not self.levels:
            return (values >= self.low - close) & (values <= self.high + close)
        return torch.isin(values.round(), torch.tensor(self.levels).to(values))

    def satisfied(self, cells: Cells) -> Tensor:
        """The value that meets it and lies nearest to the present one: (n,); not finite where there is none."""
        x = cells.x[:, self.column]
        if self.levels:
            return self._level(cells, self.levels)
        up = cells.nearest(self.column, torch.full_like(x, self.low), 1)
        down = cells.nearest(self.column, torch.full_like(x, self.high), -1)
        up, down = (
            torch.where(up > self.high + cells.tolerance, torch.inf, up),
            torch.where(down < self.low - cells.tolerance, -torch.inf, down),
        )
        return torch.where(self.met(cells.x, cells.tolerance), x, torch.where(x < self.low, up, down))

    def avoided(self, cells: Cells) -> Tensor:
        """The value at the origin if that does not meet it, else the nearest that does not; not finite for none."""
        origin, x = cells.origin[:, self.column], cells.x[:, self.column]
        home = cells.free[:, self.column] & ~self.met(cells.origin, cells.tolerance)
        if self.levels:
            other = self._level(cells, self.others)
        else:
            off = 2 * (cells.tolerance + cells.slack[self.column])
            down, up = cells.nearest(self.column, self.low - off, -1), cells.nearest(self.column, self.high + off, 1)
            other = torch.where((x - down).abs() <= (up - x).abs(), down, up)
        return torch.where(home, origin, other)

    def _level(self, cells: Cells, levels: tuple[int, ...]) -> Tensor:
        x = cells.x[:, self.column]
        if not levels:
            return torch.full_like(x, torch.inf)
        listed = torch.tensor(levels).to(x)
        order = torch.arange(len(levels)).to(x).expand(len(x), -1)
        rank = (listed - x[:, None]).abs() if self.ordinal else order
        rank = torch.where(listed == cells.origin[:, self.column, None], -1.0, rank)
        rank = torch.where(cells.may_hold(self.column, listed), rank, torch.inf)
        least, level_index = cells.chosen(rank)
        return torch.where(least.isfinite(), listed[level_index], torch.inf)


@dataclass(frozen=True, eq=False)
class ImpliesRule(Rule):
    """The columns of the premise, then those of the conclusion."""

    when: tuple[Condition, ...] = ()
    then: tuple[Condition, ...] = ()

    @property
    def choices(self) -> int:
        ways = [len(condition.levels) for condition in self.then] + [len(condition.others) for condition in self.when]
        return max(1, *ways)

    def breach(self, x: Tensor) -> Tensor:
        close = self.tolerance(x)
        return torch.where(self._met(self.when, x, close) & ~self._met(self.then, x, close), torch.inf, 0.0)

    def no_worse(self, x: Tensor, origin: Tensor) -> Tensor:
        return _as_before(x, origin, self.tolerance(x))

    def completed(self, cells: Cells) -> Tensor:
        """The conclusion made true; where that cannot be, the premise made false."""
        x = cells.x.clone()
        for condition in self.then:
            unmet = ~condition.met(cells.x, cells.tolerance)
            value = condition.satisfied(cells)
            x[:, condition.column] = torch.where(unmet & value.isfinite(), value, cells.x[:, condition.column])
        done = self._met(self.then, x, cells.tolerance)
        x = torch.where(done[:, None], x, cells.x)
        for condition in self.when:
            value = condition.avoided(cells)
            use = ~done & value.isfinite() & cells.free[:, condition.column]
            x[:, condition.column] = torch.where(use, value, x[:, condition.column])
            done = done | use
        return x

    @staticmethod
    def _met(conditions: tuple[Condition, ...], x: Tensor, close: Tensor) -> Tensor:
        return torch.stack([condition.met(x, close) for condition in conditions]).all(0)


def _condition(feature: Feature, column: int, allowed: tuple[Level, ...]) -> Condition:
    if isinstance(allowed, Between):
        return Condition(column, float(allowed[0]), float(allowed[-1]), (), (), False)
    levels = tuple(feature.values.index(level) for level in allowed)
    others = tuple(level_index for level_index in range(len(feature.values)) if level_index not in levels)
    return Condition(column, 0.0, 0.0, levels, others, feature.kind == "ordinal")


# ---- exclusive ----


@dataclass(frozen=True, eq=False)
class ExclusiveRule(Rule):
    """The breach is what lies above 0 beside the largest number."""

    def breach(self, x: Tensor) -> Tensor:
        above = x.clamp_min(0)
        return above.sum(1) - above.amax(1)

    def completed(self, cells: Cells) -> Tensor:
        """All that can go to 0 there but one: of those that may stay, the one that has moved furthest."""
        low = torch.stack([self._lowered(cells, column) for column in range(cells.x.shape[1])], 1)
        allowed = self.breach(cells.origin).nan_to_num(0.0) + cells.tolerance
        width = (cells.upper - cells.lower).clamp_min(1e-12)
        best, best_moved = low, torch.full_like(low[:, 0], -1.0)
        for column in range(cells.x.shape[1]):
            staying = low.clone()
            staying[:, column] = cells.x[:, column]
            moved = (cells.x[:, column] - cells.origin[:, column]).abs() / width[:, column]
            better = (self.breach(staying) <= allowed) & (cells.x[:, column] > 0) & (moved > best_moved)
            best, best_moved = torch.where(better[:, None], staying, best), torch.where(better, moved, best_moved)
        return best

    def _lowered(self, cells: Cells, column: int) -> Tensor:
        """0, or the value below it that is nearest to it; else the lowest; what is not above 0 stays."""
        x, zero = cells.x[:, column], torch.zeros_like(cells.x[:, column])
        below, above = cells.nearest(column, zero, -1), cells.nearest(column, zero, 1)
        lowered = torch.where(below.isfinite(), below, torch.minimum(above, x))
        return torch.where((x > 0) & cells.free[:, column], lowered, x)


# ---- ordered ----


@dataclass(frozen=True, eq=False)
class OrderedRule(Rule):
    """The breach is the most by which a number lies above a later one."""

    def breach(self, x: Tensor) -> Tensor:
        return (x.cummax(1).values - x).amax(1)

    def completed(self, cells: Cells) -> Tensor:
        """Each as near to where it is as what stands before it and what must still fit behind it let it be."""
        most = self.breach(cells.origin).nan_to_num(0.0)
        # The highest value of each that leaves room for those behind it.
        ceiling = torch.full_like(most, torch.inf)
        highest: list[Tensor] = []
        for column in reversed(range(cells.x.shape[1])):
            highest.insert(0, cells.nearest(column, ceiling + most, -1))
            ceiling = torch.minimum(ceiling, highest[0])
        x, floor = cells.x.clone(), torch.full_like(most, -torch.inf)
        for column, top in enumerate(highest):
            bound = floor - most
            here = cells.x[:, column]
            raised = torch.where(here < bound - cells.tolerance, cells.nearest(column, bound, 1), here)
            lowered = torch.where(here > top + cells.tolerance, top, raised)
            x[:, column] = torch.where(cells.free[:, column] & lowered.isfinite(), lowered, here)
            floor = torch.maximum(floor, x[:, column])
        return x


# ---- sums ----


@dataclass(frozen=True, eq=False)
class SumsRule(Rule):
    """The total, then its parts. The breach is by how much the parts miss the total."""

    absorbs: int | None = None

    def breach(self, x: Tensor) -> Tensor:
        return self._error(x).abs()

    def completed(self, cells: Cells) -> Tensor:
        """One column takes up the difference if it can, else the parts together, else all of them."""
        parts = list(range(1, cells.x.shape[1]))
        first = [] if self.absorbs is None else [self.absorbs]
        everyone = [*first, *(column for column in (0, *parts) if column not in first)]
        coarse_first = sorted(everyone, key=lambda column: -float(cells.step[column]))
        orders = [first, [0], parts, everyone, coarse_first]
        allowed = self.breach(cells.origin).nan_to_num(0.0) + cells.tolerance
        x, done = cells.x, torch.zeros_like(allowed, dtype=torch.bool)
        for order in orders:
            if bool(done.all()):
                break
            tried = self._taken_up(cells, order)
            good = ~done & (self.breach(tried) <= allowed)
            x, done = torch.where(good[:, None], tried, x), done | good
        return x

    def _taken_up(self, cells: Cells, order: list[int]) -> Tensor:
        """These columns one after the other take up of the difference what they can."""
        x, most = cells.x.clone(), self.breach(cells.origin).nan_to_num(0.0)
        for column in order:
            error = self._error(x)
            # Where the sum was wrong from the start, it need not become right.
            excess = error - torch.minimum(torch.maximum(error, -most), most)
            here = x[:, column]
            wanted = here - excess if column == 0 else here + excess
            rising = wanted > here
            reached = torch.where(rising, cells.nearest(column, wanted, -1), cells.nearest(column, wanted, 1))
            onwards = torch.where(rising, reached > here, reached < here)
            if len(order) == 1:  # it must do all of it, so it may not stop short
                reached = torch.where(rising, cells.nearest(column, wanted, 1), cells.nearest(column, wanted, -1))
                onwards = reached.isfinite()
            use = cells.free[:, column] & onwards & reached.isfinite() & (excess.abs() > cells.tolerance)
            x[:, column] = torch.where(use, reached, here)
        return x

    @staticmethod
    def _error(x: Tensor) -> Tensor:
        return x[:, 0] - x[:, 1:].sum(1)


# ---- follows ----


@dataclass(frozen=True, eq=False)
class FollowsRule(Rule):
    """The column, then the one that it follows. It holds for one row alone; the origin says where it must be."""

    leads: ClassVar[int] = 1
    gains: Tensor | None = None  # (levels,)
    rate: float = 0.0

    def breach(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x[:, 0])

    def acceptable(self, v: Tensor, origin: Tensor) -> Tensor:
        x, start = v[:, self.places], origin[:, self.places]
        missing = x.isnan().any(1) | start.isnan().any(1)
        return ((x[:, 0] - self.needed(v, origin)).abs() <= self.tolerance(x)) | missing

    def needed(self, v: Tensor, origin: Tensor) -> Tensor:
        """Where the column must be, as the other one is: (n,)."""
        return self._wanted(v[:, self.places][:, 1:], origin[:, self.places])[:, 0]

    def completed(self, cells: Cells) -> Tensor:
        """The column goes where it must; where it cannot, the other goes where the column need not move."""
        x = cells.x.clone()
        wanted = self._wanted(x[:, 1:], cells.origin)
        simple = cells.free[:, 0] & cells.may_hold(0, wanted)[:, 0]
        x[:, 0] = torch.where(simple, wanted[:, 0], x[:, 0])
        candidates = self._candidates(cells)
        reached = self._wanted(candidates, cells.origin)
        possible = cells.may_hold(1, candidates) & cells.may_hold(0, reached)
        away = torch.where(possible, (candidates - x[:, 1:]).abs(), torch.inf)
        least, nearest = away.min(1, keepdim=True)
        instead = torch.cat([reached.gather(1, nearest), candidates.gather(1, nearest)], 1)
        return torch.where((~simple & least[:, 0].isfinite())[:, None], instead, x)

    def _candidates(self, cells: Cells) -> Tensor:
        """Values of the other column that the column could follow: (n, r)."""
        if self.gains is not None:
            return torch.arange(len(self.gains)).to(cells.x).expand(len(cells.x), -1)
        old = cells.origin[:, 1]
        return torch.stack([old, old + (cells.x[:, 0] - cells.origin[:, 0]) / self.rate], 1)

    def _wanted(self, of: Tensor, origin: Tensor) -> Tensor:
        """Where the column must be when the other one is ``of`` (n, r): (n, r).

        Beyond the bounds that the schema declares are codes, such as -9 for no record: they count nothing, so where one
        of the two begins at one, the column stays.
        """
        gain = (self._gain(of) - self._gain(origin[:, 1:])).clamp_min(0)
        gain = torch.where(self._is_code(origin)[:, None], 0.0, gain)
        home, step = origin[:, :1], self.features[0].grid
        if step is None:
            return home + gain
        return torch.where(gain > EXACT * step, torch.maximum(home, ((home + gain) / step).round() * step), home)

    def _is_code(self, origin: Tensor) -> Tensor:
        """(n,) bool."""
        code = torch.zeros(len(origin), dtype=torch.bool, device=origin.device)
        for feature, values in zip(self.features, origin.unbind(1), strict=True):
            if feature.lower is not None:
                code |= values < feature.lower
            if feature.upper is not None:
                code |= values > feature.upper
        return code

    def _gain(self, values: Tensor) -> Tensor:
        if self.gains is None:
            return self.rate * values
        places = values.nan_to_num(0.0).round().long().clamp(0, len(self.gains) - 1)
        return self.gains.to(values)[places]
