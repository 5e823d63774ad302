"""Fitted models of other libraries as bytes, each in its library's own format: data, never a pickle."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple
from zipfile import ZIP_DEFLATED

import torch
from torch import Tensor

from holdfast.families.entries import StoreError
from holdfast.families.members import Models, encoding_digest
from holdfast.families.perceptron import State
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapters.seen import is_of
from holdfast.models.adapting import read_adapter, unhelped
from holdfast.models.files.reading import read_own
from holdfast.models.files.skops import UnknownTypeError, checked, loaded
from holdfast.models.frameworks import keras_models, lightgbm_trees, xgboost_trees
from holdfast.models.identity import remember_run
from holdfast.tabular.encoding import Encoding

if TYPE_CHECKING:
    from holdfast.families.family import Family

BUILT = ("sklearn", "numpy", "scipy", "xgboost", "lightgbm")  # whose types a skops file may name
LIBRARIES = (*BUILT, "keras", "onnx")
FORMATS = ("skops", "ubj", "txt", "onnx", "keras")  # how their names end
WRITTEN = Path("a kept model")  # in errors: it has no file of its own


class PackingError(TypeError):
    """A model that cannot be kept, with the reason."""


class Packed(NamedTuple):
    """The bytes of a model's file."""

    format: str  # the end of the file's name
    contents: bytes


def packed(model: Any) -> Packed:
    """The bytes of a file, if `unpacked` reads them."""
    if xgboost_trees.is_booster(model):
        return Packed("ubj", bytes(model.save_raw("ubj")))
    if lightgbm_trees.is_booster(model):
        return Packed("txt", model.model_to_string().encode())
    if is_of(model, "onnx", "ModelProto"):
        return Packed("onnx", model.SerializeToString())
    if keras_models.knows(model):
        return Packed("keras", _through_a_file("keras", model.save))
    return Packed("skops", _skops(model))


def _skops(model: Any) -> bytes:
    import skops.io

    name = type(model).__name__
    try:
        contents = bytes(skops.io.dumps(model, compression=ZIP_DEFLATED, compresslevel=1))
        checked(WRITTEN, contents)
    except UnknownTypeError as error:
        raise PackingError(f"{name} holds {error.name}, which no library that is trusted defines") from None
    except Exception as error:  # skops says in many ways that it does not know an object
        raise PackingError(f"{name} cannot be kept: {error}") from error
    return contents


def _through_a_file(form: str, save: Callable[[Path], Any]) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"model.{form}")
        with warnings.catch_warnings(action="ignore"):  # of a library about itself
            save(path)
        return path.read_bytes()


def unpacked(kept: Packed) -> Any:
    """The model. Raises where the file names types that are not known: nothing of it has been built then."""
    if kept.format not in FORMATS:  # it becomes part of a file's name
        raise PackingError(f"it is a file of the kind {kept.format[:20]!r}; known are {', '.join(FORMATS)}")
    if kept.format != "skops":
        with TemporaryDirectory() as folder:
            path = Path(folder, f"model.{kept.format}")
            path.write_bytes(kept.contents)
            return read_own(path)
    try:
        return loaded(WRITTEN, kept.contents)
    except UnknownTypeError as error:
        raise PackingError(f"it names {error.name}; only types of {', '.join(BUILT)} are built") from None


def versions(models: Sequence[Any]) -> dict[str, str]:
    """Of the libraries that models and their parts come from: with another version one may be another model."""
    parts = [*models]
    for model in models:
        parts += model.get_params(deep=True).values() if hasattr(model, "get_params") else ()
    found = {"numpy", *(type(part).__module__.partition(".")[0] for part in parts)}
    return {name: str(import_module(name).__version__) for name in sorted(found & set(LIBRARIES))}


# ---- as a store keeps them ----


def as_tensor(contents: bytes) -> Tensor:
    return torch.frombuffer(bytearray(contents), dtype=torch.uint8)


def as_bytes(tensor: Tensor) -> bytes:
    return tensor.numpy().tobytes()


def state_of(files: Iterable[Packed]) -> State:
    """Files as tensors, each under its number and the end of a file's name: 3.skops."""
    return {f"{place}.{file.format}": as_tensor(file.contents) for place, file in enumerate(files)}


def files_of(state: State) -> list[Packed]:
    names = sorted(state, key=lambda name: int(name.partition(".")[0]))
    return [Packed(name.partition(".")[2], as_bytes(state[name])) for name in names]


def described(stack: Models) -> dict[str, Any]:
    """What a manifest says of them: how each is asked, for which encoding, and by which versions they were fitted."""
    for ask in (model.ask for model in stack.models):
        if not isinstance(ask, Adapter):
            raise PackingError(f"how a model is asked cannot be written down: {ask!r}")
    return {
        "asked": [model.ask.written for model in stack.models],
        "encoding": None if stack.encoding is None else encoding_digest(stack.encoding),
        "refitted": stack.refitted,
        "versions": versions([model.own for model in stack.models]),
    }


def read_models(folder: Path, about: dict[str, Any], state: State, encoding: Encoding | None) -> Models:
    """The members again, each asked as it was, through an encoding like the one that they were made with."""
    if encoding is None:
        raise StoreError(
            f"{folder} holds models that are asked about tables in the user's units; pass the encoding that they "
            "were made with: load_family(folder, encoding=encoding)"
        )
    if encoding_digest(encoding) != about["encoding"]:
        raise StoreError(
            f"{folder} holds models that were made with another encoding; fit it to the same table and schema, or "
            "make the family again"
        )
    models = map(unpacked, files_of(state))
    adapters = [read_adapter(written, own, encoding) for written, own in zip(about["asked"], models, strict=True)]
    return Models(tuple(map(unhelped, adapters)), encoding, about["refitted"])


def remember_runs(family: Family) -> None:
    """So that a member which becomes the deployed model is known for what it is."""
    for member, fingerprint in enumerate(family.fingerprints):
        stack, place = family.found(family.places[member])
        if isinstance(stack, Models) and stack.encoding is not None:
            remember_run(stack.models[place].own, fingerprint)
