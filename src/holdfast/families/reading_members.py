"""Models of any kind as members of a family: each asked as the deployed model is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.families.estimator_data import asked_like
from holdfast.families.external_models import read_perceptron
from holdfast.families.family import Family
from holdfast.families.recipe import Retraining
from holdfast.families.stack import Members
from holdfast.families.table_models import TableModels, together
from holdfast.models.adapting import is_ours, read_as, same_reader
from holdfast.models.deployed import Deployed, How, Outputs
from holdfast.models.files.networks import Layers
from holdfast.models.files.reading import read_own, remember_file
from holdfast.models.frameworks import black_box, estimators
from holdfast.models.frameworks.torch_modules import Used
from holdfast.models.identity import identities, identity
from holdfast.models.model import Model
from holdfast.models.questions.boosters import Margins
from holdfast.tabular.encoding import Encoding

OUTPUTS: dict[str, Outputs] = {"logit": "logits", "probability": "probabilities"}  # of networks with one output


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
    retrainings = tuple(Retraining(data_seed=place, kind="own") for place in range(len(read)))
    return family_of(read, retrainings)


def family_of(models: Sequence[Model], retrainings: tuple[Retraining, ...]) -> Family:
    members: Members = together(models)
    if isinstance(members, TableModels):
        members = replace(members, lean=True)
    return Family((members,), retrainings, tuple(range(len(members))), fingerprints=tuple(map(identity, models)))


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
    if not same_reader(model, deployed.own):
        return read_as(model, encoding, How())
    ask = deployed.ask
    if isinstance(ask, Margins) and type(model) is type(deployed.own):
        return Deployed(model, encoding, replace(ask, booster=model), f"{type(model).__module__}, asked for margins")
    if isinstance(ask, estimators.Question) and _fits(ask, model):
        return asked_like(ask, model, encoding)
    return read_as(model, encoding, how_of(deployed))


def _beside_network(model: Any, encoding: Encoding) -> Model:
    """The deployed model takes encoded rows in torch, and so does a function beside it."""
    plain_function = callable(model) and not hasattr(model, "predict") and not isinstance(model, type)
    return model if plain_function and not hasattr(model, "forward") else read_as(model, encoding, How())


def _of_file(path: str | Path, encoding: Encoding, deployed: Model) -> Model:
    own = read_own(path)
    if isinstance(own, Layers):
        return read_perceptron(path)
    read = read_like(own, encoding, deployed)
    if isinstance(read, Deployed):
        remember_file(read, path)
    return read


def _fits(ask: estimators.Question, model: Any) -> bool:
    """Whether an estimator has the same classes, and takes as many columns under the same names."""
    own = ask.model
    if not hasattr(model, "classes_"):
        return False
    pairs = [(_held(own, name), _held(model, name)) for name in ("classes_", "n_features_in_", "feature_names_in_")]
    return all((one is None) == (other is None) and np.array_equal(one, other) for one, other in pairs)


def _held(model: Any, part: str) -> Any:
    try:
        return getattr(model, part, None)
    except Exception:  # whatever a property of theirs raises
        return None


def how_of(model: Deployed) -> How:
    """How a model is asked, whether the user has said so or it was found out."""
    ask, used = model.ask, getattr(model.ask, "__self__", None)
    if isinstance(used, Used):
        kind = used.reading.kind
        return How(used.given.takes, OUTPUTS.get(kind, kind), used.reading.classes)  # type: ignore[arg-type]
    if isinstance(ask, Margins):
        return How(ask.feed.takes, None, ask.classes)
    if isinstance(ask, black_box.Question):
        known, places = model.encoding.schema.classes, ask.classes.places
        order = tuple(known[places.index(output)] for output in range(len(known)))
        return How(ask.feed.takes, ask.outputs, None if ask.outputs == "labels" else order)
    return How()
