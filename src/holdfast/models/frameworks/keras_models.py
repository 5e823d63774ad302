"""Models of Keras 3: with the torch backend a torch module, with another one its layers in torch, or a black box."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from holdfast.models.deployed import Ask, Deployed, How
from holdfast.models.frameworks.torch_modules import of_module, of_translation, other_ways, used_of
from holdfast.models.model import first_weight
from holdfast.tabular.encoding import Encoding

ACTIVATIONS: dict[str, nn.Module | None] = {
    "linear": None, "relu": nn.ReLU(), "tanh": nn.Tanh(), "sigmoid": nn.Sigmoid(), "softmax": nn.Softmax(-1),
    "elu": nn.ELU(), "selu": nn.SELU(), "softplus": nn.Softplus(), "softsign": nn.Softsign(), "silu": nn.SiLU(),
    "gelu": nn.GELU(), "leaky_relu": nn.LeakyReLU(0.2),
}  # fmt: skip


def knows(model: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(model, keras.Model)


def deployed(model: Any, encoding: Encoding, how: How) -> Deployed:
    import keras

    backend = keras.backend.backend()
    name = f"{type(model).__name__} of Keras on {backend}"
    if backend == "torch":
        return of_module(_call(model), model, encoding, how, name)
    return of_another_backend(model, encoding, how, name)


def of_another_backend(model: Any, encoding: Encoding, how: How, name: str) -> Deployed:
    """Keras answers; its layers in torch are searched, where they are layers that are known here."""
    in_torch = translated(model)
    used, about = used_of(partial(_asked, model), model, encoding, how, None, in_torch)
    return of_translation(used, f"{name}, {about}", in_torch)


def others(read: Deployed, how: How) -> dict[str, Ask]:
    return other_ways(_call(read.own), read, how, _like(read.own))


def _like(model: Any) -> Tensor | None:
    return first_weight(model) if isinstance(model, nn.Module) else None


def _call(model: Any) -> Callable[[Any], Any]:
    return partial(model, training=False) if isinstance(model, nn.Module) else partial(_asked, model)


def _asked(model: Any, given: Any) -> NDArray[Any]:
    import keras

    rows = given if isinstance(given, pd.DataFrame) else given.detach().cpu().numpy()
    answer: NDArray[Any] = keras.ops.convert_to_numpy(model(rows, training=False))
    return np.asarray(answer)


def translated(model: Any) -> nn.Module | None:
    """A stack of dense layers in torch; None where the model has others."""
    layers: list[nn.Module] = []
    if type(model).__name__ not in ("Sequential", "Functional") or not _is_stack(model):
        return None
    for layer in model.layers:
        made = _layer(layer)
        if made is None:
            return None
        layers += made
    return nn.Sequential(*layers).eval()


def _is_stack(model: Any) -> bool:
    """Whether every layer has one other before it: a functional model may fork."""
    ends = (model.inputs or [], model.outputs or [])
    return all(len(end) == 1 for end in ends) and all(
        len(getattr(layer, "_inbound_nodes", [0])) <= 1 for layer in model.layers
    )


def _layer(layer: Any) -> list[nn.Module] | None:
    match type(layer).__name__:
        case "InputLayer" | "Dropout" | "GaussianNoise" | "GaussianDropout" | "Identity" | "ActivityRegularization":
            return []
        case "Dense":
            weight, *bias = (torch.from_numpy(np.array(one)) for one in layer.get_weights())
            made = nn.Linear(weight.shape[0], weight.shape[1], bias=bool(bias), dtype=weight.dtype)
            made.weight.data = weight.T.contiguous()
            if bias:
                made.bias.data = bias[0]
            return _followed([made], layer.activation)
        case "Activation":
            return _followed([], layer.activation)
        case "ReLU" if layer.max_value is None and not layer.threshold and not layer.negative_slope:
            return [nn.ReLU()]
        case "LeakyReLU":
            return [nn.LeakyReLU(float(layer.negative_slope))]
        case "ELU":
            return [nn.ELU(float(layer.alpha))]
        case "Softmax":
            return [nn.Softmax(-1)]
        case "BatchNormalization":
            return [_BatchNormalization(layer)]
    return None


def _followed(made: list[nn.Module], activation: Any) -> list[nn.Module] | None:
    name = getattr(activation, "__name__", "")
    if name not in ACTIVATIONS:
        return None
    own = ACTIVATIONS[name]
    return made if own is None else [*made, own]


class _BatchNormalization(nn.Module):
    """As it is after training: a multiple of each column and a number added."""

    times: Tensor
    plus: Tensor

    def __init__(self, layer: Any) -> None:
        super().__init__()
        import keras

        own = {name: torch.from_numpy(np.array(keras.ops.convert_to_numpy(value))).double()
               for name, value in (("mean", layer.moving_mean), ("variance", layer.moving_variance),
                                   ("gamma", layer.gamma), ("beta", layer.beta)) if value is not None}  # fmt: skip
        times = own.get("gamma", torch.tensor(1.0)) / torch.sqrt(own["variance"] + layer.epsilon)
        self.register_buffer("times", times.float())
        self.register_buffer("plus", (own.get("beta", torch.tensor(0.0)) - own["mean"] * times).float())

    def forward(self, x: Tensor) -> Tensor:
        return x * self.times + self.plus
