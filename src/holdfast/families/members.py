"""Members of a family: k networks of one architecture as stacked tensors, or models of any kind, asked one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.families.module import Architecture
from holdfast.families.perceptron import Network, State
from holdfast.families.recipe import Retraining
from holdfast.models.abilities import parts_of
from holdfast.models.adapters.input_spec import InputSpec
from holdfast.models.adapters.seen import as_fitted
from holdfast.models.adapting import helped
from holdfast.models.files.networks import read_into, read_layers
from holdfast.models.model import Model, checked_logits, dtype_of, logits_from
from holdfast.models.parts import Part
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding
from holdfast.utils.digests import digest

IN_CACHE, ON_DEVICE = 4 << 20, 256 << 20  # bytes of activations held while a stack looks at rows, on a CPU and not
GATHERED, GATHERED_ON_DEVICE = 64 << 20, 2 << 30  # bytes of weights copied for rows that ask one member each
MANY_ROWS = 8  # rows of a member, above which it is asked by itself


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

    def model(self, number: int, retraining: Retraining, fingerprint: str | None) -> Model:
        weights = {name: tensor[number] for name, tensor in self.state.items()}
        return self.architecture.network(weights, retraining, fingerprint)

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
        if MANY_ROWS * len(set(places.tolist())) < len(x) or size > room:  # too many rows, or too large to copy
            return one_by_one(places, lambda number, rows: self._of(number, x[rows]))
        parts = zip(torch.split(x, max(1, room // size)), torch.split(places, max(1, room // size)), strict=True)
        logits = [self.architecture.logits(self._copied(numbers), rows[:, None])[:, 0] for rows, numbers in parts]
        return torch.cat(logits)

    def _of(self, number: int, rows: Tensor) -> Tensor:
        return self.architecture.logits(self._copied(torch.tensor([number], device=rows.device)), rows)[0]

    def _copied(self, places: Tensor) -> State:
        return {name: tensor[places] for name, tensor in self.state.items()}


def one_by_one(places: Tensor, ask: Callable[[int, Tensor], Tensor]) -> Tensor:
    """Every member asked about its own rows, by their numbers, and the answers in the order of the rows: (n, c)."""
    members = sorted(set(places.tolist()))
    rows = [torch.nonzero(places == member).flatten() for member in members]
    answers = [ask(member, their_rows) for member, their_rows in zip(members, rows, strict=True)]
    return torch.cat(answers)[torch.cat(rows).argsort()]


def _dtype_of(state: State, x: Tensor) -> torch.dtype:
    return next((tensor.dtype for tensor in state.values() if tensor.is_floating_point()), x.dtype)


def _as_slice(places: Sequence[int]) -> slice | list[int]:
    """A run of places as a slice, which copies nothing."""
    run = range(places[0], places[-1] + 1) if len(places) else range(0)
    return slice(run.start, run.stop) if list(places) == list(run) else list(places)


@dataclass(frozen=True, eq=False)
class Models:
    """Models that are asked one after another; those of one encoding are asked about one table, decoded once."""

    models: tuple[Any, ...]  # `Model`s; with an encoding, each is a `WrappedModel` of it
    encoding: Encoding | None = None
    refitted: bool = False  # by `refit`: known to be retrainings, and not copies of one another

    @classmethod
    def of(cls, models: Sequence[Model]) -> Models:
        """Those that are asked about tables of one encoding decode it once."""
        tabular = [model for model in models if isinstance(model, WrappedModel)]
        alike = len(tabular) == len(models) and len({encoding_digest(model.encoding) for model in tabular}) == 1
        return cls(tuple(models), tabular[0].encoding if alike else None)

    def __len__(self) -> int:
        return len(self.models)

    @property
    def name(self) -> str:
        kinds = () if self.encoding is None else dict.fromkeys(_last_name(model.wrapped) for model in self.models)
        return ", ".join(kinds) or "own models"

    @property
    def features(self) -> int | None:
        """How many columns they take; None where they will say when asked."""
        return None if self.encoding is None else self.encoding.width

    @property
    def classes(self) -> int | None:
        return None if self.encoding is None else len(self.encoding.schema.classes)

    def chosen(self, places: Sequence[int]) -> Models:
        return replace(self, models=tuple(self.models[place] for place in places))

    def model(self, number: int, retraining: Retraining, fingerprint: str | None) -> Model:
        """A member as `as_model` reads it: with whatever helps a search."""
        return _helped(self.models[number])

    @cached_property
    def helped(self) -> tuple[Model, ...]:
        """Read once: that takes long."""
        return tuple(map(_helped, self.models))

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        """The layers or trees of each member, if each has some."""
        return parts_of(self.helped)

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        """Logits (1, n, c) of each member."""
        if self.encoding is None:
            for number in range(len(self)):
                yield self._logits(number, x)[None]
            return
        if not len(x):
            yield torch.zeros(len(self), 0, len(self.encoding.schema.classes), dtype=torch.float64, device=x.device)
            return
        odd = ~x.isfinite().all(1)  # such a row is no table's: nobody has a class for it
        table = as_fitted(self.encoding.decode(x.masked_fill(odd[:, None], 0.0)), self.encoding)
        fed: dict[InputSpec, Any] = {}  # the table as members take it, made once for all that take it alike
        for adapter in (model.adapter for model in self.models):
            if adapter.input not in fed:
                fed[adapter.input] = adapter.rows(table)
            logits = adapter.logits(fed[adapter.input])
            yield (
                checked_logits(torch.from_numpy(logits), len(x)).to(x.device).masked_fill(odd[:, None], torch.nan)[None]
            )

    def logits_of(self, x: Tensor, places: Tensor) -> Tensor:
        """What one member says of each row, member ``places[i]`` of row i: (n, c)."""
        return one_by_one(places, lambda number, rows: self._logits(number, x[rows]).to(x.dtype))

    def _logits(self, number: int, x: Tensor) -> Tensor:
        """Of rows in the dtype of the model's weights, where it shows some."""
        model = self.models[number]
        return logits_from(model, x.to(dtype_of(model) or x.dtype))


