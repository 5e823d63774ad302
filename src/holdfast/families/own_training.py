"""Retrain a model that is no estimator: a module of torch by a recipe, or a model of any kind by a function."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import nn

from holdfast.families.collecting import AnyTraining, collect
from holdfast.families.family import Family, family_of
from holdfast.families.judging import judged
from holdfast.families.reading_members import read_like
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.training import train
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.deployed import Deployed
from holdfast.models.identity import identities
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding


def train_by(
    function: AnyTraining,
    changes: Sequence[Retraining],
    encoding: Encoding,
    deployed: Model,
    table: pd.DataFrame,
    *,
    held_out: pd.DataFrame | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Family:
    """A family of what ``function(rows, seed)`` returns, once for every change: rows of the table by their numbers.

    It returns a model of any framework, or the name of a file that `read_model` reads. Each is asked as the deployed
    model is. The function runs in worker processes; here, where it or what it returns cannot be handed over, or with
    ``workers=1``. A member whose training raises, or whose model cannot be read, is in ``failures``.

    If the members do not resemble the deployed model, ``surrogates`` says why, as for `refit`.
    """
    if isinstance(function, type):
        raise TypeError(f"function must take (rows, seed) and return a model, got {function!r}")
    if not isinstance(table, pd.DataFrame):
        raise TypeError(f"table must be the one that the deployed model was trained on, got {type(table).__name__}")
    one_row = encoding.decode(torch.zeros(1, encoding.width))  # to see that a model answers

    def read(given: Any) -> Model:
        if given is None:
            raise TypeError("the training returned nothing; it must return the model, or the name of its file")
        if isinstance(given, nn.Module):
            given.eval()
        model = read_like(given, encoding, deployed)
        if identities(model) & identities(deployed):
            raise ValueError("the training returned the deployed model itself; it must train another one")
        model(encoding.encode(one_row))
        return model

    family = family_of(*collect(function, changes, len(table), read, workers, progress))
    return judged(family, deployed, encoding, table, held_out, unnoticed="this training does not notice such a change")


def retrained_network(
    deployed: Model,
    recipe: Recipe,
    encoding: Encoding,
    table: pd.DataFrame,
    changes: Sequence[Retraining],
    *,
    new: pd.DataFrame | None = None,
    held_out: pd.DataFrame | None = None,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> Family:
    """Networks trained by the recipe on the table that the deployed one was trained on, and judged beside it.

    The recipe says how the deployed network was trained: ``Recipe(network=module, epochs=..., batch=...)``. It trains
    modules that take encoded rows and give one logit per class. Another module is trained by a function of the user's,
    see `train_by`. If the members do not resemble the deployed model, ``surrogates`` says why, as for `refit`.
    """
    _check_module(deployed)
    own = deployed.own if isinstance(deployed, Deployed) else deployed
    members = tuple(changes)
    family = train(
        encoding.encode(table),
        encoding.labels(table),
        recipe,
        members,
        new=None if new is None else (encoding.encode(new), encoding.labels(new)),
        base=own if any(change.continued for change in members) else None,
        held_out=None if held_out is None else (encoding.encode(held_out), encoding.labels(held_out)),
        store=store,
        classes=len(encoding.schema.classes),
        workers=workers,
        progress=progress,
    )
    return judged(family, deployed, encoding, table, held_out)


def _check_module(deployed: Model) -> None:
    """A module that is asked otherwise than a recipe asks its networks is another model than they are."""
    if not (
        isinstance(deployed, Deployed) and isinstance(deployed.own, nn.Module) and isinstance(deployed.ask, Adapter)
    ):
        return
    given, output = deployed.ask.input, deployed.ask.output
    as_trained = output.kind == "logits" and not output.single and output.places == tuple(range(len(output.places)))
    if given.takes != "encoded" or not as_trained:
        raise ValueError(
            f"{deployed}: a recipe trains modules that take encoded rows and give one logit per class, in the order of "
            "the schema; retrain this one with a function of your own that takes (rows, seed) and returns the module"
        )
