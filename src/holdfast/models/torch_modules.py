"""Modules of torch: asked about encoded rows, about the numbers of the table, or about the table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from holdfast.models.deployed import Ask, Deployed, How, Takes
from holdfast.models.feeding import Fed, fed, sample
from holdfast.models.model import Model, check_steady
from holdfast.models.outputs import Reading, Squashing, as_output, read_outputs
from holdfast.tabular.encoding import Encoding

WAYS: tuple[Takes, ...] = ("encoded", "numbers", "table")  # the first that the module takes


def knows(model: Any) -> bool:
    return isinstance(model, nn.Module)


def deployed(model: Any, encoding: Encoding, how: How) -> Deployed:
    return of_module(model, encoding, how, f"{type(model).__name__} of torch")


def of_module(model: nn.Module, encoding: Encoding, how: How, name: str) -> Deployed:
    """A module as it is: fed what it takes, and its outputs read as what they are."""
    check_steady(model)
    table, labels = sample(encoding)
    given, output, squashed = _tried(model, encoding, how, table)
    classes = encoding.schema.classes
    reading = read_outputs(output, classes, said=how.outputs, order=how.classes, labels=labels, squashed=squashed)
    has_gradient = given.encoded is not None and reading.kind != "labels"
    return Deployed(
        model,
        encoding,
        _ask(model, given, reading),
        f"{name}, given {given.told}, gives {reading.told}",
        exact=_exact(model, given.encoded, reading) if has_gradient and given.encoded is not None else None,
    )


def others(read: Deployed, how: How) -> dict[str, Ask]:
    """The same module fed the table's numbers in the place of encoded rows, or the reverse, where it takes both."""
    table, labels = sample(read.encoding)
    found: dict[str, Ask] = {}
    for takes in WAYS[:2]:
        try:
            given, output, squashed = _tried(read.own, read.encoding, replace(how, takes=takes), table)
            with warnings.catch_warnings(action="ignore"):  # `deployed` has said it
                reading = read_outputs(
                    output,
                    read.encoding.schema.classes,
                    said=how.outputs,
                    order=how.classes,
                    labels=labels,
                    squashed=squashed,
                )
        except ValueError:
            continue
        found[f"takes={takes!r}"] = _ask(read.own, given, reading)
    return found


def _ask(model: nn.Module, given: Fed, reading: Reading) -> Ask:
    def ask(table: pd.DataFrame) -> NDArray[np.float64]:
        check_steady(model)
        with torch.no_grad():
            logits: NDArray[np.float64] = reading.logits(model(given.table(table))).double().cpu().numpy()
        return logits

    return ask


def _exact(model: nn.Module, encoded: Callable[[Tensor], Tensor], reading: Reading) -> Model:
    """The same with gradients, which a sigmoid or softmax at the end does not weaken."""

    def logits(x: Tensor) -> Tensor:
        if reading.kind not in ("probability", "probabilities"):
            return reading.logits(model(encoded(x))).to(x)
        with Squashing() as squashing:
            output = model(encoded(x))
        return reading.logits(output, squashing.before(output)).to(x)

    return logits


def _tried(model: nn.Module, encoding: Encoding, how: How, table: pd.DataFrame) -> tuple[Fed, Tensor, bool]:
    """The first way to feed the module that it takes, what it then gives, and whether a sigmoid or softmax ends it."""
    said: dict[str, Exception] = {}
    for takes in WAYS if how.takes is None else (how.takes,):
        try:
            given = fed(takes, encoding, first_weight(model))
            with torch.no_grad(), Squashing() as squashing:
                output = as_output(model(given.table(table)))
            if not output.ndim or len(output) != len(table):
                raise ValueError(f"it gave {tuple(output.shape)} for {len(table)} rows")
        except Exception as error:  # whatever a forward pass may raise
            said[takes] = error
            continue
        return given, output, squashing.before(output) is not None
    tried = "; ".join(f"takes={takes!r}: {str(error).splitlines()[0]}" for takes, error in said.items() if str(error))
    raise ValueError(
        f"{type(model).__name__} takes neither encoded rows ({encoding.width} numbers) nor the table's "
        f"{len(encoding.schema.features)} columns. It was tried with {tried or list(said)}. Wrap it in a function from "
        "a table to probabilities and pass that"
    ) from next(iter(said.values()))


def first_weight(model: nn.Module) -> Tensor | None:
    return next((weight.detach() for weight in model.parameters() if weight.is_floating_point()), None)
