"""What comes out of a model: probabilities, logits or labels, and for which class. A value that can be written down."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.overrides import TorchFunctionMode

from holdfast.models.model import LEAST_PROBABILITY
from holdfast.utils.messages import plain

Floats = NDArray[np.float64]
Outputs = Literal["probabilities", "logits", "labels"]
SURE_LOGIT = 1.0  # of the class that a model names, and less that of the others, where it gives labels and no more
TIE = 1e-9  # logits that differ by less are equal
SAME = 1e-6  # difference of two answers to one question that rounding explains
SUM_TO_ONE = 1e-3  # by how much probabilities of a row may miss 1, as float16 has them
CLOSE_LOGITS = 0.01  # logits that differ by less are as good as equal: `predict` says which class wins
NUDGE = 1e-3  # by which the class that `predict` names is raised above the others


@dataclass(frozen=True)
class OutputSpec:
    """How a model's answers are read: (n, c) logits in the order of the schema's classes."""

    kind: Outputs
    classes: tuple[Any, ...]  # what the model calls the class of each output
    places: tuple[int, ...]  # the output of each of the schema's classes
    note: str = ""  # where they are not the schema's classes themselves, how they were matched
    single: bool = False  # a network's one number for each row, of the second of two classes
    scale: float = 1.0  # that logits are multiplied by
    decides: bool = False  # `predict` says otherwise than the largest score, so it is asked about every row
    settles: bool = False  # `predict` is asked where two scores are as good as equal
    shift: float = 0.0  # of two classes: the log-odds at which `predict` changes its mind

    @property
    def in_order(self) -> tuple[int, ...]:
        """The schema's class of each output."""
        return tuple(self.places.index(output) for output in range(len(self.places)))

    def logits(self, answer: Any, rows: int, name: str, check: bool = True) -> Floats:
        """Of what a model said of so many rows. With ``check``, NaN is an error."""
        if self.kind == "labels":
            return from_labels(self.labels(answer, rows, name), len(self.places))
        numbers = _numbers_from(answer, rows, name, self.kind, check)
        if self.kind == "probabilities":
            return self._from_probabilities(numbers, name)
        return self._from_scores(numbers * self.scale, name)

    def labels(self, answer: Any, rows: int, name: str) -> NDArray[np.int64]:
        """The place among the schema's classes of each label that the model gives: (n,)."""
        labels = bare(answer)
        if labels.ndim != 1:
            raise ValueError(
                f"{name} gives labels of shape {labels.shape}; a model with one label for each row is needed"
            )
        known = {self.classes[output]: number for number, output in enumerate(self.places)}
        found = [known.get(plain(label), -1) for label in labels.tolist()]
        if -1 in found:
            odd = labels[found.index(-1)]
            raise ValueError(
                f"{name} gives the label {plain(odd)!r}, which is none of its classes {shown(self.classes)}; pass "
                "classes=, the class of each output in order"
            )
        if len(found) != rows:
            raise ValueError(f"{name} gives {len(found)} labels for {rows} rows; one for each is needed")
        return np.array(found, dtype=np.int64)

    def _from_probabilities(self, share: Floats, name: str) -> Floats:
        probabilities = self._widened(share, name, lambda p: np.stack([1 - p, p], axis=1))
        if ((probabilities < -SUM_TO_ONE) | (probabilities > 1 + SUM_TO_ONE)).any():
            raise ValueError(
                f"{name} gives numbers from {probabilities.min():.3g} to {probabilities.max():.3g} as probabilities; "
                "pass outputs='logits' if that is what they are"
            )
        logits: Floats = np.log(np.clip(probabilities, LEAST_PROBABILITY, 1))
        return logits[:, list(self.places)]

    def _from_scores(self, scores: Floats, name: str) -> Floats:
        """A score of each class, or of the second of two."""
        class_scores = self._widened(scores, name, lambda z: np.stack([-z, z], axis=1) / 2)
        return np.nan_to_num(class_scores, nan=np.nan)[:, list(self.places)]

    def _widened(self, values: Floats, name: str, both: Callable[[Floats], Floats]) -> Floats:
        """One column for each of the model's classes."""
        count = len(self.places)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim == 1 and count == 2:
            return both(values)
        if values.ndim == 2 and values.shape[1] == count:
            return values
        raise ValueError(
            f"{name} gives {1 if values.ndim == 1 else values.shape[1]} numbers for each row, but there are {count} "
            "classes; a model of one label with one output for each class is needed"
        )

    def settled(self, logits: Floats, predict: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Floats:
        """The logits, with the class that ``predict(rows)`` names on top wherever it has a say."""
        if self.kind == "labels" or not (self.decides or self.settles):
            return logits
        if self.shift:
            logits = logits + np.array([self.shift, -self.shift]) / 2
        ordered = np.sort(logits, axis=1)
        rows = np.flatnonzero(self.decides | (ordered[:, -1] - ordered[:, -2] < CLOSE_LOGITS))
        if len(rows):
            logits[rows] = _agreeing(logits[rows], predict(rows))
        return logits

    def in_torch(self, output: Tensor, before: Tensor | None = None) -> Tensor:
        """The same with a gradient: (n, c). ``before`` are the logits of the output, where they are known."""
        single, values = is_single(output), output if before is None else before
        if self.kind == "probabilities" and before is None:
            share = output.double()
            share = torch.stack([1 - share.reshape(-1), share.reshape(-1)], 1) if single else share
            return share.clamp_min(LEAST_PROBABILITY).log()[:, list(self.places)]
        if single:
            half = values.reshape(len(output)) / 2
            values = torch.stack([-half, half], 1)
        return values[:, list(self.places)]


def is_single(output: Tensor) -> bool:
    """Whether there is one number for each row."""
    return output.ndim == 1 or output.shape[-1] == 1


def shown(values: Sequence[Any]) -> str:
    return ", ".join(map(repr, values))


def as_array(answer: Any) -> NDArray[Any]:
    return answer.detach().cpu().numpy() if isinstance(answer, Tensor) else np.asarray(answer)


def bare(answer: Any) -> NDArray[Any]:
    """As an array; a column alone as a row of numbers."""
    array = as_array(answer)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _numbers_from(answer: Any, rows: int, name: str, what: str, check: bool) -> Floats:
    """What a model said as numbers (n, k), if it is that and of as many rows."""
    if isinstance(answer, list) and answer and np.ndim(answer[0]) == 2:
        raise ValueError(f"{name} has several outputs; a model of one label is needed")
    array = as_array(answer)
    try:
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} gives {array.dtype} where numbers are expected as {what}") from error
    if array.ndim not in (1, 2) or len(array) != rows:
        raise ValueError(
            f"{name} gives {what} of shape {array.shape} for {rows} rows; expected ({rows}, classes) or ({rows},)"
        )
    wrong = np.flatnonzero(np.isnan(array.reshape(rows, -1)).any(axis=1))
    if check and len(wrong):
        raise ValueError(
            f"{name} answers NaN for {len(wrong)} of {rows} rows, the first of them row {wrong[0]}; it must have an "
            "answer for every row that the schema allows"
        )
    return array


