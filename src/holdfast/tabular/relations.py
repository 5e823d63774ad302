"""Relations between columns: what must stay true of a person when several things change together.

A relation is a small frozen value in the units of the raw table. It is declared in ``Schema(relations=(...))``, which
checks it against the features, and every counterfactual then keeps it. A person who breaks a relation already may go on
breaking it, but not more than before.

    Determines   one or more columns fix another: education fixes education_num
    Implies      some values need others: if marital_status is Married, then relationship is Husband or Wife
    Exclusive    at most one of several numbers is above 0
    Ordered      a <= b <= c
    Sums         total = a + b
    Follows      a column that moves only because another does: age rises with education

Loads without pandas, as the schema does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any

from holdfast.tabular.feature import LEVELS_ARE, Feature, Level, is_level, shown
from holdfast.utils.messages import did_you_mean, plain, repeated

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

TOLERANCE = 5e-7  # of the largest number in a row: what rounding may do to a sum or to an order
_MOST = 4  # values that a sentence lists


class OneOf(tuple[Level, ...]):
    """The levels that a condition allows."""


class Between(tuple[float, ...]):
    """The lowest and the highest number that a condition allows, both included."""


Allowed = OneOf | Between


@dataclass(frozen=True)
class Determines:
    """Some columns fix another one: ``Determines(("education",), "education_num")``.

    A combination of values that no row lists is not advised to anybody.

    Args:
        by: the columns that fix it
        column: the column that is fixed
        rows: one row for each combination of values of ``by``: these values, and the value of ``column``. Left empty,
            they are learned from the training table (`Schema.learned`)

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> table = pd.DataFrame({"education": ["school", "degree"], "years": [12, 16]})
        >>> relation = hf.Determines(("education",), "years").learn(table)
        >>> relation.rows
        (('school', 12), ('degree', 16))
        >>> print(relation.explain({"education": "degree", "years": 12}))
        education is 'degree' but years is 12; education fixes it to 16

    Paper: constraints between features are those of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    by: tuple[str, ...]
    column: str
    rows: tuple[tuple[Level, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", _names(self, "by", self.by, 1))
        _name(self, "column", self.column)
        if self.column in self.by:
            raise ValueError(f"Determines: '{self.column}' cannot fix itself; take it out of by")
        object.__setattr__(self, "rows", _rows(self.rows, len(self.by) + 1))
        twice = repeated([row[:-1] for row in self.rows])
        if twice:
            raise ValueError(f"Determines: rows list {_values(twice[0])} more than once; keep one row for it")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return (*self.by, self.column)

    def __str__(self) -> str:
        return f"{_listed(self.by)} {'fixes' if len(self.by) == 1 else 'fix'} {self.column}"

    def check(self, features: Mapping[str, Feature]) -> Determines:
        """Raise a ValueError that says what does not fit these features, or return the relation."""
        mine = [_feature(self, name, features) for name in self.columns]
        for row in self.rows:
            for feature, value in zip(mine, row, strict=True):
                _check_value(self, feature, value)
        return self

    def learn(self, table: pd.DataFrame) -> Determines:
        """The same relation with the rows that a table shows; missing values are passed over.

        Raises a ValueError that shows the values and their counts where the table has two answers for one question.
        """
        counts = self._counts(table)
        several = {key: found for key, found in counts.items() if len(found) > 1}
        if several:
            told = [
                f"where {self._when(key)}, {self.column} is "
                + ", ".join(
                    f"{_value(value)} ({count} {'row' if count == 1 else 'rows'})"
                    for value, count in found.most_common(_MOST)
                )
                for key, found in list(several.items())[:_MOST]
            ]
            more = f"; and {len(several) - _MOST} more" if len(several) > _MOST else ""
            raise ValueError(
                f"relation '{self}' does not hold in the table: {'; '.join(told)}{more}. Correct the table, or give "
                "the rows by hand with Determines(by, column, rows=...)"
            )
        return self._with(counts)

    def commonest(self, table: pd.DataFrame) -> Determines:
        """The same relation with the answer that most rows of a table give: to look for the others."""
        return self._with(self._counts(table))

    def _counts(self, table: pd.DataFrame) -> dict[tuple[Level, ...], Counter[Level]]:
        _check_columns(table, self.columns)
        counts: dict[tuple[Level, ...], Counter[Level]] = {}
        complete = table[list(self.columns)].dropna()
        for row, count in Counter(_cells(complete, self.columns)).items():
            counts.setdefault(row[:-1], Counter())[row[-1]] += count
        return counts

    def _with(self, counts: Mapping[tuple[Level, ...], Counter[Level]]) -> Determines:
        rows = [(*key, found.most_common(1)[0][0]) for key, found in counts.items()]
        rows.sort(key=lambda row: [(isinstance(value, str), value) for value in reversed(row)])
        return replace(self, rows=tuple(rows))

    def holds(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """For each row of a table, whether it holds: (n,); where a value is missing, it counts as holding."""
        if not self.rows:
            raise ValueError(f"relation '{self}' has no rows yet; learn them with schema.learned(table)")
        _check_columns(table, self.columns)
        fixed = {row[:-1]: row[-1] for row in self.rows}
        right = [row[:-1] in fixed and _same(fixed[row[:-1]], row[-1]) for row in _hashable_cells(table, self.columns)]
        return _or_missing(right, table, self.columns)

    def explain(self, row: Mapping[str, Any]) -> str:
        """Why a row breaks it."""
        fixed = {listed[:-1]: listed[-1] for listed in self.rows}
        key = tuple(plain(row[name]) for name in self.by)
        if key not in fixed:
            return f"{self._when(key)}, for which no row says what {self.column} is"
        it = "it" if len(self.by) == 1 else "this"
        return (
            f"{self._when(key)} but {self.column} is {_value(row[self.column])}; "
            f"{_listed(self.by)} {'fixes' if len(self.by) == 1 else 'fix'} {it} to {_value(fixed[key])}"
        )

    def _when(self, key: Iterable[Level]) -> str:
        return _listed([f"{name} is {_value(value)}" for name, value in zip(self.by, key, strict=True)])


@dataclass(frozen=True)
class Implies:
    """Some values need others: ``Implies(when={"marital": ("Married",)}, then={"role": ("Husband", "Wife")})``.

    Where every column of ``when`` is as it says, every column of ``then`` must be as that says. For a column of levels
    these are its levels, for a number the lowest and the highest value, ``(low, high)``; an infinite one leaves its
    side open. Two numbers mean a range until a schema says that the column has levels.

    Args:
        when: the columns that ask for something, and the values for which they do
        then: the columns that are asked, and the values that they may have then

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> relation = hf.Implies(when={"job": ("none",)}, then={"salary": (0, 0)})
        >>> print(relation)
        if job is none, then salary is 0
        >>> table = pd.DataFrame({"job": ["none", "none", "nurse"], "salary": [0, 9, 9]})
        >>> relation.holds(table).tolist()
        [True, False, True]

    Paper: constraints between features are those of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    when: Mapping[str, tuple[Level, ...]]
    then: Mapping[str, tuple[Level, ...]]

    def __post_init__(self) -> None:
        for side in ("when", "then"):
            object.__setattr__(self, side, _conditions(side, getattr(self, side)))
        both = [name for name in self.when if name in self.then]
        if both:
            raise ValueError(f"Implies: '{both[0]}' stands in when and in then; name it once")

    def __hash__(self) -> int:
        return hash((frozenset(self.when.items()), frozenset(self.then.items())))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return (*self.when, *self.then)

    def __str__(self) -> str:
        return f"if {_told(self.when)}, then {_told(self.then)}"

    def check(self, features: Mapping[str, Feature]) -> Implies:
        """Raise a ValueError that says what does not fit these features, or return the relation as they read it."""
        sides = [
            {name: self._settled(_feature(self, name, features), allowed) for name, allowed in side.items()}
            for side in (self.when, self.then)
        ]
        return replace(self, when=sides[0], then=sides[1])

    def _settled(self, feature: Feature, allowed: tuple[Level, ...]) -> Allowed:
        if not feature.is_numeric:
            for level in allowed:
                _check_value(self, feature, level)
            return OneOf(allowed)
        numbers = [value for value in allowed if isinstance(value, (int, float)) and not isinstance(value, bool)]
        if len(numbers) != len(allowed) or len(allowed) > 2:
            raise ValueError(
                f"relation '{self}': '{feature.name}' is a number, so give its lowest and highest value, (low, high); "
                f"got {shown(tuple(allowed))}"
            )
        if numbers[0] > numbers[-1]:
            raise ValueError(
                f"relation '{self}': {feature.name} from {numbers[0]} to {numbers[-1]} is empty; swap them"
            )
        return Between((numbers[0], numbers[-1]))

    def holds(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """For each row of a table, whether it holds: (n,); where a value is missing, it counts as holding."""
        _check_columns(table, self.columns)
        return _or_missing(~_met(self.when, table) | _met(self.then, table), table, self.columns)

    def explain(self, row: Mapping[str, Any]) -> str:
        """Why a row breaks it."""
        wrong = [name for name, allowed in self.then.items() if not _allows(allowed, plain(row[name]))]
        is_now = _listed([f"{name} is {_value(row[name])}" for name in self.when])
        but = _listed([f"{name} is {_value(row[name])}" for name in wrong or self.then])
        needs = {name: self.then[name] for name in wrong or self.then}
        return f"{is_now} but {but}; {_told(needs, 'must be')}"


@dataclass(frozen=True)
class Exclusive:
    """At most one of these numbers is above 0: ``Exclusive(("capital_gain", "capital_loss"))``.

    Args:
        columns: two or more columns of numbers

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> relation = hf.Exclusive(("gain", "loss"))
        >>> table = pd.DataFrame({"gain": [500, 500, 0], "loss": [0, 20, 0]})
        >>> relation.holds(table).tolist()
        [True, False, True]

    Paper: constraints between features are those of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _names(self, "columns", self.columns, 2))

    def __str__(self) -> str:
        return f"at most one of {_listed(self.columns)} is above 0"

    def check(self, features: Mapping[str, Feature]) -> Exclusive:
        """Raise a ValueError that says what does not fit these features, or return the relation."""
        for name in self.columns:
            _number(self, _feature(self, name, features))
        return self

    def holds(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """For each row of a table, whether it holds: (n,); where a value is missing, it counts as holding."""
        return _or_missing((_numbers(table, self.columns) > 0).sum(1) <= 1, table, self.columns)

    def explain(self, row: Mapping[str, Any]) -> str:
        """Why a row breaks it."""
        above = [name for name in self.columns if plain(row[name]) > 0]
        return f"{_listed([f'{name} is {_value(row[name])}' for name in above])}; at most one of them is above 0"


@dataclass(frozen=True)
class Ordered:
    """Each column is at most the next: ``Ordered(("satisfactory", "total"))``. Numbers, or ordinals of the same levels.

    Args:
        columns: two or more columns, the smallest first
        levels: the levels of ordinal columns in their order; a schema fills them in

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> relation = hf.Ordered(("paid_on_time", "payments"))
        >>> print(relation)
        paid_on_time <= payments
        >>> table = pd.DataFrame({"paid_on_time": [3, 7], "payments": [5, 5]})
        >>> relation.holds(table).tolist()
        [True, False]

    Paper: constraints between features are those of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    columns: tuple[str, ...]
    levels: tuple[Level, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _names(self, "columns", self.columns, 2))

    def __str__(self) -> str:
        return " <= ".join(self.columns)

    def check(self, features: Mapping[str, Feature]) -> Ordered:
        """Raise a ValueError that says what does not fit these features, or return the relation as they read it."""
        first, *rest = (_feature(self, name, features) for name in self.columns)
        if first.kind != "ordinal":
            for feature in (first, *rest):
                _number(self, feature)
            return replace(self, levels=())
        for feature in rest:
            if feature.kind != "ordinal" or feature.levels != first.levels:
                raise ValueError(
                    f"relation '{self}': '{first.name}' is ordinal, so '{feature.name}' must be ordinal with the same "
                    f"levels {list(first.levels)}; it is {feature.kind} {list(feature.levels) or ''}".rstrip()
                )
        return replace(self, levels=first.levels)

    def holds(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """For each row of a table, whether it holds: (n,); where a value is missing, it counts as holding."""
        numbers = self._places(table)
        right = (numbers[:, :-1] <= numbers[:, 1:] + _slack(numbers)[:, None]).all(1)
        return _or_missing(right, table, self.columns)

    def _places(self, table: pd.DataFrame) -> NDArray[np.float64]:
        if not self.levels:
            return _numbers(table, self.columns)
        import numpy as np

        _check_columns(table, self.columns)
        place = {level: float(number) for number, level in enumerate(self.levels)}
        return np.array([[place.get(cell, np.nan) for cell in row] for row in _hashable_cells(table, self.columns)])

    def explain(self, row: Mapping[str, Any]) -> str:
        """Why a row breaks it."""
        value: Callable[[Any], Any] = self.levels.index if self.levels else plain
        for first, second in pairwise(self.columns):
            if value(row[first]) > value(row[second]):
                return f"{first} is {_value(row[first])} but {second} is {_value(row[second])}; {first} <= {second}"
        return ""


@dataclass(frozen=True)
class Sums:
    """One number is the sum of others: ``Sums("total", ("a", "b"))``.

    Args:
        total: the column of the sum
        parts: the columns that are added up
        absorbs: the column that takes up the difference when another one changes; the total unless told otherwise, and
            the other parts where the total is fixed

    Examples:
        >>> import holdfast as hf
        >>> relation = hf.Sums("income", ("salary", "rent"))
        >>> print(relation.explain({"income": 3000, "salary": 2000, "rent": 400}))
        income is 3000 but salary + rent is 2000 + 400 = 2400

    Paper: constraints between features are those of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    total: str
    parts: tuple[str, ...]
    absorbs: str | None = None

    def __post_init__(self) -> None:
        _name(self, "total", self.total)
        object.__setattr__(self, "parts", _names(self, "parts", self.parts, 2))
        if self.total in self.parts:
            raise ValueError(f"Sums: '{self.total}' cannot be a part of itself; take it out of parts")
        if self.absorbs is not None:
            _name(self, "absorbs", self.absorbs)
            if self.absorbs not in self.columns:
                hint = did_you_mean(self.absorbs, self.columns)
                raise ValueError(
                    f"Sums: absorbs is '{self.absorbs}'{hint}; choose one of {', '.join(self.columns)}, or None"
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return (self.total, *self.parts)

    def __str__(self) -> str:
        return f"{self.total} = {' + '.join(self.parts)}"

    def check(self, features: Mapping[str, Feature]) -> Sums:
        """Raise a ValueError that says what does not fit these features, or return the relation."""
        for name in self.columns:
            _number(self, _feature(self, name, features))
        return self

    def holds(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """For each row of a table, whether it holds: (n,); where a value is missing, it counts as holding."""
        import numpy as np

        numbers = _numbers(table, self.columns)
        error = np.abs(numbers[:, 0] - numbers[:, 1:].sum(1))
        return _or_missing(error <= _slack(numbers), table, self.columns)

    def explain(self, row: Mapping[str, Any]) -> str:
        """Why a row breaks it."""
        parts = [plain(row[name]) for name in self.parts]
        return (
            f"{self.total} is {_value(row[self.total])} but {' + '.join(self.parts)} is "
            f"{' + '.join(map(_value, parts))} = {_value(sum(parts))}"
        )


@dataclass(frozen=True)
class Follows:
    """A column that moves only because another one does: ``Follows("age", "education", by={"HS": 0, "BSc": 4})``.

    The column becomes what it was, plus what the other column's change takes, if that is above 0:
    ``by[new] - by[old]`` where the other has levels, or ``rate * (new - old)`` where it is a number or ordinal (counted
    in levels). The feature itself is ``mutable=False``: nobody is told to change it, and nothing else moves it. Where
    one of the two is beyond the bounds that the schema declares, such as a code for "no record", nothing follows.

    Args:
        column: the column that follows
        of: the column that it follows
        by: for each level of ``of``, how far along the column is there
        rate: instead of ``by``: how far the column moves for each unit of ``of``

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> relation = hf.Follows("age", "education", by={"school": 0, "degree": 4})
        >>> now = pd.DataFrame({"age": [20, 20], "education": ["school", "school"]})
        >>> then = pd.DataFrame({"age": [24, 20], "education": ["degree", "degree"]})
        >>> relation.followed(then, now).tolist()  # a degree takes four years
        [True, False]

    Paper: that age rises with education is an example of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    column: str
    of: str
    by: Mapping[Level, float] = field(default_factory=dict)
    rate: float | None = None

    def __post_init__(self) -> None:
        _name(self, "column", self.column)
        _name(self, "of", self.of)
        if self.column == self.of:
            raise ValueError(f"Follows: '{self.column}' cannot follow itself")
        object.__setattr__(self, "by", _gains(self.by))
        object.__setattr__(self, "rate", plain(self.rate))
        if self.rate is not None and (not _is_number(self.rate) or not math.isfinite(self.rate)):
            raise TypeError(f"Follows: rate is {shown(self.rate)}; it must be a finite number, or None")
        if (self.rate is None) == (not self.by):
            raise ValueError(
                f"Follows: say how far '{self.column}' moves, either with by={{level: number, ...}} or with rate=number"
            )
        if self.rate == 0:
            raise ValueError(f"Follows: rate is 0, so '{self.column}' would never move; drop the relation")

    def __hash__(self) -> int:
        return hash((self.column, self.of, frozenset(self.by.items()), self.rate))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        return (self.column, self.of)

    def __str__(self) -> str:
        return f"{self.column} rises with {self.of}"

    def check(self, features: Mapping[str, Feature]) -> Follows:
        """Raise a ValueError that says what does not fit these features, or return the relation."""
        column, of = _feature(self, self.column, features), _feature(self, self.of, features)
        _number(self, column)
        if column.mutable:
            raise ValueError(
                f"relation '{self}': '{self.column}' moves only with '{self.of}', so nobody is to change it by itself; "
                f'set mutable=False, as with revise("{self.column}", mutable=False)'
            )
        if self.rate is not None and not (of.is_numeric or of.kind == "ordinal"):
            raise ValueError(f"relation '{self}': '{self.of}' is {of.kind}, so give by={{level: number}}, not a rate")
        if self.by and of.is_numeric:
            raise ValueError(f"relation '{self}': '{self.of}' is a number, so give a rate, not by={{level: number}}")
        for level in self.by:
            _check_value(self, of, level, "; in a file, levels that are not text go in pairs: by = [[1, 0], [2, 4]]")
        without = [level for level in of.values if level not in self.by]
        if self.by and without:
            raise ValueError(
                f"relation '{self}': by has no number for {_values(without)} of '{self.of}'; give each one"
            )
        return self

    def holds(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """(n,) True everywhere: one table alone cannot break it; see `followed`."""
        import numpy as np

        _check_columns(table, self.columns)
        return np.ones(len(table), dtype=bool)

    def followed(self, table: pd.DataFrame, origin: pd.DataFrame) -> NDArray[np.bool_]:
        """For each row, whether the column has moved from origin as far as it must, and no further: (n,).

        Within half a unit, as a whole number is rounded; where a value is missing, it counts as holding.
        """
        import numpy as np

        new, old = (_numbers(part, (self.column,))[:, 0] for part in (table, origin))
        wanted = old + np.maximum(0, self._gain(table) - self._gain(origin))
        slack = 0.5 + TOLERANCE * np.maximum(np.abs(wanted), np.abs(new))
        return _or_missing(np.abs(new - wanted) <= slack, table, self.columns) | np.isnan(wanted)

    def _gain(self, table: pd.DataFrame) -> NDArray[np.float64]:
        import numpy as np

        if self.rate is not None:
            return self.rate * _numbers(table, (self.of,))[:, 0]
        return np.array([self.by.get(cell, np.nan) for (cell,) in _hashable_cells(table, (self.of,))], dtype=np.float64)

    def explain(self, row: Mapping[str, Any]) -> str:
        """What the column must do."""
        return f"{self.of} is {_value(row[self.of])} and {self.column} is {_value(row[self.column])}; {self}"


Relation = Determines | Implies | Exclusive | Ordered | Sums | Follows
KINDS: dict[str, type[Relation]] = {
    "determines": Determines,
    "implies": Implies,
    "exclusive": Exclusive,
    "ordered": Ordered,
    "sums": Sums,
    "follows": Follows,
}
_KEYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # what each kind needs in a file, and what it may have
    "determines": (("by", "column"), ("rows",)),
    "implies": (("if", "then"), ()),
    "exclusive": (("columns",), ()),
    "ordered": (("columns",), ()),
    "sums": (("total", "parts"), ("absorbs",)),
    "follows": (("column", "of"), ("by", "rate")),
}


def check_relations(relations: Iterable[Relation], features: Mapping[str, Feature]) -> tuple[Relation, ...]:
    """The relations as these features read them, or an error that names the relation and what is wrong with it."""
    if isinstance(relations, (str, Mapping, *KINDS.values())) or not isinstance(relations, Iterable):
        raise TypeError(f"relations is {shown(relations)}; give a tuple of relations, such as (Ordered(('a', 'b')),)")
    given = tuple(relations)
    for place, relation in enumerate(given, start=1):
        if not isinstance(relation, tuple(KINDS.values())):
            raise TypeError(
                f"relation number {place} is {shown(relation)} ({type(relation).__name__}); expected one of "
                f"{', '.join(kind.__name__ for kind in KINDS.values())}"
            )
    checked: tuple[Relation, ...] = tuple(relation.check(features) for relation in given)
    twice = [relation for place, relation in enumerate(checked) if relation in checked[:place]]
    if twice:
        raise ValueError(f"relation '{twice[0]}' is given twice; keep one")
    _check_followers(checked)
    return checked


def _check_followers(relations: tuple[Relation, ...]) -> None:
    """A column that follows has one way to move, and no circle to move in."""
    leader: dict[str, str] = {}
    for relation in relations:
        if isinstance(relation, Follows):
            if relation.column in leader:
                raise ValueError(
                    f"'{relation.column}' follows both '{leader[relation.column]}' and '{relation.of}'; keep one"
                )
            leader[relation.column] = relation.of
    for relation in relations:
        if isinstance(relation, Determines) and relation.column in leader:
            raise ValueError(
                f"relation '{relation}': '{relation.column}' follows '{leader[relation.column]}' already; keep one"
            )
    for start in leader:
        seen = [start]
        while seen[-1] in leader:
            seen.append(leader[seen[-1]])
            if seen[-1] in seen[:-1]:
                raise ValueError(f"{' follows '.join(map(repr, seen))}, a circle; take one of these relations out")


def relation_to_dict(relation: Relation) -> dict[str, Any]:
    """As a file has it: plain tables, lists, texts and numbers."""
    if isinstance(relation, Determines):
        item = {"kind": "determines", "by": list(relation.by), "column": relation.column}
        return item | ({"rows": [list(row) for row in relation.rows]} if relation.rows else {})
    if isinstance(relation, Implies):
        sides = [{name: list(values) for name, values in side.items()} for side in (relation.when, relation.then)]
        return {"kind": "implies", "if": sides[0], "then": sides[1]}
    if isinstance(relation, Exclusive):
        return {"kind": "exclusive", "columns": list(relation.columns)}
    if isinstance(relation, Ordered):
        return {"kind": "ordered", "columns": list(relation.columns)}
    if isinstance(relation, Sums):
        item = {"kind": "sums", "total": relation.total, "parts": list(relation.parts)}
        return item | ({} if relation.absorbs is None else {"absorbs": relation.absorbs})
    item = {"kind": "follows", "column": relation.column, "of": relation.of}
    if relation.rate is not None:
        return item | {"rate": relation.rate}
    # The keys of a file are text, so levels that are not go in pairs.
    text = all(isinstance(level, str) for level in relation.by)
    return item | {"by": dict(relation.by) if text else [list(pair) for pair in relation.by.items()]}


def relation_from_dict(item: Any, place: int = 1) -> Relation:
    """What `relation_to_dict` made, or what somebody wrote by hand; what is wrong with it comes with its place."""
    try:
        if not isinstance(item, Mapping):
            raise TypeError(f"expected a table of settings, got {shown(item)} ({type(item).__name__})")
        kind = item.get("kind")
        if "kind" not in item:
            raise TypeError(f"'kind' is missing; choose one of {', '.join(KINDS)}")
        if not isinstance(kind, str) or kind not in KINDS:
            raise TypeError(f"kind is {shown(kind)}{did_you_mean(kind, KINDS)}; choose one of {', '.join(KINDS)}")
        needed, optional = _KEYS[kind]
        _check_keys({key: value for key, value in item.items() if key != "kind"}, kind, needed, (*needed, *optional))
        settings = {"when" if key == "if" else key: value for key, value in item.items() if key != "kind"}
        return KINDS[kind](**settings)
    except TypeError as error:
        raise TypeError(f"relation number {place}: {error}") from error


def _check_keys(item: Mapping[Any, Any], kind: str, needed: tuple[str, ...], known: tuple[str, ...]) -> None:
    missing = [key for key in needed if key not in item]
    if missing:
        raise TypeError(f"'{missing[0]}' is missing; a relation of kind {kind!r} has {', '.join(known)}")
    unknown = [key for key in item if key not in known]
    if unknown:
        raise TypeError(
            f"no setting {shown(unknown[0])}{did_you_mean(unknown[0], known)}; a relation of kind {kind!r} has "
            f"{', '.join(known)}"
        )


# ---- what a relation is made of ----


def _name(relation: object, where: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{type(relation).__name__}: {where} must be the name of a column, got {shown(value)}")


def _names(relation: object, where: str, values: Any, least: int) -> tuple[str, ...]:
    called = type(relation).__name__
    if isinstance(values, (str, Mapping)) or not isinstance(values, Iterable):
        raise TypeError(f"{called}: {where} is {shown(values)}; give a tuple of names, such as ({shown(values)},)")
    names = tuple(values)
    for name in names:
        _name(relation, where, name)
    if len(names) < least:
        raise ValueError(
            f"{called}: {where} needs {'a name' if least == 1 else 'two or more names'}, got {list(names)}"
        )
    if repeated(names):
        raise ValueError(f"{called}: {where} has {repeated(names)} more than once; list each once")
    return names


def _rows(rows: Any, width: int) -> tuple[tuple[Level, ...], ...]:
    if isinstance(rows, (str, Mapping)) or not isinstance(rows, Iterable):
        raise TypeError(f"Determines: rows is {shown(rows)}; give a tuple of rows, such as (('HS-grad', 9),)")
    found = []
    for row in rows:
        if isinstance(row, (str, Mapping)) or not isinstance(row, Iterable):
            raise TypeError(f"Determines: rows has {shown(row)}; each row is a tuple, such as ('HS-grad', 9)")
        values = tuple(map(plain, row))
        odd = [value for value in values if not is_level(value)]
        if odd:
            raise TypeError(f"Determines: rows has {shown(odd[0])}; {LEVELS_ARE}")
        if len(values) != width:
            raise ValueError(
                f"Determines: the row {shown(values)} has {len(values)} values; expected {width}, one for each column "
                "of by and the value that they fix"
            )
        found.append(values)
    return tuple(found)


def _conditions(side: str, given: Any) -> dict[str, Allowed]:
    if not isinstance(given, Mapping):
        raise TypeError(f"Implies: {side} is {shown(given)}; give a mapping, such as {{'marital': ('Married',)}}")
    if not given:
        raise ValueError(f"Implies: {side} is empty; name a column and what it may be")
    return {_condition_name(side, name): _condition(side, name, allowed) for name, allowed in given.items()}


def _condition_name(side: str, name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"Implies: {side} must name columns, got {shown(name)}")
    return name


def _condition(side: str, name: str, allowed: Any) -> Allowed:
    if isinstance(allowed, (OneOf, Between)):
        return allowed
    if isinstance(allowed, (str, Mapping)) or not isinstance(allowed, Iterable):
        raise TypeError(
            f"Implies: {side} has {shown(allowed)} for '{name}'; give a tuple of levels, such as ({shown(allowed)},), "
            "or (low, high) for a number"
        )
    values = tuple(map(plain, allowed))
    odd = [value for value in values if not (is_level(value) or (isinstance(value, float) and math.isinf(value)))]
    if odd:
        raise TypeError(f"Implies: {side} has {shown(odd[0])} for '{name}'; {LEVELS_ARE}")
    if not values:
        raise ValueError(f"Implies: {side} allows nothing for '{name}'; list its levels, or (low, high) for a number")
    if repeated(values) and not (len(values) == 2 and _is_number(values[0])):
        raise ValueError(f"Implies: {side} has {repeated(values)} more than once for '{name}'; list each once")
    a_range = len(values) == 2 and all(map(_is_number, values)) and values[0] <= values[1]
    return Between(values) if a_range else OneOf(values)


def _gains(by: Any) -> dict[Level, float]:
    if not isinstance(by, Mapping):
        try:
            by = dict(by)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Follows: by is {shown(by)}; give a mapping, such as {{'HS-grad': 0, 'Bachelors': 4}}"
            ) from error
    gains = {plain(level): plain(gain) for level, gain in by.items()}
    for level, gain in gains.items():
        if not is_level(level):
            raise TypeError(f"Follows: by has {shown(level)}; {LEVELS_ARE}")
        if not _is_number(gain) or not math.isfinite(gain):
            raise TypeError(f"Follows: by has {shown(gain)} for {shown(level)}; it must be a finite number")
    return gains


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


# ---- against features ----


def _feature(relation: Relation, name: str, features: Mapping[str, Feature]) -> Feature:
    if name not in features:
        raise ValueError(
            f"relation '{relation}': no feature '{name}'{did_you_mean(name, features)}; name features of the schema"
        )
    return features[name]


def _number(relation: Relation, feature: Feature) -> None:
    if not feature.is_numeric:
        raise ValueError(f"relation '{relation}': '{feature.name}' is {feature.kind}; expected a number")


def _check_value(relation: Relation, feature: Feature, value: Level, hint: str = "") -> None:
    if feature.is_numeric and not _is_number(value):
        raise ValueError(f"relation '{relation}': '{feature.name}' is a number, but the relation has {shown(value)}")
    if not feature.is_numeric and value not in feature.values:
        raise ValueError(
            f"relation '{relation}': '{feature.name}' has no level {shown(value)}{did_you_mean(value, feature.values)}"
            f"; its levels are {_values(feature.values, 12)}{hint}"
        )


# ---- on tables ----


def _check_columns(table: pd.DataFrame, names: tuple[str, ...]) -> None:
    import pandas as pd

    from holdfast.tabular.checks import check_columns

    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"expected a pandas DataFrame, got {type(table).__name__}; wrap it with pd.DataFrame(...)")
    check_columns(table, names)


def _cells(table: pd.DataFrame, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].tolist() for name in names), strict=True))


def _hashable_cells(table: pd.DataFrame, names: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """The cells, with None for what can be no level, such as a list."""
    return [tuple(cell if isinstance(cell, Hashable) else None for cell in row) for row in _cells(table, names)]


def _numbers(table: pd.DataFrame, names: tuple[str, ...]) -> NDArray[np.float64]:
    """(n, k), NaN where a value is missing."""
    import numpy as np

    from holdfast.tabular.checks import holds_numbers

    _check_columns(table, names)
    for name in names:
        if not holds_numbers(table[name]) and not table[name].isna().all():
            raise ValueError(f"column '{name}' should hold numbers but is {table[name].dtype}; use pd.to_numeric")
    return np.stack([table[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names], axis=1)


def _slack(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """By how much a sum or an order of each row (n, k) may be off: whole numbers add up exactly."""
    import numpy as np

    whole = (numbers == np.rint(numbers)).all(1)
    return np.where(whole, 0.0, TOLERANCE * np.abs(numbers).max(1, initial=0))


def _or_missing(right: Any, table: pd.DataFrame, names: tuple[str, ...]) -> NDArray[np.bool_]:
    import numpy as np

    return np.asarray(right, dtype=bool) | table[list(names)].isna().to_numpy().any(1)


def _met(conditions: Mapping[str, tuple[Level, ...]], table: pd.DataFrame) -> NDArray[np.bool_]:
    import numpy as np

    met = np.ones(len(table), dtype=bool)
    for name, allowed in conditions.items():
        if isinstance(allowed, Between):
            numbers = _numbers(table, (name,))[:, 0]
            met &= (numbers >= allowed[0]) & (numbers <= allowed[-1])
        else:
            levels = set(allowed)
            met &= np.array([cell in levels for (cell,) in _hashable_cells(table, (name,))], dtype=bool)
    return met


def _allows(allowed: tuple[Level, ...], value: Any) -> bool:
    return allowed[0] <= value <= allowed[-1] if isinstance(allowed, Between) else value in allowed


def _same(first: Any, second: Any) -> bool:
    if _is_number(first) and _is_number(second):
        return bool(math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=1e-12))
    return bool(first == second)


# ---- in words ----


def _value(value: Any) -> str:
    value = plain(value)
    return f"{value:.10g}" if isinstance(value, float) else repr(value)


def _values(values: Iterable[Any], most: int = _MOST) -> str:
    told = [_value(value) for value in values]
    return ", ".join(told[:most]) + (f", ... ({len(told)} in all)" if len(told) > most else "")


def _listed(words: Iterable[str], joint: str = "and") -> str:
    *first, last = words
    return f"{', '.join(first)} {joint} {last}" if first else last


def _told(conditions: Mapping[str, tuple[Level, ...]], verb: str = "is") -> str:
    return _listed([f"{name} {verb} {_told_values(allowed)}" for name, allowed in conditions.items()])


def _told_values(allowed: tuple[Level, ...]) -> str:
    if not isinstance(allowed, Between):
        words = [str(value) for value in allowed]
        return _listed(words if len(words) <= _MOST else [*words[:_MOST], f"{len(words) - _MOST} more"], "or")
    low, high = (float(number) for number in (allowed[0], allowed[-1]))
    if low == high:
        return f"{low:.10g}"
    if math.isinf(low) or math.isinf(high):
        return f"at most {high:.10g}" if math.isinf(low) else f"at least {low:.10g}"
    return f"{low:.10g} to {high:.10g}"
