"""Fitted estimators by skops: data that is read without executing anything, never a pickle.

A file names a class for each of its parts, and skops makes it. So every name is looked up in `known_types.json` before
anything is imported: estimators and transformers that scikit-learn, XGBoost and LightGBM document, with what
they are made of (`tools/write_known_types.py` makes the list). What was checked is written anew, and skops reads that.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from holdfast.models.files.checking import MOST_CLASSES, MOST_COLUMNS, dictionaries, expect, inside
from holdfast.models.files.fitted_parts import check_fitted
from holdfast.models.files.lightgbm import checked_lightgbm
from holdfast.models.files.untrusted import RefusedError, check_json, check_size, damaged
from holdfast.models.files.xgboost import checked_xgboost

SCHEMA, KNOWN = "schema.json", Path(__file__).with_name("known_types.json")
MOST_JOBS, MOST_OUTPUTS = 1024, 1000
# What sends a training to a file, a folder or another machine, by any of LightGBM's names, or makes its predictions
# trust the caller.
OUTSIDE = frozenset({
    "callbacks", "config_file", "data_filename", "forced_bins", "forcedbins_filename", "forced_splits",
    "forced_splits_file", "forced_splits_filename", "forcedsplits_filename", "initscore_filename", "input_model",
    "machine_list", "machine_list_file", "machine_list_filename", "machines", "memory", "mlist", "model_in",
    "model_input", "model_out", "model_output", "num_machine", "num_machines", "output_model", "output_result",
    "parser_config_file", "predict_disable_shape_check",
})  # fmt: skip


class UnknownTypeError(RefusedError):
    """A file names a type that is not on the list."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(
            f"{path} holds {name[:120]}, which is no estimator or part of one that holdfast reads from a file: it "
            "could run a program of its own. If you trust the file, load it yourself, "
            "skops.io.load(path, trusted=[...]), and pass the object to as_model"
        )
        self.name = name


def loaded(path: Path, contents: bytes) -> Any:
    """What a file holds, if all its parts are known and those that compiled code trusts are sound."""
    import skops.io

    written, names = checked(path, contents)
    found = skops.io.loads(written, trusted=names)
    try:
        check_fitted(found)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise damaged(path, error) from None
    return found


def checked(path: Path, contents: bytes) -> tuple[bytes, list[str]]:
    """The file written anew with what was understood of it, and the names of all types that it makes."""
    with zipfile.ZipFile(BytesIO(contents)) as archive:
        described = archive.read(SCHEMA)
        check_json(path, described)
        schema = json.loads(described)
        nodes = list(_nodes(schema))
        names = sorted({_known_name(path, node) for node in nodes})
        named = [node["file"] for node in nodes if "file" in node]
        files = {name: archive.read(name) for name in dict.fromkeys(named)}
    check_size(path, sum(len(files[name]) for name in named), len(contents))  # skops reads one as often as named
    for name, inner in files.items():
        _check_array(path, name, inner)
    for node in nodes:
        _check_node(path, node, files)
    return _zipped(schema, files), names


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part of a description. Each stands for itself: two with one number would be one to skops, whichever it saw
    first, so the numbers go."""
    for value in dictionaries(schema):
        value.pop("__id__", None)
        if "__loader__" in value or "__class__" in value:
            yield value


@cache
def known_types() -> Mapping[str, frozenset[str]]:
    """The names that each of skops' loaders may have."""
    return {loader: frozenset(names) for loader, names in json.loads(KNOWN.read_text(encoding="utf-8")).items()}


def _known_name(path: Path, node: Mapping[str, Any]) -> str:
    loader, name = node.get("__loader__"), f"{node.get('__module__')}.{node.get('__class__')}"
    if not isinstance(loader, str) or name not in known_types().get(loader, ()):
        raise UnknownTypeError(path, name)
    return name


def _check_array(path: Path, name: str, contents: bytes) -> None:
    """Raise where an array announces more numbers than it holds, or others than numbers and text."""
    try:
        if name.endswith(".npy"):
            _check_npy(contents)
        elif name.endswith(".npz"):
            with zipfile.ZipFile(BytesIO(contents)) as archive:
                check_size(path, sum(part.file_size for part in archive.infolist()), len(contents))
                for part in archive.infolist():
                    _check_npy(archive.read(part))
    except RefusedError:
        raise
    except (ValueError, zipfile.BadZipFile, EOFError, SyntaxError) as error:
        raise damaged(path, error) from None


