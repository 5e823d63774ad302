"""Hostile .safetensors files: headers that announce too much, odd names, and numbers that are none."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from _hostile.cases import Hostile, pickled, zipped

HONEST = "honest.safetensors"
INVALID, LAYERS = "is not a valid safetensors file", "does not hold linear layers"


def honest() -> dict[str, bytes]:
    return {HONEST: _written(*_described(_tensors()))}


def _tensors() -> dict[str, np.ndarray]:
    return {
        "0.weight": np.arange(12, dtype=np.float32).reshape(3, 4) / 8,
        "0.bias": np.zeros(3, np.float32),
        "1.weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 8,
        "1.bias": np.zeros(2, np.float32),
    }


def _described(tensors: dict[str, np.ndarray]) -> tuple[dict[str, Any], bytes]:
    header, data = {}, b""
    for name, value in tensors.items():
        end = len(data) + value.nbytes
        kind = {"float32": "F32", "int64": "I64"}[str(value.dtype)]
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(data), end]}
        data += value.tobytes()
    return header, data


def _written(header: dict[str, Any] | bytes, data: bytes, announced: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if announced is None else announced) + text + data


def hostile() -> Iterator[Hostile]:
    yield from _headers()
    yield from _names()
    yield from _numbers()
    contents = _written(*_described(_tensors()))
    yield Hostile("cut.safetensors", contents[:-10], "is cut short", INVALID)
    yield Hostile("pickle.safetensors", pickled(2), "is a pickle that runs a program", "is a pickle")
    inside = zipped({"data.pkl": pickled(2), "version": b"3"})
    yield Hostile("torch.safetensors", inside, "is a file of torch.save, which holds a pickle", "holds the pickle")


def _headers() -> Iterator[Hostile]:
    header, data = _described(_tensors())
    for file, announced, tries in (
        ("header-long", 1 << 40, "announces a header of a million million bytes"),
        ("header-longest", (1 << 64) - 1, "announces a header as long as a number can say"),
        ("header-100-mb", 100_000_000, "announces a header of 100 million bytes, which is the most that is allowed"),
    ):
        yield Hostile(f"{file}.safetensors", _written(header, data, announced), tries, INVALID)

    def changed(name: str, **values: Any) -> bytes:
        return _written({**header, name: {**header[name], **values}}, data)

    for file, contents, tries in (
        (
            "shape-huge",
            changed("0.weight", shape=[1 << 40, 1 << 40]),
            "has weights of more numbers than there are bytes",
        ),
        ("offsets-far", changed("1.bias", data_offsets=[0, 1 << 40]), "has weights that end far after its end"),
        ("offsets-back", changed("1.bias", data_offsets=[20, 12]), "has weights that end before they begin"),
        ("overlap", changed("1.bias", data_offsets=[0, 8]), "has weights that lie on top of others"),
        ("deep", _written(b"[" * 5_000 + b"]" * 5_000, data), "nests its header without end"),
        ("two-names", _written(b'{"0.bias":{},' + json.dumps(header).encode()[1:], data), "has one name twice"),
        ("dtype", changed("0.bias", dtype="OBJECT"), "has weights that are objects of Python"),
    ):
        yield Hostile(f"{file}.safetensors", contents, tries, INVALID)


def _names() -> Iterator[Hostile]:
    def named(**names: str) -> bytes:
        own = {names.get(name[0], name[0]) + name[1:]: value for name, value in _renamable().items()}
        return _written(*_described(own))

    def _renamable() -> dict[str, np.ndarray]:
        return {name.replace("0.", "a.").replace("1.", "b."): value for name, value in _tensors().items()}

    tensors = _tensors()
    odd = {"\u00b2.weight" if name == "0.weight" else name: value for name, value in tensors.items()}
    yield Hostile(
        "superscript.safetensors", _written(*_described(odd)), "has a layer with a superscript for a number", LAYERS
    )
    long = {"9" * 5000 + ".weight" if name == "0.weight" else name: value for name, value in tensors.items()}
    contents = _written(*_described(long))
    yield Hostile("digits.safetensors", contents, "has a layer with a number of 5000 digits", LAYERS)
    yield Hostile("swapped.safetensors", named(a="2", b="1"), "has its layers in an order that does not fit", LAYERS)
    paths = {f"../../{name}" if name == "0.bias" else name: value for name, value in tensors.items()}
    yield Hostile("path.safetensors", _written(*_described(paths)), "has a layer with a path for a name", LAYERS)
    yield Hostile("nothing.safetensors", _written({}, b""), "holds nothing", "it holds no tensors")


def _numbers() -> Iterator[Hostile]:
    tensors = _tensors()
    tensors["0.weight"][0, 0] = np.nan
    yield Hostile("nan.safetensors", _written(*_described(tensors)), "has a weight that is no number", "not finite")
    tensors = _tensors()
    whole = {name: value.astype(np.int64) for name, value in tensors.items()}
    yield Hostile("whole.safetensors", _written(*_described(whole)), "has weights of another type", "torch.float32")
    tensors["1.bias"] = np.zeros(9, np.float32)
    yield Hostile("bias.safetensors", _written(*_described(tensors)), "has more constants than units", LAYERS)
    header, data = _described(_tensors())
    sealed = {"__metadata__": {"holdfast": "{" + '"a":' * 10}, **header}
    yield Hostile("seal.safetensors", _written(sealed, data), "has a seal that is no JSON", "save the network again")
