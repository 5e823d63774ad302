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
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from holdfast.tabular.feature import LEVELS_ARE, Feature, Level, as_tuple, is_level, shown
from holdfast.utils.messages import did_you_mean, plain, repeated

if TYPE_CHECKING:
    import pandas as pd

TOLERANCE = 5e-7  # of the largest number in a row: what rounding may do to a sum or to an order
_MOST_LISTED = 4  # values that a sentence lists


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
        return f"{_joined(self.by)} {'fixes' if len(self.by) == 1 else 'fix'} {self.column}"

    def check(self, features: Mapping[str, Feature]) -> Determines:
        """Raise a ValueError that says what does not fit these features, or return the relation."""
        for column_index, name in enumerate(self.columns):
            feature = _feature(self, name, features)
            for row in self.rows:
                _check_value(self, feature, row[column_index])
        return self

    def learn(self, table: pd.DataFrame, commonest: bool = False) -> Determines:
        """The same relation with the rows that a table shows; missing values are passed over.

        Where the table has two answers for one question, raises a ValueError that shows the values and their counts, or
        takes the ``commonest``, to look for the others.
        """
        rows = []
        ambiguous = []
        for key, found in self._counts(table).items():
            rows.append((*key, found.most_common(1)[0][0]))
            ambiguous += [(key, found)] if len(found) > 1 else []
        if ambiguous and not commonest:
            key, found = ambiguous[0]
            answers = [f"{_value(value)} ({_counted(count)})" for value, count in found.most_common(_MOST_LISTED)]
            more = f"; and {len(ambiguous) - 1} more of {_joined(self.by)}" if len(ambiguous) > 1 else ""
            raise ValueError(
                f"relation '{self}' does not hold in the table: where {_are(self.by, key)}, {self.column} is "
                f"{', '.join(answers)}{more}. Correct the table, or give the rows by hand with "
                "Determines(by, column, rows=...)"
            )
        rows.sort(key=lambda row: [(isinstance(value, str), value) for value in reversed(row)])
        return replace(self, rows=tuple(rows))

    def _counts(self, table: pd.DataFrame) -> dict[tuple[Level, ...], Counter[Level]]:
        from holdfast.tabular.checks import check_columns, check_table  # pandas, which relations alone do not need

        check_table(table)
        check_columns(table, self.columns)
        counts: dict[tuple[Level, ...], Counter[Level]] = {}
        complete = table[list(self.columns)].dropna()
        for (*key, value), count in Counter(complete.itertuples(index=False, name=None)).items():
            counts.setdefault(tuple(key), Counter())[value] += count
        return counts


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
        >>> relation = hf.Implies(when={"job": ("none",)}, then={"salary": (0, 0)})
        >>> print(relation)
        if job is none, then salary is 0

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


@dataclass(frozen=True)
class Exclusive:
    """At most one of these numbers is above 0: ``Exclusive(("capital_gain", "capital_loss"))``.

    Args:
        columns: two or more columns of numbers

    Examples:
        >>> import holdfast as hf
        >>> print(hf.Exclusive(("gain", "loss")))
        at most one of gain and loss is above 0

    Paper: constraints between features are those of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _names(self, "columns", self.columns, 2))

    def __str__(self) -> str:
        return f"at most one of {_joined(self.columns)} is above 0"

    def check(self, features: Mapping[str, Feature]) -> Exclusive:
        """Raise a ValueError that says what does not fit these features, or return the relation."""
        for name in self.columns:
            _number(self, _feature(self, name, features))
        return self


@dataclass(frozen=True)
class Ordered:
    """Each column is at most the next: ``Ordered(("satisfactory", "total"))``. Numbers, or ordinals of the same levels.

    Args:
        columns: two or more columns, the smallest first

    Examples:
        >>> import holdfast as hf
        >>> relation = hf.Ordered(("paid_on_time", "payments"))
        >>> print(relation)
        paid_on_time <= payments

    Paper: constraints between features are those of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    columns: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", _names(self, "columns", self.columns, 2))

    def __str__(self) -> str:
        return " <= ".join(self.columns)

    def check(self, features: Mapping[str, Feature]) -> Ordered:
        """Raise a ValueError that says what does not fit these features, or return the relation as they read it."""
        first, *others = (_feature(self, name, features) for name in self.columns)
        if first.kind != "ordinal":
            for feature in (first, *others):
                _number(self, feature)
            return self
        for feature in others:
            if feature.kind != "ordinal" or feature.levels != first.levels:
                raise ValueError(
                    f"relation '{self}': '{first.name}' is ordinal, so '{feature.name}' must be ordinal with the same "
                    f"levels {list(first.levels)}; it is {feature.kind} {list(feature.levels) or ''}".rstrip()
                )
        return self


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
        >>> print(relation)
        income = salary + rent

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
        >>> relation = hf.Follows("age", "education", by={"school": 0, "degree": 4})  # a degree takes four years
        >>> print(relation)
        age rises with education

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


