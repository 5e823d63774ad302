"""What a network of a family is made of, so that k of them can be trained and asked together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from torch import Tensor

from holdfast.families.recipe import Retraining
from holdfast.models.model import Model
from holdfast.models.parts import Dense

State = Mapping[str, Tensor]  # the tensors of one network by name, or of k networks with one more axis in front
Shapes = Mapping[str, tuple[int, ...]]
Backpropagation = Callable[[Tensor, Tensor, Tensor], None]


class Architecture(Protocol):
    """The shape of a network and its arithmetic. `Perceptron` and `TorchModule` are the two there are."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str:
        """All that decides what a network of this kind is, as text that is the same on every machine."""
        ...

    @property
    def features(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def width(self) -> int:
        """How many numbers a row becomes on its way through."""
        ...

    @property
    def trained(self) -> Shapes:
        """What training moves."""
        ...

    @property
    def head(self) -> frozenset[str]:
        """Those of the trained tensors that are the last layer's."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the rows of a batch touch one another, so that none may fill up a short batch."""
        ...

    @property
    def smallest_batch(self) -> int: ...

    def initial(self, retraining: Retraining, like: Tensor) -> State:
        """The tensors that one network starts from, those that are not trained included."""
        ...

    def check_base(self, base: Model) -> None:
        """Raise if no network of this kind can continue from this one."""
        ...

    def loaded(self, base: Model, start: State) -> State:
        """The start of a network that continues from a trained one."""
        ...

    def backpropagation(self, stack: State, gradient: State, kept: State) -> Backpropagation:
        """A function of a batch: rows (k, b, d), one-hot classes (k, b, c), weight of each row (k, b, 1).

        It writes the gradient of each member's weighted cross-entropy. ``kept`` is what the network holds beside
        trained tensors, such as running means.
        """
        ...

    def finished(self, state: State) -> State:
        """What is kept of a trained stack."""
        ...

    def logits(self, state: State, x: Tensor) -> Tensor:
        """What k networks say of rows x (n, d), or each of rows of its own (k, n, d): (k, n, c)."""
        ...

    def dense(self, state: State) -> tuple[Dense, ...] | None:
        """The layers of each network, where all of them are dense."""
        ...

    def network(self, state: State, retraining: Retraining, fingerprint: str | None) -> Model: ...
