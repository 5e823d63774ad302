"""Models of Keras 3: with the torch backend a torch module, with another one a black box."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import nn

from holdfast.models.adapters.adapter import Adapter, Call, How
from holdfast.models.adapters.seen import is_of
from holdfast.models.frameworks import torch_modules
from holdfast.models.frameworks.torch_modules import Network, exact_of
from holdfast.models.model import check_steady, first_weight
from holdfast.models.wrapped import WrappedModel
from holdfast.tabular.encoding import Encoding


def knows(model: Any) -> bool:
    return is_of(model, "keras", "Model")


def adapter_of(model: Any, encoding: Encoding, how: How) -> Adapter:
    import keras

    check_steady(model)
    name = f"{type(model).__name__} of Keras on {keras.backend.backend()}"
    return network_of(model).adapter(encoding, how, name)


def helped(adapter: Adapter) -> WrappedModel:
    """With the torch backend the model is searched itself. Another backend is chosen before Keras is loaded, by
    KERAS_BACKEND, and the same model then runs on torch."""
    in_torch = isinstance(adapter.model, nn.Module)
    return WrappedModel(adapter, exact_of(adapter, partial(adapter.model, training=False)) if in_torch else None)


def call_of(model: Any, way: str = "keras") -> Call:
    in_torch = isinstance(model, nn.Module)
    return torch_modules.call_of(partial(model, training=False)) if in_torch else partial(asked_by_keras, model)


def network_of(model: Any) -> Network:
    if isinstance(model, nn.Module):
        return Network(model, "keras", call_of(model), first_weight(model), partial(model, training=False))
    return Network(model, "keras", call_of(model), None, None)


def asked_by_keras(model: Any, given: Any) -> NDArray[Any]:
    import keras

    rows = given if isinstance(given, pd.DataFrame) else given.detach().cpu().numpy()
    answer: NDArray[Any] = keras.ops.convert_to_numpy(model(rows, training=False))
    return np.asarray(answer)
