"""A model is any callable from rows to logits; what every search checks about one."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

Model = Callable[[Tensor], Tensor]  # (n, d) -> (n, c) logits


NO_CLASS = -1  # of a row for which the model answers NaN


def predict(model: Model, x: Tensor) -> Tensor:
    """The class of each row: (n,). A model that answers NaN has none, which is an error."""
    with torch.no_grad():
        return certain_classes_of(checked_logits(model(x), len(x)))


def certain_classes_of(logits: Tensor) -> Tensor:
    """The largest of the logits of each row (n, c), if none of them is NaN: (n,)."""
    found = classes_of(logits)
    rows = torch.nonzero(found == NO_CLASS).flatten().tolist()
    if rows:
        raise ValueError(
            f"the model answers NaN for {len(rows)} of {len(logits)} rows, the first of them row {rows[0]}; "
            "check its inputs and its weights"
        )
    return found


def predict_or_none(model: Model, x: Tensor) -> Tensor:
    """The class of each row, and `NO_CLASS` where the model answers NaN: (n,)."""
    with torch.no_grad():
        return classes_of(checked_logits(model(x), len(x)))


def classes_of(logits: Tensor) -> Tensor:
    """The largest of the logits (..., c), and `NO_CLASS` where one of them is NaN, which argmax would call a class."""
    return torch.where(logits.isnan().any(-1), NO_CLASS, logits.argmax(-1))


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
