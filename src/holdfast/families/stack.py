"""Networks that answer together: k of one architecture as stacked tensors, or models of any kind one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from holdfast.families.architecture import Architecture, State
from holdfast.families.recipe import Retraining
from holdfast.models.abilities import parts_of
from holdfast.models.model import Model, answer, dtype_of, logits_from
from holdfast.models.parts import Part

IN_CACHE, ON_DEVICE = 4 << 20, 256 << 20  # bytes of activations held while a stack looks at rows, on a CPU and not
GATHERED, GATHERED_ON_DEVICE = 64 << 20, 2 << 30  # bytes of weights copied for rows that ask one member each
FEW = 8  # rows of a member, above which it is asked by itself


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
    @property
    def helped(self) -> tuple[Model, ...]:
        """All of them, each with whatever helps a search; none where they are networks, which need no help."""
        ...

    @property
    def parts(self) -> tuple[Part, ...] | None:
        """The layers or trees of each member, if each has some."""
        ...

    def asked_classes(self, x: Tensor) -> list[int]:
        """How many classes each member has, by its answer to the rows."""
        ...

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        """Logits (k, n, c), a few members at a time, so that memory does not grow with the family."""
        ...

    def logits_of(self, x: Tensor, places: Tensor) -> Tensor:
        """What one member says of each row, member ``places[i]`` of row i: (n, c)."""
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

    @property
    def helped(self) -> tuple[Model, ...]:
        return ()

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        return self.architecture.dense(self.state)

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        x = x.to(_dtype_of(self.state, x))
        room = IN_CACHE if x.device.type == "cpu" else ON_DEVICE
        members = max(1, room // max(1, len(x) * self.architecture.width * x.element_size()))
        for start in range(0, len(self), members):
            piece = {name: tensor[start : start + members] for name, tensor in self.state.items()}
            yield self.architecture.logits(piece, x)

    def logits_of(self, x: Tensor, places: Tensor) -> Tensor:
        x = x.to(_dtype_of(self.state, x))
        size = sum(tensor[0].numel() for tensor in self.state.values()) * x.element_size()
        room = GATHERED if x.device.type == "cpu" else GATHERED_ON_DEVICE
        if FEW * len(set(places.tolist())) < len(x) or size > room:  # members have many rows, or are too large to copy
            return one_by_one(x, places, self._of)
        parts = zip(torch.split(x, max(1, room // size)), torch.split(places, max(1, room // size)), strict=True)
        logits = [self.architecture.logits(self._copied(own), rows[:, None])[:, 0] for rows, own in parts]
        return torch.cat(logits)

    def _of(self, place: int, rows: Tensor) -> Tensor:
        return self.architecture.logits(self._copied(torch.tensor([place], device=rows.device)), rows)[0]

    def _copied(self, places: Tensor) -> State:
        return {name: tensor[places] for name, tensor in self.state.items()}


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

    @property
    def helped(self) -> tuple[Model, ...]:
        return self.models

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        return parts_of(self.models)

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        for model in self.models:
            yield logits_from(model, _as_it_takes(model, x))[None]

    def logits_of(self, x: Tensor, places: Tensor) -> Tensor:
        def ask(place: int, rows: Tensor) -> Tensor:
            model = self.models[place]
            return logits_from(model, _as_it_takes(model, rows))

        return one_by_one(x, places, ask)


def one_by_one(x: Tensor, places: Tensor, ask: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Every member asked about its own rows, and the answers in the order of the rows: (n, c)."""
    members = sorted(set(places.tolist()))
    rows = [torch.nonzero(places == member).flatten() for member in members]
    answers = [ask(member, x[own]).to(x.dtype) for member, own in zip(members, rows, strict=True)]
    return torch.cat(answers)[torch.cat(rows).argsort()]


def _dtype_of(state: State, x: Tensor) -> torch.dtype:
    return next((own.dtype for own in state.values() if own.is_floating_point()), x.dtype)


def _as_it_takes(model: Model, x: Tensor) -> Tensor:
    """The rows in the dtype of the model's weights, where it shows some."""
    return x.to(dtype_of(model) or x.dtype)


def _as_slice(places: Sequence[int]) -> slice | list[int]:
    """A run of places as a slice, which copies nothing."""
    run = range(places[0], places[-1] + 1) if len(places) else range(0)
    return slice(run.start, run.stop) if list(places) == list(run) else list(places)
