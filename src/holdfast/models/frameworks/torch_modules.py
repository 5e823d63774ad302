"""Modules of torch: asked about encoded rows, about the numbers of the table, or about the table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from holdfast.models.deployed import Ask, Deployed, How, Takes
from holdfast.models.model import Model, check_steady, first_weight
from holdfast.models.questions.feeding import Fed, fed, how_to_fit, sample
from holdfast.models.questions.outputs import Reading, Squashing, as_output, read_outputs
from holdfast.models.questions.probing import rows_to_compare, says_the_same
from holdfast.tabular.encoding import Encoding

WAYS: tuple[Takes, ...] = ("encoded", "numbers", "table")  # the first that the module takes

Call = Callable[[Any], Any]  # rows as the model takes them -> what it gives


def knows(model: Any) -> bool:
    """A module, or layers such as `train` gives them."""
    layers = (getattr(model, name, None) for name in ("weights", "biases"))
    return isinstance(model, nn.Module) or all(isinstance(each, tuple) and each for each in layers)


def deployed(model: Any, encoding: Encoding, how: How) -> Deployed:
    name = f"{type(model).__name__} of torch" if isinstance(model, nn.Module) else repr(model)
    return of_module(model, model, encoding, how, name)


def others(read: Deployed, how: How) -> dict[str, Ask]:
    return other_ways(read.own, read, how, first_weight(read.own))


def other_ways(call: Call, read: Deployed, how: How, like: Tensor | None) -> dict[str, Ask]:
    """The same network fed the table's numbers in the place of encoded rows, or the reverse, where it takes both."""
    found: dict[str, Ask] = {}
    for takes in WAYS[:2]:
        try:
            with warnings.catch_warnings(action="ignore"):  # `deployed` has said it
                used, _ = used_of(call, read.own, read.encoding, replace(how, takes=takes), like)
        except ValueError:
            continue
        found[f"takes={takes!r}"] = used.ask
    return found


@dataclass(frozen=True, eq=False)
class Used:
    """A network, how it is fed and how its outputs are read."""

    call: Call
    model: Any
    encoding: Encoding
    given: Fed
    reading: Reading

    def ask(self, table: pd.DataFrame) -> NDArray[np.float64]:
        check_steady(self.model)
        with torch.no_grad():
            logits: NDArray[np.float64] = self.reading.logits(self.call(self.given.table(table))).double().cpu().numpy()
        return logits

    def exact(self, in_torch: Call) -> Model | None:
        """The same with gradients, which a sigmoid or softmax at the end does not weaken; None where there are none."""
        encoded, reading = self.given.encoded, self.reading
        if encoded is None or reading.kind == "labels":
            return None

        def logits(x: Tensor) -> Tensor:
            if reading.kind not in ("probability", "probabilities"):
                return reading.logits(in_torch(encoded(x))).to(x)
            with Squashing() as squashing:
                output = in_torch(encoded(x))
            return reading.logits(output, squashing.before(output)).to(x)

        return logits


def of_module(call: Call, model: Any, encoding: Encoding, how: How, name: str) -> Deployed:
    """A network in torch that is called so, fed what it takes, its outputs read as what they are."""
    check_steady(model)
    used, about = used_of(call, model, encoding, how, first_weight(model))
    return Deployed(model, encoding, used.ask, f"{name}, {about}", exact=used.exact(call))


def of_translation(used: Used, about: str, translation: nn.Module | None) -> Deployed:
    """A network that is not in torch, and the same in torch, which is used if it says the same."""
    exact = None if translation is None else used.exact(translation)
    exact = exact if exact is not None and agrees(exact, used.ask, used.encoding) else None
    searched = "a black box" if exact is None else "searched as the same network in torch"
    return Deployed(used.model, used.encoding, used.ask, f"{about}; {searched}", exact=exact)


def agrees(exact: Model, ask: Ask, encoding: Encoding) -> bool:
    """Whether a translation agrees with the model: on known rows, and on as many with their columns shuffled apart."""
    return says_the_same(exact, ask, encoding, rows_to_compare(encoding))


def used_of(
    call: Call, model: Any, encoding: Encoding, how: How, like: Tensor | None, in_torch: nn.Module | None = None
) -> tuple[Used, str]:
    """The first way to feed the network that it takes, and what its outputs then are, in words too."""
    table, labels = sample(encoding)
    said: dict[str, Exception] = {}
    for takes in WAYS if how.takes is None else (how.takes,):
        try:
            given = fed(takes, encoding, like)
            with torch.no_grad(), Squashing() as squashing:
                output = as_output(call(given.table(table)))
            if not output.ndim or len(output) != len(table):
                raise ValueError(f"it gave {tuple(output.shape)} for {len(table)} rows")
        except Exception as error:  # whatever a forward pass may raise
            said[takes] = error
            continue
        reading = read_outputs(
            output,
            encoding.schema.classes,
            said=how.outputs,
            order=how.classes,
            labels=labels,
            squashed=squashing.before(output) is not None or _squashes(in_torch, given, table),
        )
        return Used(call, model, encoding, given, reading), f"given {given.told}, gives {reading.told}"
    tried = "; ".join(f"takes={takes!r}: {str(error).splitlines()[0]}" for takes, error in said.items() if str(error))
    raise ValueError(
        f"{type(model).__name__} takes {_numbers_taken(model)}neither encoded rows ({encoding.width} numbers) nor the "
        f"table's {len(encoding.schema.features)} columns; {how_to_fit(encoding)}. It was tried with "
        f"{tried or list(said)}"
    ) from next(iter(said.values()))


def _squashes(in_torch: nn.Module | None, given: Fed, table: pd.DataFrame) -> bool:
    """Whether the translation of a network ends in a sigmoid or softmax."""
    if in_torch is None:
        return False
    try:
        with torch.no_grad(), Squashing() as squashing:
            return squashing.before(in_torch(given.table(table))) is not None
    except Exception:  # it may be no translation, which is found out later
        return False


def _numbers_taken(model: Any) -> str:
    """How many numbers the first layer of a network takes, where that can be seen."""
    try:
        shape = getattr(model, "input_shape", None) or (None, next(iter(model.parameters())).shape[1])
        return f"{int(shape[-1])} numbers for each row, which are "
    except (AttributeError, IndexError, StopIteration, TypeError, ValueError):
        return ""
