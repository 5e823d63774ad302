import math

import pytest
import torch
from conftest import linear

from holdfast import Confidence, Retraining, Space, assess, other_class
from holdfast.families.perceptron import Network
from holdfast.models.merged import merged
from holdfast.search.stabilisers.certified import Certified
from holdfast.theory.certificates import Relative, certified_radius, margin_bound


@pytest.mark.parametrize("name", ["schema", "free"])
@pytest.mark.parametrize("norm", [1, 2, math.inf])
def test_it_never_proves_less_nor_leaves_its_ball_nor_loses_the_class(name, norm, start, family, rows, encoding):
    model, begin = family[0], start[name]
    space = encoding.space if name == "schema" else Space.free(rows[0])
    stable = Certified(radius=2.0, steps=50, norm=norm, delta=0.01)(model, begin, space)
    found = begin.found
    assert torch.equal(stable.found, found)
    away = torch.linalg.vector_norm((stable.point - begin.point)[found], norm, dim=1)
    assert (away <= 2.0 * (1 + 1e-5)).all()
    before, after = (margin_bound(model, c.point, c.target, 0.01)[found] for c in (begin, stable))
    assert (after >= before).all()
    assert after.mean() > before.mean() + 0.1
    assert not space.violations(stable.point[found], begin.origin[found]).any()
    assert 0 < (~found).sum() < len(found)
    assert torch.equal(stable.point[~found], begin.point[~found])


def test_the_radius_that_is_proved_grows(start, family, rows):
    model, begin = family[0], start["free"]
    stable = Certified(radius=2.0, steps=50, delta=0.01)(model, begin, Space.free(rows[0]))
    before, after = (certified_radius(model, c.point, c.target)[begin.found] for c in (begin, stable))
    assert after.mean() > 2 * before.mean()


def test_columns_whose_weights_cannot_be_distinguished_from_zero_are_not_used():
    """Logits ±(3, 0.1)·x/2 differ by 3 x₁ + 0.1 x₂ − 2 δ (|x₁| + |x₂| + 1) at worst. With δ = 0.1 moving x₂ away from
    0 costs 0.2 for each 0.1 it brings, so it goes home, where Confidence sends it on."""
    weight = torch.tensor([[-1.5, 1.5], [-0.05, 0.05]])
    network = Network((weight,), (torch.zeros(2),), Retraining())
    x, target = torch.tensor([[1.0, 0.5]]), torch.tensor([1])
    wide = Space.box(torch.full((2,), -50.0), torch.full((2,), 50.0))
    begin = assess(network, x, x, target, wide)
    proved = Certified(radius=1.0, norm=math.inf, delta=0.1)(network, begin, wide)
    sure = Confidence(radius=1.0, norm=math.inf)(network, begin, wide)
    torch.testing.assert_close(proved.point, torch.tensor([[2.0, 0.0]]), rtol=0, atol=0.02)
    torch.testing.assert_close(sure.point, torch.tensor([[2.0, 1.5]]), rtol=0, atol=0.02)
    nothing = Certified(radius=1.0, norm=math.inf, delta=0.0)(network, begin, wide)
    torch.testing.assert_close(nothing.point, sure.point)


def test_other_changes_have_other_answers(start, family, rows):
    begin, space = start["free"], Space.free(rows[0])
    one = Certified(radius=2.0, steps=20)(family[0], begin, space)
    other = Certified(radius=2.0, steps=20, change=Relative())(family[0], begin, space)
    assert not torch.equal(one.point, other.point)


class Other:
    """Has a perceptron's weights and biases, and another function."""

    def __init__(self, network):
        self.weights, self.biases, self.network = network.weights, network.biases, network

    def __call__(self, x):
        return -self.network(x)


@pytest.mark.parametrize("kind", ["function", "merged", "other"])
def test_what_is_no_perceptron_is_refused(kind, family, rows):
    network, x = family[0], rows[0]
    model, message = {
        "function": (linear(torch.ones(x.shape[1]), 0.0), "needs a perceptron"),
        "merged": (merged(network, ((0,), (1,))), "Merged has no such weights"),
        "other": (Other(network), "not those of a ReLU perceptron"),
    }[kind]
    begin = assess(model, x, x, other_class(model, x), Space.free(x))
    with pytest.raises(TypeError, match=message):
        Certified()(model, begin, Space.free(x))


@pytest.mark.parametrize("settings", [{"radius": 0}, {"steps": 0}, {"norm": 3}, {"delta": -0.1}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        Certified(**settings)
