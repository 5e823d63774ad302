"""When two families or networks are the same, bit for bit."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from holdfast import Family


def tensors(network) -> list[Tensor]:
    """All that a network is made of."""
    if isinstance(network, nn.Module):
        return [tensor.detach() for tensor in network.state_dict().values()]
    return [*network.weights, *network.biases]


def same(one, other) -> bool:
    if isinstance(one, Family):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))
