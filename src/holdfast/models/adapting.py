"""Any model as a `Model`: what the user has, asked in the user's own units."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

from holdfast.models import sanity_checks
from holdfast.models.adapters.adapter import Adapter, How
from holdfast.models.adapters.input_spec import InputSpec, Takes
from holdfast.models.adapters.output_spec import Outputs, OutputSpec
from holdfast.models.checked import CheckedModel
from holdfast.models.frameworks import boosters, estimators, functions, keras_models, onnx_models, torch_modules
from holdfast.models.merged import Merged
from holdfast.models.model import is_network
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding

# The first whose `knows(model)` is true reads the model.
READERS = (keras_models, torch_modules, onnx_models, boosters, estimators, functions)


def as_model(
    model: Any,
    encoding: Encoding,
    *,
    takes: Takes | None = None,
    outputs: Outputs | None = None,
    classes: tuple[Any, ...] | None = None,
) -> WrappedModel:
    """The user's model as a `Model` of encoded rows, whatever framework it comes from.

    What is left out is found out from the model, and printing the result says it. A model of `as_model`, a network that
    holdfast trained and a `Merged` of them are models of encoded rows already, and come back unchanged.

    Args:
        model: an estimator by scikit-learn's conventions, a pipeline, a model of XGBoost, LightGBM, Keras or ONNX, a
            torch module, or a function from a table to probabilities
        encoding: of the table that it was trained on
        takes: "table" (a DataFrame in the user's units), "encoded" (rows of the encoding) or "numbers" (the table's
            columns before encoding, one number each, in the order of the schema)
        outputs: what the model gives for a row: "probabilities", "logits" or "labels"
        classes: the class of each output, in order

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> table = pd.DataFrame({"income": [20, 30, 60, 90]})
        >>> table["approved"] = ["no", "no", "yes", "yes"]
        >>> encoding = hf.Encoding.fit(table, hf.Schema.infer(table, label="approved"))
        >>> estimator = LogisticRegression().fit(table[["income"]], table["approved"])
        >>> model = hf.as_model(estimator, encoding)
        >>> model
        WrappedModel(LogisticRegression, asked for predict_proba of a table of 1 columns; searched by its gradient)
        >>> hf.predict(model, encoding.encode(table)).tolist()
        [0, 0, 1, 1]
    """
    if not isinstance(encoding, Encoding):
        raise TypeError(f"encoding must be an Encoding, got {type(encoding).__name__}; Encoding.fit makes one")
    if isinstance(model, WrappedModel) or is_ours(model):
        return model  # type: ignore[no-any-return]
    how = How(takes, outputs, classes)
    _check_how(how)
    adapter = adapter_of(model, encoding, how)
    read = helped(adapter)
    others, reader = None, _reader(model)
    if hasattr(reader, "network_of") and (adapter.input.form == "tensor" or adapter.way != "onnx"):
        others = partial(reader.network_of(model).fed_otherwise, adapter, how)
    sanity_checks.warn_of(read, others)
    return read


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    """How a model is asked: as far as the user has said, and else as is found out."""
    found: Adapter = _reader(model).adapter_of(model, encoding, how)
    return found


def helped(adapter: Adapter) -> WrappedModel:
    """The model with whatever helps a search: its gradient, its trees."""
    found: WrappedModel = _reader(adapter.model).helped(adapter)
    return found


def unhelped(adapter: Adapter) -> WrappedModel:
    """The model as it can be asked, and nothing more: what helps a search takes long to make."""
    return WrappedModel(adapter, lean=True)


def adapter_like(adapter: Adapter, model: Any) -> Adapter:
    """Another model of the same kind, asked as this one is."""
    return adapter.like(model, _reader(model).call_of(model, adapter.way))


def read_adapter(written: dict[str, Any], model: Any, encoding: Encoding) -> Adapter:
    """The adapter that `Adapter.written` described, for a model that was read again."""
    given, output = written["input"], written["output"]
    return Adapter(
        model,
        encoding,
        written["name"],
        written["way"],
        _reader(model).call_of(model, written["way"]),
        InputSpec(**given | {"columns": tuple(given["columns"])}),
        OutputSpec(**output | {name: tuple(output[name]) for name in ("classes", "places")}),
    )


def same_framework(model: Any, other: Any) -> bool:
    """Whether one of two models can be asked as the other is."""
    return _reader(model) is _reader(other)


def is_ours(model: Any) -> bool:
    """Whether it takes encoded rows already."""
    return isinstance(model, (Merged, CheckedModel)) or is_network(model)


def _reader(model: Any) -> Any:
    for reader in READERS:
        if reader.knows(model):
            return reader
    raise TypeError(
        f"{type(model).__name__} cannot be asked: expected an object with predict_proba, decision_function or predict, "
        "a torch module, or a function from a table to probabilities"
    )


def _check_how(how: How) -> None:
    for name, value, words in (("takes", how.takes, get_args(Takes)), ("outputs", how.outputs, get_args(Outputs))):
        if value is not None and value not in words:
            raise ValueError(f"{name} is {value!r}; choose one of {', '.join(map(repr, words))}, or leave it out")
    if how.classes is not None and (isinstance(how.classes, str) or not isinstance(how.classes, Sequence)):
        raise TypeError(f"classes is {how.classes!r}; give the class of each output in order, such as ('bad', 'good')")
