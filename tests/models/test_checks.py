"""What every function checks of rows, targets and models at its door: pinned here once, with all that people hand over.

That each door asks these checks is what `tests/misuses.py` tries, with few rows for each.
"""

from __future__ import annotations

import math

import pandas as pd
import pytest
import torch
from torch import nn

from holdfast.models.model import answer, differentiable_logits
from holdfast.models.rows import check_rows, check_target, check_tensor
from holdfast.theory.layers import check_layers, check_rows_of

X = torch.linspace(-1, 1, 20).reshape(4, 5)
TARGET = torch.tensor([0, 1, 1, 0])

NO_TENSORS = {
    "a numpy array": (X.numpy(), "ndarray"),
    "a DataFrame": (pd.DataFrame(X.numpy()), "DataFrame"),
    "a list": (X.tolist(), "list"),
    "None": (None, "NoneType"),
    "a class": (1, "int"),
    "a label": ("yes", "str"),
}
NO_ROWS = {
    "float16": (X.half(), r"float16.*x\.float\(\)"),
    "bfloat16": (X.bfloat16(), r"bfloat16.*\.float\(\)"),
    "whole numbers": (X.long(), r"int64.*\.float\(\)"),
    "booleans": (X > 0, r"bool.*\.float\(\)"),
    "complex numbers": (X.to(torch.complex64), "complex64"),
    "sparse": (X.to_sparse(), r"x\.to_dense\(\)"),
    "without values": (X.to("meta"), "no values"),
    "a single number": (X.sum(), r"\(n, 5\)"),
    "a single row": (X[0], r"\(n, 5\), got \(5,\).*x\[None\]"),
    "three dimensions": (X[None], r"\(n, 5\), got \(1, 4, 5\)"),
    "no columns": (X[:, :0], r"\(n, 5\), got \(4, 0\)"),
    "one column too few": (X[:, :-1], r"\(n, 5\), got \(4, 4\)"),
    "NaN": (X.clone().fill_(math.nan), "not finite"),
    "one infinite number": (torch.where(torch.arange(5) == 2, math.inf, X), "not finite"),
}
NO_TARGETS = {
    "float": (TARGET.float(), "int64.*float32"),
    "int32": (TARGET.int(), "int64.*int32"),
    "bool": (TARGET.bool(), "int64.*bool"),
    "too large": (TARGET + 1, "from 0 to 1"),
    "negative": (TARGET - 1, "from 0 to 1"),
    "too few": (TARGET[:-1], r"4 rows, got \(3,\)"),
    "one for all": (TARGET[:1], r"4 rows, got \(1,\)"),
    "a column": (TARGET[:, None], r"4 rows, got \(4, 1\)"),
    "sparse": (TARGET.to_sparse(), "to_dense"),
    "without values": (TARGET.to("meta"), "no values"),
}


def table(wrong: dict) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("value", "says"), list(wrong.values()), ids=list(wrong))


@table(NO_TENSORS)
def test_what_is_no_tensor_is_refused(value, says):
    for check in (
        lambda: check_tensor("points", value),
        lambda: check_rows(value, "points"),
        lambda: check_target(value, 4, 2, "points"),
    ):
        with pytest.raises(TypeError, match=rf"points must be a torch tensor, got {says}; .*encode"):
            check()
    with pytest.raises(TypeError, match="; look at row 3"):
        check_rows(value, hint="look at row 3")


@table(NO_ROWS)
def test_what_are_no_rows_is_refused(value, says):
    with pytest.raises(ValueError, match=says):
        check_rows(value, width=5)


def test_rows_pass():
    for x in (X, X.double(), X[:0], X[:, :1]):
        check_rows(x)
        check_rows(x, width=x.shape[1])
    check_rows(X * math.nan, finite=False)
    with pytest.raises(ValueError, match=r"\(n, d\)"):
        check_rows(X[:, :0])
    with pytest.raises(ValueError, match="points"):
        check_rows(X * math.nan, "points")


@table(NO_TARGETS)
def test_what_are_no_targets_is_refused(value, says):
    with pytest.raises(ValueError, match=says):
        check_target(value, 4, 2)


def test_targets_pass():
    check_target(TARGET, 4, 2)
    check_target(TARGET + 1, 4, 3)
    check_target(TARGET[:0], 0, 2)


# ---- models ----

