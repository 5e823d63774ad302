"""The arithmetic of ART and alibi is what a loop over rows gives, and does what is said against it."""

from __future__ import annotations

import pytest
import torch
from conftest import linear

from holdfast import MinCost, Space, other_class
from holdfast.paper.reference.alibi import AlibiPrototype
from holdfast.paper.reference.art import ElasticNetART
from holdfast.search.methods.prototype import prototypes

W = torch.tensor([3.0, -4.0, 1.0, 0.5, 2.0])
WIDE = Space.box(torch.full((5,), -50.0), torch.full((5,), 50.0))


def drawn(count, seed=0):
    return torch.randn(count, 5, generator=torch.Generator().manual_seed(seed))


# ---- ART ----


def test_arts_arithmetic_is_not_the_minimum_but_reaches_its_margin():
    model, x = linear(W, -1.0), drawn(80)
    target = other_class(model, x)
    art = ElasticNetART(norm=2, steps=200)
    answer = art(model, x, target, WIDE)
    found = answer.found
    assert found.float().mean() > 0.8
    probability = model(answer.point).softmax(1)
    gap = probability.gather(1, target[:, None])[:, 0] - probability.gather(1, 1 - target[:, None])[:, 0]
    assert (gap[found] >= 0.5).all()
    assert (answer.cost(2) >= MinCost()(model, x, target, WIDE).cost(2))[found].all()


# ---- alibi ----


def by_hand(x, guide, theta, steps, constants, beta=0.1):
    """One row, as alibi 0.9.6 goes about it on MODEL; the gap between two probabilities of a logit z is tanh(z/2)."""
    w = W.double()
    best, least, low, high, c = x, torch.inf, 0.0, torch.inf, 10.0
    for _ in range(constants):
        adv, ahead, reached = x, x, False
        for i in range(steps):
            z = ahead @ w - 1
            push = c * w * (1 - torch.tanh(z / 2) ** 2) / 2 if z <= 0 else 0 * w
            slope = (2 * (ahead - x) + 2 * theta * (ahead - guide) - push).clamp(-1000, 1000)
            away = ahead - 0.01 * (1 - i / steps) ** 0.5 * slope - x
            new = (x + torch.where(away.abs() <= beta, 0 * x, away - beta * away.sign())).clamp(-50, 50)
            ahead, adv = (new + (i + 1) / (i + 4) * (new - adv)).clamp(-50, 50), new
            cost = ((adv - x) ** 2).sum() + beta * (adv - x).abs().sum()
            if adv @ w - 1 > 0:
                reached = True
                best, least = (adv, cost) if cost < least else (best, least)
        low, high = (low, c) if reached else (c, high)
        c = 10 * c if high == torch.inf else (low + high) / 2
    return best


@pytest.mark.parametrize("theta", [0.0, 10.0, 100.0])
def test_alibis_arithmetic_is_what_a_loop_over_rows_gives(theta):
    x = drawn(80, seed=1)
    x = x[x @ W < 1][:12]
    target = torch.ones(len(x), dtype=torch.long)
    method = AlibiPrototype(theta, nearest=5, steps=40)
    x, space = x.double(), WIDE
    model = linear(W.double(), -1.0)
    rows = drawn(500).double()
    guide, _ = prototypes(model, rows, x, target, 5)
    answer = method.fit(rows, target, space)(model, x, target, space)
    expected = torch.stack([by_hand(*pair, theta, 40, method.constants) for pair in zip(x, guide, strict=True)])
    assert answer.found.all()
    torch.testing.assert_close(answer.point, expected, rtol=1e-5, atol=1e-6)


def test_alibis_first_step_is_thrown_to_the_far_side_of_the_prototype():
    """At rate 0.01 a pull of 2 · 100 · (p − x) is twice the way; beta is taken off whatever the rate."""
    model, x = linear(torch.tensor([1.0, 0.0]), -1.0), torch.tensor([[0.9, 0.0]])
    space = Space.box(torch.full((2,), -50.0), torch.full((2,), 50.0))
    method = AlibiPrototype(steps=1).fit(torch.tensor([[1.9, 3.0]]), torch.zeros(1), space)
    answer = method(model, x, torch.tensor([1]), space)
    assert answer.found.all()
    assert answer.point[0, 1].item() == pytest.approx(2 * 3.0 - 0.1)
