"""A margin at another method's price."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from holdfast import Margin, MinCost, Space, other_class
from holdfast.counterfactuals import assess
from holdfast.studies.matched import HIGHEST, MatchedMargin

W = torch.tensor([3.0, 4.0])


def linear(x):
    """Log-odds of class 1 are w·x: 5 for each unit of length along w."""
    score = x @ W
    return torch.stack([-score / 2, score / 2], dim=1)


@dataclass(frozen=True)
class Along:
    """So far along w, and never for the first row."""

    length: float
    fitted: bool = False

    def fit(self, x, y, space, seed=0):
        return Along(self.length, fitted=True)

    def __call__(self, model, x, target, space):
        sign = (2 * target - 1)[:, None]
        point = x + self.length * sign * W / W.norm()
        point[0] = x[0]
        return assess(model, x, point, target, space)


@pytest.fixture
def rows():
    return torch.randn(40, 2, generator=torch.Generator().manual_seed(0))


def test_the_level_is_the_one_that_costs_as_much(rows):
    """On a linear model a margin m costs (m − margin of the row) / 5 for each row."""
    target, space = other_class(linear, rows), Space.free(10 * rows)
    other = Along(4.0)(linear, rows, target, space)
    answer = MatchedMargin(Along(4.0))(linear, rows, target, space)
    assert answer.found.all()
    assert float(answer.cost(2)[1:].mean()) == pytest.approx(4.0, rel=0.01)
    reached = linear(answer.point).gather(1, target[:, None]) - linear(answer.point).gather(1, 1 - target[:, None])
    distance = (rows @ W).abs() / W.norm()
    assert float(reached.mean()) == pytest.approx(5 * float((4.0 - distance[1:]).mean()), rel=0.02)
    assert reached.max() - reached.min() < 0.1  # one level for all
    assert not other.found[0]


def test_nothing_common_is_too_much_and_the_price_of_nothing_is_the_least(rows):
    target, space = other_class(linear, rows), Space.free(rows)
    cheap = MatchedMargin(MinCost())(linear, rows, target, space)
    least = Margin(level=0.5 + 1e-6)(linear, rows, target, space)
    assert float(cheap.cost(2).mean()) == pytest.approx(float(least.cost(2).mean()), abs=HIGHEST / 2**9 / 5 + 0.01)


def test_it_fits_what_it_is_compared_with(rows):
    assert MatchedMargin(Along(1.0)).fit(rows, rows[:, 0] > 0, Space.free(rows)).like.fitted