Relation = Determines | Implies | Exclusive | Ordered | Sums | Follows
KINDS: dict[str, type[Relation]] = {
    "determines": Determines,
    "implies": Implies,
    "exclusive": Exclusive,
    "ordered": Ordered,
    "sums": Sums,
    "follows": Follows,
}


def check_relations(relations: Iterable[Relation], features: Mapping[str, Feature]) -> tuple[Relation, ...]:
    """The relations as these features read them, or an error that names the relation and what is wrong with it."""
    given = as_tuple(relations, "relations", "(Ordered(('a', 'b')),)")
    for number, relation in enumerate(given, start=1):
        if not isinstance(relation, tuple(KINDS.values())):
            raise TypeError(
                f"relation number {number} is {shown(relation)} ({type(relation).__name__}); expected one of "
                f"{', '.join(kind.__name__ for kind in KINDS.values())}"
            )
    checked: tuple[Relation, ...] = tuple(relation.check(features) for relation in given)
    twice = [relation for number, relation in enumerate(checked) if relation in checked[:number]]
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


def explain(relation: Relation, row: Mapping[Any, Any]) -> str:
    """What a row says of a relation that it breaks, and what must be."""
    values = [plain(row[name]) for name in relation.columns]
    broken = f"{_are(relation.columns, values)}; {relation}"
    if not isinstance(relation, Determines):
        return broken
    fixed = {listed[:-1]: listed[-1] for listed in relation.rows}
    key = tuple(values[:-1])
    return f"{broken} to {_value(fixed[key])}" if key in fixed else f"{broken}, and no row lists {_values(key)}"


# ---- in a file ----


def relation_to_dict(relation: Relation) -> dict[str, Any]:
    """As a file has it: plain tables, lists, texts and numbers. What is empty is left out."""
    item: dict[str, Any] = {"kind": type(relation).__name__.lower()}
    for name, setting in _settings(type(relation)).items():
        value = getattr(relation, setting.name)
        if value not in (None, (), {}):
            item[name] = _in_a_file(value)
    return item


def _in_a_file(value: Any) -> Any:
    if isinstance(value, Mapping):
        # The keys of a file are text, so levels that are not go in pairs.
        pairs = [[key, _in_a_file(part)] for key, part in value.items()]
        return dict(pairs) if all(isinstance(key, str) for key in value) else pairs
    return [_in_a_file(part) for part in value] if isinstance(value, tuple) else value


def _settings(kind: type[Relation]) -> dict[str, Field[Any]]:
    """The settings of a relation by their names in a file."""
    return {"if" if setting.name == "when" else setting.name: setting for setting in fields(kind) if setting.compare}


def relation_from_dict(item: Any, number: int = 1) -> Relation:
    """What `relation_to_dict` made, or what somebody wrote by hand; what is wrong with it comes with its place."""
    try:
        check_keys(item, (), None)
        kind = item.get("kind")
        if not isinstance(kind, str) or kind not in KINDS:
            raise TypeError(f"kind is {shown(kind)}{did_you_mean(kind, KINDS)}; choose one of {', '.join(KINDS)}")
        settings = _settings(KINDS[kind])
        needed = [name for name, setting in settings.items() if setting.default is setting.default_factory is MISSING]
        given = {name: value for name, value in item.items() if name != "kind"}
        check_keys(given, needed, settings)
        return KINDS[kind](**{settings[name].name: value for name, value in given.items()})
    except TypeError as error:
        raise TypeError(f"relation number {number}: {error}") from error


def check_keys(values: Any, needed: Iterable[str], known: Iterable[str] | None) -> None:
    """Raise a TypeError for a part of a file that lacks a setting, or has one that nobody knows."""
    if not isinstance(values, Mapping):
        raise TypeError(f"expected a table of settings, got {shown(values)} ({type(values).__name__})")
    there_are = "" if known is None else f"; there are {', '.join(known)}"
    for name in needed:
        if name not in values:
            raise TypeError(f"'{name}' is missing{there_are}")
    for name in values:
        if known is not None and name not in known:
            raise TypeError(f"no setting {shown(name)}{did_you_mean(name, known)}{there_are}")


