"""A model from a file: data is read, programs are not. What a file holds is seen by its bytes, not by its name."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import nn

from holdfast.models.adapters.adapter import How
from holdfast.models.adapters.input_spec import Takes
from holdfast.models.adapters.output_spec import Outputs
from holdfast.models.adapting import adapter_of, as_model, helped
from holdfast.models.files.lightgbm import checked_lightgbm
from holdfast.models.files.lightgbm_settings import settings_in
from holdfast.models.files.networks import Layers, read_into, read_layers
from holdfast.models.files.skops import loaded
from holdfast.models.files.untrusted import (
    ZIP,
    RefusedError,
    check_content,
    damaged,
    refused,
)
from holdfast.models.files.xgboost import checked_xgboost
from holdfast.models.identity import remember_run
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding
from holdfast.utils.files import as_path

PROGRAMS = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".h5", ".hdf5", ".sav", ".dill", ".ckpt")


def read_model(
    path: str | Path,
    encoding: Encoding,
    like: nn.Module | None = None,
    *,
    takes: Takes | None = None,
    outputs: Outputs | None = None,
    classes: tuple[Any, ...] | None = None,
) -> WrappedModel:
    """The model of a file, as `as_model` makes one of an object.

    - .safetensors: a network of `save_model`; linear layers with max(0, z) between; weights of a module ``like`` this
    - .ubj, .json: XGBoost, ``model.save_model("model.ubj")``
    - .txt, .model: LightGBM, ``model.booster_.save_model("model.txt")``
    - .onnx: from any library
    - .keras: Keras 3, ``model.save("model.keras")``; on torch, unless KERAS_BACKEND names another backend
    - .skops: scikit-learn, ``skops.io.dump(model, "model.skops")``

    Pickles (.pkl, .joblib, .pt and others) are refused, whatever their name: to read one is to run it.

    Args:
        path: the file
        encoding: of the table that the model was trained on
        like: the torch module that the weights of the file belong to
        takes: as in `as_model`
        outputs: as in `as_model`
        classes: as in `as_model`

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> deployed = hf.train(x, y, recipe, [hf.Retraining()])[0]
        >>> path = hf.save_model(deployed, "model.safetensors")
        >>> model = hf.read_model("model.safetensors", encoding)
        >>> hf.predict(model, x).equal(hf.predict(deployed, x))
        True
    """
    model = read_own(path, like)
    if isinstance(model, Layers):  # which `as_model` would leave as they are
        return helped(adapter_of(model, encoding, How(takes, outputs, classes)))
    read = as_model(model, encoding, takes=takes, outputs=outputs, classes=classes)
    remember_file(read, path)
    return read


def read_own(path: str | Path, like: nn.Module | None = None) -> Any:
    """What a file holds, before anybody knows how it is asked: a booster, an estimator, layers, a graph."""
    path = as_path(path, "a file with a model")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; check the name and the folder")
    suffix = path.suffix.lower()
    start = check_content(path)
    if suffix in PROGRAMS:
        raise refused(path, f"is a {suffix} file")
    if suffix not in FORMATS:
        raise ValueError(f"{path}: no model is read from a '{suffix}' file; the formats are {', '.join(FORMATS)}")
    if like is not None and suffix != ".safetensors":
        raise ValueError(f"like= belongs to .safetensors files, which hold weights only; {path} needs none")
    return FORMATS[suffix](path, start) if like is None else read_into(path, like)


def remember_file(model: WrappedModel, path: str | Path) -> None:
    """Which file a model was read from, so that no file audits itself."""
    remember_run(model, f"file:{hashlib.sha256(Path(path).read_bytes()).hexdigest()}")


def _trees(path: Path, start: bytes) -> Any:
    """XGBoost's JSON and UBJSON begin with a brace, LightGBM's text with the word tree."""
    contents = path.read_bytes()
    if start.startswith(b"tree"):
        text = checked_lightgbm(path, contents)
        lightgbm = _library("lightgbm", "trees", path)
        booster = _read(path, lambda: lightgbm.Booster(model_str=text))
        booster.params = settings_in(contents.decode())  # how it was trained: known, though LightGBM is not told
        return booster
    if not start.startswith(b"{"):
        raise damaged(path, ValueError("it begins neither as a model of XGBoost nor as one of LightGBM"))
    checked = checked_xgboost(path, contents)
    xgboost = _library("xgboost", "trees", path)
    return _read(path, lambda: xgboost.Booster(model_file=checked))


def _onnx(path: Path, start: bytes) -> Any:
    if start.startswith(ZIP):
        raise damaged(path, ValueError("it is an archive"))
    _library("onnx", "onnx", path)
    from holdfast.models.files.onnx import read_onnx

    return _read(path, lambda: read_onnx(path))


def _keras(path: Path, start: bytes) -> Any:
    _check_is_archive(path, start, "config.json")
    if "keras" not in sys.modules:
        os.environ.setdefault("KERAS_BACKEND", "torch")  # which is here, and has gradients
    _library("keras", "keras", path)
    from holdfast.models.files.keras import read_keras

    return _read(path, lambda: read_keras(path))


def _skops(path: Path, start: bytes) -> Any:
    _check_is_archive(path, start, "schema.json")
    _library("skops.io", "", path)
    contents = path.read_bytes()  # what is looked at is what is read
    return _read(path, lambda: loaded(path, contents))


def _check_is_archive(path: Path, start: bytes, holding: str) -> None:
    if not start.startswith(ZIP):
        raise damaged(path, ValueError("it is no archive"))
    with zipfile.ZipFile(path) as archive:
        if holding not in archive.namelist():
            raise damaged(path, ValueError(f"it holds no {holding}"))


def _library(name: str, extra: str, path: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        wanted = f"'holdfast[{extra}]'" if extra else package
        raise ImportError(f"{path} needs {package}: pip install {wanted}") from error


def _read(path: Path, read: Callable[[], Any]) -> Any:
    """What a library reads from a file that may be anything."""
    try:
        return read()
    except (RefusedError, ImportError, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own
        raise damaged(path, error) from error


FORMATS: dict[str, Callable[[Path, bytes], Any]] = {
    ".safetensors": lambda path, start: read_layers(path),
    ".ubj": _trees,
    ".json": _trees,
    ".txt": _trees,
    ".model": _trees,
    ".onnx": _onnx,
    ".keras": _keras,
    ".skops": _skops,
}
