"""What a search answers, and the one place that decides what "found" means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import pandas as pd
import torch
from torch import Tensor

from holdfast.encoding import Encoding
from holdfast.models import Model, predict
from holdfast.space import Space


@dataclass(frozen=True, eq=False)
class Counterfactuals:
    """Row i of the answer explains row i of the question. A failed row is ``found[i] == False``."""

    origin: Tensor  # (n, d) where a person is
    point: Tensor  # (n, d) where they could be
    target: Tensor  # (n,) the class they want
    found: Tensor  # (n,) bool

    def __len__(self) -> int:
        return len(self.origin)

    @property
    def success(self) -> float:
        """Share of rows for which a counterfactual was found."""
        return float(self.found.double().mean())

    def cost(self, norm: float = 2, weights: Tensor | None = None) -> Tensor:
        """Distance moved, in the encoded space, optionally weighted per column: (n,); NaN where nothing was found."""
        moved = self.point - self.origin
        if weights is not None:
            moved = moved * weights.to(moved)
        return torch.where(self.found, torch.linalg.vector_norm(moved, norm, dim=1), torch.nan)

    @property
    def sparsity(self) -> Tensor:
        """How many encoded columns moved: (n,)."""
        return (self.point != self.origin).sum(1)

    def to_frame(self, encoding: Encoding) -> pd.DataFrame:
        """The points in the table's own units, with `found` beside them. Rows not found hold the person as they are."""
        shown = torch.where(self.found[:, None], self.point, self.origin)
        frame = encoding.decode(shown)
        frame.insert(0, "found", self.found.cpu().numpy())
        return frame

    def __repr__(self) -> str:
        return f"Counterfactuals({int(self.found.sum())} of {len(self)} found)"


class Method(Protocol):
    """Finds counterfactuals. `fit` hands over the data a method wants to know; most return themselves."""

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self: ...

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals: ...


class Stabiliser(Protocol):
    """Moves counterfactuals that were found to places where they hold better."""

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals: ...


def assess(model: Model, origin: Tensor, point: Tensor, target: Tensor, space: Space) -> Counterfactuals:
    """Snap the points to what is possible; found is what then keeps the space and has the target class."""
    point = space.snap(point, origin)
    kept = ~space.violations(point, origin).any(1)
    return Counterfactuals(origin, point, target, kept & (predict(model, point) == target))


def check_question(model: Model, x: Tensor, target: Tensor, space: Space) -> None:
    """Raise where the rows, the targets, the model and the space do not belong together."""
    if x.ndim != 2 or target.shape != x.shape[:1]:
        raise ValueError(f"expected x (n, d) and target (n,), got {tuple(x.shape)} and {tuple(target.shape)}")
    if not x.is_floating_point() or not x.isfinite().all():
        raise ValueError(f"x must hold finite floating-point numbers, got {x.dtype}; encode the table first")
    space.check_origin(x)
    with torch.no_grad():
        logits = model(x[:1])
    if logits.ndim != 2 or logits.shape[0] != len(x[:1]) or logits.shape[1] < 2:
        raise ValueError(
            f"the model gave shape {tuple(logits.shape)} for one row; expected (1, classes) with two classes or more; "
            "for a single logit z use torch.stack([-z, z], -1) / 2"
        )
    classes = logits.shape[1]
    if target.is_floating_point() or (len(target) and not 0 <= int(target.min()) <= int(target.max()) < classes):
        raise ValueError(
            f"targets must be class indices from 0 to {classes - 1}, got {sorted(set(target.tolist()))[:10]}"
        )


def other_class(model: Model, x: Tensor) -> Tensor:
    """For a model of two classes: the one it does not give each row."""
    with torch.no_grad():
        logits = model(x)
    if logits.shape[1] != 2:
        raise ValueError(
            f"'the other class' needs two classes, the model has {logits.shape[1]}; use merged(model, ...)"
        )
    return 1 - logits.argmax(1)
