import math

import pytest
import torch
from conftest import linear

from holdfast import SNS, Counterfactuals, Space, assess

W = torch.tensor([3.0, 4.0])
WIDE = Space.box(torch.full((2,), -50.0), torch.full((2,), 50.0))


@pytest.mark.parametrize("name", ["schema", "free"])
@pytest.mark.parametrize(("radius", "steps"), [(0.3, 50), (2.0, 50), (8.0, 50), (8.0, 3)])  # the last overshoots
def test_sns_never_lowers_its_objective_nor_leaves_its_ball_nor_loses_the_class(
    name, radius, steps, start, family, rows, encoding
):
    model, begin = family[0], start[name]
    space = encoding.space if name == "schema" else Space.free(rows[0])
    sns = SNS(radius=radius, steps=steps)
    stable = sns(model, begin, space)
    assert torch.equal(stable.found, begin.found)
    found = begin.found
    moved = (stable.point - begin.point)[found].norm(dim=1)
    assert (moved <= radius * (1 + 1e-5)).all()
    before = sns.value(model, begin.point, begin.target)[found]
    after = sns.value(model, stable.point, begin.target)[found]
    assert (after >= before).all()
    if radius > 1 and steps > 10:
        assert after.mean() > before.mean() + 0.01
    assert not space.violations(stable.point[found], begin.origin[found]).any()
    assert 0 < (~found).sum() < len(found)
    assert torch.equal(stable.point[~found], begin.point[~found])


