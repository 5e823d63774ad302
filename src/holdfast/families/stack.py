"""Networks that answer together: k of one architecture as stacked tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from holdfast.families.module import Architecture
from holdfast.families.perceptron import State
from holdfast.families.recipe import Retraining
from holdfast.models.model import Model
from holdfast.models.parts import Part

IN_CACHE, ON_DEVICE = 4 << 20, 256 << 20  # bytes of activations held while a stack looks at rows, on a CPU and not
GATHERED, GATHERED_ON_DEVICE = 64 << 20, 2 << 30  # bytes of weights copied for rows that ask one member each
FEW = 8  # rows of a member, above which it is asked by itself


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

    def chosen(self, places: Sequence[int]) -> Stack:
        members = _as_slice(places)
        return Stack(self.architecture, {name: tensor[members] for name, tensor in self.state.items()})

    def model(self, place: int, retraining: Retraining, fingerprint: str | None) -> Model:
        own = {name: tensor[place] for name, tensor in self.state.items()}
        return self.architecture.network(own, retraining, fingerprint)

    @property
    def helped(self) -> tuple[Model, ...]:
        """Members that need something to help a search: none of these."""
        return ()

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        """The layers of each member, if all of them are dense."""
        return self.architecture.dense(self.state)

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        """Logits (k, n, c), a few members at a time, so that memory does not grow with the family."""
        x = x.to(_dtype_of(self.state, x))
        room = IN_CACHE if x.device.type == "cpu" else ON_DEVICE
        members = max(1, room // max(1, len(x) * self.architecture.width * x.element_size()))
        for start in range(0, len(self), members):
            piece = {name: tensor[start : start + members] for name, tensor in self.state.items()}
            yield self.architecture.logits(piece, x)

    def logits_of(self, x: Tensor, places: Tensor) -> Tensor:
        """What one member says of each row, member ``places[i]`` of row i: (n, c)."""
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


def one_by_one(x: Tensor, places: Tensor, ask: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Every member asked about its own rows, and the answers in the order of the rows: (n, c)."""
    members = sorted(set(places.tolist()))
    rows = [torch.nonzero(places == member).flatten() for member in members]
    answers = [ask(member, x[own]).to(x.dtype) for member, own in zip(members, rows, strict=True)]
    return torch.cat(answers)[torch.cat(rows).argsort()]


def _dtype_of(state: State, x: Tensor) -> torch.dtype:
    return next((own.dtype for own in state.values() if own.is_floating_point()), x.dtype)


def _as_slice(places: Sequence[int]) -> slice | list[int]:
    """A run of places as a slice, which copies nothing."""
    run = range(places[0], places[-1] + 1) if len(places) else range(0)
    return slice(run.start, run.stop) if list(places) == list(run) else list(places)
