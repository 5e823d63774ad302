"""A model as one search asks it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.identity import identities
from holdfast.models.model import Model, check_callable, checked_logits


@dataclass
class Tally:
    """How many rows a search has asked about."""

    rows: int = 0


@dataclass(frozen=True, eq=False)
class CheckedModel:
    """A model whose every answer is checked and has the dtype of the rows, and whose names are looked up once.

    Lives as long as one search: a model whose weights are changed in place is asked anew by the next. A model that
    somebody else made may be asked through a faster one that says the same; `assess` asks the model itself.
    """

    model: Model
    names: frozenset[str]  # its `identities`
    tally: Tally = field(default_factory=Tally)  # of the rows that a search has asked a black box about

    def __call__(self, x: Tensor) -> Tensor:
        return checked_logits(self.searched(x), len(x)).to(x.dtype)

    @cached_property
    def searched(self) -> Model:
        return able(self.model).searched

    @cached_property
    def surrogate(self) -> Model | None:
        """What stands in for the gradient of a model that has none."""
        return able(self.model).surrogate


def checked_model(model: Model) -> CheckedModel:
    """The model for one search; one that is asked already stays as it is."""
    if isinstance(model, CheckedModel):
        return model
    check_callable(model)
    return CheckedModel(model, identities(model))


def itself(model: Model) -> Model:
    """The model that a search asks, or the model."""
    return model.model if isinstance(model, CheckedModel) else model


def names_of(model: Model) -> frozenset[str]:
    return model.names if isinstance(model, CheckedModel) else identities(model)


def leading(model: Model) -> Model:
    """The model that gradients are taken of: the model itself, or what stands in for one that has none."""
    surrogate = model.surrogate if isinstance(model, CheckedModel) else able(model).surrogate
    return model if surrogate is None else surrogate
