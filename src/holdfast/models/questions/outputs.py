"""What a network's outputs mean, and the logits that say the same."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.overrides import TorchFunctionMode

from holdfast.models.deployed import LEAST_PROBABILITY, Outputs

Kind = Literal["logits", "logit", "probabilities", "probability", "labels"]
TOLD: dict[Kind, str] = {
    "logits": "one logit per class",
    "logit": "one logit",
    "probabilities": "one probability per class",
    "probability": "one probability",
    "labels": "labels",
}
SUM_TO_ONE = 1e-3  # by how much probabilities of a row may miss 1, as float16 has them


@dataclass(frozen=True)
class Reading:
    """How outputs are read: their kind, and the place among them of each class of the schema."""

    kind: Kind
    order: tuple[int, ...]
    classes: tuple[Any, ...]  # in the order of the outputs

    @property
    def told(self) -> str:
        if self.kind in ("logit", "probability"):
            return f"{TOLD[self.kind]}, of {self.classes[1]!r}"
        return f"{TOLD[self.kind]}: {', '.join(map(repr, self.classes))}"

    def logits(self, output: Any, before: Before | None = None) -> Tensor:
        """(n, c) in the order of the schema. ``before`` is what the last sigmoid or softmax was given."""
        output = as_output(output)
        return self._in_their_order(output, before)[:, list(self.order)]

    def _in_their_order(self, output: Tensor, before: Before | None) -> Tensor:
        if self.kind == "labels":
            given = torch.nn.functional.one_hot(output.reshape(len(output)).long(), len(self.order))
            return torch.log(given.double().clamp_min(LEAST_PROBABILITY))
        if self.kind in ("logits", "probabilities") and (output.ndim != 2 or output.shape[1] != len(self.order)):
            raise ValueError(_does_not_fit(output, len(self.order)))
        if self.kind == "logits":
            return output
        if self.kind == "probabilities":
            return _log(output) if before is None else before.logarithms(output)
        if self.kind == "logit":
            half = _single(output) / 2
        elif before is None:
            single = _single(output).double()
            return torch.stack([_log(1 - single), _log(single)], 1)
        else:
            half = before.given.reshape(len(output)) / 2
        return torch.stack([-half, half], 1)


@dataclass(frozen=True)
class Before:
    """What the last sigmoid or softmax was given: of saturated probabilities, more than their logarithms say."""

    given: Tensor
    softmax: bool

    def logarithms(self, output: Tensor) -> Tensor:
        """Of the probabilities, up to one number added to all of a row."""
        given = self.given.reshape(output.shape)
        return given if self.softmax else torch.nn.functional.logsigmoid(given)


def _single(output: Tensor) -> Tensor:
    if output.ndim > 2 or output.numel() != len(output):
        raise ValueError(f"the model gave {tuple(output.shape)}; expected one number for each of {len(output)} rows")
    return output.reshape(len(output))


def _log(probability: Tensor) -> Tensor:
    return probability.double().clamp_min(LEAST_PROBABILITY).log()


def as_output(output: Any) -> Tensor:
    if isinstance(output, (Tensor, np.ndarray, list)):
        return torch.as_tensor(output)
    raise TypeError(
        f"the model gave {type(output).__name__}; expected a tensor of one row per person. Wrap the model in a module "
        "whose forward returns the logits alone"
    )


def read_outputs(
    output: Any,
    classes: tuple[Any, ...],
    *,
    said: Outputs | None = None,
    order: tuple[Any, ...] | None = None,
    labels: NDArray[np.int64] | None = None,
    squashed: bool = False,
) -> Reading:
    """Find out what the outputs for some rows mean. ``squashed``: a sigmoid or softmax made them.

    One number for each row is a probability where all lie from 0 to 1 and reading them so explains the known labels
    better than as logits, of which none would then be below 0.
    """
    given = as_output(output).detach()
    names = checked_order(order, classes)
    kind = _kind(given, len(classes), said)
    places = tuple(names.index(label) for label in classes)
    if kind == "probability" and said is None and not squashed:
        _check_sure(_single(given).double().cpu().numpy(), labels, places)
    return Reading(kind, places, names)


def _kind(given: Tensor, classes: int, said: Outputs | None) -> Kind:
    single = given.ndim == 1 or given.shape[-1] == 1
    if said == "labels" or (said is None and not given.is_floating_point()):
        return "labels"
    if (single and classes != 2) or given.ndim > 2 or (not single and given.shape[1] != classes):
        raise ValueError(_does_not_fit(given, classes))
    inside = bool(((given >= 0) & (given <= 1)).all())
    if single:
        return "probability" if said == "probabilities" or (said is None and inside) else "logit"
    sums = inside and bool(((given.double().sum(1) - 1).abs() < SUM_TO_ONE).all())
    return "probabilities" if said == "probabilities" or (said is None and sums) else "logits"


def _does_not_fit(given: Tensor, classes: int) -> str:
    also = ", or one number per row" if classes == 2 else ""
    return (
        f"the model gave {tuple(given.shape)} for {len(given)} rows, but the schema has {classes} classes; expected "
        f"({len(given)}, {classes}){also}"
    )


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


def checked_order(order: tuple[Any, ...] | None, classes: tuple[Any, ...]) -> tuple[Any, ...]:
    """The classes in the order of the outputs: as the user said, or as the schema has them."""
    names = classes if order is None else tuple(order)
    if len(names) != len(classes) or set(names) != set(classes):
        raise ValueError(f"classes must be those of the schema in the order of the outputs, {classes}, got {names}")
    return names


class Squashing(TorchFunctionMode):
    """Keeps what the last sigmoid or softmax of a forward pass was given: the exact logits of what it gave."""

    NAMES = frozenset({"sigmoid", "special_expit", "softmax"})

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[Tensor, Tensor, bool] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in self.NAMES and args and isinstance(args[0], Tensor):
            self._last = args[0], output, name == "softmax"
        return output

    def before(self, output: Any) -> Before | None:
        """What was given for these outputs, if they are the last ones of a sigmoid or softmax, reshaped at most."""
        if self._last is None or not isinstance(output, Tensor) or output.numel() != self._last[1].numel():
            return None
        given, squashed, softmax = self._last
        same = torch.equal(output.detach().flatten(), squashed.detach().flatten())
        return Before(given, softmax) if same else None
