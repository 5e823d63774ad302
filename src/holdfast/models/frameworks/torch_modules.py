"""Modules of torch: asked about encoded rows, about the numbers of the table, or about the table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from holdfast.models.adapters.adapter import Adapter, Ask, Call, How
from holdfast.models.adapters.input_spec import Takes, how_to_fit, network_input
from holdfast.models.adapters.output_spec import SUM_TO_ONE, Outputs, OutputSpec, Squashing, is_single
from holdfast.models.adapters.probing import sample
from holdfast.models.model import Model, check_steady, first_weight, is_network
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding

WAYS: tuple[Takes, ...] = ("encoded", "numbers", "table")  # the first that the module takes


def knows(model: Any) -> bool:
    """A module, or layers such as `train` gives them."""
    return isinstance(model, nn.Module) or is_network(model)


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    check_steady(model)
    name = f"{type(model).__name__} of torch" if isinstance(model, nn.Module) else repr(model)
    return network_of(model).adapter(encoding, how, name)


def helped(adapter: Adapter) -> WrappedModel:
    return WrappedModel(adapter, exact=exact_of(adapter, adapter.model))


def call_of(model: Any, way: str = "torch") -> Call:
    return partial(_answer, model)


def _answer(model: Any, given: Any) -> Any:
    check_steady(model)
    with torch.no_grad():
        return model(given)


def network_of(model: Any) -> Network:
    return Network(model, "torch", call_of(model), first_weight(model), model)


@dataclass(frozen=True, eq=False)
class Network:
    """A network of any framework, before anybody knows what it takes and what its outputs mean."""

    model: Any
    way: str
    call: Call
    like: Tensor | None  # one of its weights
    in_torch: Callable[[Any], Any] | None  # the same in torch, if that is known

    def adapter(self, encoding: Encoding, how: How, name: str) -> Adapter:
        """The first way to feed the network that it takes, and what its outputs then are."""
        table, labels = sample(encoding)
        errors: dict[str, Exception] = {}
        for takes in WAYS if how.takes is None else (how.takes,):
            try:
                given = network_input(takes, encoding, self.like)
                rows = given.rows(table, encoding)
                with torch.no_grad():
                    output = _as_output(self.call(rows))
                if not output.ndim or len(output) != len(table):
                    raise ValueError(f"it gave {tuple(output.shape)} for {len(table)} rows")
            except Exception as error:  # whatever a forward pass may raise
                errors[takes] = error
                continue
            squashed = self._squashes(rows)
            meaning = _read_outputs(output, encoding.schema.classes, how, labels, squashed)
            return Adapter(self.model, encoding, name, self.way, self.call, given, meaning)
        reasons = {takes: str(error).splitlines() for takes, error in errors.items()}
        tried = "; ".join(f"takes={takes!r}: {lines[0]}" for takes, lines in reasons.items() if lines)
        raise ValueError(
            f"{type(self.model).__name__} takes {_numbers_taken(self.model)}neither encoded rows ({encoding.width} "
            f"numbers) nor the table's {len(encoding.schema.features)} columns; {how_to_fit(encoding)}. It was tried "
            f"with {tried or list(errors)}"
        ) from next(iter(errors.values()))

    def _squashes(self, rows: Any) -> bool:
        """Whether it ends in a sigmoid or softmax, as far as that can be seen."""
        if self.in_torch is None:
            return False
        try:
            with torch.no_grad(), Squashing() as squashing:
                return squashing.logits(self.in_torch(rows)) is not None
        except Exception:  # it may be no translation, which is found out later
            return False

    def fed_otherwise(self, adapter: Adapter, how: How) -> dict[str, Ask]:
        """Fed the table's numbers in the place of encoded rows, or the reverse, where it takes both."""
        found: dict[str, Ask] = {}
        for takes in WAYS[:2]:
            try:
                with warnings.catch_warnings(action="ignore"):  # it has been said
                    found[f"takes={takes!r}"] = self.adapter(adapter.encoding, replace(how, takes=takes), adapter.name)
            except ValueError:
                continue
        return found


