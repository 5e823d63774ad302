"""Models that somebody else made or trains; `Family.from_models` and `Family.from_training` make families of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from holdfast.families.collecting import Failure, collect
from holdfast.families.perceptron import Network
from holdfast.families.recipe import Retraining
from holdfast.families.stack import Members
from holdfast.families.table_models import together
from holdfast.models.files.networks import read_into, read_layers
from holdfast.models.model import Model

Training = Callable[[NDArray[np.int64], int], Model]  # rows to train on, seed -> model
Gathered = tuple[Members, tuple[Retraining, ...], tuple[Failure, ...]]


def gather(models: Sequence[Model | str | Path], kind: str | Sequence[str], like: nn.Module | None) -> Gathered:
    """Models that exist already, made ready to be asked."""
    loaded = tuple(_loaded(model, like) if isinstance(model, (str, Path)) else _ready(model) for model in models)
    kinds = (kind,) * len(loaded) if isinstance(kind, str) else tuple(kind)
    if not loaded or len(kinds) != len(loaded):
        raise ValueError(
            f"expected one model or more and a kind for each, got {len(loaded)} models, {len(kinds)} kinds"
        )
    # Numbered, so that no two count as the same retraining.
    return together(loaded), tuple(Retraining(data_seed=place, kind=name) for place, name in enumerate(kinds)), ()


def call(function: Training, changes: Sequence[Retraining], rows: int, workers: int | None, progress: bool) -> Gathered:
    """Call somebody's training once for every change, in worker processes."""
    models, retrainings, failures = collect(function, changes, rows, _returned, workers, progress).finished(3)
    return together(models), retrainings, failures


def _returned(model: Any) -> Model:
    if not callable(model):
        raise TypeError(f"the training returned {_no_model(model)}")
    return _ready(model)


def _ready(model: Model) -> Model:
    if not callable(model):
        raise TypeError(_no_model(model))
    return model.eval() if isinstance(model, nn.Module) else model


def _no_model(given: Any) -> str:
    """What is wrong with something that cannot be called."""
    name = type(given).__name__
    if callable(getattr(given, "predict", None)):
        return f"{name} cannot be called with encoded rows; as_model({name.lower()}, encoding) makes a model of it"
    return f"{name} cannot be called; a model takes rows and returns logits, in torch"


def read_perceptron(path: str | Path) -> Network:
    """The network of a safetensors file of linear layers, named as torch does: ``….weight`` (out, in) and ``….bias``.

    One that `save_model` wrote is the network that was saved, with its fingerprint. Of another file, layers are taken
    in the order of the numbers in their names, with max(0, z) between them. For another function, use
    `Family.from_models(files, like=module)`.
    """
    layers = read_layers(path)
    try:
        retraining = Retraining(kind="own") if layers.retraining is None else Retraining(**layers.retraining)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} says of its network what this version does not know: {error}") from error
    return Network(layers.weights, layers.biases, retraining, layers.fingerprint)


def _loaded(path: str | Path, like: nn.Module | None) -> Model:
    if like is None:
        raise ValueError(f"{path} holds weights only; pass the module that they belong to: like=module")
    return read_into(path, like)
