"""What a model can do for a search, by its own word. A function in torch says nothing of itself: it has a gradient."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from torch import Tensor

from holdfast.models.model import Model

if TYPE_CHECKING:
    from holdfast.models.parts import Part
    from holdfast.models.trees.ensemble import Ensemble


class Abilities(Protocol):
    """What `WrappedModel`, `Merged` and `WorstCaseEnsemble` say of themselves."""

    has_gradient: bool
    """Whether it can be searched by its gradient."""
    searched: Model
    """What a search asks in its place: the same up to rounding, and faster; or itself."""
    surrogate: Model | None
    """What stands in for the gradient of a model that has none, to say which moves to try first."""
    learned: tuple[Tensor, Tensor]
    """Rows that a model without a gradient is asked about once for all searches, and its answers."""
    parts: tuple[Part, ...] | None
    """Its layers or its trees as arrays, if it has these; of several models that are searched as one, those of each."""
    ensemble: Ensemble | None
    """The trees of one model, if it is one of trees; merged classes are the caller's."""


@dataclass(frozen=True, eq=False)
class InTorch:
    """A function in torch."""

    searched: Model
    has_gradient: bool = True
    surrogate: None = None
    ensemble: None = None

    @property
    def parts(self) -> tuple[Part, ...] | None:
        parts: tuple[Part, ...] | None = getattr(self.searched, "parts", None)
        return parts


def able(model: Model) -> Abilities:
    return cast(Abilities, model if hasattr(type(model), "has_gradient") else InTorch(model))


def parts_of(models: Iterable[Model]) -> tuple[Part, ...] | None:
    """The layers or trees of all of them, where each has some."""
    found: list[Part] = []
    for model in models:
        parts = able(model).parts
        if parts is None:
            return None
        found += parts
    return tuple(found)
