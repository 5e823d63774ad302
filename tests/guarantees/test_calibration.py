"""The arithmetic of a promise, against fractions by hand and against many draws of models whose losses are known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from holdfast.guarantees.calibration import Calibration, bounds, fewest_models, joint_choice, monotone

RATE = 0.1


def by_hand(losses, rate, exhaustive=False):
    """The same by its definition, in fractions: the place chosen, or None."""
    grid, n = len(losses), len(losses[0])
    for value in range(grid):
        charged = [max(Fraction(losses[later][model]) for later in range(value, grid)) for model in range(n)]
        bound = sum(charged) / n if exhaustive else (sum(charged) + 1) / (n + 1)
        if bound <= Fraction(rate):
            return value
    return None


@pytest.mark.parametrize("exhaustive", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_the_choice_is_the_one_by_hand(seed, exhaustive):
    draw = np.random.default_rng(seed)
    n, grid = draw.integers(1, 40), draw.integers(1, 9)
    losses = draw.integers(0, 5, (grid, n)) / 8 * np.linspace(1, 0, grid)[:, None].round(1)
    rate = float(draw.choice([0.03125, 0.125, 0.25, 0.5]))  # binary fractions: nothing is rounded on either side
    one = Calibration("seeds", rate, losses, exhaustive)
    assert one.choice == by_hand(losses.tolist(), rate, exhaustive)
    assert (np.diff(one.bound) <= 1e-12).all()
    np.testing.assert_allclose(one.loss, losses.mean(1))


def test_a_model_is_charged_the_most_that_it_loses_from_a_value_on():
    losses = [[0.5, 0.0, 0.2], [0.1, 0.4, 0.2], [0.3, 0.0, 0.1]]
    np.testing.assert_array_equal(monotone(losses), [[0.5, 0.4, 0.2], [0.3, 0.4, 0.2], [0.3, 0.0, 0.1]])
    np.testing.assert_allclose(bounds(losses), [2.1 / 4, 1.9 / 4, 1.4 / 4])
    np.testing.assert_allclose(bounds(losses, exhaustive=True), [1.1 / 3, 0.9 / 3, 0.4 / 3])


@pytest.mark.parametrize(("rate", "models"), [(0.5, 1), (0.1, 9), (0.05, 19), (0.03, 33), (0.01, 99), (1 / 3, 2)])
def test_so_many_models_can_promise_a_rate_and_one_fewer_cannot(rate, models):
    assert fewest_models(rate) == models
    assert Calibration("seeds", rate, np.zeros((1, models))).choice == 0
    if models > 1:
        assert Calibration("seeds", rate, np.zeros((1, models - 1))).choice is None
    assert Calibration("seeds", rate, np.zeros((1, 1)), exhaustive=True).choice == 0


def test_the_models_that_are_wanted_would_do():
    losses = np.tile([0.0, 0.0, 0.0, 0.0, 0.2], (2, 6))  # a mean of .04
    short = Calibration("seeds", 0.05, losses)
    assert short.choice is None
    assert short.wanted == 95  # (95 · .04 + 1) / 96 = .05
    assert Calibration("seeds", 0.05, np.tile(losses[:, :5], 18)).choice is None
    assert Calibration("seeds", 0.05, np.tile(losses[:, :5], 20)).choice == 0
    assert Calibration("seeds", 0.04, losses).wanted is None
    thirds = np.full((1, 3), 1 / 3)  # a mean that is the rate but for rounding asks for no 2⁵³ models
    assert Calibration("seeds", float(np.nextafter(1 / 3, 1)), thirds).wanted is None


def test_kinds_are_not_pooled():
    """Ninety models of an easy kind would hide ten of a hard one."""
    easy, hard = np.zeros((3, 90)), np.tile([[0.5], [0.3], [0.0]], (1, 10))
    kinds = [Calibration("seeds", RATE, easy), Calibration("bootstrap", RATE, hard)]
    assert [one.choice for one in kinds] == [0, 2]
    assert joint_choice(kinds) == 2
    assert Calibration("both", RATE, np.hstack([easy, hard])).choice == 0
    assert joint_choice([kinds[0], Calibration("bootstrap", RATE, hard[:2])]) is None


@pytest.mark.parametrize("losses", [[0.1, 0.2], np.zeros((0, 3)), np.zeros((3, 0)), [[1.5]], [[-0.1]], [[np.nan]]])
def test_losses_are_shares_of_every_value_and_model(losses):
    with pytest.raises(ValueError, match="losses must"):
        Calibration("seeds", RATE, losses)
