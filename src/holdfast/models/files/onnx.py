"""Files of ONNX: a graph of known steps, all its numbers in the one file, that no small description makes large."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.models.files.onnx_sizes import KNOWN_STEPS, TooMuchError, weigh
from holdfast.models.files.untrusted import RefusedError

MOST_NODES = 50_000  # steps
PACKED = 4  # numbers in one byte at most: those of two bits

INSTEAD = "If you trust the file, load it yourself, onnx.load(path), and pass the model to as_model"


def read_onnx(path: Path) -> Any:
    """The model of an .onnx file, if running it is bounded by what the file holds."""
    import onnx

    model = onnx.load_model_from_string(path.read_bytes())
    model.DiscardUnknownFields()  # what is not looked at here is not passed on to onnxruntime
    for message in messages(model):
        if isinstance(message, onnx.TensorProto):
            _check_tensor(path, message)
        elif isinstance(message, onnx.SparseTensorProto):
            raise RefusedError(f"{path} holds sparse numbers, which a few bytes make large. {INSTEAD}")
    _check_steps(path, model)
    onnx.checker.check_model(model)
    _check_sizes(path, model)
    return model


def messages(message: Any) -> Iterator[Any]:
    """A message of protobuf and every message inside it, wherever the format has a place for one."""
    waiting = [message]
    while waiting:
        current = waiting.pop()
        yield current
        for field, value in current.ListFields():
            if field.message_type is not None:
                waiting += [value] if hasattr(value, "ListFields") else value


def _check_tensor(path: Path, tensor: Any) -> None:
    import onnx

    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise RefusedError(f"{path} takes numbers from other files; save it as one: onnx.save(model, path)")
    held = len(tensor.raw_data) + sum(
        len(getattr(tensor, f"{kind}_data")) for kind in ("float", "int32", "int64", "string", "double", "uint64")
    )
    if any(size < 0 for size in tensor.dims) or math.prod(tensor.dims) > PACKED * held:
        raise RefusedError(
            f"{path}: the numbers {tensor.name!r} should have the shape {list(tensor.dims)[:8]}, and {held} are there"
        )


def _check_steps(path: Path, model: Any) -> None:
    """Raise unless every step is known, and there are few of them."""
    import onnx

    if model.functions:  # which can call one another without end
        raise RefusedError(
            f"{path} defines functions; write them out where they are called, "
            "onnx.inliner.inline_local_functions(model), and save it again"
        )
    nodes = [message for message in messages(model) if isinstance(message, onnx.NodeProto)]
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        if (domain, node.op_type) not in KNOWN_STEPS:
            raise RefusedError(
                f"{path} has the step {node.op_type!r}{f' of {node.domain!r}' if node.domain else ''}, which is none "
                f"that holdfast runs from a file. {INSTEAD}"
            )
    if len(nodes) > MOST_NODES:
        raise RefusedError(f"{path}: its graph has {len(nodes)} steps; a model has {MOST_NODES} at most")


def _check_sizes(path: Path, model: Any) -> None:
    try:
        weigh(model)
    except TooMuchError as error:
        raise RefusedError(f"{path}: {error}; a model of tables does not need that. {INSTEAD}") from None
