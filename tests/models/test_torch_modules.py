"""Modules of torch as they come: with or without their sigmoid, of encoded rows or of the table's numbers."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from conftest import everything
from torch import Tensor, nn

from holdfast import Encoding, Feature, MinCost, Schema, as_model, other_class, predict
from holdfast.models.identity import identities
from holdfast.models.model import answer


@pytest.fixture(scope="module")
def body(encoding: Encoding) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(encoding.width, 8), nn.ReLU(), nn.Linear(8, 2)).eval()


def single(encoding: Encoding, *last: nn.Module) -> nn.Sequential:
    """Trained, since what one number means is told by the labels."""
    torch.manual_seed(0)
    x, y = encoding.encode(encoding.known), encoding.labels(encoding.known)
    module = nn.Sequential(nn.Linear(encoding.width, 8), nn.Tanh(), nn.Linear(8, 1))
    adam = torch.optim.Adam(module.parameters(), 0.05)
    for _ in range(60):
        adam.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(module(x)[:, 0], y.float()).backward()
        adam.step()
    return nn.Sequential(*module, *last).eval()


class Functional(nn.Module):
    """Ends in torch.sigmoid, with no module for it."""

    def __init__(self, inside: nn.Module) -> None:
        super().__init__()
        self.inside = inside

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.inside(x)).squeeze(1)


def numbers(rows: int = 80) -> tuple[pd.DataFrame, Schema]:
    table = everything(rows)[["income", "age", "grade", "delay", "outcome"]]
    features = (
        Feature("income", "real"),
        Feature("age", "integer"),
        Feature("grade", "ordinal", levels=("low", "middle", "high")),
        Feature("delay", "categorical", levels=(0, 1, 2), zero_level=-9),
    )
    return table, Schema(features, label="outcome", classes=("no", "yes"))


def test_two_logits_are_what_the_module_says(body, encoding, rows):
    model = as_model(body, encoding)
    torch.testing.assert_close(model(rows[0]).float(), body(rows[0]).detach())
    assert "one logit per class: 'no', 'yes'" in repr(model)
    assert identities(model) == identities(body)


def test_classes_say_the_order_of_the_outputs(body, encoding, rows):
    turned = as_model(body, encoding, classes=("yes", "no"))
    torch.testing.assert_close(turned(rows[0]).float(), body(rows[0]).detach().flip(1))
    with pytest.raises(ValueError, match="classes must be those of the schema"):
        as_model(body, encoding, classes=("yes", "maybe"))


@pytest.mark.parametrize("shape", ["(n, 1)", "(n,)"])
def test_one_logit_is_two(shape, encoding, rows):
    module = single(encoding, *([nn.Flatten(0)] if shape == "(n,)" else []))
    model, z = as_model(module, encoding), module(rows[0]).detach().reshape(-1)
    assert "gives one logit, of 'yes'" in repr(model)
    torch.testing.assert_close(model(rows[0]).float(), torch.stack([-z / 2, z / 2], 1))


@pytest.mark.parametrize("ending", ["module", "function", "softmax"])
def test_probabilities_are_searched_by_the_logits_before_them(ending, encoding, rows, body):
    scale = 60.0  # so sure that every probability is 0 or 1 in float32
    if ending == "softmax":
        bare: nn.Module = nn.Sequential(*body, _Times(scale))
        module: nn.Module = nn.Sequential(*bare, nn.Softmax(1))
    else:
        bare = nn.Sequential(*single(encoding), _Times(scale))
        module = nn.Sequential(*bare, nn.Sigmoid()) if ending == "module" else Functional(bare)
    model, plain = as_model(module.eval(), encoding), as_model(bare.eval(), encoding)
    assert "probabilit" in repr(model)
    x = rows[0].clone().requires_grad_()
    torch.testing.assert_close(model.exact(x), plain.exact(x))
    (gradient,) = torch.autograd.grad(model.exact(x)[:, 0].sum(), x)
    assert bool((gradient != 0).any(1).all())
    assert torch.equal(model(rows[0]).argmax(1), plain(rows[0]).argmax(1))


class _Times(nn.Module):
    def __init__(self, by: float) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Tensor) -> Tensor:
        return x * self.by


def test_a_number_from_0_to_1_that_could_be_either_is_named(encoding):
    """Reads no better as a probability than as a logit: the same class for everybody."""

    class Sure(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return 0.7 + 0.001 * x[:, 0].tanh()

    with pytest.warns(UserWarning, match="read as a probability, though it may be a logit"):
        assert "one probability" in repr(as_model(Sure(), encoding))
    assert "one logit" in repr(as_model(Sure(), encoding, outputs="logits"))


def test_a_module_of_the_table_s_numbers_has_gradients():
    table, schema = numbers()
    encoding = Encoding.fit(table, schema)
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(4, 1, dtype=torch.float64)).eval()
    module[0].weight.data = torch.tensor([[0.1, -0.02, 1.0, 0.05]], dtype=torch.float64)
    module[0].bias.data = torch.tensor([-4.0], dtype=torch.float64)
    model, x = as_model(module, encoding), encoding.encode(table)
    raw = table.assign(grade=table["grade"].map({"low": 0, "middle": 1, "high": 2}))[list(schema.names)].astype(float)
    expected = module(torch.tensor(raw.to_numpy())).detach()[:, 0]
    torch.testing.assert_close(model(x)[:, 1] * 2, expected)
    torch.testing.assert_close(model.exact(x)[:, 1].detach() * 2, expected.float(), rtol=1e-4, atol=1e-4)
    found = MinCost(norm=1)(model, x[:20], other_class(model, x[:20]), encoding.space.without_people())
    assert bool(found.found.all())
    assert torch.equal(predict(model, found.point), found.target)


def test_text_has_no_numbers(encoding):
    with pytest.raises(ValueError, match="levels of column 'job' are no numbers"):
        as_model(nn.Linear(7, 2), encoding)


def test_a_module_of_the_table_is_a_black_box(encoding, rows):
    class OfTable(nn.Module):
        def forward(self, table: pd.DataFrame) -> Tensor:
            own = torch.tensor((table["income"] - table["debt"] / 100 - 30).to_numpy())
            return torch.stack([-own, own], 1)

    model = as_model(OfTable(), encoding)
    assert "given the table" in repr(model)
    assert not model.has_gradient
    assert answer(model, rows[0]).shape == (60, 2)


def test_dropout_in_training_mode_is_refused(encoding):
    module = nn.Sequential(nn.Linear(encoding.width, 2), nn.Dropout())
    with pytest.raises(ValueError, match=r"call model.eval\(\)"):
        as_model(module, encoding)
    model = as_model(module.eval(), encoding)
    module.train()
    with pytest.raises(ValueError, match=r"call model.eval\(\)"):
        model(torch.zeros(1, encoding.width))


def test_outputs_that_fit_no_class_are_refused(encoding):
    with pytest.raises(ValueError, match="the schema has 2 classes"):
        as_model(nn.Linear(encoding.width, 3), encoding)
