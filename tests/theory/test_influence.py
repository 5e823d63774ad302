from itertools import pairwise

import pytest
import torch
from conftest import linear

from holdfast.families.perceptron import Network
from holdfast.families.recipe import Retraining
from holdfast.models.scores import logit, margin, probability
from holdfast.theory import influence as module
from holdfast.theory.influence import (
    Ball,
    Line,
    gradient,
    in_unit_ball,
    influence,
)

W = torch.tensor([3.0, -4.0, 1.0], dtype=torch.float64)
ZERO = torch.zeros(3, dtype=torch.float64)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X, TARGET = draw(6, 3), torch.tensor([1, 0, 1, 1, 0, 0])
A = draw(3, 3, seed=5)


def quadratic(x):
    """Logits −q/2 and q/2 with q = ½ Σ_j (x·a_j)² and ∇q = A Aᵀ x."""
    worth = (x @ A).square().sum(1) / 4
    return torch.stack([-worth, worth], 1)


def smooth(x):
    return torch.stack([torch.sin(x @ W / 3), torch.tanh(x @ W / 5), x.square().sum(1) / 4], 1)


def relu_network(sizes, seed=0):
    pairs = list(pairwise(sizes))
    weights = tuple(draw(*pair, seed=seed + i) / pair[0] ** 0.5 for i, pair in enumerate(pairs))
    return Network(weights, tuple(draw(b, seed=50 + seed + b) / 3 for _, b in pairs), Retraining())


EVERY = [
    Line(ZERO, 1),
    Line(ZERO, 7, "trapezoid"),
    Line(X.flip(0), 3, "trapezoid"),
    Ball(2.0, 5),
]


@pytest.mark.parametrize("interest", EVERY, ids=lambda interest: type(interest).__name__)
def test_a_linear_model_has_its_weights_for_influence_wherever_one_looks(interest):
    sign = torch.where(TARGET == 1, 1.0, -1.0)[:, None]
    torch.testing.assert_close(influence(linear(W, 0.3), X, TARGET, interest), sign * W / 2)
    torch.testing.assert_close(influence(linear(W, 0.3), X, TARGET, interest, margin), sign * W)


@pytest.mark.parametrize("interest", EVERY[:3])
def test_completeness_is_exact_on_linear_models_with_any_number_of_points(interest):
    model, start = linear(W, 0.3), interest.baseline.expand_as(X)
    change = logit(model, X, TARGET) - logit(model, start, TARGET)
    explained = (influence(model, X, TARGET, interest) * (X - start)).sum(1)
    torch.testing.assert_close(explained, change)


def incompleteness(model, x, target, interest, quantity):
    start = interest.baseline.expand_as(x)
    change = quantity(model, x, target) - quantity(model, start, target)
    return ((influence(model, x, target, interest, quantity) * (x - start)).sum(1) - change).abs().max()


@pytest.mark.parametrize("quantity", [logit, probability])
def test_on_smooth_models_riemann_halves_its_gap_and_the_trapezoid_quarters_it(quantity):
    target = torch.tensor([0, 1, 2, 0, 1, 2])
    start = draw(3, seed=3)

    def gap(count, rule):
        return float(incompleteness(smooth, X, target, Line(start, count, rule), quantity))

    assert gap(400, "riemann") == pytest.approx(gap(200, "riemann") / 2, rel=0.05)
    assert gap(400, "trapezoid") == pytest.approx(gap(200, "trapezoid") / 4, rel=0.05)


@pytest.mark.parametrize("rule", ["riemann", "trapezoid"])
def test_on_relu_networks_the_gap_goes_to_nothing(rule):
    model, x = relu_network((5, 12, 8, 3)), draw(20, 5, seed=2)
    target = torch.arange(20) % 3
    few, many = (
        float(incompleteness(model, x, target, Line(torch.zeros(5).double(), count, rule), margin))
        for count in (20, 1000)
    )
    assert many < few / 5
    assert many < 5e-3


