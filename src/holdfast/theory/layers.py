"""A perceptron as the theory sees it: its layers, and what they make of rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from torch import Tensor

from holdfast.models.rows import check_rows


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


def check_rows_of(network: Layers, x: Tensor, what: str, logits: int = 1, finite: bool = True) -> None:
    """Raise where something is not a perceptron, or the rows are not such as it takes."""
    check_layers(network, what, logits)
    check_rows(x, width=network.weights[0].shape[0], finite=finite)


def check_layers(network: object, what: str = "a certificate", logits: int = 2) -> None:
    """Raise where something is not a perceptron with its weights and biases at hand, and so many logits."""
    weights, biases = (getattr(network, name, None) for name in ("weights", "biases"))
    ways = "networks of train(...) have them; a module or a function does not"
    for name, tensors, dimensions in (("weights", weights, 2), ("biases", biases, 1)):
        if not isinstance(tensors, (tuple, list)) or not tensors or not all(isinstance(t, Tensor) for t in tensors):
            raise TypeError(
                f"{what} needs a perceptron with tuples of .weights (in, out) and .biases (out,), but "
                f"{type(network).__name__} has no such {name}; {ways}"
            )
        if any(tensor.ndim != dimensions for tensor in tensors):
            raise TypeError(
                f"{name} must have {dimensions} dimensions, got {[tuple(t.shape) for t in tensors]}; {ways}"
            )
    shapes, widths = [tuple(weight.shape) for weight in weights or ()], [len(bias) for bias in biases or ()]
    fit = all(below[1] == above[0] for below, above in pairwise(shapes)) and [shape[1] for shape in shapes] == widths
    if not fit or widths[-1] < logits:
        least = "two logits" if logits == 2 else "one logit"
        raise TypeError(
            f"weights {shapes} and biases {widths} are no perceptron of {least} or more; weights must be (in, out)"
        )
