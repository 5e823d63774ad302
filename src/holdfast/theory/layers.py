"""A perceptron as the theory sees it: its layers, and what they make of rows."""

from __future__ import annotations

from collections.abc import Sequence
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


def hidden_units(weights: Sequence[Tensor], biases: Sequence[Tensor], x: Tensor) -> list[Tensor]:
    """Every unit of these rectified layers before its relu, layer by layer: (n, width) each."""
    units = []
    for weight, bias in zip(weights, biases, strict=True):
        units.append(x @ weight + bias)
        x = units[-1].relu()
    return units


def logits_of(layers: Layers, x: Tensor) -> Tensor:
    """What the perceptron says of the rows: (n, c)."""
    hidden = hidden_units(layers.weights[:-1], layers.biases[:-1], x)
    return (hidden[-1].relu() if hidden else x) @ layers.weights[-1] + layers.biases[-1]
