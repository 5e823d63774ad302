"""What every peer is asked and how it answers, as files of arrays: no peer needs to know our library.

A question holds a network's layers, the rows to explain with their targets, the bounds, and the training rows. An
answer holds for each method `<method>_point` (the rows that it was asked, unchanged where it found nothing) and
`<method>_seconds`. Each method is asked for one row first, so that what a library does once is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

Points = np.ndarray


@dataclass(frozen=True)
class Question:
    weights: tuple[np.ndarray, ...]  # (in, out) each
    biases: tuple[np.ndarray, ...]
    rows: np.ndarray  # (n, d)
    target: np.ndarray  # (n,)
    lower: float  # of every column
    upper: float
    known: np.ndarray  # training rows
    classes: np.ndarray  # that the network gives them
    radius: float  # of the largest ball

    def first(self, count: int) -> Question:
        return replace(self, rows=self.rows[:count], target=self.target[:count])


def read(file: Path) -> Question:
    with np.load(file) as held:
        layers = range(sum(name.startswith("weight_") for name in held))
        weights, biases = (tuple(held[f"{part}_{layer}"] for layer in layers) for part in ("weight", "bias"))
        arrays = {name: held[name] for name in ("rows", "target", "known", "classes")}
        numbers = {name: float(held[name]) for name in ("lower", "upper", "radius")}
    return Question(weights, biases, **arrays, **numbers)


def module(question: Question) -> Any:
    """The network as a torch module that answers logits."""
    import torch

    layers: list[Any] = []
    for weight, bias in zip(question.weights, question.biases, strict=True):
        layer = torch.nn.Linear(*weight.shape)
        layer.weight.data, layer.bias.data = torch.tensor(weight.T), torch.tensor(bias)
        layers += [layer.requires_grad_(False), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1]).eval()


def answer(methods: dict[str, tuple[Callable[[Question], Points | None], int]]) -> None:
    """Read the question, time each method on its first so many rows, write the answer; None is no answer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("question", type=Path)
    parser.add_argument("answer", type=Path)
    files = parser.parse_args()
    question, told = read(files.question), {}
    for name, (method, count) in methods.items():
        if method(question.first(1)) is None:
            continue
        start = time.perf_counter()
        told[f"{name}_point"] = method(question.first(count))
        told[f"{name}_seconds"] = np.array(time.perf_counter() - start)
    np.savez(files.answer, **told)
