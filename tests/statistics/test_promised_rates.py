"""A promise holds on average over many draws of models whose losses are known, and a wrong formula is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.guarantees.calibration import bounds, monotone, smallest

RATE = 0.1


def thresholds(draw, models):
    """Losses of 0 and 1 that fall at a place of each model's own: the bound is reached."""
    return (draw.random(models) > np.linspace(0, 1, 400)[:, None]).astype(float)


def lucky(draw, models):
    """At every value but the last ones each model loses anew, a fifth of the time: some value looks good by luck."""
    return (draw.random((300, models)) < np.where(np.arange(300) < 295, 0.2, 0.02)[:, None]).astype(float)


def shares(draw, models):
    """Shares of 25 rows, which fall on the whole and not at every step; models differ."""
    skill = draw.beta(1, 3, models)
    return draw.binomial(25, np.exp(-3 * np.linspace(0, 1, 40))[:, None] * skill) / 25


LAWS = {"thresholds": thresholds, "lucky": lucky, "shares": shares}


def chosen(losses):
    return smallest(bounds(losses), RATE)


def without_one_more(losses):
    return smallest(monotone(losses).sum(1) / (losses.shape[1] + 1), RATE)


def without_maximum(losses):
    return smallest((losses.sum(1) + 1) / (losses.shape[1] + 1), RATE)


def realised(law, rule, models=19, trials=3000):
    """The mean loss of one more model over many draws, a refusal counting as 0, and its simulation error."""
    draw, lost = np.random.default_rng(0), np.zeros(trials)
    for trial in range(trials):
        losses = LAWS[law](draw, models + 1)
        place = rule(losses[:, :-1])
        lost[trial] = 0 if place is None else losses[place, -1]
    return lost.mean(), lost.std() / np.sqrt(trials)


@pytest.mark.parametrize("law", LAWS)
def test_one_more_model_loses_no_more_than_was_promised_on_average(law):
    mean, error = realised(law, chosen)
    assert mean <= RATE + 2 * error


def test_the_bound_is_reached():
    mean, error = realised("thresholds", chosen)
    assert mean >= RATE - 3 * error


@pytest.mark.parametrize(("law", "wrong"), [("thresholds", without_one_more), ("lucky", without_maximum)])
def test_a_formula_that_leaves_something_out_is_noticed(law, wrong):
    mean, error = realised(law, wrong)
    assert mean > RATE + 4 * error
