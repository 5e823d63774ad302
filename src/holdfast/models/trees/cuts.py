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
AROUND_ZERO = (-1e-30, 0.0, 1e-30)  # a library may take 0, and what it rounds to 0, for a missing value
MAGNITUDE = np.iinfo(np.int64).max  # the bits of a float64 but its sign


@dataclass(frozen=True, eq=False)
class Cuts:
    """Splits of numbers: each a column and a threshold."""

    inputs: Inputs
    below: Compare
    column: Ints  # (k,)
    threshold: Floats  # (k,)
    missing_left: Bools  # (k,) where a number goes that becomes NaN

    @property
    def source(self) -> Ints:
        return self.inputs.source[self.column]

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.inputs.encoding.schema.features

    def changes(self) -> tuple[Bools, Ints, Floats]:
        """Whether the smallest number goes left at each split (k,); where a side changes, the split and the largest
        number before: (b,) twice, in order."""
        first, split_of, start, end, side = self._between_known()
        low, high = _ordered(start), _ordered(end)
        parts = max(1, PROBES // max(1, int(np.bincount(self.source[split_of], minlength=1).max())))
        which = np.arange(len(low))
        while (high - low > 1).any():
            inside = _between(low, high, parts)  # (parts, b)
            same = self._left(_float(inside), split_of) == side
            steps = np.logical_and.accumulate(same).sum(axis=0)
            ladder = np.concatenate([low[None], inside, high[None]])
            low, high = ladder[steps, which], ladder[steps + 1, which]
        before = _float(low)
        is_whole = np.array([feature.kind == "integer" for feature in self.features])[self.source[split_of]]
        return first, split_of, np.where(is_whole, np.floor(before), before)

    def _left(self, raw: Floats, splits: Ints) -> Bools:
        """Whether numbers (n, b), a column for each of some splits, go left there."""
        numbers, rows = {}, np.empty(raw.shape, dtype=np.int64)
        source = self.source[splits]
        for feature_index in np.unique(source).tolist():
            these = np.flatnonzero(source == feature_index)
            numbers[feature_index] = raw[:, these].reshape(-1)
            rows[:, these] = np.arange(len(numbers[feature_index])).reshape(len(raw), -1)
        return self._goes_left(self.inputs.at(numbers)[rows, self.column[splits]], splits)

    def _goes_left(self, values: Floats, splits: Ints) -> Bools:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(np.isnan(values), self.missing_left[splits], self.below(values, self.threshold[splits]))

    def _between_known(self) -> tuple[Bools, Ints, Floats, Floats, Bools]:
        """The side of the smallest number at each split; and for every change of sides the split, the two numbers of a
        grid that it lies between, and the side before."""
        grids = {feature_index: self._grid(feature_index) for feature_index in np.unique(self.source).tolist()}
        columns = self.inputs.at(grids)
        first, found = np.zeros(len(self.column), dtype=bool), []
        for column in np.unique(self.column).tolist():
            grid = grids[int(self.inputs.source[column])]
            splits = np.flatnonzero(self.column == column)
            for chunk in np.array_split(splits, 1 + len(splits) // SPLITS):
                side = self._goes_left(columns[: len(grid), column, None], chunk)  # (grid, splits)
                first[chunk] = side[0]
                before, split = np.nonzero(side[:-1] != side[1:])
                found.append((chunk[split], grid[before], grid[before + 1], side[before, split]))
        split_of, low, high, side = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.lexsort((low, split_of))
        return first, split_of[order], low[order], high[order], side[order]

    def _grid(self, feature_index: int) -> Floats:
        """Numbers of the data and of the encoding's bounds, in order. No two neighbours have 0 between them."""
        encoding, feature = self.inputs.encoding, self.features[feature_index]
        assert encoding.known is not None
        known = np.unique(encoding.known[feature.name].dropna().to_numpy(dtype=np.float64))
        chosen_numbers = known[np.linspace(0, len(known) - 1, min(GRID, len(known))).astype(int)]
        column = encoding.places[feature_index][1].start
        grid = np.array([*chosen_numbers, encoding.lower[column], encoding.upper[column]])
        if grid.min() <= 0 <= grid.max():
            grid = np.append(grid, AROUND_ZERO)
        return np.unique(np.rint(grid) if feature.kind == "integer" else grid)


def _between(low: Ints, high: Ints, parts: int) -> Ints:
    """So many numbers in order from low to high (parts, k), one of them between the two where there is any."""
    distance, step = high - low, np.arange(1, parts + 1)[:, None]
    inside: Ints = low + distance // (parts + 1) * step + distance % (parts + 1) * step // (parts + 1)
    return inside


def _ordered(numbers: Floats) -> Ints:
    """float64 numbers as whole numbers in the same order, neighbours one apart."""
    bits = np.ascontiguousarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & MAGNITUDE))


def _float(ordered: Ints) -> Floats:
    """What `_ordered` made whole numbers of."""
    size = np.ascontiguousarray(np.abs(ordered)).view(np.float64)
    return np.where(ordered < 0, -size, size)
