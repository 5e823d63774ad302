"""A function of the user's: a table to probabilities, logits or labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.adapters.adapter import Adapter, Call, How
from holdfast.models.adapters.input_spec import InputSpec, table_input
from holdfast.models.adapters.output_spec import SAME, Outputs, OutputSpec, bare, in_schema_order, matched_classes
from holdfast.models.frameworks import estimators
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding
from holdfast.utils.messages import plain


def knows(model: Any) -> bool:
    return callable(model) and not isinstance(model, type)


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    method = {name: outputs for outputs, name in estimators.METHOD_OF.items()}.get(getattr(model, "__name__", ""))
    owner = getattr(model, "__self__", None)
    if (
        method is not None and owner is not None and estimators.knows(owner)
    ):  # model.predict_proba: the model knows more
        return estimators.adapter_of(owner, encoding, replace(how, outputs=how.outputs or method))
    name = _name(model)
    inputs = [table_input(encoding, "table", "frame"), table_input(encoding, "encoded", "array")]
    return estimators.first_that_answers(
        [given for given in inputs if how.takes in (None, given.takes)],
        lambda given, table: _read(model, name, given, table, encoding, how),
        encoding,
    )


def helped(adapter: Adapter) -> WrappedModel:
    return WrappedModel(adapter)


def call_of(model: Any, way: str = "function") -> Call:
    found: Call = model
    return found


def _name(function: Any) -> str:
    name = getattr(function, "__name__", None)
    return "the function" if name == "<lambda>" else str(name or type(function).__name__)


def _read(function: Any, name: str, given: InputSpec, table: pd.DataFrame, encoding: Encoding, how: How) -> Adapter:
    """What the answers to some rows look like."""
    ours = encoding.schema.classes
    unread = Adapter(
        function, encoding, name, "function", function, given, OutputSpec("labels", *in_schema_order(ours))
    )
    answer = unread.answered(function, unread.rows(table), "function")
    outputs = how.outputs or _outputs(answer, encoding, how)
    if how.classes is not None:
        classes = matched_classes(how.classes, ours, "classes=", given=True)
    elif outputs == "labels":
        classes = _classes_of_labels(bare(answer), encoding, name)
    else:
        classes = in_schema_order(ours)
    return replace(unread, output=OutputSpec(outputs, *classes))


def _outputs(answer: Any, encoding: Encoding, how: How) -> Outputs:
    """Labels, probabilities or logits: which of them the answers can be, in this order."""
    array = bare(answer)
    if array.dtype.kind not in "fiu" or (array.ndim == 1 and _are_labels(array, encoding, how)):
        return "labels"
    if (array < -SAME).any() or (array > 1 + SAME).any():
        return "logits"
    sums_to_one = array.ndim == 1 or bool(np.allclose(array.sum(axis=1), 1, atol=1e-3))
    return "probabilities" if sums_to_one else "logits"


def _are_labels(array: NDArray[Any], encoding: Encoding, how: How) -> bool:
    known = {*(encoding.schema.classes if how.classes is None else how.classes), *range(len(encoding.schema.classes))}
    return set(array.tolist()) <= known


def _classes_of_labels(
    array: NDArray[Any], encoding: Encoding, name: str
) -> tuple[tuple[Any, ...], tuple[int, ...], str]:
    """The schema's classes, or numbers in their place."""
    seen, ours = {plain(value) for value in array.tolist()}, encoding.schema.classes
    if seen <= set(ours):
        return ours, tuple(range(len(ours))), ""
    numbered = seen <= set(range(len(ours)))
    return matched_classes(range(len(ours)) if numbered else sorted(seen, key=str), ours, name)