@pytest.mark.parametrize("seed", [0, 1])
def test_sampling_errors_are_as_large_as_they_should_be(seed):
    """On a quadratic the mean gradient is that at the centre; the error of a mean over draws δ is that of H δ, whose
    standard deviation is known: radius/√(d + 2) in a ball."""
    hessian, x, count = A @ A.T, X[:1], 64
    target = torch.tensor([1])
    wanted = x @ hessian
    error = 2.0 / 5**0.5 * hessian.norm(dim=0) / count**0.5
    scores = torch.cat(
        [
            (influence(quadratic, x, target, Ball(2.0, count, s), margin) - wanted) / error
            for s in range(1000 * seed, 1000 * seed + 300)
        ]
    )
    assert scores.abs().max() < 5
    assert 0.8 < float(scores.square().mean()) < 1.25
    assert scores.mean(0).abs().max() < 4 / 300**0.5


def test_many_draws_come_close_to_the_gradient_at_the_centre():
    wanted = X @ (A @ A.T)
    near = influence(quadratic, X, torch.ones(6, dtype=torch.long), Ball(1.0, 40_000), margin)
    torch.testing.assert_close(near, wanted, rtol=0, atol=0.05)


@pytest.mark.parametrize("columns", [1, 2, 7])
def test_draws_fill_the_ball_evenly(columns):
    length = in_unit_ball(4000, columns, 3).norm(dim=1)
    assert length.max() <= 1
    even = length.sort().values ** columns  # uniform on [0, 1]
    assert (even - (torch.arange(4000) + 0.5) / 4000).abs().max() < 1.63 / 4000**0.5  # Kolmogorov's 99 %


def test_a_seed_is_an_answer_and_rows_do_not_meet(monkeypatch):
    model, x = relu_network((3, 8, 2)), draw(9, 3, seed=4)
    target = torch.arange(9) % 2
    for interest in (Ball(1.5, 10, seed=1), Line(draw(9, 3, seed=8), 10)):
        together = influence(model, x, target, interest)
        assert torch.equal(together, influence(model, x, target, interest))
        with monkeypatch.context() as small:
            small.setattr(module, "POINTS", 4)
            torch.testing.assert_close(influence(model, x, target, interest), together)
    alone = influence(model, x[4:5], target[4:5], Ball(1.5, 10, seed=1))
    torch.testing.assert_close(alone, influence(model, x, target, Ball(1.5, 10, seed=1))[4:5])
    assert not torch.equal(alone, influence(model, x[4:5], target[4:5], Ball(1.5, 10, seed=2)))


@pytest.mark.parametrize("quantity", [logit, probability, margin])
def test_quantities_and_their_gradients(quantity):
    target, step = torch.tensor([0, 1, 2, 0, 1, 2]), 1e-6
    logits = smooth(X)
    own = logits[torch.arange(6), target]
    rest = torch.stack([torch.cat([row[:t], row[t + 1 :]]).max() for row, t in zip(logits, target, strict=True)])
    wanted = {logit: own, probability: torch.softmax(logits, 1)[torch.arange(6), target], margin: own - rest}
    torch.testing.assert_close(quantity(smooth, X, target), wanted[quantity])
    slope = gradient(smooth, X, target, quantity)
    for j, unit in enumerate(torch.eye(3, dtype=torch.float64)):
        ahead, behind = (quantity(smooth, X + sign * step * unit, target) for sign in (1, -1))
        torch.testing.assert_close(slope[:, j], (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-7)


def test_the_edges():
    assert influence(smooth, X[:0], TARGET[:0], Ball(1.0)).shape == (0, 3)
    with pytest.raises(ValueError, match="each of 6 rows"):
        influence(smooth, X, TARGET[:2], Ball(1.0))
    with pytest.raises(ValueError, match="radius"):
        Ball(-1.0)
    with pytest.raises(ValueError, match="count"):
        Ball(1.0, 0)
    with pytest.raises(ValueError, match="count"):
        Line(ZERO, 0)
