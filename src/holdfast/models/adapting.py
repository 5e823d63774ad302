"""Any model as a `Model`: what the user has, asked in the user's own units."""

from __future__ import annotations

from typing import Any

from holdfast.models import black_box, estimators, trees_lightgbm, trees_xgboost
from holdfast.models.deployed import Deployed, How, Outputs, Takes
from holdfast.tabular.encoding import Encoding

READERS = (
    trees_xgboost,
    trees_lightgbm,
    estimators,
    black_box,
)  # the first whose `knows(model)` is true reads the model


def as_model(
    model: Any,
    encoding: Encoding,
    *,
    takes: Takes | None = None,
    outputs: Outputs | None = None,
    classes: tuple[Any, ...] | None = None,
) -> Deployed:
    """The user's model as a `Model` of encoded rows, whatever framework it comes from.

    takes     "table" (a DataFrame in the user's units) or "encoded" (rows of the encoding)
    outputs   what the model gives for a row: "probabilities", "logits" or "labels"
    classes   the class of each output, in order

    What is left out is found out from the model, and printing the result says it.
    """
    if not isinstance(encoding, Encoding):
        raise TypeError(f"encoding must be an Encoding, got {type(encoding).__name__}; Encoding.fit makes one")
    if isinstance(model, Deployed):
        return model
    for reader in READERS:
        if reader.knows(model):
            read: Deployed = reader.deployed(model, encoding, How(takes, outputs, classes))
            return read
    raise TypeError(
        f"{type(model).__name__} cannot be asked: expected an object with predict_proba, decision_function or predict, "
        "a torch module, or a function from a table to probabilities"
    )