def _check_npy(contents: bytes) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """The shape, type and place of the numbers in a file of numpy's format, if it holds as many as it announces."""
    file = BytesIO(contents)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(npy.read_magic(file))
    if read is None:
        raise ValueError("an array is of another version of numpy's format")
    shape, _, dtype = read(file)
    size = dtype.itemsize
    for length in shape:
        size *= int(length)
    if dtype.hasobject or min(shape, default=0) < 0 or size != len(contents) - file.tell():
        raise ValueError(f"an array of shape {shape} and {dtype} does not fit its {len(contents) - file.tell()} bytes")
    return shape, dtype, file.tell()


def _check_node(path: Path, node: dict[str, Any], files: dict[str, bytes]) -> None:
    """What the class of a part would do with the values that it is given."""
    loader, name = node["__loader__"], f"{node['__module__']}.{node['__class__']}"
    if loader == "NdArrayNode" and node.get("type") == "numpy" and not str(node["file"]).endswith(".npy"):
        raise damaged(path, ValueError("an array is not in numpy's format"))
    if loader == "SparseMatrixNode" and not str(node["file"]).endswith(".npz"):
        raise damaged(path, ValueError("a sparse matrix is not in scipy's format"))
    if loader == "DictNode":
        _check_settings(path, node)
    if loader == "TreeNode":
        _check_tree_sizes(path, node, files)
    if name == "xgboost.core.Booster":
        _check_xgboost(path, node, files)
    if name == "lightgbm.basic.Booster":
        _check_lightgbm(path, node)


def _check_tree_sizes(path: Path, node: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """The numbers by which scikit-learn's constructor of a tree reserves memory, and does not check."""
    try:
        columns, classes, outputs = node["__reduce__"]["args"]["content"]
        shape, dtype, start = _check_npy(files[classes["file"]])
        wanted, width = _value(outputs), _value(columns)
        expect(type(width) is int and 0 < width <= MOST_COLUMNS, "the columns of a tree")
        expect(type(wanted) is int and shape == (wanted,) and 0 < wanted <= MOST_OUTPUTS, "its outputs")
        counts = np.frombuffer(files[classes["file"]], dtype, offset=start)
        expect(dtype.kind in "iu" and inside(counts, 1, MOST_CLASSES + 1), "its classes")
    except (KeyError, TypeError, ValueError) as error:
        raise damaged(path, error) from None


def _value(node: Any) -> Any:
    """Of a part that is plain JSON; None of others."""
    return json.loads(node["content"]) if isinstance(node, dict) and node.get("__loader__") == "JsonNode" else None


def _check_settings(path: Path, node: Mapping[str, Any]) -> None:
    """Raise where settings send work to files, folders or other machines, or ask for absurdly many processes."""
    for key, setting in node["content"].items():
        empty = isinstance(setting, dict) and setting.get("__loader__") == "JsonNode" and not _value(setting)
        if key in OUTSIDE and not empty:
            raise RefusedError(f"{path} sets {key!r}, which reaches outside of the model; save it without")
        jobs = _value(setting) if key in ("n_jobs", "num_threads", "nthread", "n_threads") else None
        if jobs is not None and (not isinstance(jobs, int) or abs(jobs) > MOST_JOBS):
            raise RefusedError(f"{path} sets {key!r} to {jobs!r:.40}; at most {MOST_JOBS} is expected")


def _check_xgboost(path: Path, node: Mapping[str, Any], files: dict[str, bytes]) -> None:
    """The booster inside, written anew by XGBoost itself from what was checked."""
    import xgboost

    handle = node["content"]["content"].get("handle")
    if handle is None or (handle.get("__loader__") == "JsonNode" and _value(handle) is None):
        return
    if handle.get("__loader__") != "BytearrayNode":
        raise damaged(path, ValueError("its booster is no booster"))
    booster = xgboost.Booster(model_file=checked_xgboost(path, files[handle["file"]], within="Model"))
    files[handle["file"]] = bytes(booster.__getstate__()["handle"])


def _check_lightgbm(path: Path, node: Mapping[str, Any]) -> None:
    state = node["content"]["content"]
    for key in ("_handle", "handle"):
        text = _value(state.get(key))
        if isinstance(text, str):
            state[key]["content"] = json.dumps(checked_lightgbm(path, text.encode()))
        elif key in state and not (state[key].get("__loader__") == "JsonNode" and text is None):
            raise damaged(path, ValueError("its booster is no booster"))
    if _value(state.get("_network")):
        raise RefusedError(f"{path} holds a booster that speaks to other machines")


def _zipped(schema: Any, files: Mapping[str, bytes]) -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr(SCHEMA, json.dumps(schema))
        for name, contents in files.items():
            archive.writestr(name, contents)
    return written.getvalue()
