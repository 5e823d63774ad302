"""A model is any callable from rows to logits; small tools that work on every one of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

Model = Callable[[Tensor], Tensor]  # (n, d) -> (n, c) logits
Groups = tuple[tuple[int, ...], ...]


def predict(model: Model, x: Tensor) -> Tensor:
    """The class of each row: (n,)."""
    with torch.no_grad():
        return checked_logits(model(x), len(x)).argmax(-1)


def checked_logits(logits: Tensor, rows: int) -> Tensor:
    """What a model said, if it is one row of two logits or more for each row asked."""
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != rows or logits.shape[1] < 2:
        raise ValueError(
            f"the model gave {shape} for {rows} rows; expected a tensor ({rows}, classes) of logits for two classes or "
            "more. For a single logit z wrap it: torch.cat([-z, z], 1) / 2 if z is (n, 1), torch.stack([-z, z], 1) / 2 "
            "if it is (n,)"
        )
    return logits


def check_model(model: Model, x: Tensor) -> int:
    """The number of classes, if the model can be searched: rows to logits, differentiable, always the same answer."""
    if not callable(model):
        raise TypeError(f"the model is a {type(model).__name__}, which cannot be called; pass rows -> logits in torch")
    if isinstance(model, nn.Module) and model.training and any(map(_is_fickle, model.modules())):
        raise ValueError("the model is in training mode and has dropout or batch normalisation; call model.eval()")
    rows = x[:64].detach().requires_grad_()
    try:
        with torch.enable_grad():
            logits = model(rows)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise ValueError(f"the model does not take rows of {x.shape[1]} columns ({x.dtype}): {error}") from error
    checked_logits(logits, len(rows))
    if len(rows) and not logits.requires_grad:
        raise ValueError("the model's output has no gradient; gradient searches need a model written in torch")
    if (
        len(rows)
        and bool((logits >= 0).all())
        and bool(torch.isclose(logits.sum(1), torch.ones_like(logits[:, 0])).all())
    ):
        warnings.warn(
            "the model's outputs are probabilities (each row sums to 1) but logits are expected: searches will stall "
            "where the model is sure of itself; leave out its softmax, or wrap it in torch.log",
            stacklevel=3,
        )
    return logits.shape[1]


def _is_fickle(module: nn.Module) -> bool:
    return isinstance(module, (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm))


@dataclass(frozen=True)
class Merged:
    """A model whose classes are groups of another's."""

    model: Model
    groups: Groups

    def __call__(self, x: Tensor) -> Tensor:
        return merge_logits(self.model(x), self.groups)

    @property
    def fingerprint(self) -> str | None:
        return getattr(self.model, "fingerprint", None)


def merged(model: Model, groups: Sequence[Sequence[int]]) -> Merged:
    """Say "any of these classes": ``merged(model, ((0,), (1, 2)))`` has class 1 wherever model says 1 or 2."""
    return Merged(model, as_groups(groups))


def as_groups(groups: Sequence[Sequence[int]]) -> Groups:
    plain = tuple(tuple(int(member) for member in group) for group in groups)
    members = [member for group in plain for member in group]
    if len(plain) < 2 or not all(plain) or sorted(members) != list(range(len(members))):
        raise ValueError(f"groups must share out the classes 0, 1, ... among two or more groups, got {plain}")
    return plain


def merge_logits(logits: Tensor, groups: Groups) -> Tensor:
    """The largest logit of each group, so that the merged class is the group of the old class."""
    classes = sum(len(group) for group in groups)
    if logits.shape[-1] != classes:
        raise ValueError(f"the groups {groups} share out {classes} classes but the model has {logits.shape[-1]}")
    return torch.stack([logits[..., list(group)].amax(-1) for group in groups], dim=-1)
