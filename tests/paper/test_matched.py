"""As sure as another method's price can make it."""

from __future__ import annotations

from dataclasses import replace

import torch

from holdfast import PGD, SNS, Space, other_class
from holdfast.models.scores import log_odds
from holdfast.paper.matched import SamePrice
from holdfast.search.counterfactuals import assess

W = torch.tensor([3.0, 4.0])


def linear(x):
    """Log-odds of class 1 are w·x: 5 for each unit of length along w."""
    score = x @ W
    return torch.stack([-score / 2, score / 2], dim=1)


def points():
    return torch.randn(40, 2, generator=torch.Generator().manual_seed(0))


def test_on_a_linear_model_the_price_is_spent_along_the_weights():
    """Whatever the way that was taken for a price, straight along w is the surest."""
    rows = points()
    target, space = other_class(linear, rows), Space.free(20 * rows)
    sign = (2 * target - 1)[:, None]
    across = torch.tensor([4.0, -3.0]) / 5
    paid = torch.linspace(4.0, 8.0, 40)[:, None]
    start = assess(linear, rows, rows + paid * (0.8 * sign * W / 5 + 0.6 * across), target, space)
    found = start.found & (torch.arange(40) % 10 > 0)  # every tenth row counts as not found
    start = replace(start, found=found)
    assert 30 < found.sum() < 40
    answer = SamePrice()(linear, start, space)
    assert torch.equal(answer.found, found)
    best = rows + paid * sign * W / 5
    torch.testing.assert_close(answer.point[found], best[found], atol=0.15, rtol=0)
    torch.testing.assert_close(answer.point[~found], start.point[~found])


def test_the_same_rows_at_no_higher_cost_and_never_less_sure(family, rows):
    model, x = family[0], rows[0]
    space = Space.free(x)
    target = other_class(model, x)
    start = SNS(radius=1.0)(model, PGD(radius=1.0)(model, x, target, space), space)
    assert 0 < start.found.sum() < len(x)  # some are not found
    answer = SamePrice()(model, start, space)
    assert torch.equal(answer.found, start.found)
    assert (answer.cost(2) <= start.cost(2) * (1 + 1e-5))[start.found].all()
    before, after = (log_odds(model, one.point, target)[start.found] for one in (start, answer))
    assert (after >= before - 1e-5).all()
    assert after.mean() > before.mean()
    assert not space.violations(answer.point, x).any()


def test_nothing_found_stays_so():
    rows = points()
    target, space = other_class(linear, rows), Space.free(rows)
    start = assess(linear, rows, rows, target, space)
    answer = SamePrice()(linear, replace(start, found=torch.zeros_like(start.found)), space)
    assert not answer.found.any()
    assert torch.equal(answer.point, rows)
