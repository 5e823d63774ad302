"""Which model a model is, whatever it is wrapped in: so that no model audits its own counterfactuals."""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import types
import weakref
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.models.model import is_network
from holdfast.models.worst_case import Rehearsals, WorstCaseEnsemble
from holdfast.models.wrapped import WrappedModel

DEEPEST_WRAPPERS = 4  # wrappers around wrappers that are looked into
OBJECT = "object:"  # begins a name that means nothing in another process

_tokens: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
_numbers = itertools.count()
_runs: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()  # a model -> the training that made it


def identities(model: Any) -> frozenset[str]:
    """Names under which a model is known: its fingerprint, a digest of its weights, or else the object itself.

    Two models share a name where they are the same object, where they hold the same weights (a module, its layers as a
    `Network`, a function around either), or where one has the fingerprint of the other. Estimators that hold no
    tensors are the same where they are one object or come from one training run: two that were fitted apart may answer
    alike, and are two.
    """
    if isinstance(model, WorstCaseEnsemble):
        return identities(model.deployed) | frozenset(cast(Rehearsals, model.members).fingerprints)
    held = list(_held(model, DEEPEST_WRAPPERS, set()))
    networks = [part for part in held if _is_network(part)]
    names = {str(part.fingerprint) for part in networks if getattr(part, "fingerprint", None)}
    names |= {run for run in map(known_run, held) if run is not None}
    if networks:
        return frozenset(names | {_digest([weight for part in networks for weight in _weights(part)], "")})
    estimators = [part for part in held if is_estimator(part)]
    objects = {_token(part) for part in estimators}
    tensors = [part for part in held if isinstance(part, Tensor)]
    if tensors:
        return frozenset(names | {_digest(tensors, f"{_code(held)}{sorted(objects) or ''}")})
    return frozenset(names | (objects or {_token(model.wrapped if isinstance(model, WrappedModel) else model)}))


def identity(model: Any) -> str:
    """One of the names: that of the weights, where the model has some."""
    return min(identities(model), key=lambda name: (not name.startswith("weights:"), name))


def known_run(model: Any) -> str | None:
    """The fingerprint of the training that made an estimator, or of the file that it was read from, where known."""
    try:
        return _runs.get(model)
    except TypeError:  # no weak references to it, or no hash
        return None


def remember_run(model: Any, fingerprint: str) -> None:
    """Which training made an estimator, or which file it was read from, for as long as it lives."""
    with suppress(TypeError):
        _runs[model] = fingerprint


def is_estimator(part: Any) -> bool:
    """Whether it is fitted, and predicts, by the conventions of scikit-learn."""
    needed = ("fit", "predict", "get_params")
    return not isinstance(part, (type, Tensor)) and all(callable(getattr(part, name, None)) for name in needed)


def _is_network(part: Any) -> bool:
    return isinstance(part, nn.Module) or is_network(part)


def _weights(network: Any) -> Iterator[Tensor]:
    yield from network.parameters() if isinstance(network, nn.Module) else (*network.weights, *network.biases)


def _held(value: Any, depth: int, seen: set[int]) -> Iterator[Any]:
    """A model and all that it could answer from; what is inside a network is the network's."""
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    yield value
    if not _is_network(value) and not is_estimator(value):
        for part in _parts(value):
            yield from _held(part, depth - 1, seen)


def _parts(value: Any) -> Iterator[Any]:
    """An object's attributes, a function's closure, a partial's arguments."""
    if isinstance(value, WrappedModel):
        yield value.wrapped
    elif isinstance(value, (tuple, list)):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, types.FunctionType):
        yield from value.__defaults__ or ()
        with suppress(ValueError):  # an empty cell
            used = inspect.getclosurevars(value)
            yield from (*used.nonlocals.values(), *used.globals.values())
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, types.MethodType):
        yield from (value.__self__, value.__func__)
    elif not isinstance(value, (type, types.ModuleType, Tensor)) and hasattr(value, "__dict__"):
        yield from vars(value).values()


def _code(held: list[Any]) -> str:
    """What functions do with their tensors, and the plain numbers they hold: two may differ in these alone."""
    code = [
        (part.__code__.co_code, str(part.__code__.co_consts)) for part in held if isinstance(part, types.FunctionType)
    ]
    return f"{sorted(map(str, code))} {[part for part in held if isinstance(part, (bool, int, float, str))]}"


def _digest(tensors: list[Tensor], code: str) -> str:
    """Of the numbers, whatever their order: a layer may be kept as (in, out) or as (out, in)."""
    each = sorted(hashlib.sha256(_in_order(tensor)).hexdigest() for tensor in tensors)
    return "weights:" + hashlib.sha256(f"{each}{code}".encode()).hexdigest()


def _in_order(tensor: Tensor) -> bytes:
    plain = tensor.detach().cpu().to_dense()
    numbers = torch.view_as_real(plain.resolve_conj()) if plain.is_complex() else plain
    return np.sort(numbers.float().numpy(), axis=None).tobytes()


def _token(model: Any) -> str:
    """A name for an object that nothing else tells apart, for as long as it lives."""
    for token, known in _tokens.items():
        if known is model:
            return token
    token = f"{OBJECT}{next(_numbers)}"
    try:
        _tokens[token] = model
    except TypeError:  # no weak references to it: then it is known by its place in memory
        return f"{OBJECT}{type(model).__name__} at {id(model)}"
    return token
