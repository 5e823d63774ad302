"""What a search answers, and the one place that decides what "found" means."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from holdfast.models.identity import identities
from holdfast.models.model import Model, certain_classes_of, check_model, checked_logits, classes_of
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """Row i of the answer explains row i of the question. A failed row is ``found[i] == False``."""

    origin: Tensor  # (n, d) where a person is
    point: Tensor  # (n, d) where they could be
    target: Tensor  # (n,) the class they want
    found: Tensor  # (n,) bool
    classes: int | None = None  # how many the model has, so that an audit can tell another kind of model
    seen: frozenset[str] = frozenset()  # the models that the search has looked at, by their `identities`
    before: Tensor | None = None  # (n,) the class that the model gives the person now

    def __len__(self) -> int:
        return len(self.origin)

    def __getitem__(self, rows: Tensor | slice) -> Counterfactuals:
        """Some rows: their numbers, or a mask (n,)."""
        before = None if self.before is None else self.before[rows]
        own = {name: getattr(self, name)[rows] for name in ("origin", "point", "target", "found")}
        return replace(self, **own, before=before)

    @property
    def success(self) -> float:
        """Share of rows for which a counterfactual was found."""
        return float(self.found.double().mean())

    def cost(self, norm: float = 2) -> Tensor:
        """Distance moved, in the encoded space: (n,); NaN where nothing was found."""
        moved = torch.linalg.vector_norm(self.point - self.origin, norm, dim=1)
        return torch.where(self.found, moved, torch.nan)

    @property
    def sparsity(self) -> Tensor:
        """How many encoded columns moved: (n,)."""
        return (self.point != self.origin).sum(1)

    def to_frame(self, encoding: Encoding, table: pd.DataFrame | None = None) -> pd.DataFrame:
        """The points in the table's own units, with `found` beside them. Rows not found hold the person's own values.

        Given the table that the rows were encoded from, what does not change is copied from it to the last digit,
        and its index is kept.
        """
        moved = (self.found[:, None] & (self.point != self.origin)).cpu().numpy()
        frame = encoding.decode(torch.where(self.found[:, None], self.point, self.origin))
        if table is not None:
            _check_same_rows(table, self)
            frame.index = table.index
            for feature, place in encoding.places:
                changed = moved[:, place].sum(axis=1) > 0
                frame[feature.name] = frame[feature.name].where(changed, table[feature.name])
        frame.insert(0, "found", self.found.cpu().numpy())
        return frame

    def changes(self, encoding: Encoding) -> pd.DataFrame:
        """What each person whom a counterfactual was found for would change: row, feature, before, after."""
        before, after, names = encoding.decode(self.origin), encoding.decode(self.point), encoding.schema.names
        differs = np.stack([(before[name] != after[name]).to_numpy() for name in names], axis=1)
        differs &= self.found.cpu().numpy()[:, None]
        told = [
            (int(row), names[place], before[names[place]][row], after[names[place]][row])
            for row, place in np.argwhere(differs)
        ]
        return pd.DataFrame(told, columns=["row", "feature", "before", "after"])

    def __repr__(self) -> str:
        return f"Counterfactuals({int(self.found.sum())} of {len(self)} found)"


class Method(Protocol):
    """Finds counterfactuals. `fit` hands over the data a method wants to know; most return themselves."""

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self: ...

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals: ...


class Stabiliser(Protocol):
    """Moves counterfactuals that were found to places where they hold better."""

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals: ...


@runtime_checkable
class Fitted(Stabiliser, Protocol):
    """A stabiliser that wants to know the data."""

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self: ...


def assess(
    model: Model, origin: Tensor, point: Tensor, target: Tensor, space: Space, also: Tensor | None = None
) -> Counterfactuals:
    """Snap the points to what is possible; found is what then keeps the space and has the target class.

    ``also`` (n,) says of which rows whatever else a method asks for is true; only those can be found.
    """
    point = space.snap(point, origin)
    kept = ~space.violations(point, origin).any(1)
    with torch.no_grad():
        logits, before = checked_logits(model(point), len(point)), checked_logits(model(origin), len(origin))
    sure = logits.isfinite().all(1)  # a model that answers NaN has no class
    found = kept & sure & (logits.argmax(1) == target)
    if also is not None:
        found &= also
    return Counterfactuals(origin, point, target, found, logits.shape[1], identities(model), classes_of(before))


def check_question(model: Model, x: Tensor, target: Tensor, space: Space) -> None:
    """Raise where the rows, the targets, the model and the space do not belong together."""
    for name, value in {"x": x, "target": target}.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"{name} must be a torch tensor, got {type(value).__name__}; "
                "encoding.encode(table) makes rows, encoding.target(label, rows) makes targets"
            )
    if not isinstance(space, Space):
        raise TypeError(f"expected a Space, got {type(space).__name__}; use encoding.space or Space.free(x)")
    if x.ndim != 2 or target.shape != x.shape[:1]:
        raise ValueError(f"expected x (n, d) and target (n,), got {tuple(x.shape)} and {tuple(target.shape)}")
    if not x.is_floating_point():
        raise ValueError(f"x must hold floating-point numbers, got {x.dtype}; encode the table, or use x.float()")
    if not x.isfinite().all():
        raise ValueError("x holds values that are not finite; fill or drop those rows")
    space.check_origin(x)
    classes = check_model(model, x)
    if target.dtype != torch.int64 or (len(target) and not 0 <= int(target.min()) <= int(target.max()) < classes):
        raise ValueError(
            f"targets must be class indices from 0 to {classes - 1} as int64, got {sorted(set(target.tolist()))[:5]} "
            f"as {target.dtype}; encoding.target(label, rows) makes them"
        )
    LOG.info("searching counterfactuals for %d rows of %d numbers", *x.shape)


def _check_same_rows(table: pd.DataFrame, counterfactuals: Counterfactuals) -> None:
    if len(table) != len(counterfactuals):
        raise ValueError(f"the table has {len(table)} rows but there are {len(counterfactuals)} counterfactuals")


def other_class(model: Model, x: Tensor) -> Tensor:
    """For a model of two classes: the one it does not give each row."""
    with torch.no_grad():
        logits = checked_logits(model(x), len(x))
    if logits.shape[1] != 2:
        raise ValueError(
            f"'the other class' needs two classes, the model has {logits.shape[1]}; use merged(model, ...)"
        )
    return 1 - certain_classes_of(logits)
