"""Networks that answer together: k of one architecture as stacked tensors, or models of any kind one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from holdfast.families.architecture import Architecture, State
from holdfast.families.recipe import Retraining
from holdfast.models.model import Model, answer, dtype_of, logits_from

IN_CACHE, ON_DEVICE = 4 << 20, 256 << 20  # bytes of activations held while a stack looks at rows, on a CPU and not


class Members(Protocol):
    """Some members of a family."""

    def __len__(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def features(self) -> int | None: ...
    @property
    def classes(self) -> int | None: ...
    def chosen(self, places: Sequence[int]) -> Members: ...
    def model(self, place: int, retraining: Retraining, fingerprint: str | None) -> Model: ...
    def asked_classes(self, x: Tensor) -> list[int]:
        """How many classes each member has, by its answer to the rows."""
        ...

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        """Logits (k, n, c), a few members at a time, so that memory does not grow with the family."""
        ...


@dataclass(frozen=True, eq=False)
class Stack:
    """k networks of one architecture. Each tensor of ``state`` has the members along its first axis."""

    architecture: Architecture
    state: State

    def __len__(self) -> int:
        return len(next(iter(self.state.values())))

    @property
    def name(self) -> str:
        return self.architecture.name

    @property
    def features(self) -> int:
        return self.architecture.features

    @property
    def classes(self) -> int:
        return self.architecture.classes

    def asked_classes(self, x: Tensor) -> list[int]:
        return [self.classes] * len(self)

    def chosen(self, places: Sequence[int]) -> Stack:
        members = _as_slice(places)
        return Stack(self.architecture, {name: tensor[members] for name, tensor in self.state.items()})

    def model(self, place: int, retraining: Retraining, fingerprint: str | None) -> Model:
        own = {name: tensor[place] for name, tensor in self.state.items()}
        return self.architecture.network(own, retraining, fingerprint)

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        x = x.to(next((own.dtype for own in self.state.values() if own.is_floating_point()), x.dtype))
        room = IN_CACHE if x.device.type == "cpu" else ON_DEVICE
        members = max(1, room // max(1, len(x) * self.architecture.width * x.element_size()))
        for start in range(0, len(self), members):
            piece = {name: tensor[start : start + members] for name, tensor in self.state.items()}
            yield self.architecture.logits(piece, x)


@dataclass(frozen=True, eq=False)
class Models:
    """Models that somebody else made: rows -> logits each, asked one after another."""

    models: tuple[Model, ...]
    name = "own models"
    features = None  # how many columns they take: they will say when asked
    classes = None

    def __len__(self) -> int:
        return len(self.models)

    def asked_classes(self, x: Tensor) -> list[int]:
        return [answer(model, _as_it_takes(model, x)).shape[1] for model in self.models]

    def chosen(self, places: Sequence[int]) -> Models:
        return Models(tuple(self.models[place] for place in places))

    def model(self, place: int, retraining: Retraining, fingerprint: str | None) -> Model:
        return self.models[place]

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        for model in self.models:
            yield logits_from(model, _as_it_takes(model, x))[None]


def _as_it_takes(model: Model, x: Tensor) -> Tensor:
    """The rows in the dtype of the model's weights, where it shows some."""
    return x.to(dtype_of(model) or x.dtype)


def _as_slice(places: Sequence[int]) -> slice | list[int]:
    """A run of places as a slice, which copies nothing."""
    run = range(places[0], places[-1] + 1) if len(places) else range(0)
    return slice(run.start, run.stop) if list(places) == list(run) else list(places)
