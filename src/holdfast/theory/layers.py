"""What the theory needs to know of a perceptron."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Layers(Protocol):
    """A perceptron: x ← relu(x W + b) layer by layer, without the relu at the last."""

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """(in, out) each."""

    @property
    def biases(self) -> tuple[Tensor, ...]:
        """(out,) each."""