# ---- what a relation is made of ----


def _name(relation: object, where: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{type(relation).__name__}: {where} must be the name of a column, got {shown(value)}")


def _names(relation: object, where: str, values: Any, least: int) -> tuple[str, ...]:
    called = type(relation).__name__
    names = as_tuple(values, f"{called}: {where}", f"({shown(values)},)")
    for name in names:
        _name(relation, where, name)
    if len(names) < least:
        raise ValueError(
            f"{called}: {where} needs {'a name' if least == 1 else 'two or more names'}, got {list(names)}"
        )
    if repeated(names):
        raise ValueError(f"{called}: {where} has {repeated(names)} more than once; list each once")
    return names


def _rows(given: Any, width: int) -> tuple[tuple[Level, ...], ...]:
    rows = []
    for row in as_tuple(given, "Determines: rows", "(('HS-grad', 9),)"):
        values = tuple(map(plain, as_tuple(row, "Determines: a row of rows", "('HS-grad', 9)")))
        for value in values:
            _check_level(value, "Determines: rows")
        if len(values) != width:
            raise ValueError(
                f"Determines: the row {shown(values)} has {len(values)} values; expected {width}, one for each column "
                "of by and the value that they fix"
            )
        rows.append(values)
    return tuple(rows)


def _check_level(value: object, where: str) -> None:
    if not is_level(value):
        raise TypeError(f"{where} has {shown(value)}; {LEVELS_ARE}")


def _conditions(side: str, given: Any) -> dict[str, Allowed]:
    if not isinstance(given, Mapping):
        raise TypeError(f"Implies: {side} is {shown(given)}; give a mapping, such as {{'marital': ('Married',)}}")
    if not given:
        raise ValueError(f"Implies: {side} is empty; name a column and what it may be")
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"Implies: {side} must name columns, got {shown(name)}")
    return {name: _condition(f"Implies: {side}['{name}']", allowed) for name, allowed in given.items()}


def _condition(where: str, allowed: Any) -> Allowed:
    if isinstance(allowed, (OneOf, Between)):
        return allowed
    example = f"({shown(allowed)},) for levels, or (low, high) for a number"
    values = tuple(map(plain, as_tuple(allowed, where, example)))
    for value in values:
        if not (isinstance(value, float) and math.isinf(value)):
            _check_level(value, where)
    if not values:
        raise ValueError(f"{where} allows nothing; list its levels, or (low, high) for a number")
    if repeated(values) and not (len(values) == 2 and _is_number(values[0])):
        raise ValueError(f"{where} has {repeated(values)} more than once; list each once")
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
        _check_level(level, "Follows: by")
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


# ---- in words ----


def _value(value: Any) -> str:
    value = plain(value)
    return f"{value:.10g}" if isinstance(value, float) else repr(value)


def _values(values: Iterable[Any], most: int = _MOST_LISTED) -> str:
    words = [_value(value) for value in values]
    return ", ".join(words[:most]) + (f", ... ({len(words)} in all)" if len(words) > most else "")


def _are(names: Iterable[str], values: Iterable[Any]) -> str:
    return _joined([f"{name} is {_value(value)}" for name, value in zip(names, values, strict=True)])


def _counted(rows: int) -> str:
    return f"{rows} {'row' if rows == 1 else 'rows'}"


def _joined(words: Iterable[str], joint: str = "and") -> str:
    *first, last = words
    return f"{', '.join(first)} {joint} {last}" if first else last


def _told(conditions: Mapping[str, tuple[Level, ...]]) -> str:
    return _joined([f"{name} is {_told_values(allowed)}" for name, allowed in conditions.items()])


def _told_values(allowed: tuple[Level, ...]) -> str:
    if not isinstance(allowed, Between):
        words = [str(value) for value in allowed]
        return _joined(
            words if len(words) <= _MOST_LISTED else [*words[:_MOST_LISTED], f"{len(words) - _MOST_LISTED} more"], "or"
        )
    low, high = (float(number) for number in (allowed[0], allowed[-1]))
    if low == high:
        return f"{low:.10g}"
    if math.isinf(low) or math.isinf(high):
        return f"at most {high:.10g}" if math.isinf(low) else f"at least {low:.10g}"
    return f"{low:.10g} to {high:.10g}"
