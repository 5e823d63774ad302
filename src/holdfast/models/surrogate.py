"""A small network that resembles a black box near the people it was made for."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from holdfast.models.adapters.probing import known_rows, random_rows
from holdfast.models.files.networks import Layers
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding

HIDDEN = (64, 32)
LARGEST_LOGIT = 20.0  # logit that is learned: beyond, a model is sure, and how sure says nothing
LEARNED_ROWS = 4000  # rows that are learned from


def rows_to_learn(encoding: Encoding) -> Tensor:
    """Known rows, some of them if there are many; random ones where the encoding knows none: (m, d)."""
    known = known_rows(encoding, LEARNED_ROWS)
    return random_rows(encoding, LEARNED_ROWS // 2).float() if known is None else encoding.encode(known)


def surrogate_of(x: Tensor, answers: Tensor) -> Model:
    """A network fitted to what a model says of rows that it was asked about once for all searches."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPRegressor

    logits = answers.clamp(-LARGEST_LOGIT, LARGEST_LOGIT)
    centred = (logits - logits.mean(1, keepdim=True)).numpy()
    network = MLPRegressor(hidden_layer_sizes=HIDDEN, early_stopping=len(x) >= 100, max_iter=100, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(x.double().numpy(), centred if centred.shape[1] > 2 else centred[:, 1])
    return _in_torch(network, centred.shape[1])


def _in_torch(network: object, classes: int) -> Model:
    layers = [[torch.from_numpy(part).float() for part in getattr(network, name)] for name in ("coefs_", "intercepts_")]

    def logits(x: Tensor) -> Tensor:
        weights, biases = (tuple(part.to(x) for part in parts) for parts in layers)
        out = Layers(weights, biases)(x)
        return torch.cat([-out, out], 1) if classes == 2 else out

    return logits
