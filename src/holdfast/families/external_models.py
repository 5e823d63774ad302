"""Models that somebody else made or trained, of which `Family.from_models` and `Family.from_training` make families."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from holdfast.families.perceptron import Network
from holdfast.families.recipe import Retraining
from holdfast.models.files.networks import read_into, read_layers
from holdfast.models.model import Model


def ready(model: Any, like: nn.Module | None = None) -> Model:
    """A model that exists already, or weights of a file for a module ``like`` this, made ready to be asked."""
    if isinstance(model, (str, Path)):
        if like is None:
            raise ValueError(f"{model} holds weights only; pass the module that they belong to: like=module")
        return read_into(model, like)
    name = type(model).__name__
    if not callable(model) and callable(getattr(model, "predict", None)):
        raise TypeError(
            f"{name} cannot be called with encoded rows; as_model({name.lower()}, encoding) makes a model of it"
        )
    if not callable(model):
        raise TypeError(f"{name} cannot be called; a model takes rows and returns logits, in torch")
    return model.eval() if isinstance(model, nn.Module) else model


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
