"""One column of a table: what it means, and what a person can change about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from numbers import Real
from typing import Any, Literal

from holdfast.tabular import phrases
from holdfast.utils.messages import plain

Level = str | int | float | bool
Kind = Literal["real", "integer", "binary", "ordinal", "categorical"]
Direction = Literal["any", "rise", "fall"]

KINDS: tuple[Kind, ...] = ("real", "integer", "binary", "ordinal", "categorical")
DIRECTIONS: tuple[Direction, ...] = ("any", "rise", "fall")
NUMERIC: tuple[Kind, ...] = ("real", "integer")
LEVELS_ARE = "a level or class is text without zero characters, a finite number, or True or False"


@dataclass(frozen=True)
class Feature:
    """One column of a table: its kind, and what a person may do about it.

    Args:
        name: the name of the column
        kind: "real" or "integer" (one number), "binary" (two levels, one 0/1 column), "ordinal" (levels in their order,
            one column that counts them) or "categorical" (one column per level)
        mutable: False if no counterfactual may ever change it
        lower: the smallest number that a person may move to; what the training rows show when left out
        upper: the largest number, likewise
        levels: what a binary, ordinal or categorical column can hold, in order
        direction: "rise" or "fall" when a person can only move it one way; of levels, along the order they are listed
            in. A level to avoid has no place in that order: from there a person may move to any other
        step: the grid of a number: 100 for "in hundreds"; an integer has 1 unless told otherwise
        zero_level: the level of a categorical column that is written as all zeros rather than as a column
        avoid: levels of a categorical column that some people have but no one is told to move to: "unknown"
        ranges: the parts of the line that a number may move to, in order: ``((0, 41310), (99999, 99999))``; what the
            training rows show when left out, see "Where people are" of the page on schemas
        difficulty: how hard a change is beside the same change of other features: 2 is twice as hard
        missing: True if the column may have missing values; they stay or get a value, and no one is told to lose one
        phrase: how a letter speaks of it: a text, or by language ``{"en": "shorten the loan from {now} to {then}"}``;
            instead of a text also ``{"name": ..., "rise": ..., "fall": ..., "levels": {...}}``, see the page on the
            letter

    Examples:
        >>> import holdfast as hf
        >>> savings = hf.Feature("savings", "integer", direction="rise", step=100)
        >>> savings.revised(upper=5000).upper
        5000
        >>> levels = ("rent", "own", "unknown")
        >>> housing = hf.Feature("housing", "categorical", levels=levels, avoid=levels[2:])
        >>> savings.width, housing.width  # encoded columns
        (1, 3)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, names features that cannot be changed; its
    own searches may change every feature. The constraints are those of
    [Ustun et al. 2019](https://arxiv.org/abs/1809.06514).
    """

    name: str
    kind: Kind
    mutable: bool = True
    lower: float | None = None
    upper: float | None = None
    levels: tuple[Level, ...] = ()
    direction: Direction = "any"
    step: float | None = None
    zero_level: Level | None = None
    avoid: tuple[Level, ...] = ()
    ranges: tuple[tuple[float, float], ...] = ()
    difficulty: float = 1.0
    missing: bool = False
    phrase: Any = field(default=(), compare=False, repr=False)  # `Phrases`, once it is made

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"the name of a feature must be text, got {self.name!r} ({type(self.name).__name__})")
        for name in ("levels", "avoid"):
            given = getattr(self, name)
            levels = as_tuple(given, f"feature '{self.name}': {name}", f"({shown(given)},)")
            object.__setattr__(self, name, tuple(map(plain, levels)))
        for name in ("lower", "upper", "step", "zero_level", "difficulty"):
            object.__setattr__(self, name, plain(getattr(self, name)))
        for problem in self._type_problems():
            raise TypeError(f"feature '{self.name}': {problem}")
        object.__setattr__(self, "ranges", tuple(tuple(map(plain, ends)) for ends in self.ranges))
        self._read_phrase()
        for problem in self._problems():
            raise ValueError(f"feature '{self.name}': {problem}")

    def _read_phrase(self) -> None:
        try:
            object.__setattr__(self, "phrase", phrases.phrases_of(self.phrase))
        except (TypeError, ValueError) as error:
            raise type(error)(f"feature '{self.name}': {error}") from None

    def _type_problems(self) -> Iterable[str]:
        for name in ("mutable", "missing"):
            if not isinstance(getattr(self, name), bool):
                yield f"{name} is {shown(getattr(self, name))}; it must be True or False"
        for name in ("lower", "upper", "step"):
            value = getattr(self, name)
            if value is not None and not _is_finite_number(value):
                yield f"{name} is {shown(value)}; it must be a finite number, or None"
        if not _is_finite_number(self.difficulty):
            yield f"difficulty is {shown(self.difficulty)}; it must be a finite number above 0"
        if not _is_pairs(self.ranges):
            yield f"ranges is {shown(self.ranges)}; give pairs of finite numbers, such as ((0, 40), (60, 60))"
        for name in ("levels", "avoid"):
            for value in getattr(self, name):
                if not is_level(value):
                    yield f"{name} has {shown(value)}; {LEVELS_ARE}"
        if self.zero_level is not None and not is_level(self.zero_level):
            yield f"zero_level is {shown(self.zero_level)}; {LEVELS_ARE}"

    def _problems(self) -> Iterable[str]:
        if self.kind not in KINDS:
            yield f"kind is {self.kind!r}; choose one of {', '.join(KINDS)}"
        if self.direction not in DIRECTIONS:
            yield f"direction is {self.direction!r}; choose one of {', '.join(DIRECTIONS)}"
        if not self.difficulty > 0:
            yield f"difficulty is {self.difficulty}; it must be above 0; set mutable=False for what no one can change"
        if self.is_numeric:
            yield from self._numeric_problems()
        else:
            yield from self._level_problems()
        yield from phrases.problems(self.phrase, self.values, self.is_ordered)

    def _numeric_problems(self) -> Iterable[str]:
        if self.levels or self.avoid or self.zero_level is not None:
            yield f"levels are for columns of levels, not for {self.kind!r}; use lower and upper"
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            yield f"lower {self.lower} is above upper {self.upper}; swap them"
        if self.step is not None and not self.step > 0:
            yield f"step is {self.step}; it must be above 0"
        for name in ("lower", "upper", "step"):
            value = getattr(self, name)
            if self.kind == "integer" and value is not None and abs(value) >= 2**63:
                yield f"{name} is {shown(value)}, but whole numbers end before 2^63; make the feature 'real'"
        if self.kind == "integer" and self.step is not None and self.step != int(self.step):
            yield f"step is {self.step}, which is not whole; make the feature 'real' or the step whole"
        yield from self._range_problems()

    def _range_problems(self) -> Iterable[str]:
        for low, high in self.ranges:
            if low > high:
                yield f"ranges has {(low, high)}, which ends before it begins; swap the two"
            if self.kind == "integer" and max(abs(low), abs(high)) >= 2**63:
                yield f"ranges has {(low, high)}, but whole numbers end before 2^63; make the feature 'real'"
        for before, after in pairwise(self.ranges):
            if after[0] <= before[1]:
                yield f"ranges has {after} after {before}; list them in order, and join those that touch or overlap"
        below = self.lower is not None and any(low < self.lower for low, _ in self.ranges)
        above = self.upper is not None and any(high > self.upper for _, high in self.ranges)
        if below or above:
            bounds = f"lower {self.lower} and upper {self.upper}"
            yield f"ranges {list(self.ranges)} must lie between {bounds}; change the one or the other"

    def _level_problems(self) -> Iterable[str]:
        if self.lower is not None or self.upper is not None or self.step is not None or self.ranges:
            yield f"lower, upper, step and ranges are for numbers, not for {self.kind!r}; restrict levels instead"
        if len(set(self.levels)) != len(self.levels):
            yield f"levels {list(self.levels)} repeat one another; list each once"
        if self.kind == "binary" and len(self.levels) != 2:
            yield f"a binary feature has two levels, got {list(self.levels)}"
        if self.kind == "ordinal" and len(self.levels) < 2:
            yield f"an ordinal feature has at least two levels, got {list(self.levels)}"
        if self.kind == "categorical" and not self.levels:
            yield "a categorical feature needs its levels; list them in levels=(...)"
        if self.zero_level is not None and self.kind != "categorical":
            yield f"zero_level is for categorical features, not for {self.kind!r}"
        if self.zero_level is not None and self.zero_level in self.levels:
            yield f"zero_level {self.zero_level!r} stands among levels too; take it out of levels"
        if self.avoid and (self.kind != "categorical" or not set(self.avoid) <= set(self.values)):
            yield f"avoid {list(self.avoid)} must be levels of a categorical feature, here of {list(self.values)}"
        if self.avoid and set(self.avoid) == set(self.values):
            yield "avoid leaves no level to move to; set mutable=False instead"
        if self.missing and self.kind == "binary":
            yield "a binary feature has no room for missing values; make it categorical, which has"
        if self.missing and self.zero_level is not None:
            yield (
                f"missing values and zero_level {self.zero_level!r} would both be written as all zeros; move "
                f"{self.zero_level!r} to levels, or fill the missing values with it and leave out missing=True"
            )

    def revised(self, **changes: Any) -> Feature:
        """The same feature with other settings; what the new kind or the new bounds leave no room for goes.

        New bounds cut the ranges, or stretch the outermost one. A number that becomes a column of levels loses its
        bounds, and the other way round. Levels have no order by themselves: an ordinal feature needs them listed, and a
        categorical one with a direction too.
        """
        kind = changes.get("kind", self.kind)
        direction = changes.get("direction", "any")
        without_order = (kind == "ordinal" and self.kind == "categorical") or (
            kind == "categorical" and direction != "any"
        )
        if without_order and "levels" not in changes:
            raise ValueError(
                f"feature '{self.name}': categories have no order and no direction by themselves; list the levels in "
                f"their order, revise({self.name!r}, kind={kind!r}, levels=(...))"
            )
        if kind in KINDS and (kind in NUMERIC) != self.is_numeric:
            gone = ("lower", "upper", "step", "ranges") if self.is_numeric else ("levels", "avoid", "zero_level")
            changes = {name: _DEFAULTS[name] for name in gone} | changes
        elif {"lower", "upper"} & set(changes) and "ranges" not in changes:
            changes |= {"ranges": _within(self.ranges, changes.get("lower"), changes.get("upper"))}
        return replace(self, **changes)

    @property
    def is_numeric(self) -> bool:
        """Whether it is a number: "real" or "integer"."""
        return self.kind in NUMERIC

    @property
    def is_ordered(self) -> bool:
        """Whether its values rise and fall."""
        return self.kind != "categorical" or self.direction != "any"

    @property
    def width(self) -> int:
        """How many encoded columns it takes."""
        return len(self.levels) if self.kind == "categorical" else 1

    @property
    def values(self) -> tuple[Level, ...]:
        """Every level the raw column may hold, the one written as zeros included."""
        return self.levels if self.zero_level is None else (*self.levels, self.zero_level)

    @property
    def grid(self) -> float | None:
        """The step between neighbouring values in raw units; None for a free real number."""
        if self.kind == "real":
            return self.step
        return None if self.kind == "categorical" else float(self.step or 1)


_DEFAULTS = {setting.name: setting.default for setting in fields(Feature)}


def _within(
    ranges: tuple[tuple[float, float], ...], lower: float | None, upper: float | None
) -> tuple[tuple[float, float], ...]:
    """The ranges between new bounds, which the outermost ones reach; none where none is left."""
    if not all(bound is None or _is_finite_number(bound) for bound in (lower, upper)):
        return ranges  # the feature will say what is wrong
    inside = [
        (low if lower is None else max(low, lower), high if upper is None else min(high, upper)) for low, high in ranges
    ]
    inside = [ends for ends in inside if ends[0] <= ends[1]]
    if inside and lower is not None:
        inside[0] = (lower, inside[0][1])
    if inside and upper is not None:
        inside[-1] = (inside[-1][0], upper)
    return tuple(inside)


def _is_pairs(value: object) -> bool:
    return (
        isinstance(value, (tuple, list))
        and all(isinstance(ends, (tuple, list)) and len(ends) == 2 for ends in value)
        and all(_is_finite_number(end) for ends in value for end in ends)
    )


def as_tuple(given: Any, name: str, example: str) -> tuple[Any, ...]:
    """What was given as a list of values; a text or a mapping, whose parts are no values, is refused."""
    if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is {shown(given)}; give a tuple or a list, such as {example}")
    return tuple(given)


def is_level(value: object) -> bool:
    if isinstance(value, str):
        return "\0" not in value  # which no CSV file can hold
    return isinstance(value, bool) or (isinstance(value, (int, float)) and _is_finite_number(value))


def _is_finite_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number of more than 308 digits
        return False


def shown(value: object) -> str:
    """A value as a message shows it, however long it is."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return f"a number of about {int(math.log10(abs(value))) + 1} digits"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
