"""What a person can do, cell by cell: which cells of an ensemble they can move to, at which value and at what cost.

A value that a person is told must lie in its cell after it was written down: encoded in the dtype of the rows and
decoded again. So both ends of what is allowed of a cell are tried, and moved inwards where rounding has carried them
across a threshold. Of a number that may be anything, an end is a value of few decimals near the threshold: 3.43 rather
than 3.4217001.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.trees.ensemble import Ensemble
from holdfast.tabular.feature import Feature
from holdfast.tabular.shares import share_below
from holdfast.tabular.space import Space

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Cells = NDArray[np.int64]  # (n, f)

INSIDE = 1e-3  # of a column's scale, how far inside its cell a value may lie to be a round number,
PART = 0.1  # and of the cell's width
DECIMALS = 12
TRIES = 6  # steps inwards, where rounding has carried an end across its threshold


@dataclass(frozen=True, eq=False)
class Board:
    """The cells of all features one after another, k in all, and the values that are allowed in each.

    A cell of a number that a gap cuts has several parts; part p of all cells is one layer.
    """

    ensemble: Ensemble
    space: Space  # in the dtype of the rows
    offset: Ints  # (f + 1,) where the cells of each feature begin
    column: Ints  # (k,) encoded column; of a categorical feature that of the level, −1 for none
    low: Floats  # (layers, k) the lowest value allowed in a cell; NaN where there is none, and of categories
    high: Floats  # (layers, k)

    @classmethod
    def of(cls, ensemble: Ensemble, space: Space) -> Board:
        counts = ensemble.counts()
        offset = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        column = np.full(offset[-1], -1, dtype=np.int64)
        for number, (feature, place) in enumerate(ensemble.encoding.places):
            own = column[offset[number] : offset[number + 1]]
            if not _is_line(feature):
                own[: feature.width] = np.arange(place.start, place.stop)
            else:
                own[:] = place.start
        board = cls(ensemble, space, offset, column, np.empty((0, 0)), np.empty((0, 0)))
        low, high = board._verified(*board._ends())
        return cls(ensemble, space, offset, column, low, high)

    def features(self) -> Iterator[tuple[Feature, slice, slice]]:
        """Every feature, its encoded columns and its cells."""
        for (feature, place), start, end in zip(
            self.ensemble.encoding.places, self.offset[:-1], self.offset[1:], strict=True
        ):
            yield feature, place, slice(int(start), int(end))

    def _parts(self, column: int) -> list[tuple[float, float]]:
        return self.space.segments(column) if bool(self.space.mutable[column]) else []

    def _ends(self) -> tuple[Floats, Floats]:
        """Both ends of every part of every cell, before they are tried."""
        own = zip(self.features(), self.ensemble.edges, strict=True)
        lines = [(feature, place.start, cells, edges) for (feature, place, cells), edges in own if _is_line(feature)]
        parts = {column: self._parts(column) for _, column, _, _ in lines}
        layers = max([len(part) for part in parts.values()], default=0) or 1
        low, high = (np.full((layers, len(self.column)), np.nan) for _ in range(2))
        for feature, column, cells, edges in lines:
            inner = edges if feature.is_numeric else np.arange(len(feature.values) - 1, dtype=np.float64) + 0.5
            numbers = slice(cells.start, cells.start + len(inner) + 1)  # all but the cell of a missing value
            for layer, segment in enumerate(parts[column]):
                low[layer, numbers], high[layer, numbers] = self._cut(inner, segment, column)
        return low, high

    def _cut(self, edges: Floats, segment: tuple[float, float], column: int) -> tuple[Floats, Floats]:
        """The part of every cell that lies in a segment of the line, encoded."""
        grain, shift, scale = (float(part[column]) for part in (self.space.step, self.space.shift, self.space.scale))
        first, last = (end * scale + shift for end in segment)
        below, above = np.concatenate([[-np.inf], np.nextafter(edges, np.inf)]), np.concatenate([edges, [np.inf]])
        if grain > 0:
            slack = 1e-4 * grain
            low = np.ceil(np.maximum(first - slack, below) / grain) * grain
            high = np.floor(np.minimum(last + slack, above) / grain) * grain
            return (low - shift) / scale, (high - shift) / scale
        low, high = np.maximum(below, first), np.minimum(above, last)
        room = np.minimum(INSIDE * scale, PART * (high - low))
        at_low, at_high = below <= first, above >= last  # ends of the segment, which are no thresholds
        low_end = np.where(at_low, segment[0], (_rounded(low, room, np.ceil) - shift) / scale)
        high_end = np.where(at_high, segment[1], (_rounded(high, -room, np.floor) - shift) / scale)
        empty = ~(low <= high)
        return np.where(empty, np.nan, low_end), np.where(empty, np.nan, high_end)

    def _verified(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The ends as the rows' dtype holds them, where a person who is told them is in the cell."""
        return self._tried(low, high, 1), self._tried(high, low, -1)

    def _tried(self, ends: Floats, others: Floats, way: int) -> Floats:
        dtype = self.space.lower.numpy().dtype
        grid = (self.space.step / self.space.scale).numpy()[self.column]
        ends = np.where((others - ends) * way >= -1e-9 * np.maximum(1, np.abs(ends)), ends, np.nan)
        found = ends.astype(dtype)
        for turn in range(TRIES):
            wrong = ~np.isnan(found) & ~self._inside(found)
            if not wrong.any():
                break
            near = found
            for _ in range(2**turn):
                near = np.nextafter(near, np.array(way * np.inf, dtype=dtype))
            stepped = (ends + way * (turn + 1) * grid).astype(dtype)
            found = np.where(wrong, np.where(grid > 0, stepped, near), found)
        beyond = (others - found) * way < -1e-5 * np.abs(found) - 1e-9
        return np.where(self._inside(found) & ~beyond, found, np.nan).astype(np.float64)

    def _inside(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Which values (layers, k) a person can be told: decoded they lie in their cell, and none says "missing"."""
        own = [(number, p.start, c) for number, (f, p, c) in enumerate(self.features()) if _is_line(f)]
        most = max([cells.stop - cells.start for *_, cells in own], default=0)
        inside: NDArray[np.bool_] = np.zeros(values.shape, dtype=bool)
        for layer, row in enumerate(values):
            rows = self.space.lower.repeat(most, 1)
            for _, column, cells in own:
                rows[: cells.stop - cells.start, column] = torch.from_numpy(np.nan_to_num(row[cells]))
            there = self.ensemble.cells_of(self.ensemble.encoding.raw(rows))
            for number, _, cells in own:
                count = cells.stop - cells.start
                inside[layer, cells] = there[:count, number] == np.arange(count)
        inside &= ~np.isnan(values)
        return inside

    # ---- for some people ----

    def offers(self, origin: Tensor, home: Cells, norm: int, space: Space) -> tuple[Floats, Floats]:
        """What each cell costs each person (n, k), infinite where they cannot go, and the value there (n, k).

        ``space`` is that of these people. Their own cells cost nothing.
        """
        cost, value = self._lines(origin, norm, space)
        if self._categories:
            reachable = space.reachable(origin)
            for feature, place, cells in self._categories:
                allowed = _allowed_levels(reachable, feature, place, space)
                prices = self._levels(origin, place, norm, space)
                cost[:, cells] = np.where(allowed, prices, np.inf)[:, : cells.stop - cells.start]
        rows = np.arange(len(origin))[:, None]
        own = self.offset[:-1] + home
        cost[rows, own] = 0.0
        return cost, value

    @cached_property
    def _categories(self) -> list[tuple[Feature, slice, slice]]:
        return [own for own in self.features() if not _is_line(own[0])]

    def _lines(self, origin: Tensor, norm: int, space: Space) -> tuple[Floats, Floats]:
        """The nearest allowed value of every cell and what it costs, for numbers and levels of one column."""
        wide = origin.double().numpy()[:, self.column]  # (n, k); of cells without a column, whatever
        ends = [part.double().numpy() for part in space.limits(origin)]
        least, most = (part[..., self.column] for part in ends)
        changeable = space.changeable.numpy()[..., self.column]
        cost, value = np.full(wide.shape, np.inf), wide.copy()
        for low, high in zip(self.low, self.high, strict=True):
            near = self._nearest(wide, low, high, least, most, space)
            noise = 1e-6 * np.abs(near) if origin.dtype == torch.float32 else 1e-12 * np.abs(near)
            fits = changeable & (near >= low) & (near <= high) & (near >= least - noise) & (near <= most + noise)
            paid = np.where(fits, self._paid(near, wide, norm, space), np.inf)
            better = paid < cost
            cost, value = np.where(better, paid, cost), np.where(better, near, value)
        return cost, value

    def _nearest(self, home: Floats, low: Floats, high: Floats, least: Floats, most: Floats, space: Space) -> Floats:
        """The value of every cell nearest to home: (n, k)."""
        if space.personal is not None:
            grid, shift, scale = (part.numpy()[self.column] for part in (space.step, space.shift, space.scale))
            grain = np.where(grid > 0, grid, 1)
            up = (np.ceil((least * scale + shift) / grain - 1e-4) * grain - shift) / scale
            down = (np.floor((most * scale + shift) / grain + 1e-4) * grain - shift) / scale
            low = np.maximum(low, np.where(grid > 0, up, least))
            high = np.minimum(high, np.where(grid > 0, down, most))
        near = np.minimum(np.maximum(home, low), high)
        lost = self._lost
        if lost is not None:
            near = np.where(
                (near == home) & np.isclose(home, lost, rtol=1e-6, atol=0), self._beside(near, low, high), near
            )
        return self._held(near)

    def _beside(self, near: Floats, low: Floats, high: Floats) -> Floats:
        """Values next to the number that says "missing"."""
        grid, shift, scale = (
            part.numpy()[self.column] for part in (self.space.step, self.space.shift, self.space.scale)
        )
        grain = np.where(grid > 0, grid, 1)
        up = np.where(grid > 0, (np.ceil((near * scale + shift) / grain) * grain - shift) / scale, near + INSIDE)
        down = np.where(grid > 0, (np.floor((near * scale + shift) / grain) * grain - shift) / scale, near - INSIDE)
        return np.where(up <= high, up, np.where(down >= low, down, high))

    @cached_property
    def _lost(self) -> Floats | None:
        """(k,) the number that says "missing" in the column of a cell, NaN where there is none."""
        if not self.space.missing:
            return None
        lost = np.full(self.space.width, np.nan)
        for column, number in self.space.missing:
            lost[column] = number
        return lost[self.column]

    def _held(self, values: Floats) -> Floats:
        """As the dtype of the rows holds them."""
        held: Floats = values.astype(self.space.lower.numpy().dtype).astype(np.float64)
        return held

    def _paid(self, value: Floats, home: Floats, norm: int, space: Space) -> Floats:
        if space.quantiles is None:
            moved = np.abs(value - home)
        else:
            knots = space.quantiles.double()[:, self.column]
            moved = np.abs(_shares(value, knots) - _shares(home, knots))
        weights = space.weights
        if weights is not None:
            moved = moved * weights.double().numpy()[..., self.column]
        return moved**norm

    def _levels(self, origin: Tensor, place: slice, norm: int, space: Space) -> Floats:
        """What each level of a categorical feature costs, and none of them, last: (n, levels + 1)."""
        columns = np.arange(place.start, place.stop)
        home = origin.double().numpy()[:, columns]
        off, on = (np.broadcast_to(part.double().numpy()[columns], home.shape) for part in (space.lower, space.upper))
        if space.quantiles is not None:
            knots = space.quantiles.double()[:, columns]
            home, off, on = (_shares(part, knots) for part in (home, off, on))
        weights = 1.0 if space.weights is None else space.weights.double().numpy()[..., columns]
        cost = _switched((weights * np.abs(off - home)) ** norm, (weights * np.abs(on - home)) ** norm)
        if space.quantiles is None:
            return cost
        # As Space.moved shares out a changed level among its columns.
        each, net = _switched(np.abs(off - home), np.abs(on - home)), _switched(off - home, on - home)
        shared: Floats = cost * np.where(each > 0, (1 + np.abs(net) / np.where(each > 0, each, 1)) / 2, 1) ** norm
        return shared

    def written(self, origin: Tensor, home: Cells, cells: Cells, value: Floats) -> Tensor:
        """The rows at these cells; what keeps its cell keeps its bits: (n, d)."""
        point = origin.clone()
        for number, (feature, place, own) in enumerate(self.features()):
            moved = np.flatnonzero(cells[:, number] != home[:, number])
            if not len(moved):
                continue
            to = cells[moved, number].astype(np.int64)
            rows = torch.from_numpy(moved)
            if _is_line(feature):
                point[rows, place.start] = torch.from_numpy(value[moved, own.start + to]).to(point)
                continue
            was = home[moved, number].astype(np.int64)
            for levels, ends in ((was, self.space.lower), (to, self.space.upper)):
                real = levels < feature.width
                columns = torch.from_numpy(place.start + levels[real])
                point[rows[torch.from_numpy(real)], columns] = ends[columns]
        return point


def _is_line(feature: Feature) -> bool:
    """Whether a feature is one encoded column of numbers."""
    return feature.kind != "categorical"


def _allowed_levels(
    reachable: tuple[Tensor, Tensor], feature: Feature, place: slice, space: Space
) -> NDArray[np.bool_]:
    """Which levels people may have, and whether none, last: (n, levels + 1)."""
    group = next(number for number, own in enumerate(space.groups) if own.columns[0] == place.start)
    on, off = reachable[0][:, group, : feature.width], reachable[1][:, group, None]
    allowed: NDArray[np.bool_] = (torch.cat([on, off], 1) & space.changeable[..., place.start, None]).numpy()
    return allowed


def _switched(off: Floats, on: Floats) -> Floats:
    """Sums over the columns of a group, from what each adds off and on, with each of them on and with none, last."""
    none = off.sum(1, keepdims=True)
    return np.concatenate([none - off + on, none], axis=1)


def _shares(values: Floats, knots: Tensor) -> Floats:
    shares: Floats = share_below(torch.from_numpy(np.ascontiguousarray(values)), knots).numpy()
    return shares


def _rounded(ends: Floats, room: Floats, towards: Any) -> Floats:
    """Near each end the number of fewest decimals, ``room`` away from it at most, on the side that room is on."""
    best = ends.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        for decimals in range(DECIMALS, -1, -1):
            shorter = towards(ends * 10.0**decimals) / 10.0**decimals
            away = (shorter - ends) * np.sign(room)
            best = np.where((away >= 0) & (away <= np.abs(room)), shorter, best)
    return best
