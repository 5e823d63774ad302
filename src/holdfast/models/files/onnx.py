"""Files of ONNX: a graph of known steps, all its numbers in the one file, that no small description makes large."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.models.files.onnx_sizes import KNOWN, TooMuchError, Weighing, typed
from holdfast.models.files.untrusted import RefusedError

MOST_NODES = 50_000  # steps, once every function is written out where it is called
DEEPEST_CALLS = 32  # functions that call functions
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
        one = waiting.pop()
        yield one
        for field, value in one.ListFields():
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


# ---- steps ----


def _check_steps(path: Path, model: Any) -> None:
    """Raise unless every step is known, and functions written out are few steps."""
    own = {_called(function, function.name): function for function in model.functions}
    for node in _nodes(model):
        domain = "" if node.domain == "ai.onnx" else node.domain
        if _called(node, node.op_type) not in own and (domain, node.op_type) not in KNOWN:
            raise RefusedError(
                f"{path} has the step {node.op_type!r}{f' of {node.domain!r}' if node.domain else ''}, which is none "
                f"that holdfast runs from a file. {INSTEAD}"
            )
    steps: dict[Any, int] = {}
    if _steps_of(path, model.graph, own, steps, 0) > MOST_NODES:
        raise RefusedError(f"{path}: its graph has more than {MOST_NODES} steps when its functions are written out")


def _called(message: Any, name: str) -> tuple[str, str, str]:
    return message.domain, name, getattr(message, "overload", "")


def _nodes(message: Any) -> Iterator[Any]:
    import onnx

    return (one for one in messages(message) if isinstance(one, onnx.NodeProto))


def _steps_of(path: Path, message: Any, own: dict[Any, Any], steps: dict[Any, int], depth: int) -> int:
    """The steps of a graph or function with those of what it calls; each function is counted once."""
    if depth > DEEPEST_CALLS:  # also where one calls itself
        raise RefusedError(f"{path}: its functions call one another more than {DEEPEST_CALLS} deep")
    total = 0
    for node in _nodes(message):
        key = _called(node, node.op_type)
        if key in own and key not in steps:
            steps[key] = _steps_of(path, own[key], own, steps, depth + 1)
        total += 1 + steps.get(key, 0)
    return total


# ---- sizes ----


def _check_sizes(path: Path, model: Any) -> None:
    from onnx import inliner

    flat = inliner.inline_local_functions(model) if model.functions else model
    try:
        Weighing(flat.opset_import, flat.ir_version).weigh(
            flat.graph, {one.name: typed(one) for one in flat.graph.input}
        )
    except TooMuchError as error:
        raise RefusedError(f"{path}: {error}; a model of tables does not need that. {INSTEAD}") from None
