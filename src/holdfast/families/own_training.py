"""Retrained models that are no refits of an estimator: given, trained by a function of the user, or by a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from holdfast.families.collecting import AnyTraining, collect
from holdfast.families.family import Family, family_of, numbered
from holdfast.families.members import read_perceptron
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.resemblance import judged
from holdfast.families.training import train
from holdfast.models.adapters.adapter import How
from holdfast.models.adapters.seen import held
from holdfast.models.adapting import adapter_like, adapter_of, is_ours, same_framework, unhelped
from holdfast.models.files.networks import Layers
from holdfast.models.files.reading import read_own, remember_file
from holdfast.models.identity import identities, is_estimator
from holdfast.models.model import Model
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding


def gather_models(models: Any, encoding: Encoding, deployed: Model) -> Family:
    """Models that exist already as a family: objects of any framework, or files that `read_model` reads.

    Each is asked as the deployed model is. One that is the deployed model, or that is there twice, raises: it would
    agree with itself. A Family comes back as it is.
    """
    if isinstance(models, Family):
        return models
    if isinstance(models, (str, Path)) or not isinstance(models, Sequence):
        raise TypeError(f"expected a list of models or of their files, got {type(models).__name__}; give [model, ...]")
    if not len(models):
        raise ValueError("there are no models in the list; give one or more, retrained as the deployed model was")
    read = []
    known = dict.fromkeys(identities(deployed), "the deployed model")
    for number, given in enumerate(models):
        name = f"models[{number}], {given if isinstance(given, (str, Path)) else type(given).__name__}"
        try:
            model = read_like(given, encoding, deployed)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from error
        identifiers = identities(model)
        for identifier in identifiers & known.keys():
            raise ValueError(f"{name} is {known[identifier]} again; leave it out: a model always agrees with itself")
        known |= dict.fromkeys(identifiers, name)
        read.append(model)
    return family_of(read, numbered(["own"] * len(read)))


def read_like(model: Any, encoding: Encoding, deployed: Model) -> Model:
    """A model, or that of a file, as a `Model` of encoded rows: asked as the deployed one, where it is of its kind."""
    if isinstance(model, (str, Path)):
        return _of_file(model, encoding, deployed)
    if isinstance(model, WrappedModel) or is_ours(model):
        return model  # type: ignore[no-any-return]
    how, adapter = How(), deployed.adapter if isinstance(deployed, WrappedModel) else None
    if not isinstance(deployed, WrappedModel) and _is_in_torch(model):  # as the deployed model is, of encoded rows
        return model  # type: ignore[no-any-return]
    if adapter is not None and same_framework(model, adapter.model):
        if not is_estimator(adapter.model) or not is_estimator(model):
            how = adapter.how
        elif _same_columns(adapter.model, model):
            if type(model) is type(adapter.model):
                return unhelped(adapter_like(adapter, model))
            how = How(takes=adapter.input.takes)  # another class may be asked for other outputs
    return unhelped(adapter_of(model, encoding, how))


def _is_in_torch(model: Any) -> bool:
    """Whether it is a plain function."""
    is_object = any(hasattr(model, word) for word in ("predict", "forward"))
    return callable(model) and not is_object and not isinstance(model, type)


def _of_file(path: str | Path, encoding: Encoding, deployed: Model) -> Model:
    model = read_own(path)
    if isinstance(model, Layers):
        return read_perceptron(path)
    read = read_like(model, encoding, deployed)
    if isinstance(read, WrappedModel):
        remember_file(read, path)
    return read


def _same_columns(deployed: Any, model: Any) -> bool:
    """Whether an estimator has the same classes, and takes as many columns under the same names."""
    names = ("classes_", "n_features_in_", "feature_names_in_")
    pairs = [(held(deployed, name), held(model, name)) for name in names]
    return all((theirs is None) == (ours is None) and np.array_equal(theirs, ours) for theirs, ours in pairs)


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
    network = deployed.wrapped if isinstance(deployed, WrappedModel) else deployed
    if isinstance(network, nn.Module) and isinstance(deployed, WrappedModel):
        given, output = deployed.adapter.input, deployed.adapter.output
        as_trained = output.kind == "logits" and not output.single and output.places == tuple(range(len(output.places)))
        if given.takes != "encoded" or not as_trained:  # asked otherwise than a recipe asks its networks
            raise ValueError(
                f"{deployed}: a recipe trains modules that take encoded rows and give one logit per class, in the "
                "order of the schema; retrain this one with a function of your own that takes (rows, seed) and returns "
                "the module"
            )
    members = tuple(changes)
    family = train(
        encoding.encode(table),
        encoding.labels(table),
        recipe,
        members,
        new=None if new is None else (encoding.encode(new), encoding.labels(new)),
        base=network if any(change.continued for change in members) else None,
        held_out=None if held_out is None else (encoding.encode(held_out), encoding.labels(held_out)),
        store=store,
        classes=len(encoding.schema.classes),
        workers=workers,
        progress=progress,
    )
    return judged(family, deployed, encoding, table, held_out)
