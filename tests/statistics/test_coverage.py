"""Intervals hold as often as they say and planned audits are as wide as planned, over many draws from known laws."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import few_or_many
from scipy import stats

from holdfast.auditing import intervals
from holdfast.auditing.intervals import (
    bootstrap_interval,
    clopper_pearson,
    mean_interval,
    member_interval,
    members_needed,
    running_interval,
)
from interval_laws import DRAWS


@pytest.mark.parametrize(("interval", "times"), [(mean_interval, 300), (member_interval, 150)])
@pytest.mark.parametrize("members", [1, 10, 100])
@pytest.mark.parametrize("name", DRAWS)
def test_the_intervals_cover(name, members, interval, times):
    sample, mean = DRAWS[name]
    draw = np.random.default_rng(0)
    limits = np.array([interval(sample(draw, members)) for _ in range(times)])
    covered = ((limits[:, 0] <= mean) & (mean <= limits[:, 1])).mean()
    assert covered > 0.93


def test_the_interval_holds_for_draws_of_different_means():
    draw = np.random.default_rng(0)
    means = np.linspace(0, 0.6, 50)
    limits = np.array([mean_interval(draw.binomial(1, means)) for _ in range(300)])
    assert ((limits[:, 0] <= means.mean()) & (means.mean() <= limits[:, 1])).mean() > 0.93


@pytest.mark.parametrize("name", ["seldom, over 200 rows", "skewed", "coin"])
@few_or_many("times", 60, 300)
def test_the_running_interval_holds_at_every_look(times, name):
    sample, mean = DRAWS[name]
    draw = np.random.default_rng(6)
    held = 0
    for _ in range(times):
        low, high = running_interval(sample(draw, 60))
        held += (low <= mean).all() and (mean <= high).all()
    assert held / times >= 0.93


def test_looking_again_and_again_with_an_interval_for_one_look_does_not_hold():
    """Why there is a running interval: Clopper-Pearson is right at each number of draws but not at all of them."""
    draw, looks = np.random.default_rng(7), np.arange(10, 301)
    limits = [clopper_pearson(np.arange(number + 1), int(number)) for number in looks]
    every, last = 0, 0
    for _ in range(300):
        counts = np.cumsum(draw.random(300) < 0.5)[looks - 1]
        held = [low[count] <= 0.5 <= high[count] for count, (low, high) in zip(counts, limits, strict=True)]
        every, last = every + all(held), last + held[-1]
    assert last / 300 >= 0.93
    assert every / 300 < 0.85


def test_the_weights_are_multinomial():
    members, rows = (np.concatenate(parts) for parts in zip(*intervals._weights(4, 20, 20_000, seed=1), strict=True))
    for weights, size in ((members, 4), (rows, 20)):
        np.testing.assert_allclose(weights.mean(0), 1, atol=0.04)
        np.testing.assert_allclose(np.cov(weights.T), np.eye(size) - 1 / size, atol=0.06)


def test_the_bootstrap_sees_both_kinds_of_spread():
    """For a table of row effects alone, or of member effects alone, the spread of the mean is known."""
    rows = np.tile(np.arange(100) < 30, (20, 1))  # rows that are always or never invalidated
    members = np.tile(np.arange(20) < 8, (100, 1)).T
    for table, rate, draws in ((rows, 0.3, 100), (members, 0.4, 20)):
        low, high = bootstrap_interval(table, draws=20_000)
        assert (low, high) == pytest.approx(tuple(stats.binom.ppf([0.025, 0.975], draws, rate) / draws), abs=1e-9)


PLANS = {
    "worst case": ({"width": 0.15}, lambda draw, n: draw.binomial(1, 0.5, n)),
    "worst case, seldom": ({"width": 0.05, "rate": 0.05}, lambda draw, n: draw.binomial(1, 0.05, n)),
    "spread": ({"width": 0.06, "rate": 0.2, "spread": 0.1}, lambda draw, n: draw.beta(3, 12, n)),
    "skewed": ({"width": 0.1, "rate": 0.1, "spread": 0.15}, lambda draw, n: draw.beta(0.3, 2.7, n)),
    "at 80 %": ({"width": 0.05, "rate": 0.7, "spread": 0.1, "confidence": 0.8}, lambda draw, n: draw.beta(14, 6, n)),
}


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("name", PLANS)
def test_audits_of_the_planned_size_have_the_planned_width(name, running):
    plan, sample = PLANS[name]
    members, draw = members_needed(**plan, running=running), np.random.default_rng(9)
    interval = mean_interval if running else member_interval
    limits = np.array([interval(sample(draw, members), plan.get("confidence", 0.95)) for _ in range(200)])
    assert np.median(limits[:, 1] - limits[:, 0]) == pytest.approx(plan["width"], rel=0.06)
