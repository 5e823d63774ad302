"""Relations between columns, on encoded rows: who breaks one, and what else changes when one column does.

Relations speak of values: numbers and levels. Here encoded rows are read as values, the rules of
`holdfast.tabular.rules` complete them, and what has changed is written back as encoding would have written it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.tabular.feature import Feature
from holdfast.tabular.relations import Follows, Relation
from holdfast.tabular.rules import Limits, Rule, compiled, mended

SLACK = 1e-6  # of a number's range: what float32 does to a number without a grid; a search would use any more
ON_GRID = 1e-3  # of a step: what rounding does to a number on a grid


@dataclass(frozen=True, eq=False)
class Related:
    """The features that relations name, where they stand among the encoded columns, and the rules between them.

    encoded = (number − shift) / scale, as in the `Space` that this belongs to.
    """

    relations: tuple[Relation, ...]
    rules: tuple[Rule, ...]
    columns: tuple[tuple[int, ...], ...]  # of each of m features: one, or those of a one-hot group
    grouped: tuple[bool, ...]  # which of the features are one-hot groups, if only of one column
    shift: Tensor  # (d,) float64
    scale: Tensor  # (d,)
    step: Tensor  # (m,) grid of the raw number, 0 where it has none
    slack: Tensor  # (m,) by how much two raw numbers may differ and still be the same
    fill: Tensor  # (m,) the raw number that stands for a missing one; NaN where none does
    missing: tuple[int, ...]  # one-hot features for which all off is missing

    @classmethod
    def of(
        cls,
        relations: tuple[Relation, ...],
        places: Sequence[tuple[Feature, slice]],
        shift: NDArray[np.float64],
        scale: NDArray[np.float64],
        width: NDArray[np.float64],
        fill: NDArray[np.float64],
    ) -> Related | None:
        """From what an `Encoding` knows; ``width`` (d,) is how far the bounds of a raw number are apart."""
        names = {name for relation in relations for name in relation.columns}
        named = [(feature, columns) for feature, columns in places if feature.name in names]
        if not named:
            return None
        features, first = tuple(feature for feature, _ in named), [columns.start for _, columns in named]
        grouped = tuple(feature.kind == "categorical" for feature in features)
        step = torch.tensor([feature.grid or 0.0 for feature in features], dtype=torch.float64)
        slack = torch.where(step > 0, ON_GRID * step, SLACK * torch.from_numpy(width[first]))
        return cls(
            relations=relations,
            rules=compiled(relations, features, slack.tolist()),
            columns=tuple(tuple(range(columns.start, columns.stop)) for _, columns in named),
            grouped=grouped,
            shift=torch.from_numpy(shift),
            scale=torch.from_numpy(scale),
            step=step,
            slack=slack,
            fill=torch.from_numpy(fill[first]),
            missing=tuple(n for n, feature in enumerate(features) if feature.missing and grouped[n]),
        )

    def to(self, like: Tensor) -> Related:
        """On the device of another tensor; numbers stay in float64."""
        if self.shift.device == like.device:
            return self
        parts: dict[str, Any] = {name: getattr(self, name) for name in ("shift", "scale", "step", "slack", "fill")}
        return replace(self, **{name: part.to(like.device) for name, part in parts.items()})

    @cached_property
    def follows(self) -> Tensor:
        """Which encoded columns move with others only: (d,) bool."""
        following = [{rule.places[0]} for rule in self.rules if isinstance(rule.relation, Follows)]
        return self._columns_of(following).any(0)

    @cached_property
    def parts(self) -> Tensor:
        """The columns that relations join, directly or through others, one row for each such part: (c, d) bool."""
        joined: list[set[int]] = []
        for rule in self.rules:
            connected = set(rule.places).union(*(part for part in joined if part & set(rule.places)))
            joined = [part for part in joined if not part & connected] + [connected]
        return self._columns_of(joined)

    @cached_property
    def _columns_of_rules(self) -> Tensor:
        """(r, d) bool"""
        return self._columns_of([rule.places for rule in self.rules])

    def _columns_of(self, parts: Sequence[Collection[int]]) -> Tensor:
        """The encoded columns of sets of features, one row each: (len(parts), d) bool."""
        masks = torch.zeros(len(parts), len(self.shift), dtype=torch.bool, device=self.shift.device)
        for row, part in enumerate(parts):
            masks[row, [column for feature_index in part for column in self.columns[feature_index]]] = True
        return masks

    @cached_property
    def _numbers(self) -> tuple[Tensor, Tensor]:
        """Which features are no groups (q,), and their columns (q,)."""
        single = [number for number, grouped in enumerate(self.grouped) if not grouped]
        return (
            torch.tensor(single, dtype=torch.long, device=self.shift.device),
            torch.tensor([self.columns[number][0] for number in single], dtype=torch.long, device=self.shift.device),
        )

    @cached_property
    def _groups(self) -> list[tuple[int, list[int]]]:
        """Which features are groups, and their columns."""
        return [(number, list(self.columns[number])) for number, grouped in enumerate(self.grouped) if grouped]

    @cached_property
    def _first(self) -> Tensor:
        """The first column of every feature: (m,)."""
        return torch.tensor([columns[0] for columns in self.columns], device=self.shift.device)

    def values(self, x: Tensor, middle: Tensor) -> Tensor:
        """What encoded rows (n, d) say, as rules have it: (n, m). Columns of groups are on above ``middle`` (d,)."""
        found = x.new_zeros(len(x), len(self.columns), dtype=torch.float64)
        features, columns = self._numbers
        number = x[:, columns].double() * self.scale[columns] + self.shift[columns]
        grain = torch.where(self.step[features] > 0, self.step[features], 1)
        steps = torch.round(number / grain)
        doubt = ON_GRID + 8 * torch.finfo(x.dtype).eps * (number.abs() + self.shift[columns].abs()) / grain
        on_grid = (self.step[features] > 0) & ((number / grain - steps).abs() <= doubt)
        number = torch.where(on_grid, steps * grain, number)
        missing = x[:, columns] == self._encoded(self.fill[features], columns).to(x.dtype)
        found[:, features] = torch.where(missing, torch.nan, number)
        for feature, group in self._groups:
            on = x[:, group] > middle[group]
            level = torch.where(on.any(1), on.to(torch.int8).argmax(1), len(group)).double()
            found[:, feature] = torch.where(on.any(1) | (feature not in self.missing), level, torch.nan)
        return found

    def written(self, x: Tensor, before: Tensor, after: Tensor, off: Tensor, on: Tensor) -> Tensor:
        """The encoded rows after their values have changed: other columns keep their bits; groups are off or on."""
        x = x.clone()
        changed = (after != before) & ~(after.isnan() & before.isnan())
        features, columns = self._numbers
        encoded = self._encoded(after[:, features], columns).to(x.dtype)
        x[:, columns] = torch.where(changed[:, features], encoded, x[:, columns])
        for feature, group in self._groups:
            chosen = torch.arange(len(group), device=x.device) == after[:, feature, None]
            levels = torch.where(chosen, on[group], off[group])
            x[:, group] = torch.where(changed[:, feature, None], levels, x[:, group])
        return x

    def _encoded(self, number: Tensor, columns: Tensor) -> Tensor:
        return (number - self.shift[columns]) / self.scale[columns]

    def limits(self, low: Tensor, high: Tensor, movable: Tensor) -> Limits:
        """Where each person may go, from bounds of encoded columns and which may change (n, d)."""
        first = self._first
        ends = [bound[:, first].double() * self.scale[first] + self.shift[first] for bound in (low, high)]
        for feature, group in self._groups:
            ends[0][:, feature], ends[1][:, feature] = 0, len(group)
        # What rounding has taken from a bound on the grid must not exclude it.
        room = torch.where(self.step > 0, ON_GRID * self.step, 0)
        return Limits(ends[0] - room, ends[1] + room, movable[:, first], self.step, self.slack)

    def completed(
        self, broken: Tensor, values: Tensor, home: Tensor, kept: Tensor, limits: Limits
    ) -> tuple[Tensor, Tensor]:
        """The values with what the rules that are `broken` demand, and where that can be.

        Features that are kept (n, m) stay as they are.
        """
        return mended(self.rules, broken, values, home, kept, limits)

    def kept(self, columns: Tensor) -> Tensor:
        """Encoded columns that must stay (n, d) as features that must: (n, m)."""
        return columns[:, self._first]

    def broken(self, values: Tensor, home: Tensor) -> Tensor:
        """Which rules each row breaks, worse than at home: (n, r) bool."""
        return torch.stack([~rule.acceptable(values, home) for rule in self.rules], dim=1)

    def broken_columns(self, values: Tensor, home: Tensor) -> Tensor:
        """The columns of every relation that a row breaks, worse than at home: (n, d) bool."""
        broken = self.broken(values, home)
        return (broken.double() @ self._columns_of_rules.double()) > 0
