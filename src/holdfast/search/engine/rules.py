"""Relations of one person, compiled by numba: does a row of values keep them, and if not, what else must change.

The same as `holdfast.tabular.rules`, one row at a time, for loops that are compiled themselves: `complete` gives what
`Related.completed` gives. A row ``v`` (m,) holds one
float64 for each feature that a relation names: a number as it is, a level as its index among the feature's values, NaN
for a missing value.

Arithmetic is done in the order in which torch does it, so that results agree to the bit. Sums are taken from left to
right. Torch sums five or more addends in an order that depends on the processor, so a `Sums` or `Exclusive` of that
many numbers without a grid can differ in the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.search.engine.compiled import kernel, record
from holdfast.search.engine.sorting import count_below
from holdfast.tabular.rules import (
    CHOICES,
    EXACT,
    DeterminesRule,
    ExclusiveRule,
    FollowsRule,
    ImpliesRule,
    OrderedRule,
    SumsRule,
)

if TYPE_CHECKING:
    from holdfast.tabular.related import Related
    from holdfast.tabular.rules import Condition, Rule

DETERMINES, IMPLIES, EXCLUSIVE, ORDERED, SUMS, FOLLOWS = range(6)
KINDS = {
    DeterminesRule: DETERMINES,
    ImpliesRule: IMPLIES,
    ExclusiveRule: EXCLUSIVE,
    OrderedRule: ORDERED,
    SumsRule: SUMS,
    FollowsRule: FOLLOWS,
}
ORDERS = 5  # ways in which the columns of a sum take up a difference, tried one after the other
FINE, BROKEN, UNKNOWN = range(3)
UP, DOWN = 1.0, -1.0
LARGEST = float(np.finfo(np.float64).max)
LEAST_WIDTH = 1e-12  # of an interval that something is divided by

RELATION = record(
    kind=np.int64,
    width=np.int64,  # how many columns it names
    slack=np.float64,  # by how much values may be off, on top of `relative` of the largest
    relative=np.float64,
    leads=np.int64,  # how many of the first columns it may change although they are not movable
    first_table=np.int64,  # Determines: where its table begins in `numbers`, row after row
    rows=np.int64,  # and how many rows that has
    first_combination=np.int64,  # and where the rows of its combinations begin in `integers`
    first_when=np.int64,  # Implies: its conditions are first_when .. first_then .. end_then in `conditions`
    first_then=np.int64,
    end_then=np.int64,
    first_order=np.int64,  # Sums: ORDERS times how many columns, and which, in `integers`
    rate=np.float64,  # Follows
    first_gain=np.int64,  # in `numbers`
    gains=np.int64,  # how many; 0 where there is a rate
)
COLUMN = record(
    index=np.int64,  # in v
    step=np.float64,  # 1 for levels, 0 for a number without a grid
    slack=np.float64,
    grid=np.float64,  # of the feature itself, 0 where it has none
    lower=np.float64,  # bounds that the schema declares, infinite where it has none
    upper=np.float64,
    first_avoided=np.int64,  # levels that nobody is moved to, in `numbers`
    end_avoided=np.int64,
    first_listed=np.int64,  # Determines: the values of a column of `by`, sorted, in `numbers`
    listed=np.int64,
    first_together=np.int64,  # and the combinations of values up to this column, sorted, in `integers`
    together=np.int64,
    span=np.float64,  # from the least to the largest value in the table
    change=np.float64,  # what a change of the column counts when rows of the table are compared
    distance=np.float64,  # and what the length of the change counts
)
CONDITION = record(
    column=np.int64,  # of the relation's own
    low=np.float64,
    high=np.float64,
    first_level=np.int64,  # in `numbers`: those that it allows, then all others; none for a number
    first_other=np.int64,
    end_other=np.int64,
    ordinal=np.bool_,
)
CELL = record(
    x=np.float64,
    origin=np.float64,
    lower=np.float64,
    upper=np.float64,
    step=np.float64,
    slack=np.float64,
    first_avoided=np.int64,
    end_avoided=np.int64,
    index=np.int64,
    bound=np.float64,  # how high it may go at most, or how low it can go
    free=np.bool_,  # may change
)
RANKED = record(rank=np.float64, index=np.int64)

Records = NDArray[np.void]
Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Rules(NamedTuple):
    """The relations of a space, as kernels read them."""

    relations: Records  # (r,) RELATION
    columns: Records  # (r, k) COLUMN, k the most that a relation names
    conditions: Records  # CONDITION
    numbers: Numbers  # tables, levels and gains, one after the other; relations and columns say where theirs begin
    integers: Integers  # the same for combinations, rows and orders
    share: Flags  # (r, r) whether two different relations name a column that both have
    choices: int  # how many ways to mend a row are tried
    features: int  # m


class Workspace(NamedTuple):
    """What kernels write to while they complete one row."""

    row: Numbers  # (m,) the row so far
    trial: Numbers  # (m,) the row with one more relation mended
    states: Integers  # (r,) whether each relation is FINE or BROKEN in the row so far
    cells: Records  # (k,) CELL, the columns of the relation that is mended
    best: Records  # (CHOICES + 1,) RANKED; the last one is dropped


def workspace(rules: Rules) -> Workspace:
    """Room for `complete`; each thread needs its own."""
    relations, width = rules.columns.shape
    return Workspace(
        row=np.zeros(rules.features),
        trial=np.zeros(rules.features),
        states=np.zeros(relations, dtype=np.int64),
        cells=np.zeros(width, dtype=CELL),
        best=np.zeros(CHOICES + 1, dtype=RANKED),
    )


# ---- from the relations of a space ----


def compiled_rules(related: Related | None) -> Rules:
    """The relations of a space for kernels; where it has none, every row is acceptable."""
    return _Builder(related).rules()


class _Builder:
    """Lists that grow with each relation."""

    def __init__(self, related: Related | None) -> None:
        self.sources: tuple[Rule, ...] = () if related is None else related.rules
        self.step = [] if related is None else related.step.tolist()
        self.slack = [] if related is None else related.slack.tolist()
        width = max((len(rule.places) for rule in self.sources), default=1)
        self.relations = np.zeros(len(self.sources), dtype=RELATION)
        self.columns = np.zeros((len(self.sources), width), dtype=COLUMN)
        self.conditions: list[tuple[Any, ...]] = []
        self.numbers: list[float] = []
        self.integers: list[int] = []

    def rules(self) -> Rules:
        for number, rule in enumerate(self.sources):
            self._add(number, rule)
        places = [set(rule.places) for rule in self.sources]
        share = np.array([[a is not b and bool(a & b) for b in places] for a in places], dtype=np.bool_)
        choices = [rule.choices for rule, others in zip(self.sources, share, strict=True) if others.any()]
        return Rules(
            relations=self.relations,
            columns=self.columns,
            conditions=np.array(self.conditions, dtype=CONDITION),
            numbers=np.array(self.numbers, dtype=np.float64),
            integers=np.array(self.integers, dtype=np.int64),
            share=share.reshape(len(places), len(places)),
            choices=min(CHOICES, max(choices, default=1)),
            features=len(self.step),
        )

    def _add(self, number: int, rule: Rule) -> None:
        relation = self.relations[number]
        relation["width"], relation["leads"] = len(rule.places), rule.leads
        relation["slack"], relation["relative"] = rule.slack, rule._relative
        for column, (feature, index) in enumerate(zip(rule.features, rule.places, strict=True)):
            cell = self.columns[number, column]
            cell["index"], cell["grid"] = index, feature.grid or 0.0
            cell["step"] = self.step[index] if feature.is_numeric else 1.0
            cell["slack"] = self.slack[index] if feature.is_numeric else 0.0
            cell["lower"] = -np.inf if feature.lower is None else feature.lower
            cell["upper"] = np.inf if feature.upper is None else feature.upper
            cell["first_avoided"] = len(self.numbers)
            self.numbers += map(feature.values.index, feature.avoid)
            cell["end_avoided"] = len(self.numbers)
        if type(rule) not in KINDS:
            raise TypeError(f"no kernel completes relations of the kind {type(rule).__name__}; add one to this file")
        relation["kind"] = KINDS[type(rule)]
        if isinstance(rule, DeterminesRule):
            self._add_determines(number, rule)
        elif isinstance(rule, ImpliesRule):
            relation["first_when"] = len(self.conditions)
            self.conditions += map(self._condition, rule.when)
            relation["first_then"] = len(self.conditions)
            self.conditions += map(self._condition, rule.then)
            relation["end_then"] = len(self.conditions)
        elif isinstance(rule, SumsRule):
            self._add_orders(number, rule)
        elif isinstance(rule, FollowsRule):
            relation["rate"], relation["first_gain"] = rule.rate, len(self.numbers)
            relation["gains"] = 0 if rule.gains is None else len(rule.gains)
            self.numbers += [] if rule.gains is None else rule.gains.tolist()

    def _add_determines(self, number: int, rule: DeterminesRule) -> None:
        import torch

        relation, last = self.relations[number], len(rule.places) - 1
        relation["rows"], relation["first_table"] = len(rule.table), len(self.numbers)
        self.numbers += rule.table.flatten().tolist()
        steps, rows = rule._index
        relation["first_combination"] = len(self.integers)
        self.integers += rows.tolist()
        for column, values in enumerate(rule.table.T):
            cell = self.columns[number, column]
            cell["span"] = (values.max() - values.min()).clamp_min(LEAST_WIDTH)
            # The rule multiplies flags by these numbers, which rounds them to torch's default precision.
            moved = torch.ones(1, dtype=torch.bool) * (1e-6 if column == last else 1.0)
            cell["change"], cell["distance"] = moved.item(), (1e-3 * moved).item()
        for column, (listed, together) in enumerate(steps):
            cell = self.columns[number, column]
            cell["first_listed"], cell["listed"] = len(self.numbers), len(listed)
            cell["first_together"], cell["together"] = len(self.integers), len(together)
            self.numbers += listed.tolist()
            self.integers += together.tolist()

    def _condition(self, condition: Condition) -> tuple[Any, ...]:
        first = len(self.numbers)
        self.numbers += [*condition.levels, *condition.others]
        other = first + len(condition.levels)
        return condition.column, condition.low, condition.high, first, other, len(self.numbers), condition.ordinal

    def _add_orders(self, number: int, rule: SumsRule) -> None:
        parts = list(range(1, len(rule.places)))
        named = [] if rule.absorbs is None else [rule.absorbs]
        everyone = [*named, *(column for column in (0, *parts) if column not in named)]
        coarse_first = sorted(everyone, key=lambda column: -float(self.columns[number, column]["step"]))
        self.relations[number]["first_order"] = len(self.integers)
        for columns in (named, [0], parts, everyone, coarse_first):
            unused = [0] * (len(rule.places) - len(columns))
            self.integers += [len(columns), *columns, *unused]


# ---- kernels ----


@kernel
def complete(rules, v, home, kept, lower, upper, movable, work):
    """Change in ``v`` what relations demand, and say whether the row is acceptable then.

    A row that breaks nothing stays as it is, and so does a row that cannot be completed.

    home            (m,) the values of the person; a relation broken there may stay broken, but no worse
    kept            (m,) bool, features that must stay as they are in ``v``
    lower, upper    (m,) where a feature may go; lower > upper: only to where it is at home
    movable         (m,) bool, features that may change; one that follows another moves with it nevertheless
    """
    for choice in range(rules.choices):
        settled, moved = settle(rules, v, home, kept, lower, upper, movable, work, choice)
        if settled:
            if moved:
                put(work.row, v)
            return True
        if not moved:  # then no other choice moves it either
            return False
    return False


@kernel
def put(values, into):
    """Copy an array; quicker to compile than to assign a slice."""
    for at in range(into.shape[0]):
        into[at] = values[at]


@kernel
def settle(rules, v, home, kept, lower, upper, movable, work, choice):
    """Mend relation after relation in ``work.row`` until nothing changes: is all acceptable then, did anything change.

    A relation is looked at when its turn comes, and again after another one has moved a column of both.
    """
    relations = rules.relations.shape[0]
    put(v, work.row)
    for number in range(relations):
        work.states[number] = UNKNOWN
    moved, settled = False, False
    for turn in range(relations + 2):
        changed, settled = False, True
        for number in range(relations):
            if work.states[number] == UNKNOWN:
                work.states[number] = FINE if is_acceptable(rules, number, work.row, home) else BROKEN
            if work.states[number] == FINE:
                continue
            # After the last turn, what is broken stays so.
            if turn <= relations:
                gather(rules, number, home, kept, lower, upper, movable, work)
            if turn > relations or not mend(rules, number, home, work, choice):
                settled = False
                continue
            put(work.trial, work.row)
            moved = changed = True
            work.states[number] = FINE
            for other in range(relations):
                if rules.share[number, other]:
                    work.states[other] = UNKNOWN
        if not changed:
            break
    return settled, moved


@kernel
def gather(rules, number, home, kept, lower, upper, movable, work):
    """Write down what each column of a relation holds and may hold."""
    relation = rules.relations[number]
    for at in range(relation.width):
        column, cell = rules.columns[number, at], work.cells[at]
        index = column.index
        cell.index = index
        cell.x = work.row[index]
        cell.origin = home[index]
        cell.lower = lower[index]
        cell.upper = upper[index]
        cell.step = column.step
        cell.slack = column.slack
        cell.first_avoided = column.first_avoided
        cell.end_avoided = column.end_avoided
        cell.free = (movable[index] or at < relation.leads) and not kept[index]


@kernel
def mend(rules, number, home, work, choice):
    """Make a relation acceptable in ``work.trial``; False if that cannot be, or changes nothing but to missing."""
    relation, trial = rules.relations[number], work.trial
    close = tolerance_of(rules, number, work.row)
    put(work.row, trial)
    if relation.kind == DETERMINES:
        complete_determines(rules, number, work, close, choice)
    elif relation.kind == IMPLIES:
        complete_implies(rules, number, work, close, choice)
    elif relation.kind == FOLLOWS:
        complete_follows(rules, number, work, close)
    else:
        most = 0.0 if has_missing(rules, number, home) else breach_of(rules, number, home, close)
        if relation.kind == EXCLUSIVE:
            complete_exclusive(rules, number, work, close, most)
        elif relation.kind == ORDERED:
            complete_ordered(rules, number, work, close, most)
        else:
            complete_sums(rules, number, work, close, most)
    for attempt in range(2):
        if is_acceptable(rules, number, trial, home):
            break
        if attempt == 1:
            return False
        # The last resort is to go home, which every person may.
        for at in range(relation.width):
            cell = work.cells[at]
            trial[cell.index] = cell.origin if cell.free else cell.x
    for at in range(relation.width):
        cell = work.cells[at]
        after = trial[cell.index]
        if after != cell.x and not np.isnan(after):
            return True
    return False


# ---- does a relation hold ----


@kernel
def tolerance_of(rules, number, v):
    """By how much the numbers of a relation may be off."""
    relation, largest = rules.relations[number], 0.0
    for at in range(relation.width):
        size = abs(v[rules.columns[number, at].index])
        if size > largest:  # a missing value never is
            largest = size
    return relation.slack + relation.relative * min(largest, LARGEST)


@kernel
def has_missing(rules, number, v):
    """Whether the row lacks a value of a relation."""
    for at in range(rules.relations[number].width):  # noqa: SIM110
        if np.isnan(v[rules.columns[number, at].index]):
            return True
    return False


@kernel
def is_acceptable(rules, number, v, home):
    """Whether a relation holds, or did not hold at home either and is no worse."""
    relation = rules.relations[number]
    if has_missing(rules, number, v):
        return True
    close = tolerance_of(rules, number, v)
    if relation.kind == FOLLOWS:
        column, other = rules.columns[number, 0].index, rules.columns[number, 1].index
        if np.isnan(home[column]) or np.isnan(home[other]):
            return True
        return abs(v[column] - needed(rules, number, v[other], home[column], home[other])) <= close
    breach = breach_of(rules, number, v, close)
    if breach <= close:
        return True
    if has_missing(rules, number, home):
        return False
    close_at_home = tolerance_of(rules, number, home)
    breach_at_home = breach_of(rules, number, home, close_at_home)
    if breach_at_home <= close_at_home:
        return False
    if relation.kind != DETERMINES and relation.kind != IMPLIES:
        return breach <= breach_at_home + close
    for at in range(relation.width):
        index = rules.columns[number, at].index
        if not abs(v[index] - home[index]) <= close:
            return False
    return True


@kernel
def breach_of(rules, number, v, close):
    """How badly a row without missing values breaks a relation: 0 where it holds."""
    relation = rules.relations[number]
    if relation.kind == SUMS:
        return abs(error_of(rules, number, v))
    if relation.kind == ORDERED:
        highest, breach = -np.inf, 0.0
        for at in range(relation.width):
            value = v[rules.columns[number, at].index]
            highest = max(highest, value)
            breach = max(breach, highest - value)
        return breach
    if relation.kind == EXCLUSIVE:
        return all_but_highest(rules, number, v)
    if relation.kind == IMPLIES:
        if not all_met(rules, number, v, relation.first_when, relation.first_then, close):
            return 0.0
        return 0.0 if all_met(rules, number, v, relation.first_then, relation.end_then, close) else np.inf
    row = row_of(rules, number, v, close)
    if row < 0:
        return np.inf
    last = relation.width - 1
    wanted = rules.numbers[relation.first_table + row * relation.width + last]
    return 0.0 if abs(wanted - v[rules.columns[number, last].index]) <= close else np.inf


# ---- what one column may hold ----


@kernel
def nearest(cell, bound, sign, close):
    """The value nearest to a bound among those a column may hold at or above it (UP) or at or below it (DOWN).

    Infinite where there is none.
    """
    bound, found = sign * bound, np.inf
    if not cell.free:
        x = sign * cell.x
        return sign * (x if x >= bound - close else np.inf)
    low, high = (cell.lower, cell.upper) if sign > 0 else (-cell.upper, -cell.lower)
    if low <= high:
        inside = max(bound, low)
        if cell.step > 0:
            inside = np.ceil((inside - (cell.slack + close)) / cell.step) * cell.step
        if inside <= high + cell.slack:
            found = min(inside, max(high, bound))
    origin = sign * cell.origin
    if origin >= bound - close:
        found = min(found, origin)
    return sign * found


@kernel
def may_hold(numbers, cell, value, close):
    """Whether a column may hold a value."""
    slack = cell.slack
    if not cell.free:
        return abs(value - cell.x) <= close + slack
    if abs(value - cell.origin) <= close + slack:
        return True
    if not (value >= cell.lower - slack and value <= cell.upper + slack and cell.lower <= cell.upper):
        return False
    if cell.step > 0 and not abs(value - np.rint(value / cell.step) * cell.step) <= slack + EXACT * abs(value):
        return False
    for at in range(cell.first_avoided, cell.end_avoided):  # noqa: SIM110
        if value == numbers[at]:
            return False
    return True


@kernel
def offer(best, offered, rank, index):
    """Keep the least ranks in their order, of equal ones the first; returns how many have been offered."""
    at = min(offered, CHOICES)
    while at > 0 and rank < best[at - 1].rank:
        best[at].rank = best[at - 1].rank
        best[at].index = best[at - 1].index
        at -= 1
    best[at].rank = rank
    best[at].index = index
    return offered + 1


# ---- determines ----


@kernel
def row_of(rules, number, v, close):
    """Which row of the table has the values of ``by`` that a row of values has; -1 for none."""
    relation, combination = rules.relations[number], 0
    for at in range(relation.width - 1):
        column = rules.columns[number, at]
        value, first = v[column.index], column.first_listed
        right = min(count_below(rules.numbers, first, column.listed, value), column.listed - 1)
        left = max(right - 1, 0)
        if abs(value - rules.numbers[first + left]) <= abs(rules.numbers[first + right] - value):
            right = left
        if not abs(rules.numbers[first + right] - value) <= close:
            return -1
        wanted = combination * column.listed + right
        combination = count_below(rules.integers, column.first_together, column.together, wanted)
        if combination == column.together or rules.integers[column.first_together + combination] != wanted:
            return -1
    return rules.integers[relation.first_combination + combination]


@kernel
def complete_determines(rules, number, work, close, choice):
    """The column as the others fix it; else the row of the table with the fewest changes, and then the smallest."""
    relation = rules.relations[number]
    width, last = relation.width, relation.width - 1
    row = row_of(rules, number, work.row, close)
    if row >= 0:
        wanted = rules.numbers[relation.first_table + row * width + last]
        if may_hold(rules.numbers, work.cells[last], wanted, close):
            work.trial[work.cells[last].index] = wanted
            return
    offered = 0
    for row in range(relation.rows):
        changes, possible = 0.0, True
        for at in range(width):
            value = rules.numbers[relation.first_table + row * width + at]
            if not may_hold(rules.numbers, work.cells[at], value, close):
                possible = False
                break
            away, column = abs(value - work.cells[at].x), rules.columns[number, at]
            if away > close:
                changes += column.change + column.distance * away / (column.span + away)
        if possible:
            offered = offer(work.best, offered, changes, row)
    if offered:
        row = work.best[min(offered - 1, choice)].index
        for at in range(width):
            work.trial[work.cells[at].index] = rules.numbers[relation.first_table + row * width + at]


# ---- implies ----


@kernel
def is_met(condition, numbers, value, close):
    """Whether a value is one that a condition allows."""
    if condition.first_level == condition.end_other:
        return value >= condition.low - close and value <= condition.high + close
    rounded = np.rint(value)
    for at in range(condition.first_level, condition.first_other):  # noqa: SIM110
        if rounded == numbers[at]:
            return True
    return False


@kernel
def all_met(rules, number, v, first, end, close):
    """Whether a row meets all of these conditions."""
    for at in range(first, end):
        condition = rules.conditions[at]
        if not is_met(condition, rules.numbers, v[rules.columns[number, condition.column].index], close):
            return False
    return True


@kernel
def level_of(rules, condition, cell, first, end, work, close, choice):
    """The best of some levels that a column may hold, or a later one as the choice asks; infinite for none."""
    offered = 0
    for at in range(first, end):
        level = rules.numbers[at]
        if may_hold(rules.numbers, cell, level, close):
            rank = abs(level - cell.x) if condition.ordinal else float(at - first)
            offered = offer(work.best, offered, -1.0 if level == cell.origin else rank, at)
    return rules.numbers[work.best[min(offered - 1, choice)].index] if offered else np.inf


@kernel
def satisfying(rules, condition, work, close, choice):
    """The value that meets a condition which is not met, the nearest; not finite where there is none."""
    cell = work.cells[condition.column]
    if condition.first_level < condition.end_other:
        return level_of(rules, condition, cell, condition.first_level, condition.first_other, work, close, choice)
    if cell.x < condition.low:
        value = nearest(cell, condition.low, UP, close)
        return np.inf if value > condition.high + close else value
    value = nearest(cell, condition.high, DOWN, close)
    return -np.inf if value < condition.low - close else value


@kernel
def avoiding(rules, condition, work, close, choice):
    """The value at home if that does not meet a condition, else the nearest that does not; not finite for none."""
    cell = work.cells[condition.column]
    if cell.free and not is_met(condition, rules.numbers, cell.origin, close):
        return cell.origin
    if condition.first_level < condition.end_other:
        return level_of(rules, condition, cell, condition.first_other, condition.end_other, work, close, choice)
    off = 2 * (close + cell.slack)
    down, up = nearest(cell, condition.low - off, DOWN, close), nearest(cell, condition.high + off, UP, close)
    return down if abs(cell.x - down) <= abs(up - cell.x) else up


@kernel
def complete_implies(rules, number, work, close, choice):
    """The conclusion made true; where that cannot be, the premise made false."""
    relation, trial = rules.relations[number], work.trial
    for at in range(relation.first_then, relation.end_then):
        condition = rules.conditions[at]
        cell = work.cells[condition.column]
        if not is_met(condition, rules.numbers, cell.x, close):
            value = satisfying(rules, condition, work, close, choice)
            if np.isfinite(value):
                trial[cell.index] = value
    if all_met(rules, number, trial, relation.first_then, relation.end_then, close):
        return
    for at in range(relation.first_then, relation.end_then):
        cell = work.cells[rules.conditions[at].column]
        trial[cell.index] = cell.x
    for at in range(relation.first_when, relation.first_then):
        condition = rules.conditions[at]
        cell = work.cells[condition.column]
        value = avoiding(rules, condition, work, close, choice)
        if cell.free and np.isfinite(value):
            trial[cell.index] = value
            return


# ---- exclusive ----


@kernel
def all_but_highest(rules, number, v):
    """The sum of what lies above 0 beside the largest number."""
    total, highest = 0.0, 0.0
    for at in range(rules.relations[number].width):
        value = max(v[rules.columns[number, at].index], 0.0)
        total += value
        highest = max(highest, value)
    return total - highest


@kernel
def complete_exclusive(rules, number, work, close, most):
    """All that can go to 0 there but one: of those that may stay, the one that has moved furthest."""
    relation, trial = rules.relations[number], work.trial
    for at in range(relation.width):
        cell = work.cells[at]
        value = cell.x
        if value > 0 and cell.free:
            value = nearest(cell, 0.0, DOWN, close)
            if not np.isfinite(value):
                value = min(nearest(cell, 0.0, UP, close), cell.x)
        work.cells[at].bound = trial[cell.index] = value
    best, best_moved = -1, -1.0
    for at in range(relation.width):
        cell = work.cells[at]
        trial[cell.index] = cell.x
        moved = abs(cell.x - cell.origin) / max(cell.upper - cell.lower, LEAST_WIDTH)
        if cell.x > 0 and moved > best_moved and all_but_highest(rules, number, trial) <= most + close:
            best, best_moved = at, moved
        trial[cell.index] = work.cells[at].bound
    if best >= 0:
        trial[work.cells[best].index] = work.cells[best].x


# ---- ordered ----


@kernel
def complete_ordered(rules, number, work, close, most):
    """Each as near to where it is as what stands before it and what must still fit behind it let it be."""
    width = rules.relations[number].width
    # The highest value of each that leaves room for those behind it.
    ceiling = np.inf
    for at in range(width - 1, -1, -1):
        work.cells[at].bound = nearest(work.cells[at], ceiling + most, DOWN, close)
        ceiling = min(ceiling, work.cells[at].bound)
    floor = -np.inf
    for at in range(width):
        cell = work.cells[at]
        value, bound = cell.x, floor - most
        if cell.free:
            if cell.x > work.cells[at].bound + close:
                value = work.cells[at].bound
            elif cell.x < bound - close:
                value = nearest(cell, bound, UP, close)
            if not np.isfinite(value):
                value = cell.x
        work.trial[cell.index] = value
        floor = max(floor, value)


# ---- sums ----


@kernel
def error_of(rules, number, v):
    """By how much the total lies above the sum of its parts."""
    total = 0.0
    for at in range(1, rules.relations[number].width):
        total += v[rules.columns[number, at].index]
    return v[rules.columns[number, 0].index] - total


@kernel
def complete_sums(rules, number, work, close, most):
    """One column takes up the difference if it can, else the parts together, else all of them."""
    relation, trial = rules.relations[number], work.trial
    for order in range(ORDERS):
        first = relation.first_order + order * (relation.width + 1)
        width = rules.integers[first]
        for at in range(1, width + 1):
            column = rules.integers[first + at]
            cell, error = work.cells[column], error_of(rules, number, trial)
            # Where the sum was wrong from the start, it need not become right.
            excess = error - min(max(error, -most), most)
            if not (cell.free and abs(excess) > close):
                continue
            here = trial[cell.index]
            wanted = here - excess if column == 0 else here + excess
            rising = wanted > here
            if width == 1:  # it must do all of it, so it may not stop short
                reached = nearest(cell, wanted, UP if rising else DOWN, close)
                onwards = True
            else:
                reached = nearest(cell, wanted, DOWN if rising else UP, close)
                onwards = reached > here if rising else reached < here
            if onwards and np.isfinite(reached):
                trial[cell.index] = reached
        if abs(error_of(rules, number, trial)) <= most + close:
            return
        for at in range(1, width + 1):
            cell = work.cells[rules.integers[first + at]]
            trial[cell.index] = cell.x


# ---- follows ----


@kernel
def gain_of(rules, number, value):
    """How far along the column is where the other one has this value."""
    relation = rules.relations[number]
    if relation.gains == 0:
        return relation.rate * value
    level = min(max(np.rint(value), 0.0), float(relation.gains - 1))
    return rules.numbers[relation.first_gain + int(level)]


@kernel
def needed(rules, number, of, home, home_of):
    """Where the column must be when the other one is ``of``.

    Beyond the bounds that the schema declares are codes, which count nothing: from there the column stays.
    """
    column, other = rules.columns[number, 0], rules.columns[number, 1]
    if home < column.lower or home > column.upper or home_of < other.lower or home_of > other.upper:
        return home
    gain = max(gain_of(rules, number, of) - gain_of(rules, number, home_of), 0.0)
    if column.grid == 0:
        return home + gain
    if gain > EXACT * column.grid:
        return max(home, np.rint((home + gain) / column.grid) * column.grid)
    return home


@kernel
def complete_follows(rules, number, work, close):
    """The column goes where it must; where it cannot, the other goes where the column need not move."""
    relation, column, other = rules.relations[number], work.cells[0], work.cells[1]
    wanted = needed(rules, number, other.x, column.origin, other.origin)
    if column.free and may_hold(rules.numbers, column, wanted, close):
        work.trial[column.index] = wanted
        return
    least = np.inf
    for at in range(relation.gains if relation.gains else 2):
        candidate = float(at)
        if relation.gains == 0:
            candidate = other.origin
            if at == 1:
                candidate += (column.x - column.origin) / relation.rate
        away = abs(candidate - other.x)
        if away < least and may_hold(rules.numbers, other, candidate, close):
            reached = needed(rules, number, candidate, column.origin, other.origin)
            if may_hold(rules.numbers, column, reached, close):
                least = away
                work.trial[column.index] = reached
                work.trial[other.index] = candidate
