"""What single people want: what they keep, what they would rather change, and between which values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from holdfast.tabular.feature import Feature, Level, as_tuple, shown
from holdfast.tabular.personal import Personal
from holdfast.utils.messages import did_you_mean, plain
from holdfast.utils.settings import check_whole

if TYPE_CHECKING:
    from holdfast.tabular.encoding import Encoding

PREFERRED = 1 / 3  # what a move of a feature counts that a person would rather change


@dataclass(frozen=True)
class Wish:
    """What one person asks of a counterfactual, in the table's own names and units.

    Args:
        keep: features that they refuse to change
        prefer: features that they would rather change: a move of one counts a third of what it counts otherwise
        ranges: where they would go, within the schema's bounds: ``{"duration_months": (12, 24)}``; two levels of an
            ordinal feature likewise. Who is outside may stay there

    Examples:
        >>> import holdfast as hf
        >>> ranges = {"duration_months": (12, 24)}
        >>> wish = hf.Wish(keep=("housing",), prefer=("savings",), ranges=ranges)
        >>> print(wish)
        keep 'housing'; rather change 'savings'; 'duration_months' from 12 to 24
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> space = encoding.space_for(wish, rows=5)  # for five people who want the same
        >>> space.changeable[:, encoding.columns.index("housing=owned")].tolist()
        [False, False, False, False, False]

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, names user preferences; its own searches
    have none. The idea is that of [Mahajan et al. 2019](https://arxiv.org/abs/1912.03277).
    """

    keep: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[Level, Level]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("keep", "prefer"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        object.__setattr__(self, "ranges", _ranges(self.ranges))
        both = sorted(set(self.keep) & {*self.prefer, *self.ranges})
        if both:
            raise ValueError(f"a wish keeps {both} but would change it too; take it out of keep, or out of the others")

    def __str__(self) -> str:
        """In words: keep 'housing'; rather change 'savings'; 'duration_months' from 12 to 24."""
        parts = [f"keep {_listed(self.keep)}"] if self.keep else []
        parts += [f"rather change {_listed(self.prefer)}"] if self.prefer else []
        parts += [f"'{name}' from {_end(low)} to {_end(high)}" for name, (low, high) in self.ranges.items()]
        return "; ".join(parts) or "nothing"


def personal_of(wishes: Wish | Sequence[Wish | None], rows: int | None, encoding: Encoding) -> Personal:
    """The wishes as numbers for every person and encoded column."""
    each = _one_for_each(wishes, rows)
    kinds: dict[int, Wish | None] = {id(wish): wish for wish in each}
    different = Personal.none(len(kinds), encoding.width)
    for row, wish in enumerate(kinds.values()):
        if wish is not None:
            _enter(wish, row, different, encoding)
    places = {kind: row for row, kind in enumerate(kinds)}
    return different.of(torch.tensor([places[id(wish)] for wish in each], dtype=torch.long))


def _enter(wish: Wish, row: int, people: Personal, encoding: Encoding) -> None:
    places = {feature.name: (feature, columns) for feature, columns in encoding.places}
    for name in (*wish.keep, *wish.prefer, *wish.ranges):
        if name not in places:
            raise ValueError(f"a wish names '{name}', which is no feature of the schema{did_you_mean(name, places)}")
    for name in wish.keep:
        people.mutable[row, places[name][1]] = False
    for name in wish.prefer:
        people.weight[row, places[name][1]] = PREFERRED
    for name, ends in wish.ranges.items():
        feature, columns = places[name]
        column = columns.start
        low, high = _raw_ends(feature, ends)
        lowest, highest = float(encoding.lower[column]), float(encoding.upper[column])
        if low > highest or high < lowest:
            raise ValueError(
                f"a wish for '{name}' between {ends[0]} and {ends[1]} leaves nothing: the schema allows "
                f"{_told(feature, lowest)} to {_told(feature, highest)}; widen the wish, or keep '{name}'"
            )
        encoded = (np.array([low, high]) - encoding.shift[column]) / encoding.scale[column]
        people.lower[row, column], people.upper[row, column] = encoded.tolist()


def _raw_ends(feature: Feature, ends: tuple[Level, Level]) -> tuple[float, float]:
    """The ends of a wish as numbers: themselves, or the places of two levels."""
    if feature.kind in ("categorical", "binary"):
        raise ValueError(f"a wish gives a range for '{feature.name}', whose levels have no order; keep it, or leave it")
    if feature.kind == "ordinal":
        strange = [end for end in ends if end not in feature.levels]
        if strange:
            raise ValueError(
                f"a wish for '{feature.name}' names the level {strange[0]!r}"
                f"{did_you_mean(strange[0], feature.levels)}; its levels are {list(feature.levels)}"
            )
        low, high = (float(feature.levels.index(end)) for end in ends)
    elif any(isinstance(end, (str, bool)) for end in ends):
        raise TypeError(f"a wish for '{feature.name}' has the range {ends!r}; expected two numbers")
    else:
        low, high = (float(end) for end in ends)
    if not low <= high:
        raise ValueError(f"a wish for '{feature.name}' has the range {ends!r}, which ends before it begins; swap them")
    return low, high


def _told(feature: Feature, number: float) -> str:
    return str(feature.levels[int(number)]) if feature.kind == "ordinal" else f"{number:g}"


def _one_for_each(wishes: Any, rows: int | None) -> list[Wish | None]:
    if isinstance(wishes, Wish):
        if rows is None:
            raise ValueError("one wish for how many people? space_for(wish, rows=len(x))")
        check_whole("rows", rows, least=0)
        return [wishes] * rows
    each = list(
        as_tuple(wishes, "expected a Wish or None for each person, but wishes", "(Wish(keep=('housing',)), None)")
    )
    for row, wish in enumerate(each):
        if wish is not None and not isinstance(wish, Wish):
            raise TypeError(f"person {row} has {shown(wish)} for a wish; expected Wish(keep=('housing',)) or None")
    if rows is not None and rows != len(each):
        raise ValueError(f"there are {len(each)} wishes for {rows} rows; give one wish, or None, for each person")
    return each


def _end(value: Level) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _names(name: str, given: Any) -> tuple[str, ...]:
    names = as_tuple(given, f"{name} of a wish", f"({shown(given)},)")
    for feature in names:
        if not isinstance(feature, str):
            raise TypeError(f"{name} of a wish has {shown(feature)}; expected the names of features")
    return names


def _ranges(given: Any) -> dict[str, tuple[Level, Level]]:
    if not isinstance(given, Mapping):
        raise TypeError(
            f"ranges of a wish is {shown(given)}; give a dictionary, such as {{'duration_months': (12, 24)}}"
        )
    found = {}
    for name, ends in given.items():
        pair = tuple(map(plain, as_tuple(ends, f"the range of a wish for {name!r}", "(12, 24)")))
        if len(pair) != 2:
            raise TypeError(f"a wish for {name!r} has the range {shown(ends)}; give two ends, such as (12, 24)")
        found[name] = (pair[0], pair[1])
    return found
