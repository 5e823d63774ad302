"""Models of any kind as members of a family: each asked as the deployed model is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.families.external_models import read_perceptron
from holdfast.families.family import Family, family_of, numbered
from holdfast.models.adapters.adapter import Adapter, How
from holdfast.models.adapters.seen import held
from holdfast.models.adapting import adapter_like, adapter_of, is_ours, same_framework, unhelped
from holdfast.models.deployed import Deployed
from holdfast.models.files.networks import Layers
from holdfast.models.files.reading import read_own, remember_file
from holdfast.models.identity import identities, is_estimator
from holdfast.models.model import Model
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
    read = [_read(model, place, encoding, deployed) for place, model in enumerate(models)]
    _check_different(read, [_named(model, place) for place, model in enumerate(models)], deployed)
    return family_of(read, numbered(["own"] * len(read)))


def _read(model: Any, place: int, encoding: Encoding, deployed: Model) -> Model:
    try:
        return read_like(model, encoding, deployed)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{_named(model, place)}: {error}") from error


def _named(model: Any, place: int) -> str:
    return f"models[{place}], {model if isinstance(model, (str, Path)) else type(model).__name__}"


def _check_different(read: Sequence[Model], names: Sequence[str], deployed: Model) -> None:
    known = dict.fromkeys(identities(deployed), "the deployed model")
    for model, name in zip(read, names, strict=True):
        own = identities(model)
        same = next((known[one] for one in own if one in known), None)
        if same is not None:
            raise ValueError(f"{name} is {same} again; leave it out: a model always agrees with itself")
        known |= dict.fromkeys(own, name)


def read_like(model: Any, encoding: Encoding, deployed: Model) -> Model:
    """A model, or that of a file, as a `Model` of encoded rows: asked as the deployed one, where it is of its kind."""
    if isinstance(model, (str, Path)):
        return _of_file(model, encoding, deployed)
    if isinstance(model, Deployed) or is_ours(model):
        return model  # type: ignore[no-any-return]
    if not isinstance(deployed, Deployed):
        return _beside_network(model, encoding)
    adapter, own = deployed.ask, deployed.own
    if not isinstance(adapter, Adapter) or not same_framework(model, own):
        return unhelped(adapter_of(model, encoding, How()))
    if is_estimator(own) and is_estimator(model):
        if not _same_columns(own, model):
            return unhelped(adapter_of(model, encoding, How()))
        alike = type(model) is type(own)  # another class may be asked for other outputs
        return unhelped(
            adapter_like(adapter, model) if alike else adapter_of(model, encoding, How(takes=adapter.input.takes))
        )
    return unhelped(adapter_of(model, encoding, adapter.how))


def _beside_network(model: Any, encoding: Encoding) -> Model:
    """The deployed model takes encoded rows in torch, and so does a function beside it."""
    plain_function = callable(model) and not hasattr(model, "predict") and not isinstance(model, type)
    return model if plain_function and not hasattr(model, "forward") else unhelped(adapter_of(model, encoding, How()))


def _of_file(path: str | Path, encoding: Encoding, deployed: Model) -> Model:
    own = read_own(path)
    if isinstance(own, Layers):
        return read_perceptron(path)
    read = read_like(own, encoding, deployed)
    if isinstance(read, Deployed):
        remember_file(read, path)
    return read


def _same_columns(own: Any, model: Any) -> bool:
    """Whether an estimator has the same classes, and takes as many columns under the same names."""
    names = ("classes_", "n_features_in_", "feature_names_in_")
    pairs = [(held(own, name), held(model, name)) for name in names]
    return all((one is None) == (other is None) and np.array_equal(one, other) for one, other in pairs)