Members = Stack | Models


def _helped(member: Model) -> Model:
    return helped(member.adapter) if isinstance(member, WrappedModel) and member.lean else member


def encoding_digest(encoding: Encoding) -> str:
    """The same for encodings that encode alike."""
    fitted = (encoding.shift, encoding.scale, encoding.fill)
    numbers = [np.asarray(part, dtype=np.float64).tobytes().hex() for part in fitted]
    levels = [[repr(value) for value in feature.values] for feature in encoding.schema.features]
    kinds = [feature.kind for feature in encoding.schema.features]
    return digest([encoding.columns, kinds, levels, [repr(label) for label in encoding.schema.classes], numbers])


def _last_name(model: object) -> str:
    """What a model is: of a pipeline, its last step."""
    steps = getattr(model, "steps", None)
    return type(steps[-1][1] if isinstance(steps, list) and steps else model).__name__


def ready(model: Any, like: nn.Module | None = None) -> Model:
    """A model that exists already, or weights of a file for a module ``like`` this, made ready to be asked."""
    if isinstance(model, (str, Path)):
        if like is None:
            raise ValueError(f"{model} holds weights only; pass the module that they belong to: like=module")
        return read_into(model, like)
    if not callable(model):
        name, predicts = type(model).__name__, callable(getattr(model, "predict", None))
        hint = f"as_model({name.lower()}, encoding) makes a model of it" if predicts else "a model returns logits"
        raise TypeError(f"{name} cannot be called with encoded rows; {hint}")
    return model.eval() if isinstance(model, nn.Module) else model


def read_perceptron(path: str | Path) -> Network:
    """The network of a safetensors file of linear layers, named as torch does: ``….weight`` (out, in) and ``….bias``.

    One that `save_model` wrote is the network that was saved, with its fingerprint. Of another file, layers are taken
    in the order of the numbers in their names, with max(0, z) between them. For another function, use
    `Family.from_models(files, like=module)`.
    """
    layers = read_layers(path)
    try:
        retraining = Retraining(kind="own") if layers.retraining is None else Retraining(**layers.retraining)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} says of its network what this version does not know: {error}") from error
    return Network(layers.weights, layers.biases, retraining, layers.fingerprint)
