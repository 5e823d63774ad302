"""Models of Keras 3: with the torch backend a torch module, with another one its layers in torch, or a black box."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import nn

from holdfast.models.adapters.adapter import Adapter, Call, How
from holdfast.models.adapters.seen import is_of
from holdfast.models.deployed import Deployed
from holdfast.models.frameworks import torch_modules
from holdfast.models.frameworks.onnx_graphs import STEPS, Attributes, Step, Steps
from holdfast.models.frameworks.torch_modules import Network, exact_of, with_translation
from holdfast.models.model import check_steady, first_weight
from holdfast.tabular.encoding import Encoding

# Activations and layers as steps of ONNX, with their attributes
ACTIVATIONS: dict[str, tuple[str, Attributes]] = {
    "linear": ("Identity", {}), "relu": ("Relu", {}), "tanh": ("Tanh", {}), "sigmoid": ("Sigmoid", {}),
    "softmax": ("Softmax", {}), "elu": ("Elu", {}), "selu": ("Selu", {}), "softplus": ("Softplus", {}),
    "softsign": ("Softsign", {}), "silu": ("Swish", {}), "gelu": ("Gelu", {}),
    "leaky_relu": ("LeakyRelu", {"alpha": 0.2}),
}  # fmt: skip
NOTHING = ("InputLayer", "Dropout", "GaussianNoise", "GaussianDropout", "Identity", "ActivityRegularization")


def knows(model: Any) -> bool:
    return is_of(model, "keras", "Model")


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    import keras

    check_steady(model)
    name = f"{type(model).__name__} of Keras on {keras.backend.backend()}"
    return network_of(model).adapter(encoding, how, name)


def helped(adapter: Adapter) -> Deployed:
    """With the torch backend the model is searched itself; with another one, its layers in torch, where they are layers
    that are known here."""
    if isinstance(adapter.own, nn.Module):
        return Deployed.of(adapter, exact=exact_of(adapter, partial(adapter.own, training=False)))
    return with_translation(adapter, translated(adapter.own))


def call_of(model: Any, way: str = "keras") -> Call:
    in_torch = isinstance(model, nn.Module)
    return torch_modules.call_of(partial(model, training=False)) if in_torch else partial(asked_by_keras, model)


def network_of(model: Any) -> Network:
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
    if type(model).__name__ not in ("Sequential", "Functional") or not _is_stack(model):
        return None
    steps: list[tuple[Step, Attributes, list[str], str]] = []
    constants: dict[str, NDArray[Any]] = {}
    for layer in model.layers:
        made = _layer(layer)
        if made is None:
            return None
        for operation, attributes, weights in made:
            own = {f"weight {len(constants) + place}": weight for place, weight in enumerate(weights)}
            constants |= own
            steps.append((STEPS[operation, 0], attributes, [str(len(steps)), *own], str(len(steps) + 1)))
    return Steps(steps, constants, "0", str(len(steps))).eval()


def _is_stack(model: Any) -> bool:
    """Whether every layer has one other before it: a functional model may fork."""
    ends = (model.inputs or [], model.outputs or [])
    return all(len(end) == 1 for end in ends) and all(
        len(getattr(layer, "_inbound_nodes", [0])) <= 1 for layer in model.layers
    )


def _layer(layer: Any) -> list[tuple[str, Attributes, list[NDArray[Any]]]] | None:
    """The steps of a layer: what is done, how, and with which weights; None where it is not known here."""
    kind, weights = type(layer).__name__, iter(layer.get_weights())
    name = getattr(getattr(layer, "activation", None), "__name__", "")
    if kind in NOTHING:
        return []
    if kind in ("Dense", "Activation"):
        product: list[Any] = [("Gemm", {}, list(weights))] if kind == "Dense" else []
        return [*product, (*ACTIVATIONS[name], [])] if name in ACTIVATIONS else None
    match kind:
        case "ReLU" if layer.max_value is None and not layer.threshold and not layer.negative_slope:
            return [("Relu", {}, [])]
        case "LeakyReLU":
            return [("LeakyRelu", {"alpha": float(layer.negative_slope)}, [])]
        case "ELU":
            return [("Elu", {"alpha": float(layer.alpha)}, [])]
        case "Softmax":
            return [("Softmax", {}, [])]
        case "BatchNormalization":
            scale = next(weights) if layer.scale else np.ones(1, np.float32)
            bias = next(weights) if layer.center else np.zeros(1, np.float32)
            return [("BatchNormalization", {"epsilon": layer.epsilon}, [scale, bias, *weights])]
    return None
