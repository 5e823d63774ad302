"""The user's own model: asked about tables in the user's units, and searched through whatever helps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapters.seen import as_fitted
from holdfast.models.model import Model
from holdfast.models.parts import Grown
from holdfast.models.surrogate import rows_to_learn, surrogate_of
from holdfast.tabular.encoding import Encoding

if TYPE_CHECKING:
    from holdfast.models.parts import Part
    from holdfast.models.trees.ensemble import Ensemble


@dataclass(frozen=True, eq=False, repr=False)
class WrappedModel:
    """A model that somebody else made, as a `Model` of encoded rows. `as_model` makes one.

    What it says is what the user's own object says of the decoded rows: that decides whether a counterfactual is found.
    A search may ask something faster instead, and only what the object confirms counts:

        exact     the same function in torch, with gradients
        ensemble  the same trees as arrays
        neither   a black box: the object itself is asked, and a surrogate says which moves to try first
    """

    adapter: Adapter  # how the object is asked
    exact: Model | None = None
    ensemble: Ensemble | None = None
    lean: bool = False  # what helps a search has not been looked for yet

    @property
    def wrapped(self) -> Any:
        """The user's object."""
        return self.adapter.model

    @property
    def encoding(self) -> Encoding:
        return self.adapter.encoding

    @property
    def about(self) -> str:
        """What it is, how it is asked and how it is searched, in words."""
        ensemble = "a black box" if self.ensemble is None else f"searched as {self.ensemble}"
        searched = ensemble if self.exact is None else "searched by its gradient"
        return f"{self.adapter.name}, {self.adapter}{'' if self.lean else f'; {searched}'}"

    def __call__(self, x: Tensor) -> Tensor:
        """What the object says of encoded rows: (n, c) logits in float64, in the order of the schema's classes."""
        if not len(x):
            return torch.zeros(0, len(self.encoding.schema.classes), dtype=torch.float64, device=x.device)
        return torch.from_numpy(self.adapter(as_fitted(self.encoding.decode(x), self.encoding))).to(x.device)

    # ---- `Abilities` ----

    @property
    def searched(self) -> Model:
        return self.exact or self.ensemble or self

    @property
    def has_gradient(self) -> bool:
        return self.exact is not None

    @property
    def parts(self) -> tuple[Part, ...] | None:
        if self.exact is not None:
            return able(self.exact).parts
        return None if self.ensemble is None else (Grown.of(self.ensemble),)

    @cached_property
    def learned(self) -> tuple[Tensor, Tensor]:
        rows = rows_to_learn(self.encoding)
        return rows, self(rows)

    @cached_property
    def surrogate(self) -> Model | None:
        """A small network that resembles the object. It never decides."""
        return None if self.has_gradient else surrogate_of(*self.learned)

    def __repr__(self) -> str:
        return f"WrappedModel({self.about})"
