"""Models that somebody else made or trains; `Family.from_models` and `Family.from_training` make families of them."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from holdfast.families.perceptron import Network
from holdfast.families.recipe import Retraining
from holdfast.families.stack import Members
from holdfast.families.table_models import together
from holdfast.families.training_data import Pool, rows_of
from holdfast.models.files.networks import read_into, read_layers
from holdfast.models.model import Model
from holdfast.utils.progress import bar
from holdfast.utils.threads import one_thread
from holdfast.utils.workers import cores, in_workers

Training = Callable[[NDArray[np.int64], int], Model]  # rows to train on, seed -> model


@dataclass(frozen=True)
class Failure:
    """A member whose training raised."""

    retraining: Retraining
    error: str  # the last line
    details: str  # the whole traceback


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
    pool = Pool(torch.empty(rows, 0), torch.empty(rows), rows, 2)
    for change in changes:
        check_rows_only(change, rows)
    tasks = ((function, place, rows_of(change, pool).numpy(), change.init_seed) for place, change in enumerate(changes))
    wanted = min(workers or cores(), max(len(changes), 1))
    models: dict[int, Model] = {}
    failures: dict[int, Failure] = {}
    with bar(f"Training {len(changes)} models", len(changes), progress) as advance:
        for place, model, error, details in in_workers(_attempt, tasks, wanted):
            if model is None:
                failures[place] = Failure(changes[place], error, details)
            else:
                models[place] = _ready(model)
            advance(1)
    return _gathered(changes, models, failures)


def _gathered(changes: Sequence[Retraining], models: dict[int, Model], failures: dict[int, Failure]) -> Gathered:
    failed = tuple(failures[place] for place in sorted(failures))
    if not models:
        first = f"; the first said:\n{failed[0].details}" if failed else ": there were no changes"
        raise RuntimeError(f"none of {len(changes)} trainings gave a model{first}")
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(changes)} trainings failed and are left out, the first with: {failed[0].error}; "
            "see .failures",
            stacklevel=4,
        )
    kept = sorted(models)
    return together([models[place] for place in kept]), tuple(changes[place] for place in kept), failed


def _attempt(function: Training, place: int, rows: NDArray[np.int64], seed: int) -> tuple[int, Any, str, str]:
    try:
        with one_thread():
            model = function(rows, seed)
        if not callable(model):
            raise TypeError(f"the training returned {_no_model(model)}")
        return place, model, "", ""
    except Exception as error:
        return place, None, f"{type(error).__name__}: {error}", traceback.format_exc()


def check_rows_only(change: Retraining, rows: int) -> None:
    tuned = change.settings or change.parameters
    if change.label_noise or change.weight_noise or change.tilt is not None or change.appended or tuned:
        raise ValueError(f"{change} changes more than rows and seeds; make that change inside your own function")
    if change.left_out is not None and not 0 <= change.left_out < rows:
        raise ValueError(f"{change} leaves out a row that is not there; there are {rows}")


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
