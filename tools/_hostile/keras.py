"""Hostile .keras files: layers that run programs, weights of other files, and sizes that nothing in the file fills."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from _hostile.cases import CANARY, SECRET, Hostile, pickled, unzipped, with_bomb, zipped

os.environ.setdefault("KERAS_BACKEND", "torch")

HONEST, CONFIG, WEIGHTS, METADATA = "honest.keras", "config.json", "model.weights.h5", "metadata.json"
UNKNOWN, LARGE = "which is no layer", "describes layers"
Description = dict[str, Any]


def honest() -> dict[str, bytes]:
    return {HONEST: _model()}


def hostile() -> Iterator[Hostile]:
    contents = _model()
    yield from _programs(contents)
    yield from _sizes(contents)
    yield from _weights(contents)
    yield from _archives(contents)


def _model() -> bytes:
    """A network of two layers, without the date and the numbers of objects, which differ from run to run."""
    import keras

    layers = [keras.layers.Input((4,), name="given"), keras.layers.Dense(3, activation="relu", name="first")]
    model = keras.Sequential([*layers, keras.layers.Dense(2, name="last")], name="network")
    model.set_weights(
        [np.arange(value.size, dtype=np.float32).reshape(value.shape) / 8 for value in model.get_weights()]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.keras")
        model.save(path)
        parts = unzipped(path.read_bytes())
    config = json.loads(parts[CONFIG])
    for part in _parts(config):
        part.pop("shared_object_id", None)
    metadata = {"keras_version": keras.__version__, "date_saved": "2020-01-01@00:00:00"}
    return zipped(parts | {CONFIG: json.dumps(config).encode(), METADATA: json.dumps(metadata).encode()})


def _parts(value: Any) -> Iterator[Description]:
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _parts(one)


def _described(contents: bytes, change: Callable[[list[Description]], Any]) -> bytes:
    """The file with other layers: ``change`` is given their descriptions."""
    parts = unzipped(contents)
    config = json.loads(parts[CONFIG])
    change(config["config"]["layers"])
    return zipped(parts | {CONFIG: json.dumps(config).encode()})


# ---- programs ----


def _layer(name: str, module: str = "keras.layers", registered: str | None = None, **config: Any) -> Description:
    return {"module": module, "class_name": name, "config": {"name": "more", **config}, "registered_name": registered}


def _programs(contents: bytes) -> Iterator[Hostile]:
    code = {"class_name": "__lambda__", "config": {"code": "4wEAAAA=", "defaults": None, "closure": None}}
    bare = {"class_name": "function", "config": "system", "module": "os", "registered_name": "function"}
    for file, layer, tries in (
        ("lambda", _layer("Lambda", function=code), "has a Lambda layer, which runs code of the file"),
        ("lambda-named", _layer("Lambda", function=bare), "has a Lambda layer that calls os.system"),
        ("registered", _layer("Dense", "own.layers", "own>Dense", units=2), "has a layer of a module of its own"),
        ("popen", _layer("Popen", "subprocess", args=["touch", CANARY]), "starts a program as if it were a layer"),
        ("registered-name", _layer("Dense", registered="own>Dense", units=2), "has a registered name of another class"),
        ("torch-module", _layer("TorchModuleWrapper", module_="AAAA"), "has a pickled torch module for a layer"),
        ("string-lookup", _layer("StringLookup", vocabulary=SECRET), "reads words from another file"),
        ("hashing", _layer("TFSMLayer", filepath="elsewhere"), "loads a program of TensorFlow from a folder"),
    ):
        changed = _described(contents, lambda layers, layer=layer: layers.append(layer))
        yield Hostile(f"{file}.keras", changed, tries, UNKNOWN)
    activation = {"module": "os", "class_name": "function", "config": "system", "registered_name": "system"}
    changed = _described(contents, lambda layers: layers[1]["config"].update(activation=activation))
    yield Hostile("activation.keras", changed, "has a function that starts programs between its layers", UNKNOWN)


# ---- sizes ----


def _sizes(contents: bytes) -> Iterator[Hostile]:
    for file, size, tries in (
        ("units-2e8", {"units": 200_000_000}, "has a layer of 200 million units"),
        ("units-1e9", {"units": 1_000_000_000}, "has a layer of a thousand million units"),
        ("lora", {"lora_rank": 100_000_000}, "has a layer with an adapter of rank 100 million"),
    ):
        changed = _described(contents, lambda layers, size=size: layers[-1]["config"].update(size))
        yield Hostile(f"{file}.keras", changed, tries, LARGE)
    for file, layer, tries in (
        ("repeat", _layer("RepeatVector", n=10**9), "repeats a row a thousand million times"),
        ("category", _layer("CategoryEncoding", num_tokens=10**9, output_mode="multi_hot"),
         "makes a thousand million columns of one"),
        ("embedding", _layer("Embedding", input_dim=10**9, output_dim=8), "has an embedding of 10⁹ rows"),
    ):  # fmt: skip
        changed = _described(contents, lambda layers, layer=layer: layers.append(layer))
        yield Hostile(f"{file}.keras", changed, tries, LARGE)

    def wide(layers: list[Description]) -> None:
        layers[0]["config"]["batch_shape"] = [None, 10**9]
        layers[1]["build_config"] = {"input_shape": [None, 10**9]}

    yield Hostile("inputs.keras", _described(contents, wide), "takes a thousand million columns", LARGE)


# ---- weights ----


def _weights(contents: bytes) -> Iterator[Hostile]:
    def with_weights(change: Callable[[h5py.File], None]) -> bytes:
        parts = unzipped(contents)
        held = BytesIO(parts[WEIGHTS])
        with h5py.File(held, "r+") as file:
            change(file)
        return zipped(parts | {WEIGHTS: held.getvalue()})

    def first(file: h5py.File) -> h5py.Group:
        return file["layers/dense/vars"]

    def link(file: h5py.File) -> None:
        del first(file)["0"]
        first(file)["0"] = h5py.ExternalLink("elsewhere.h5", "/0")

    def soft(file: h5py.File) -> None:
        del first(file)["0"]
        first(file)["0"] = h5py.SoftLink("/layers/dense_1/vars/0")

    def outside(file: h5py.File) -> None:
        del first(file)["0"]
        first(file).create_dataset("0", (4, 3), "f4", external=[(SECRET, 0, 48)])

    def announced(file: h5py.File) -> None:
        del first(file)["0"]
        first(file).create_dataset("0", (1 << 18, 1 << 18), "f4", chunks=(1 << 8, 1 << 8))

    for file, change, tries, error in (
        ("link", link, "has weights that are a link to another file", "taken from another place"),
        ("soft-link", soft, "has weights that are a link to other weights", "taken from another place"),
        ("outside", outside, "has weights that lie in another file", "taken from another file"),
        ("announced", announced, "announces weights of 256 GiB, and holds none", "would unpack to"),
    ):
        yield Hostile(f"weights-{file}.keras", with_weights(change), tries, error)


# ---- the archive ----


def _archives(contents: bytes) -> Iterator[Hostile]:
    parts = unzipped(contents)
    yield Hostile("cut.keras", contents[: len(contents) // 2], "is cut in half", "is damaged")
    inside = zipped(parts | {"assets/more.pkl": pickled()})
    yield Hostile("pickle-inside.keras", inside, "holds a pickle that runs a program", "holds the pickle")
    bomb = with_bomb(parts, "assets/more.bin")
    yield Hostile("bomb.keras", bomb, "unpacks to a thousand times its size", "would unpack to")
    deep = zipped(parts | {CONFIG: b"[" * 5_000 + b"]" * 5_000})
    yield Hostile("deep.keras", deep, "nests values so deeply that a parser ends the process", "deep")
    path = zipped([*((name, part) for name, part in parts.items() if name != CONFIG), (f"../{CONFIG}", parts[CONFIG])])
    yield Hostile("path.keras", path, "has its description in the folder above", "holds no config.json")
    old = b"\x89HDF\r\n\x1a\n" + bytes(64)
    yield Hostile("hdf5.keras", old, "is a file of an old Keras, which may hold code", "is an HDF5 file")
    yield Hostile("no-weights.keras", zipped({CONFIG: parts[CONFIG]}), "has no weights", "is damaged")
