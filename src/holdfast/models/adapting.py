"""Any model as a `Model`: what the user has, asked in the user's own units."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

from torch import Tensor

from holdfast.models import suspicions
from holdfast.models.asked import Asked
from holdfast.models.deployed import Deployed, How, Outputs, Takes
from holdfast.models.frameworks import (
    black_box,
    estimators,
    keras_models,
    lightgbm_trees,
    onnx_models,
    torch_modules,
    xgboost_trees,
)
from holdfast.models.merged import Merged
from holdfast.tabular.encoding import Encoding

# The first whose `knows(model)` is true reads the model.
READERS = (keras_models, torch_modules, onnx_models, xgboost_trees, lightgbm_trees, estimators, black_box)


def as_model(
    model: Any,
    encoding: Encoding,
    *,
    takes: Takes | None = None,
    outputs: Outputs | None = None,
    classes: tuple[Any, ...] | None = None,
) -> Deployed:
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
        Deployed(LogisticRegression, asked for predict_proba of a table of 1 columns; searched by its gradient)
        >>> hf.predict(model, encoding.encode(table)).tolist()
        [0, 0, 1, 1]

    Paper: not in [Black et al. 2022](https://arxiv.org/abs/2110.03109), whose models are networks of Keras (Appendix
    B.2).
    """
    if not isinstance(encoding, Encoding):
        raise TypeError(f"encoding must be an Encoding, got {type(encoding).__name__}; Encoding.fit makes one")
    if isinstance(model, Deployed) or is_ours(model):
        return model  # type: ignore[no-any-return]
    how = How(takes, outputs, classes)
    _check_how(how)
    read = read_as(model, encoding, how)
    others = getattr(_reader(model), "others", None)  # ways to ask the model otherwise, where its reader knows some
    suspicions.warn_of(read, others and partial(others, read, how))
    return read


def read_as(model: Any, encoding: Encoding, how: How) -> Deployed:
    """The model, asked in a way that is known: as another like it is asked."""
    read: Deployed = _reader(model).deployed(model, encoding, how)
    return read


def same_reader(one: Any, other: Any) -> bool:
    """Whether two models are of one framework, so that one can be asked as the other is."""
    return _reader(one) is _reader(other)


def is_ours(model: Any) -> bool:
    """Whether it takes encoded rows already."""
    layers = [getattr(model, name, None) for name in ("weights", "biases")]
    is_network = all(isinstance(each, tuple) and each and isinstance(each[0], Tensor) for each in layers)
    return isinstance(model, (Merged, Asked)) or is_network


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
