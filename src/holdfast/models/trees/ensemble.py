"""Trees of any library as arrays over the schema's own features.

What a tree can tell apart of a feature are its *cells*. A number has one between any two neighbouring thresholds of the
whole ensemble; a feature of levels has one for every level; a missing value is a cell of its own, the last. A row is
then one cell per feature, a split is a set of cells that go left, and the ensemble is the same function whatever lies
between the table and the trees, as long as every number that the trees see comes from one feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.model import LEAST_PROBABILITY
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature

Cells = NDArray[np.int32]  # (n, f) the cell of each row in each feature
Floats = NDArray[np.float64]
Link = Literal["logit", "probability"]


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble:
    """Additive trees: the sum over trees of the value of the leaf that a row falls in, and what is added to all.

    Nodes of all trees lie one after another; a child is the number of a node. A row goes left at a node of a number if
    its cell is at most ``split``, at a node of levels if its cell is in the set ``split`` of ``sets``; a missing value
    of a number goes left where ``missing_left`` says so. One output stands for two classes: with the link "logit" it is
    the log-odds of the second, with "probability" its probability. Otherwise there is one output per class.
    """

    encoding: Encoding
    edges: tuple[Floats, ...]  # of each feature: the largest raw number of every cell but the last; empty for levels
    feature: NDArray[np.int32]  # (m,) that a node tests, −1 at a leaf
    split: NDArray[np.int32]  # (m,)
    missing_left: NDArray[np.bool_]  # (m,)
    left: NDArray[np.int32]  # (m,)
    right: NDArray[np.int32]  # (m,)
    value: Floats  # (m, o) at leaves; 0 at other nodes
    roots: NDArray[np.int32]  # (t,)
    sets: NDArray[np.bool_]  # (s, most cells of a feature of levels)
    base: Floats  # (o,)
    link: Link

    @property
    def features(self) -> tuple[Feature, ...]:
        return self.encoding.schema.features

    def counts(self) -> list[int]:
        """How many cells each feature has, that of a missing value included."""
        return [
            (len(edges) + 1 if feature.is_numeric else len(feature.values)) + feature.missing
            for feature, edges in zip(self.features, self.edges, strict=True)
        ]

    def cells(self, table: pd.DataFrame) -> Cells:
        """(n, f) of a table in the user's units."""
        return self.cells_of(np.stack([_raw(table[feature.name], feature) for feature in self.features], axis=1))

    def cells_of(self, raw: Floats) -> Cells:
        """(n, f) of numbers and places of levels, as `Encoding.raw` gives them."""
        cells = np.empty(raw.shape, dtype=np.int32)
        for column, (feature, edges) in enumerate(zip(self.features, self.edges, strict=True)):
            cells[:, column] = np.searchsorted(edges, raw[:, column]) if feature.is_numeric else raw[:, column]
            if feature.is_numeric and feature.missing:
                cells[np.isnan(raw[:, column]), column] = len(edges) + 1
        return cells

    def raw(self, cells: Cells) -> Floats:
        """The sums over trees: (n, o)."""
        from holdfast.models.trees.kernels import sums

        total: Floats = self.base + sums(np.ascontiguousarray(cells), *self.arrays)
        return total

    @cached_property
    def arrays(self) -> tuple[NDArray[np.generic], ...]:
        """What kernels take: is_number (f,), last cell (f,) and the nodes."""
        is_number = np.array([feature.is_numeric for feature in self.features])
        # The cell of a missing number, or one that no row is in.
        missing = np.array(
            [
                count - 1 if feature.missing else count
                for feature, count in zip(self.features, self.counts(), strict=True)
            ],
            dtype=np.int32,
        )
        nodes = (self.feature, self.split, self.missing_left, self.left, self.right, self.value, self.roots, self.sets)
        return (is_number, missing, *nodes)

    def logits(self, raw: Floats) -> Floats:
        """(..., o) sums -> (..., c) logits."""
        if self.link == "logit":
            return np.concatenate([-raw, raw], axis=-1) / 2 if raw.shape[-1] == 1 else raw
        share = np.concatenate([1 - raw, raw], axis=-1) if raw.shape[-1] == 1 else raw
        logits: Floats = np.log(np.clip(share, LEAST_PROBABILITY, 1))
        return logits

    def __call__(self, x: Tensor) -> Tensor:
        """Encoded rows (n, d) -> (n, c) logits in float64."""
        if not len(x):
            return torch.zeros(0, len(self.encoding.schema.classes), dtype=torch.float64)
        return torch.from_numpy(self.logits(self.raw(self.cells_of(self.encoding.raw(x))))).to(x.device)

    def __repr__(self) -> str:
        return f"Ensemble({len(self.roots)} trees, {int((self.feature < 0).sum())} leaves)"


def _raw(column: pd.Series[Any], feature: Feature) -> Floats:
    """Numbers, NaN where missing; the places of levels, one more where missing."""
    if feature.is_numeric:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    places = {level: number for number, level in enumerate(feature.values)}
    found = np.array([places.get(level, -1) for level in column.tolist()], dtype=np.float64)
    gone = found < 0
    if gone.any():
        if not feature.missing or column[gone].notna().any():
            raise ValueError(f"column '{feature.name}' has values that are not among its levels {feature.values}")
        found[gone] = len(feature.values)
    return found
