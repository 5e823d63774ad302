"""The user's own model: asked about tables in the user's units, and searched through whatever helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.least_sure import LeastSure
from holdfast.models.merged import Merged, merge_logits
from holdfast.models.model import Model
from holdfast.models.questions.inputs import as_fitted
from holdfast.tabular.encoding import Encoding

if TYPE_CHECKING:
    from holdfast.models.trees.committee import Committee
    from holdfast.models.trees.ensemble import Ensemble

Ask = Callable[[pd.DataFrame], NDArray[np.float64]]  # a table in the user's units -> (n, c) logits
Takes = Literal["table", "encoded", "numbers"]
Outputs = Literal["probabilities", "logits", "labels"]
LEAST_PROBABILITY = 1e-12  # whose logarithm is taken: a model that is certain is as good as certain


@dataclass(frozen=True)
class How:
    """How a model is asked, as far as the user has said; None is found out."""

    takes: Takes | None = None
    outputs: Outputs | None = None
    classes: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Deployed:
    """A model that somebody else made, as a `Model` of encoded rows. `as_model` makes one.

    What it says is what the user's own object says of the decoded rows: that decides whether a counterfactual is found.
    A search may ask something faster instead, and only what the object confirms counts:

        exact     the same function in torch, with gradients
        ensemble  the same trees as arrays
        neither   a black box: the object itself is asked, and a surrogate says which moves to try first
    """

    own: Any  # the user's object
    encoding: Encoding
    ask: Ask
    about: str  # what it is and how it is asked, in words
    exact: Model | None = None
    ensemble: Ensemble | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """What the object says of encoded rows: (n, c) logits in float64, in the order of the schema's classes."""
        if not len(x):
            return torch.zeros(0, len(self.encoding.schema.classes), dtype=torch.float64, device=x.device)
        return torch.from_numpy(self.ask(as_fitted(self.encoding.decode(x), self.encoding))).to(x.device)

    @property
    def searched(self) -> Model:
        """What a search asks: rows to logits, the same as the object up to rounding, or the object itself."""
        return self.exact or self.ensemble or self

    @property
    def has_gradient(self) -> bool:
        return self.exact is not None

    @cached_property
    def learned(self) -> tuple[Tensor, Tensor]:
        """Rows that the object is asked about once for all searches, and its answers: (m, d), (m, c)."""
        from holdfast.models.surrogate import rows_to_learn

        rows = rows_to_learn(self)
        return rows, self(rows)

    @cached_property
    def surrogate(self) -> Model:
        """A small network that resembles the object, to say which moves to try first. It never decides."""
        from holdfast.models.surrogate import surrogate_of

        return surrogate_of(self)

    def __repr__(self) -> str:
        return f"Deployed({self.about})"


def searched(model: Model) -> Model:
    """What a search asks in the place of a model: the model itself, unless somebody else made it."""
    if isinstance(model, Merged):
        inner = searched(model.model)
        return model if inner is model.model else Merged(inner, model.groups)
    return model.searched if isinstance(model, (Deployed, LeastSure)) else model


def has_gradient(model: Model) -> bool:
    """Whether a model can be searched by its gradient: all can but those that `as_model` could not translate."""
    if isinstance(model, Merged):
        return has_gradient(model.model)
    if isinstance(model, LeastSure):
        return all(map(has_gradient, model.models))
    return not isinstance(model, Deployed) or model.has_gradient


def surrogate(model: Model) -> Model | None:
    """What stands in for the gradient of a model that has none; None where it has one."""
    if isinstance(model, Merged):
        inner = surrogate(model.model)
        return None if inner is None else Merged(inner, model.groups)
    return model.surrogate if isinstance(model, (Deployed, LeastSure)) and not has_gradient(model) else None


def learned_by(model: Model) -> tuple[Tensor, Tensor]:
    """Rows that a model without a gradient was asked about once for all searches, and its answers."""
    if isinstance(model, Merged):
        rows, logits = learned_by(model.model)
        return rows, merge_logits(logits, model.groups)
    assert isinstance(model, (Deployed, LeastSure))
    return model.learned


def ensemble_of(model: Model) -> Ensemble | None:
    """The trees of a model, if it is one of trees; merged classes are the caller's."""
    if isinstance(model, Merged):
        return ensemble_of(model.model)
    return model.ensemble if isinstance(model, Deployed) else None


def trees_of(model: Model) -> Ensemble | Committee | None:
    """The same, and of several models that are searched as one, if all of them are of trees."""
    return model.committee if isinstance(model, LeastSure) else ensemble_of(model)
