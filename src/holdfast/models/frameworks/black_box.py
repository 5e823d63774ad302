"""A function of the user's: a table to probabilities, logits or labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.deployed import Deployed, How, Outputs
from holdfast.models.frameworks import estimators
from holdfast.models.questions.asking import (
    SAME,
    Classes,
    Feed,
    Floats,
    as_array,
    by_position,
    check_order,
    check_repeatable,
    checked_call,
    classes_of,
    described,
    feed,
    from_labels,
    from_probabilities,
    from_scores,
    numbers_from,
)
from holdfast.models.questions.probing import FEW, real_rows, some_rows
from holdfast.tabular.encoding import Encoding
from holdfast.utils.messages import plain


def knows(model: Any) -> bool:
    return callable(model) and not isinstance(model, type)


def deployed(model: Any, encoding: Encoding, how: How) -> Deployed:
    method = {name: outputs for outputs, name in estimators.ASKED.items()}.get(getattr(model, "__name__", ""))
    owner = getattr(model, "__self__", None)
    if (
        method is not None and owner is not None and estimators.knows(owner)
    ):  # model.predict_proba: the model knows more
        return estimators.deployed(owner, encoding, replace(how, outputs=how.outputs or method))
    question = _question(model, encoding, how)
    return Deployed(model, encoding, question, f"{question.name}, {question}; a black box")


@dataclass(frozen=True)
class Question:
    """How a function is asked, and what its answers are."""

    function: Callable[[Any], Any]
    name: str
    feed: Feed
    outputs: Outputs
    classes: Classes

    def __call__(self, table: pd.DataFrame) -> Floats:
        """(n, c) logits of a table in the user's units, in the order of the schema's classes."""
        told = checked_call(self.function, self.feed(table), self.name, f"about {self.feed}")
        return self.logits(told, len(table))

    def logits(self, told: Any, rows: int) -> Floats:
        if self.outputs == "labels":
            found = self.classes.of(_bare(told), self.name)
            if len(found) != rows:
                raise ValueError(f"{self.name} gives {len(found)} labels for {rows} rows; one for each is needed")
            return from_labels(found, len(self.classes.own))
        numbers = numbers_from(told, rows, self.name, self.outputs)
        convert = from_probabilities if self.outputs == "probabilities" else from_scores
        return convert(numbers, self.classes, self.name)

    def __str__(self) -> str:
        return described([f"asked for {self.outputs} of {self.feed}", self.classes.note])


def _question(function: Any, encoding: Encoding, how: How) -> Question:
    name = _name(function)
    real = real_rows(encoding, FEW)
    table, labels = (some_rows(encoding), None) if real is None else real
    feeds = [feed(encoding, "table", as_array=False), feed(encoding, "encoded", as_array=True)]
    failures: list[ValueError] = []
    for given in [each for each in feeds if how.takes in (None, each.takes)]:
        try:
            told = checked_call(function, given(table), name, f"about {given}")
            question = _read(function, name, given, told, len(table), encoding, how)
            logits = question.logits(told, len(table))
        except ValueError as error:
            failures.append(error)
            continue
        check_repeatable(question, table, logits, name)
        check_order(question.classes, logits.argmax(axis=1), labels, name)
        return question
    raise failures[0]


def _name(function: Any) -> str:
    name = getattr(function, "__name__", None)
    return "the function" if name == "<lambda>" else str(name or type(function).__name__)


def _read(function: Any, name: str, given: Feed, told: Any, rows: int, encoding: Encoding, how: How) -> Question:
    """What the answers to some rows look like."""
    outputs = how.outputs or _outputs(told, rows, encoding, how)
    if how.classes is not None:
        classes = classes_of(how.classes, encoding, "classes=", given=True)
    elif outputs == "labels":
        classes = _classes_of_labels(_bare(told), encoding, name)
    else:
        classes = by_position(encoding)
    return Question(function, name, given, outputs, classes)


def _outputs(told: Any, rows: int, encoding: Encoding, how: How) -> Outputs:
    """Labels, probabilities or logits: which of them the answers can be, in this order."""
    array = _bare(told)
    if array.dtype.kind not in "fiu" or (array.ndim == 1 and _are_labels(array, encoding, how)):
        return "labels"
    if (array < -SAME).any() or (array > 1 + SAME).any():
        return "logits"
    sums_to_one = array.ndim == 1 or bool(np.allclose(array.sum(axis=1), 1, atol=1e-3))
    return "probabilities" if sums_to_one else "logits"


def _are_labels(array: NDArray[Any], encoding: Encoding, how: How) -> bool:
    known = {*(encoding.schema.classes if how.classes is None else how.classes), *range(len(encoding.schema.classes))}
    return set(array.tolist()) <= known


def _classes_of_labels(array: NDArray[Any], encoding: Encoding, name: str) -> Classes:
    """The schema's classes, or numbers in their place."""
    seen, ours = {plain(value) for value in array.tolist()}, encoding.schema.classes
    if seen <= set(ours):
        return replace(by_position(encoding), note="")
    if seen <= set(range(len(ours))):
        return classes_of(range(len(ours)), encoding, name)
    return classes_of(sorted(seen, key=str), encoding, name)


def _bare(told: Any) -> NDArray[Any]:
    """As an array; a column alone as a row of numbers."""
    array = as_array(told)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