LINEAR = nn.Linear(5, 2)
NO_MODELS = {
    "None": (None, "NoneType, which cannot be called"),
    "a name": ("pgd", "str, which cannot be called"),
}
SILENT = {
    "that returns a tuple": (lambda r: (LINEAR(r), r), "the model gave tuple"),
    "that returns nothing": (lambda r: None, "the model gave NoneType"),
    "that returns numpy": (lambda r: LINEAR(r).detach().numpy(), "the model gave ndarray"),
    "of one dimension": (lambda r: LINEAR(r)[:, 0], r"gave \(4,\) for 4 rows"),
    "of one column": (lambda r: LINEAR(r)[:, :1], r"gave \(4, 1\) for 4 rows"),
    "of three dimensions": (lambda r: LINEAR(r)[None], r"gave \(1, 4, 2\)"),
    "of other rows": (lambda r: LINEAR(r)[:-1], r"gave \(3, 2\) for 4 rows"),
    "of complex numbers": (lambda r: LINEAR(r).to(torch.complex64), "complex64"),
    "of sparse logits": (lambda r: LINEAR(r).to_sparse(), "to_dense"),
    "of other columns": (nn.Linear(7, 2), "does not take rows of 5 columns"),
    "in float64": (nn.Linear(5, 2).double(), "float64"),
    "that asks for more": (lambda r, s: LINEAR(r), "does not take rows of 5 columns"),
}
NOT_SEARCHED = {
    "without gradient": (lambda r: LINEAR(r.detach()).detach(), "no gradient"),
    "with dropout in training mode": (nn.Sequential(LINEAR, nn.Dropout()), r"model\.eval\(\)"),
    "with batch normalisation in training mode": (nn.Sequential(nn.BatchNorm1d(5), LINEAR), r"model\.eval\(\)"),
}


@table(NO_MODELS)
@pytest.mark.parametrize("ask", [answer, differentiable_logits])
def test_what_cannot_be_called_is_refused(ask, value, says):
    with pytest.raises(TypeError, match=says):
        ask(value, X)


@table(SILENT)
@pytest.mark.parametrize("ask", [answer, differentiable_logits])
def test_what_gives_no_logits_is_refused(ask, value, says):
    with pytest.raises(ValueError, match=says):
        ask(value, X)


@table(NOT_SEARCHED)
def test_what_no_gradient_search_can_use_is_refused(value, says):
    with pytest.raises(ValueError, match=says):
        differentiable_logits(value, X)


def test_models_pass():
    for model in (LINEAR, lambda r: LINEAR(r).double(), nn.Sequential(nn.BatchNorm1d(5), LINEAR).eval()):
        assert answer(model, X).shape == differentiable_logits(model, X).shape == (4, 2)
    assert answer(lambda r: LINEAR(r.detach()), X[:0]).shape == (0, 2)


# ---- networks that show their layers ----

LAYERS = type(
    "Layers", (), {"weights": (torch.randn(5, 3), torch.randn(3, 2)), "biases": (torch.zeros(3), torch.zeros(2))}
)
NO_LAYERS = {
    "None": (None, "NoneType has no such weights"),
    "a module": (LINEAR, "Linear has no such weights"),
    "a function": (lambda r: r, "function has no such weights"),
    "no biases": (type("L", (), {"weights": LAYERS.weights})(), "L has no such biases"),
    "no layers": (type("L", (), {"weights": (), "biases": ()})(), "no such weights"),
    "stacked weights": (type("L", (), {"weights": (torch.ones(2, 5, 2),), "biases": (torch.ones(2),)})(), "dimensions"),
    "layers that do not fit": (
        type("L", (), {"weights": LAYERS.weights[::-1], "biases": LAYERS.biases})(),
        r"\[\(3, 2\), \(5, 3\)\]",
    ),
    "biases that do not fit": (
        type("L", (), {"weights": LAYERS.weights, "biases": LAYERS.biases[::-1]})(),
        r"biases \[2, 3\]",
    ),
    "one logit": (type("L", (), {"weights": (torch.ones(5, 1),), "biases": (torch.ones(1),)})(), "two logits"),
}


@table(NO_LAYERS)
def test_what_is_no_perceptron_is_refused(value, says):
    with pytest.raises(TypeError, match=says):
        check_layers(value)


def test_rows_of_a_perceptron_are_checked_too():
    check_rows_of(LAYERS(), X, "a bound", logits=2)
    check_rows_of(LAYERS(), X * math.nan, "a bound", finite=False)
    with pytest.raises(ValueError, match=r"\(n, 5\)"):
        check_rows_of(LAYERS(), X[:, :3], "a bound")
    with pytest.raises(ValueError, match="not finite"):
        check_rows_of(LAYERS(), X * math.nan, "a bound")
    with pytest.raises(TypeError, match="three dimensions|no perceptron"):
        check_rows_of(LAYERS(), X, "a bound", logits=3)