def exact_of(adapter: Adapter, in_torch: Callable[[Any], Any]) -> Model | None:
    """The same with gradients, which a sigmoid or softmax at the end does not weaken; None where there are none."""
    if adapter.input.form != "tensor" or adapter.output.kind == "labels":
        return None

    def logits(x: Tensor) -> Tensor:
        rows = adapter.input.encoded_rows(x, adapter.encoding)
        with Squashing() as squashing:
            output = in_torch(rows)
        before = squashing.logits(output) if adapter.output.kind == "probabilities" else None
        return adapter.output.in_torch(output, before).to(x)

    return logits


# ---- what its outputs mean ----


def _as_output(output: Any) -> Tensor:
    if isinstance(output, (Tensor, np.ndarray, list)):
        return torch.as_tensor(output)
    raise TypeError(
        f"the model gave {type(output).__name__}; expected a tensor of one row per person. Wrap the model in a module "
        "whose forward returns the logits alone"
    )


def _read_outputs(
    output: Tensor, classes: tuple[Any, ...], how: How, labels: NDArray[np.int64] | None, squashed: bool
) -> OutputSpec:
    """Find out what the outputs for some rows mean. ``squashed``: a sigmoid or softmax made them.

    One number for each row is a probability where all lie from 0 to 1 and reading them so explains the known labels
    better than as logits, of which none would then be below 0.
    """
    given, names = output.detach(), classes if how.classes is None else tuple(how.classes)
    if len(names) != len(classes) or set(names) != set(classes):
        raise ValueError(f"classes must be those of the schema in the order of the outputs, {classes}, got {names}")
    single = is_single(given)
    kind = _kind(given, single, len(classes), how.outputs)
    places = tuple(names.index(label) for label in classes)
    if single and kind == "probabilities" and how.outputs is None and not squashed:
        _check_sure(given.reshape(-1).double().cpu().numpy(), labels, places)
    output_classes = tuple(range(len(classes))) if kind == "labels" else names
    return OutputSpec(kind, output_classes, places, single=single and kind != "labels")


def _kind(given: Tensor, single: bool, classes: int, stated: Outputs | None) -> Outputs:
    if stated == "labels" or (stated is None and not given.is_floating_point()):
        return "labels"
    if (single and classes != 2) or given.ndim > 2 or (not single and given.shape[1] != classes):
        also = ", or one number per row" if classes == 2 else ""
        raise ValueError(
            f"the model gave {tuple(given.shape)} for {len(given)} rows, but the schema has {classes} classes; "
            f"expected ({len(given)}, {classes}){also}"
        )
    inside = bool(((given >= 0) & (given <= 1)).all())
    sums = single or bool(((given.double().sum(1) - 1).abs() < SUM_TO_ONE).all())
    return "probabilities" if stated == "probabilities" or (stated is None and inside and sums) else "logits"


def _check_sure(single: NDArray[np.float64], labels: NDArray[np.int64] | None, places: tuple[int, ...]) -> None:
    """Warn where numbers from 0 to 1 may as well be logits."""
    if labels is not None:
        positive = labels == places.index(1)
        as_probability, as_logit = ((single > least) == positive for least in (0.5, 0.0))
        if as_probability.mean() > as_logit.mean():
            return
    warnings.warn(
        "the model gives one number from 0 to 1 for each row, which is read as a probability, though it may be a "
        "logit; say which: as_model(..., outputs='probabilities') or outputs='logits'",
        stacklevel=2,
    )


def _numbers_taken(model: Any) -> str:
    """How many numbers the first layer of a network takes, where that can be seen."""
    try:
        shape = getattr(model, "input_shape", None) or (None, next(iter(model.parameters())).shape[1])
        return f"{int(shape[-1])} numbers for each row, which are "
    except (AttributeError, IndexError, StopIteration, TypeError, ValueError):
        return ""
