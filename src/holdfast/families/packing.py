"""Fitted models of other libraries as bytes, each in its library's own format: data, never a pickle."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED

from holdfast.models.adapters.seen import is_of
from holdfast.models.files.reading import read_own
from holdfast.models.files.skops import UnknownTypeError, checked, loaded
from holdfast.models.frameworks import keras_models, lightgbm_trees, xgboost_trees

BUILT = ("sklearn", "numpy", "scipy", "xgboost", "lightgbm")  # whose types a skops file may name
LIBRARIES = (*BUILT, "keras", "onnx")
FORMATS = ("skops", "ubj", "txt", "onnx", "keras")  # how their names end
KEPT_MODEL = Path("a kept model")  # in errors: it has no file of its own


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
        checked(KEPT_MODEL, contents)
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
        return loaded(KEPT_MODEL, kept.contents)
    except UnknownTypeError as error:
        raise PackingError(f"it names {error.name}; only types of {', '.join(BUILT)} are built") from None


def versions(models: Sequence[Any]) -> dict[str, str]:
    """Of the libraries that models and their parts come from: with another version one may be another model."""
    parts = [*models]
    for model in models:
        parts += model.get_params(deep=True).values() if hasattr(model, "get_params") else ()
    found = {"numpy", *(type(part).__module__.partition(".")[0] for part in parts)}
    return {name: str(import_module(name).__version__) for name in sorted(found & set(LIBRARIES))}
