"""At which raw numbers the splits of trees change sides, asked through the steps between a table and the trees.

Most steps rise or fall with a number throughout, so that every split changes sides once. Some do not: a 0 that is
missing to the library, a number cut into bins with a column for each. Then sides change between neighbours of a grid of
known numbers, once or not at all; whoever builds on that compares the result with the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.models.adapters.seen import Inputs
from holdfast.models.trees.ensemble import Floats
from holdfast.tabular.feature import Feature

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Compare = Callable[[Floats, Floats], Bools]  # numbers, thresholds -> goes left
GRID = 1000  # known values of a number that are looked at first
SPLITS = 10_000  # that are looked at with the whole grid at once
PROBES = 4000  # numbers of a feature that are asked about at once
FURTHER = (-1e3, 1e3, -1e9, 1e9)  # spans beyond the data where splits are still looked for
WHOLE = 2.0**53  # up to which every whole number is a float64
MAGNITUDE = np.iinfo(np.int64).max  # the bits of a float64 but its sign


@dataclass(frozen=True, eq=False)
class Cuts:
    """Splits of numbers: each a column and a threshold."""

    inputs: Inputs
    below: Compare
    column: Ints  # (k,)
    threshold: Floats  # (k,)
    missing_left: Bools  # (k,) where a number goes that becomes NaN
    holes: bool = True  # whether to look for the ends of holes first: numbers that become NaN

    @property
    def source(self) -> Ints:
        return self.inputs.source[self.column]

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.inputs.encoding.schema.features

    def found(self) -> tuple[Bools, Ints, Floats]:
        """Whether the smallest number goes left at each split (k,); where a side changes, the split and the largest
        number before: (b,) twice, in order."""
        first, own, start, end, side = self._between_known()
        whole = np.array([feature.kind == "integer" for feature in self.features])[self.source[own]]
        low, high = (
            np.where(whole, np.where(whole, ends, 0).astype(np.int64), _ordered(ends)) for ends in (start, end)
        )
        parts = max(1, PROBES // max(1, int(np.bincount(self.source[own], minlength=1).max())))
        which = np.arange(len(low))
        while (_apart(low, high) > 1).any():
            inside = _between(low, high, parts)  # (parts, b)
            same = self._left(np.where(whole, inside.astype(np.float64), _float(inside)), own) == side
            steps = np.logical_and.accumulate(same).sum(axis=0)
            ladder = np.concatenate([low[None], inside, high[None]])
            low, high = ladder[steps, which], ladder[steps + 1, which]
        return first, own, np.where(whole, low.astype(np.float64), _float(low))

    def _left(self, raw: Floats, own: Ints) -> Bools:
        """Whether numbers (n, b), a column for each of some splits, go left there."""
        asked, rows = {}, np.empty(raw.shape, dtype=np.int64)
        source = self.source[own]
        for place in np.unique(source).tolist():
            these = np.flatnonzero(source == place)
            asked[place] = raw[:, these].reshape(-1)
            rows[:, these] = np.arange(len(asked[place])).reshape(len(raw), -1)
        return self._goes_left(self.inputs.at(asked)[rows, self.column[own]], own)

    def _goes_left(self, values: Floats, own: Ints) -> Bools:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(np.isnan(values), self.missing_left[own], self.below(values, self.threshold[own]))

    def _between_known(self) -> tuple[Bools, Ints, Floats, Floats, Bools]:
        """The side of the smallest number at each split; and for every change of sides the split, the two numbers of a
        grid that it lies between, and the side before."""
        used = np.unique(self.column)
        grids, columns = self._with_holes({place: self._grid(place) for place in np.unique(self.source).tolist()}, used)
        further = {place: self._further(place, grid) for place, grid in grids.items()}
        beyond = self._beyond(further)
        first, found = np.zeros(len(self.column), dtype=bool), []
        for column in used.tolist():
            place = int(self.inputs.source[column])
            grid = np.stack([grids[place], columns[: len(grids[place]), column]])
            if _one_way(grid[1]):
                grid = _stretched(grid, np.stack([further[place][: len(beyond)], beyond[:, column]]))
            splits = np.flatnonzero(self.column == column)
            for own in np.array_split(splits, 1 + len(splits) // SPLITS):
                side = self._goes_left(grid[1][:, None], own)  # (grid, splits)
                first[own] = side[0]
                before, split = np.nonzero(side[:-1] != side[1:])
                found.append((own[split], grid[0][before], grid[0][before + 1], side[before, split]))
        own, low, high, side = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.lexsort((low, own))
        return first, own[order], low[order], high[order], side[order]

    def _with_holes(self, grids: dict[int, Floats], used: Ints) -> tuple[dict[int, Floats], Floats]:
        """Grids that have both sides of the ends of every hole, and their columns. A column may change sides at the end
        of a hole and again before the next known number."""
        columns = self.inputs.at(grids)
        holed = [
            column
            for column in used.tolist()
            if np.isnan(columns[: len(grids[self.inputs.source[column]]), column]).any()
        ]
        if not holed or not self.holes:
            return grids, columns
        never, yes = np.full(len(holed), -np.inf), np.ones(len(holed), dtype=bool)  # what is NaN goes left, else right
        cuts = Cuts(self.inputs, self.below, np.array(holed), never, yes, holes=False)
        _, own, before = cuts.found()
        for place in np.unique(cuts.source[own]).tolist():
            ends = before[cuts.source[own] == place]
            after = ends + 1 if self.features[place].kind == "integer" else np.nextafter(ends, np.inf)
            grids = grids | {place: np.unique(np.concatenate([grids[place], ends, after]))}
        return grids, self.inputs.at(grids)

    def _grid(self, place: int) -> Floats:
        """Numbers of the data and of the encoding's bounds, in order."""
        encoding, feature = self.inputs.encoding, self.features[place]
        assert encoding.known is not None
        known = np.unique(encoding.known[feature.name].dropna().to_numpy(dtype=np.float64))
        some = known[np.linspace(0, len(known) - 1, min(GRID, len(known))).astype(int)]
        column = encoding.places[place][1].start
        ends = np.array([encoding.lower[column], encoding.upper[column]])
        ends = np.rint(ends) if feature.kind == "integer" else ends
        zero = [0.0] if ends[0] <= 0 <= ends[1] else []  # which a sparse matrix may take for a missing value
        return np.unique([*some, *ends, *zero])

    def _further(self, place: int, grid: Floats) -> Floats:
        """Numbers beyond the data: (len(FURTHER),)."""
        span = float(grid[-1] - grid[0]) or abs(float(grid[0])) or 1.0
        ends = np.array([grid[0] + times * span if times < 0 else grid[-1] + times * span for times in FURTHER])
        return np.rint(ends.clip(-WHOLE, WHOLE)) if self.features[place].kind == "integer" else ends

    def _beyond(self, further: dict[int, Floats]) -> Floats:
        """Their columns, as far as the user's own steps take such numbers: (at most len(FURTHER), m)."""
        for most in (len(FURTHER), len(FURTHER) // 2):
            try:
                return self.inputs.at({place: own[:most] for place, own in further.items()})
            except Exception:  # the steps may refuse a number in whatever way they like
                continue
        return np.zeros((0, len(self.inputs.source)))


def _one_way(values: Floats) -> bool:
    """Whether numbers rise or fall throughout."""
    steps = np.diff(values)
    return bool(np.isfinite(values).all() and ((steps >= 0).all() or (steps <= 0).all()))


def _stretched(grid: Floats, further: Floats) -> Floats:
    """Numbers and what they become (2, n), with those beyond that still go the same way."""
    for raw, value in further.T:
        own = np.array([[raw], [value]])
        longer = np.concatenate([own, grid] if raw < grid[0, 0] else [grid, own], axis=1)
        if (raw < grid[0, 0] or raw > grid[0, -1]) and _one_way(longer[1]):
            grid = longer
    return grid


def _apart(low: Ints, high: Ints) -> NDArray[np.uint64]:
    """high − low, which may be too large for a number with a sign."""
    apart: NDArray[np.uint64] = high.view(np.uint64) - low.view(np.uint64)
    return apart


def _between(low: Ints, high: Ints, parts: int) -> Ints:
    """So many numbers in order from low to high (parts, k), one of them between the two where there is any."""
    apart, whole = _apart(low, high), np.uint64(parts + 1)
    step = np.arange(1, parts + 1, dtype=np.uint64)[:, None]
    inside: Ints = (low.view(np.uint64) + apart // whole * step + apart % whole * step // whole).view(np.int64)
    return inside


def _ordered(numbers: Floats) -> Ints:
    """float64 numbers as whole numbers in the same order, neighbours one apart."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & MAGNITUDE))


def _float(ordered: Ints) -> Floats:
    """What `_ordered` made whole numbers of."""
    size = np.ascontiguousarray(np.abs(ordered)).view(np.float64)
    return np.where(ordered < 0, -size, size)
