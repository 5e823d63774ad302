"""A model is any callable from rows to logits; what every search checks about one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from holdfast.models.rows import check_rows

Model = Callable[[Tensor], Tensor]  # (n, d) -> (n, c) logits
"""A model: any callable from encoded rows (n, d) to logits (n, c), one score per class. The class is the largest.

Networks of `train` are models, torch modules in evaluation mode too, and `as_model` makes one of any other.

Examples:
    >>> import holdfast as hf
    >>> import torch
    >>> model = lambda x: torch.cat([-x, x], 1)  # two logits for rows of one column
    >>> hf.predict(model, torch.tensor([[-2.0], [3.0]]))
    tensor([0, 1])

Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2 (Notation): F(x; θ) = argmax f_i(x; θ), with
logits f_i.
"""

LEAST_PROBABILITY = 1e-12  # whose logarithm is taken: a model that is certain is as good as certain
NO_CLASS = -1  # of a row for which the model answers NaN


def predict(model: Model, x: Tensor) -> Tensor:
    """The class that a model gives each row: (n,). A model that answers NaN has none, which is an error.

    Args:
        model: rows to logits
        x: (n, d) encoded rows

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> deployed = hf.train(x, y, recipe, [hf.Retraining()])[0]
        >>> classes = hf.predict(deployed, x)
        >>> bool((classes == y).float().mean() > 0.6)  # better than a coin
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2 (Notation): F(x; θ) = argmax f_i(x; θ).
    """
    return certain_classes_of(answer(model, x))


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
    return classes_of(answer(model, x))


def classes_of(logits: Tensor) -> Tensor:
    """The largest of the logits (..., c), and `NO_CLASS` where one of them is NaN, which argmax would call a class."""
    return torch.where(logits.isnan().any(-1), NO_CLASS, logits.argmax(-1))


def answer(model: Model, x: Tensor) -> Tensor:
    """What a model says of the rows, without gradients: (n, c) logits, of whatever dtype it gives them."""
    check_rows(x, finite=False)
    with torch.no_grad():
        return logits_from(model, x)


def logits_from(model: Model, x: Tensor) -> Tensor:
    """The same with gradients, where they are wanted."""
    check_callable(model)
    try:
        logits = model(x)
    except (RuntimeError, TypeError, AttributeError, IndexError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        raise ValueError(_does_not_take(model, x)) from error
    return checked_logits(logits, len(x))


def _does_not_take(model: Model, x: Tensor) -> str:
    fault, weight = f"the model does not take rows of {x.shape[1]} columns ({x.dtype})", first_weight(model)
    if weight is not None and (weight.dtype, weight.device) != (x.dtype, x.device):
        return (
            f"{fault}: its weights are {weight.dtype} on {weight.device}, the rows on {x.device}; convert one of them"
        )
    return (
        f"{fault}: it raised the error above; check how many columns, and of which kind, it was trained on. A "
        "function of a table, or a model of another library, is asked through hf.as_model(model, encoding)"
    )


def dtype_of(model: Any) -> torch.dtype | None:
    """The dtype of a model's weights, where it shows some."""
    weight = first_weight(model)
    return None if weight is None else weight.dtype


def first_weight(model: Any) -> Tensor | None:
    """Of a module, or of what shows its weights."""
    shown = model.parameters() if isinstance(model, nn.Module) else getattr(model, "weights", None)
    weights = shown if isinstance(shown, Iterator | tuple | list) else ()
    return next((weight for weight in weights if isinstance(weight, Tensor) and weight.is_floating_point()), None)


def is_network(model: Any) -> bool:
    """Whether it shows its dense layers, as networks of `train` do."""
    layers = [getattr(model, name, None) for name in ("weights", "biases")]
    return all(isinstance(each, (tuple, list)) and each and isinstance(each[0], Tensor) for each in layers)


def checked_logits(logits: Tensor, rows: int) -> Tensor:
    """What a model said, if it is one row of two logits or more for each row asked."""
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != rows or logits.shape[1] < 2:
        raise ValueError(
            f"the model gave {shape} for {rows} rows; expected a tensor ({rows}, classes) of logits for two classes or "
            "more. For a single logit z wrap it: torch.cat([-z, z], 1) / 2 if z is (n, 1), torch.stack([-z, z], 1) / 2 "
            "if it is (n,)"
        )
    if logits.layout != torch.strided or logits.is_complex():
        raise ValueError(
            f"the model gave {logits.dtype} logits of layout {logits.layout}; expected real numbers, one after "
            "another: use .real or .to_dense() in the model"
        )
    return logits


def check_callable(model: Any, name: str = "model", takes: str = "rows -> logits in torch") -> None:
    if not callable(model):
        predicts = any(hasattr(model, word) for word in ("predict_proba", "decision_function", "predict"))
        wrapped = f"; hf.as_model({name}, encoding) makes that of a {type(model).__name__}" if predicts else ""
        raise TypeError(f"the {name} is a {type(model).__name__}, which cannot be called; pass {takes}{wrapped}")


def check_model(model: Model, x: Tensor) -> int:
    """The number of classes, if the model can be searched: rows to logits, differentiable, always the same answer."""
    logits = differentiable_logits(model, x)
    if len(logits) and bool((logits >= 0).all()) and bool(torch.isclose(logits.sum(1), logits.new_ones(())).all()):
        warnings.warn(
            "the model's outputs are probabilities (each row sums to 1) but logits are expected: searches will stall "
            "where the model is sure of itself; leave out its softmax, or wrap it in torch.log",
            stacklevel=4,
        )
    return logits.shape[1]


def differentiable_logits(model: Model, x: Tensor) -> Tensor:
    """What a model says of the first rows, if it has a gradient and always says the same: (at most 64, c)."""
    check_callable(model)
    check_steady(model)
    rows = x[:64].detach().requires_grad_()
    with torch.enable_grad():
        logits = logits_from(model, rows)
    if len(rows) and not logits.requires_grad:
        raise ValueError("the model's output has no gradient; gradient searches need a model written in torch")
    return logits.detach()


def check_steady(model: Any) -> None:
    """Raise where a module would answer differently each time, or after other rows."""
    fickle = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
    if isinstance(model, nn.Module) and model.training and any(isinstance(part, fickle) for part in model.modules()):
        raise ValueError("the model is in training mode and has dropout or batch normalisation; call model.eval()")
