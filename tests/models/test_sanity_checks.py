"""Models that answer, but not as their owner meant: one warning each, and none about an honest model."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from holdfast import Encoding, Feature, Schema, as_model

CLASSES = ("no", "yes")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    own = pd.DataFrame({"income": draw.normal(5000, 900, 300).round(), "debt": draw.normal(200, 60, 300).round()})
    return own.assign(outcome=np.where((own["income"] - 5000) / 900 > (own["debt"] - 200) / 60, "yes", "no"))


@pytest.fixture(scope="module")
def scaled(table: pd.DataFrame) -> Encoding:
    features = (Feature("income", "real"), Feature("debt", "real"))
    return Encoding.fit(table, Schema(features, label="outcome", classes=CLASSES))


def linear(weights: list[float], bias: float, *last: nn.Module) -> nn.Module:
    layer = nn.Linear(2, 1)
    layer.weight.data, layer.bias.data = torch.tensor([weights]), torch.tensor([bias])
    return nn.Sequential(layer, *last).eval()


OF_ENCODED = ([2.0, -2.0], 0.0)
OF_NUMBERS = ([2.0 / 900, -2.0 / 60], -2 * 5000 / 900 + 2 * 200 / 60)


@pytest.mark.parametrize("last", [(), (nn.Sigmoid(),)], ids=["logit", "probability"])
def test_an_honest_model_is_not_suspected(last, scaled):
    with warnings.catch_warnings(record=True, action="always") as told:
        as_model(linear(*OF_ENCODED, *last), scaled)
        as_model(linear(*OF_NUMBERS, *last), scaled, takes="numbers")
    assert told == []


def test_an_honest_estimator_is_not_suspected(table, scaled):
    x = table[["income", "debt"]]
    with warnings.catch_warnings(record=True, action="always") as told:
        as_model(LogisticRegression(class_weight={"no": 1, "yes": 5}).fit(x, table["outcome"]), scaled)
    assert told == []


@pytest.mark.parametrize("takes", ["encoded", "numbers"])
def test_inputs_scaled_twice_or_not_at_all(takes, scaled):
    other = linear(*(OF_NUMBERS if takes == "encoded" else OF_ENCODED))
    with pytest.warns(UserWarning, match=f"100% with takes='(?!{takes}).*are its inputs scaled twice"):
        as_model(other, scaled, takes=takes)


def test_classes_in_another_order(scaled):
    with pytest.warns(UserWarning, match=r"did you mean as_model\(\.\.\., classes=\('yes', 'no'\)\)"):
        as_model(linear([-2.0, 2.0], 0.0), scaled)


def test_the_order_of_three_classes(table):
    three = table.assign(outcome=pd.qcut(table["income"], 3, labels=["low", "middle", "high"]).astype(str))
    features = (Feature("income", "real"), Feature("debt", "real"))
    encoding = Encoding.fit(three, Schema(features, label="outcome", classes=("low", "middle", "high")))
    fitted = LogisticRegression().fit(encoding.encode(three).numpy(), three["outcome"])
    layer = nn.Linear(2, 3)
    layer.weight.data, layer.bias.data = torch.tensor(fitted.coef_).float(), torch.tensor(fitted.intercept_).float()
    with pytest.warns(UserWarning, match=r"classes=\('high', 'low', 'middle'\)"):  # scikit-learn's: by the alphabet
        as_model(layer, encoding)
    with warnings.catch_warnings(action="error"):
        as_model(layer, encoding, classes=("high", "low", "middle"))


def test_a_model_that_knows_nothing(scaled, table):
    mostly = table.assign(outcome=np.where(np.arange(len(table)) % 10 == 0, "yes", "no"))
    encoding = Encoding.fit(mostly, scaled.schema)
    with pytest.warns(UserWarning, match=r"less often than always answering 'no' \(90%\)"):
        as_model(linear([1e-3, 1e-3], 3.0), encoding)


def test_no_gradient_where_float32_ends(scaled):
    class Sure(nn.Module):
        """Its own sigmoid, so that the logit before it cannot be seen."""

        def forward(self, x: Tensor) -> Tensor:
            return 1 / (1 + torch.exp(-400 * (x[:, 0] - x[:, 1])))

    with pytest.warns(UserWarning, match=r"no gradient at \d+% of the known rows.*without its last sigmoid"):
        as_model(Sure(), scaled)
