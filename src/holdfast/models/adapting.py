"""Any model as a `Model`: what the user has, asked in the user's own units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.models import black_box, estimators
from holdfast.models.deployed import Deployed, How, Outputs, Takes
from holdfast.tabular.encoding import Encoding

READERS = (estimators, black_box)  # the first whose `knows(model)` is true reads the model


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
    return read_as(model, encoding, How(takes, outputs, classes))


def read_as(model: Any, encoding: Encoding, how: How) -> Deployed:
    """The model, asked in a way that is known: as another like it is asked."""
    for reader in READERS:
        if reader.knows(model):
            read: Deployed = reader.deployed(model, encoding, how)
            return replace(read, how=how)
    raise TypeError(
        f"{type(model).__name__} cannot be asked: expected an object with predict_proba, decision_function or predict, "
        "a torch module, or a function from a table to probabilities"
    )
