"""Networks of dense layers and trees as plain arrays: what a compiled search reads of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from holdfast.models.trees.ensemble import Ensemble

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class LevelTable:
    """What a column that counts levels adds to the first layer: one row for each level, of encoded · scale + shift."""

    shift: float
    scale: float
    rows: Floats  # (levels, h)


@dataclass(frozen=True, eq=False)
class Dense:
    """Dense layers over encoded rows, with one activation between them.

    The logit of a class is the largest of its outputs.
    """

    weights: tuple[Floats, ...]  # (in, out)
    biases: tuple[Floats, ...]  # (out,)
    activation: str  # relu, identity, tanh or logistic
    classes: tuple[int, ...]  # the class of each output
    log_sigmoid: bool = False  # an output is the score of its class against the rest
    tables: Mapping[int, LevelTable] = field(default_factory=dict)  # of columns whose weight is 0 then

    @classmethod
    def of(
        cls,
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        activation: str = "relu",
        classes: Sequence[int] | None = None,
        log_sigmoid: bool = False,
        tables: Mapping[int, LevelTable] | None = None,
    ) -> Dense:
        """From tensors; an only output is the log-odds of the second of two classes."""
        layers, starts = ([part.detach().cpu().numpy() for part in parts] for parts in (weights, biases))
        tables = dict(tables or {})
        if len(starts[-1]) == 1:
            layers[-1], starts[-1] = _both(layers[-1]), _both(starts[-1])
            if len(layers) == 1:
                tables = {column: replace(table, rows=_both(table.rows)) for column, table in tables.items()}
        outputs = tuple(range(len(starts[-1])) if classes is None else classes)
        return cls(tuple(layers), tuple(starts), activation, outputs, log_sigmoid, tables)

    @property
    def columns(self) -> int:
        """How many columns a row has."""
        return int(self.weights[0].shape[0])

    def merged(self, groups: Sequence[Sequence[int]]) -> Dense:
        """The same with classes that count as one."""
        return replace(self, classes=_merged(self.classes, groups))


@dataclass(frozen=True, eq=False)
class Grown:
    """Trees, and the class of each of their logits."""

    ensemble: Ensemble
    classes: tuple[int, ...]

    @classmethod
    def of(cls, ensemble: Ensemble) -> Grown:
        return cls(ensemble, tuple(range(max(2, len(ensemble.base)))))

    def merged(self, groups: Sequence[Sequence[int]]) -> Grown:
        """The same with classes that count as one."""
        return replace(self, classes=_merged(self.classes, groups))


Part = Dense | Grown


def _merged(classes: tuple[int, ...], groups: Sequence[Sequence[int]]) -> tuple[int, ...]:
    group = {label: number for number, labels in enumerate(groups) for label in labels}
    return tuple(group[label] for label in classes)


def _both(only: Floats) -> Floats:
    """(..., 1) -> (..., 2): half of it against the first class, and half for the second."""
    return np.concatenate([-only, only], axis=-1) / 2