def from_labels(found: NDArray[np.int64], count: int) -> Floats:
    """The classes that a model names (n,) as logits (n, c)."""
    logits = np.full((len(found), count), -SURE_LOGIT)
    logits[np.arange(len(found)), found] = SURE_LOGIT
    return logits


def _agreeing(logits: Floats, found: NDArray[np.int64]) -> Floats:
    """The logits, and where another class than the one that the model names is largest, or as large, that one raised.

    By so little that a search still sees how near the model is to changing its mind.
    """
    rows, raised = np.arange(len(found)), logits.copy()
    raised[rows, found] = -math.inf
    others, found_logit = raised.max(axis=1), logits[rows, found]
    raised[rows, found] = np.where(found_logit > others + TIE, found_logit, others + NUDGE)
    return raised


# ---- which class each output is for ----


def matched_classes(
    model_classes: Sequence[Any], ours: tuple[Any, ...], name: str, given: bool = False
) -> tuple[tuple[Any, ...], tuple[int, ...], str]:
    """The model's classes, the output of each of the schema's, and how they were matched: by the same values, the same
    text, or numbers 0, 1, ... by position."""
    theirs = tuple(plain(value) for value in model_classes)
    if len(theirs) != len(ours):
        raise ValueError(_mismatch(theirs, ours, name))
    if set(theirs) == set(ours):
        note = "classes as given" if given and theirs != ours else ""
        return theirs, tuple(theirs.index(label) for label in ours), note
    texts = [str(label) for label in theirs]
    if sorted(texts) == sorted(map(str, ours)) and len(set(texts)) == len(texts):
        return theirs, tuple(texts.index(str(label)) for label in ours), "classes matched by their text"
    if all(isinstance(value, (int, float)) for value in theirs) and sorted(theirs) == list(range(len(theirs))):
        pairs = ", ".join(f"{number} is {label!r}" for number, label in enumerate(ours))
        places = tuple(theirs.index(number) for number in range(len(ours)))
        return theirs, places, f"{BY_POSITION}: {pairs}"
    raise ValueError(_mismatch(theirs, ours, name))


BY_POSITION = "classes by position"


def in_schema_order(ours: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[int, ...], str]:
    """The outputs in the order of the schema's classes."""
    return ours, tuple(range(len(ours))), "outputs in the order of the schema's classes"


def _mismatch(theirs: Sequence[Any], ours: Sequence[Any], name: str) -> str:
    return (
        f"{name} has the classes {shown(theirs)}, but the schema has {shown(ours)}; pass classes=, the schema's "
        "class of each output in order, or fit the model to the schema's label"
    )


# ---- what the last sigmoid or softmax was given ----


class Squashing(TorchFunctionMode):
    """Keeps what the last sigmoid or softmax of a forward pass was given: of saturated probabilities, that says more
    than their logarithms."""

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[Tensor, Tensor, bool] | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name in ("sigmoid", "special_expit", "softmax") and args and isinstance(args[0], Tensor):
            self._last = args[0], output, name == "softmax"
        return output

    def logits(self, output: Any) -> Tensor | None:
        """Of probabilities, up to one number added to all of a row, or the log-odds of one; None unless they are the
        last ones of a sigmoid or softmax, reshaped at most."""
        if self._last is None or not isinstance(output, Tensor) or output.numel() != self._last[1].numel():
            return None
        given, squashed, softmax = self._last
        if not torch.equal(output.detach().flatten(), squashed.detach().flatten()):
            return None
        given = given.reshape(output.shape)
        return given if softmax or is_single(output) else torch.nn.functional.logsigmoid(given)
