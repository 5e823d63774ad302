"""Networks for tests: nothing but weights and biases, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor


@dataclass(frozen=True)
class Perceptron:
    weights: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]

    def __call__(self, x: Tensor) -> Tensor:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = torch.relu(x @ weight + bias)
        return x @ self.weights[-1] + self.biases[-1]


def drawn(*sizes: int, seed: int = 0, bias: float = 0.7) -> Perceptron:
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(a, b, generator=generator).double() / a**0.5 for a, b in pairwise(sizes)]
    return Perceptron(tuple(weights), tuple(bias * torch.randn(b, generator=generator).double() for b in sizes[1:]))
