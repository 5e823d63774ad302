"""Networks in safetensors files: numbers only, and beside them what the network is, sealed."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from holdfast.models.files.untrusted import check_content
from holdfast.models.model import Model
from holdfast.utils.files import appearing, as_path
from holdfast.utils.sealing import Kind, SealError, sealed, unsealed

NETWORK = Kind("network", "network", format=1, unsealed=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Layers:
    """Rectified layers that were read from a file, a Model."""

    weights: tuple[Tensor, ...]  # (in, out) each
    biases: tuple[Tensor, ...]  # (out,) each
    fingerprint: str | None = None  # of the training that made them, where the file says
    retraining: Mapping[str, Any] | None = None  # what set that training apart, where the file says

    def __call__(self, x: Tensor) -> Tensor:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = (x @ weight + bias).relu()
        return x @ self.weights[-1] + self.biases[-1]

    def __repr__(self) -> str:
        sizes = (self.weights[0].shape[0], *(weight.shape[1] for weight in self.weights))
        return f"Layers({'-'.join(map(str, sizes))})"


def save_model(model: Model, path: str | Path) -> Path:
    """Write a network of `train` to a safetensors file, which `read_model` and ``holdfast audit --model`` read.

    What it was trained from goes with it, so that it is still known as the same network. Of a module the weights are
    kept, and not its code: reading it takes a module like it.

    Args:
        model: a network of `train`, or a torch module
        path: the file to write; it comes back

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> deployed = hf.train(x, y, recipe, [hf.Retraining()])[0]
        >>> hf.save_model(deployed, "model.safetensors").name
        'model.safetensors'
    """
    path = as_path(path, "a file to write, such as model.safetensors")
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in _tensors(model).items()}
    retraining = getattr(model, "retraining", None)
    about = {
        "network": "module" if isinstance(model, nn.Module) else "perceptron",
        "fingerprint": getattr(model, "fingerprint", None),
        "retraining": asdict(retraining) if is_dataclass(retraining) and not isinstance(retraining, type) else None,
        "sha256": _checksum(tensors),
    }
    contents = safetensors.torch.save(tensors, {"holdfast": json.dumps(sealed(NETWORK, about))})
    with appearing(path) as file:
        file.write(contents)
    return path


def _tensors(model: Model) -> dict[str, Tensor]:
    if isinstance(model, nn.Module):
        return {name: tensor.clone() for name, tensor in model.state_dict().items()}
    weights, biases = (getattr(model, name, None) for name in ("weights", "biases"))
    if not isinstance(weights, tuple) or not isinstance(biases, tuple):
        raise TypeError(
            f"{type(model).__name__} is no network of train(...) and no torch module; save it where you made it, in a "
            "format of its library that read_model reads"
        )
    named = {f"{layer}.weight": weight.T for layer, weight in enumerate(weights)}  # as torch has them: (out, in)
    return named | {f"{layer}.bias": bias for layer, bias in enumerate(biases)}


def _checksum(tensors: Mapping[str, Tensor]) -> str:
    hashed = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name]
        hashed.update(f"{name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        hashed.update(tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return hashed.hexdigest()


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any] | None]:
    """The tensors of a safetensors file, and what `save_model` wrote about them."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; check the name and the folder")
    check_content(path)
    try:
        tensors = safetensors.torch.load_file(path)
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(f"{path} is not a valid safetensors file: {error}") from error
    if "holdfast" not in metadata:
        return tensors, None
    try:
        about = unsealed(NETWORK, metadata["holdfast"].encode(), str(path))
    except SealError as error:
        raise ValueError(f"{error}; save the network again: save_model(network, path)") from None
    if about.get("sha256") != _checksum(tensors):
        raise ValueError(f"{path}: its weights are not those that were saved (changed afterwards); save it again")
    return tensors, about


def read_layers(path: str | Path) -> Layers:
    """The linear layers of a safetensors file, named as torch does: ``….weight`` (out, in) and ``….bias``.

    Layers are taken in the order of the numbers in their names. A file that `save_model` did not write does not say
    which function lies between layers: max(0, z) is taken.
    """
    path = Path(path)
    tensors, about = read_tensors(path)
    names = sorted({name.rpartition(".")[0] for name in tensors}, key=_by_numbers)
    odd = sorted(set(tensors) ^ {f"{name}.{part}" for name in names for part in ("weight", "bias")})
    if odd:
        raise _no_layers(path, f"{', '.join(odd[:5])} should not be, or should be, among {', '.join(names[:5])}")
    if not names:
        raise _no_layers(path, "it holds no tensors")
    written = about or {"network": "perceptron"}
    if written.get("network") != "perceptron":
        raise _no_layers(path, "it holds the weights of a module")
    weights, biases = ([tensors[f"{name}.{part}"] for name in names] for part in ("weight", "bias"))
    shapes = [tuple(weight.shape) for weight in weights]
    if any(len(shape) != 2 or 0 in shape for shape in shapes) or any(a[0] != b[1] for a, b in pairwise(shapes)):
        raise _no_layers(path, f"their weights have the shapes {shapes}")
    for name, shape, bias in zip(names, shapes, biases, strict=True):
        if tuple(bias.shape) != shape[:1]:
            misfit = f"{name}.bias has shape {tuple(bias.shape)}, {name}.weight {shape}: {shape[:1]} fits"
            raise _no_layers(path, misfit)
    _check_numbers(path, tensors)
    weights = [weight.T.contiguous() for weight in weights]
    return Layers(tuple(weights), tuple(biases), written.get("fingerprint"), with_tuples(written.get("retraining")))


def with_tuples(value: Any) -> Any:
    """JSON has lists where our values have tuples."""
    if isinstance(value, dict):
        return {name: with_tuples(part) for name, part in value.items()}
    return tuple(map(with_tuples, value)) if isinstance(value, list) else value


def read_into(path: str | Path, like: nn.Module) -> nn.Module:
    """A module like this one, with the weights of a file."""
    if not isinstance(like, nn.Module):
        raise TypeError(f"like must be the nn.Module that the weights belong to, got {type(like).__name__}")
    tensors, about = read_tensors(path)
    module = copy.deepcopy(like)
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        raise ValueError(f"{path} does not hold the weights of {type(like).__name__}: {error}") from error
    if about is not None:
        vars(module).update(fingerprint=about.get("fingerprint"))
    return module.eval()


def _check_numbers(path: Path, tensors: dict[str, Tensor]) -> None:
    """Rows are encoded as float32, and a model of another dtype does not take them."""
    for name in sorted(tensors, key=_by_numbers):
        if tensors[name].dtype != torch.float32:
            raise ValueError(
                f"{path}: {name} is {tensors[name].dtype}, expected torch.float32 as rows are encoded; save "
                "module.float() instead"
            )
        if not bool(tensors[name].isfinite().all()):
            raise ValueError(f"{path}: {name} holds numbers that are not finite; the training of this model has failed")


def _no_layers(path: Path, reason: str) -> ValueError:
    return ValueError(
        f"{path} does not hold linear layers one after another: {reason}; give the module that the weights belong to: "
        "read_model(path, encoding, like=module), or Family.from_models(files, like=module)"
    )


def _by_numbers(name: str) -> list[tuple[int, str]]:
    """'layer.10' after 'layer.2'. Digits of other alphabets are letters here, and so is a number too long to be one."""
    parts = re.split(r"([0-9]+)", name)
    return [(int(part), "") if part.isdecimal() and part.isascii() and len(part) < 20 else (-1, part) for part in parts]
