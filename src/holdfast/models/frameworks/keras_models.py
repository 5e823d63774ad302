"""Models of Keras 3: with the torch backend a torch module, with another one its layers in torch, or a black box."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from holdfast.models.adapters.adapter import Adapter, Ask, Call, How
from holdfast.models.deployed import Deployed
from holdfast.models.frameworks import torch_modules
from holdfast.models.frameworks.torch_modules import Network, exact_of, with_translation
from holdfast.models.model import check_steady, first_weight
from holdfast.tabular.encoding import Encoding

ACTIVATIONS: dict[str, nn.Module | None] = {
    "linear": None, "relu": nn.ReLU(), "tanh": nn.Tanh(), "sigmoid": nn.Sigmoid(), "softmax": nn.Softmax(-1),
    "elu": nn.ELU(), "selu": nn.SELU(), "softplus": nn.Softplus(), "softsign": nn.Softsign(), "silu": nn.SiLU(),
    "gelu": nn.GELU(), "leaky_relu": nn.LeakyReLU(0.2),
}  # fmt: skip


def knows(model: Any) -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(model, keras.Model)


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    import keras

    check_steady(model)
    name = f"{type(model).__name__} of Keras on {keras.backend.backend()}"
    return _network(model).adapter(encoding, how, name)


def helped(adapter: Adapter) -> Deployed:
    """With the torch backend the model is searched itself; with another one, its layers in torch, where they are layers
    that are known here."""
    if isinstance(adapter.own, nn.Module):
        return Deployed.of(adapter, exact=exact_of(adapter, partial(adapter.own, training=False)))
    return with_translation(adapter, translated(adapter.own))


def call_of(model: Any, way: str = "keras") -> Call:
    in_torch = isinstance(model, nn.Module)
    return torch_modules.call_of(partial(model, training=False)) if in_torch else partial(asked_by_keras, model)


def others(adapter: Adapter, how: How) -> dict[str, Ask]:
    return _network(adapter.own).fed_otherwise(adapter, how)


def _network(model: Any) -> Network:
    if isinstance(model, nn.Module):
        return Network(model, "keras", call_of(model), first_weight(model), partial(model, training=False))
    return Network(model, "keras", call_of(model), None, translated(model))


def asked_by_keras(model: Any, given: Any) -> NDArray[Any]:
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