def test_a_linear_model_sends_it_straight_along_w():
    """Every p(t x) grows along w, so the best point of the ball is x_c + radius · w/‖w‖."""
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    target = torch.ones(50, dtype=torch.long)
    begin = assess(linear(W, 30.0), x, x, target, WIDE)
    stable = SNS(radius=2.0)(linear(W / 10, 3.0), begin, WIDE)
    torch.testing.assert_close(stable.point, x + 2.0 * W / 5, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(("norm", "furthest"), [(1, 8.0), (2, 10.0), (math.inf, 14.0)])
def test_the_ball_has_the_norm_that_was_asked_for(norm, furthest):
    """In a ball of radius 2 the most that w = (3, 4) can gain is twice its dual norm."""
    x = torch.zeros(1, 2)
    begin = assess(linear(W, 30.0), x, x, torch.tensor([1]), WIDE)
    stable = SNS(radius=2.0, norm=norm)(linear(W / 10, 3.0), begin, WIDE)
    assert 0.9 * furthest < float(stable.point[0] @ W) <= furthest * (1 + 1e-6)


@pytest.mark.parametrize("norm", [1, math.inf])
@pytest.mark.parametrize("name", ["schema", "free"])
def test_balls_of_other_norms_are_not_left_either(name, norm, start, family, rows, encoding):
    space = encoding.space if name == "schema" else Space.free(rows[0])
    begin, sns = start[name], SNS(radius=3.0, steps=50, norm=norm)
    stable = sns(family[0], begin, space)
    found = begin.found
    assert torch.equal(stable.found, found)
    away = torch.linalg.vector_norm((stable.point - begin.point)[found], norm, dim=1)
    assert (away <= 3.0 * (1 + 1e-5)).all()
    assert away.max() > 1
    before, after = (sns.value(family[0], c.point, c.target)[found] for c in (begin, stable))
    assert (after >= before).all()
    assert after.mean() > before.mean() + 0.01


def test_a_better_integral_does_not_buy_the_wrong_class():
    """The target's probability grows along x₂ and drops to nothing beyond 1.1: one long step gains on the line but
    ends on the wrong side."""

    def model(r):
        logit = 3 * r[:, 1] - 100 * torch.relu(r[:, 1] - 1.1)
        return torch.stack([-logit, logit], -1) / 2

    x, target = torch.tensor([[0.0, 0.5]]), torch.tensor([1])
    sns, beyond = SNS(radius=0.7, steps=2), torch.tensor([[0.0, 1.2]])
    assert sns.value(model, beyond, target) > sns.value(model, x, target)
    assert model(beyond).argmax() == 0
    stable = sns(model, assess(model, x, x, target, WIDE), WIDE)
    assert stable.found.all()
    assert stable.point[0, 1] < 1.1


def test_the_best_iterate_counts_not_the_last():
    """Steps of 1 from 0.9 around a peak at 1 end further from it than they began."""

    def model(r):
        logit = 3 - (r[:, 1] - 1) ** 2 / 2
        return torch.stack([-logit, logit], -1) / 2

    x, target = torch.tensor([[0.0, 0.9]]), torch.tensor([1])
    stable = SNS(radius=1.5, steps=3, points=1)(model, assess(model, x, x, target, WIDE), WIDE)
    assert torch.equal(stable.point, x)


def test_the_objective_is_the_mean_probability_over_the_line():
    point = torch.tensor([[1.0, 2.0], [-3.0, 0.5]])
    target = torch.tensor([1, 0])
    logit = torch.stack([t * (point @ W) + 0.5 for t in (0.25, 0.5, 0.75, 1.0)])
    probability = torch.sigmoid(logit)
    expected = torch.stack([probability[:, 0].mean(), (1 - probability[:, 1]).mean()])
    torch.testing.assert_close(SNS(points=4).value(linear(W, 0.5), point, target), expected)


def test_the_baseline_moves_the_line():
    point, target = torch.tensor([[1.0, 2.0]]), torch.tensor([1])
    baseline = torch.tensor([-1.0, 0.5])
    logit = torch.stack([(baseline + t * (point - baseline)) @ W for t in (0.5, 1.0)])
    value = SNS(points=2, baseline=baseline).value(linear(W, 0.0), point, target)
    torch.testing.assert_close(value, torch.sigmoid(logit).mean(0))
    at_itself = SNS(points=2, baseline=point[0]).value(linear(W, 0.0), point, target)
    torch.testing.assert_close(at_itself, torch.sigmoid(point @ W))


def test_rows_not_found_pass_through_unchanged_whatever_their_class():
    x = torch.tensor([[5.0, 5.0], [4.0, 4.0]])
    begin = Counterfactuals(x, x, torch.tensor([1, 1]), torch.tensor([False, True]))
    stable = SNS(radius=1.0)(linear(W / 50, 0.0), begin, WIDE)
    assert torch.equal(stable.point[0], x[0])
    assert stable.found.tolist() == [False, True]
    assert not torch.equal(stable.point[1], x[1])


def test_a_line_from_the_origin():
    point, origin, target = torch.tensor([[1.0, 2.0]]), torch.tensor([[-1.0, 0.5]]), torch.tensor([1])
    here = SNS(points=3, baseline="origin").value(linear(W, 0.0), point, target, origin)
    there = SNS(points=3, baseline=origin[0]).value(linear(W, 0.0), point, target)
    torch.testing.assert_close(here, there)
    with pytest.raises(ValueError, match="say where the rows were"):
        SNS(baseline="origin").value(linear(W, 0.0), point, target)


def test_every_step_of_the_derivation_has_its_value():
    """For a logit w·x + b everything along the line is known in closed form."""
    point, target, bias = torch.tensor([[1.0, 0.5], [-0.5, 2.0]], dtype=torch.float64), torch.tensor([1, 1]), -0.3
    model, w = linear(W.double(), bias), W.double()
    t = torch.arange(0, 11, dtype=torch.float64)[:, None] / 10
    p = torch.sigmoid(t * (point @ w) + bias)  # (11, n)
    expected = {
        "integral": p[1:].mean(0),
        "confidence+integral": p[-1] + p[1:].mean(0),
        "slope": p[-1] - (p.diff(dim=0) * 10).amax(0),
        "gradient": p[-1] - (p * (1 - p))[1:].amax(0) * w.norm(),
    }
    for objective, value in expected.items():
        torch.testing.assert_close(SNS(objective=objective).value(model, point, target), value)


@pytest.mark.parametrize("objective", ["integral", "confidence+integral", "slope", "gradient"])
def test_every_objective_can_be_climbed(objective, start, family, rows):
    sns, begin = SNS(radius=2.0, steps=30, objective=objective), start["free"]
    stable = sns(family[0], begin, Space.free(rows[0]))
    before, after = (sns.value(family[0], c.point, c.target)[begin.found] for c in (begin, stable))
    assert (after >= before - 1e-6).all()
    assert after.mean() > before.mean() + 0.01


def test_each_row_can_have_its_own_radius(start, family, rows):
    begin = start["free"]
    sizes = torch.linspace(0.2, 4.0, len(begin))
    stable = SNS(radius=sizes, steps=30)(family[0], begin, Space.free(rows[0]))
    moved = (stable.point - begin.point).norm(dim=1)
    assert (moved <= sizes * (1 + 1e-5)).all()
    alone = SNS(radius=float(sizes[40]), steps=30)(family[0], begin, Space.free(rows[0]))
    torch.testing.assert_close(alone.point[40], stable.point[40], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {"radius": 0},
        {"radius": torch.tensor([1.0, -1.0])},
        {"steps": 0},
        {"points": 0},
        {"norm": 3},
        {"objective": "area"},
        {"baseline": "mean"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        SNS(**settings)
