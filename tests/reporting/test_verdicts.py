"""What the report concludes is what its figures say."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.explaining.advice_view import KindRate
from holdfast.reporting.groups import Group, Grouping
from holdfast.reporting.html.summary import comparing, dearer, promise_kept
from holdfast.reporting.plots.advice import CostGroup


@pytest.mark.parametrize(
    ("rate", "low", "most", "says"),
    [
        (0.01, 0.005, 0.04, "confirm it"),
        (0.036, 0.03, 0.065, "this agrees with the promise but does not prove it"),
        (0.06, 0.045, 0.09, "does not agree with the promise but does not disprove it"),
        (0.10, 0.06, 0.14, "contradict it"),
    ],
)
def test_a_promise_is_confirmed_only_by_its_limit(rate, low, most, says):
    said = promise_kept(KindRate("seeds", 100, 40, rate, low, most, most, 0), 0.05)
    assert says in said
    assert "5%" in said


def grouping(beyond: tuple[float, float, float] | None) -> Grouping:
    share = (0.5, 0.4, 0.6)
    own = Group("women", 40, 20, share, 10, 12, share, 2.0, share, beyond)
    return Grouping("sex", (own,), 0, 0, np.zeros(40, np.int64))


def test_only_a_difference_beyond_chance_is_named():
    assert "No group's plans" in comparing([grouping((0.03, -0.01, 0.07)), grouping(None)])
    assert "women (sex), more often" in comparing([grouping((0.03, 0.01, 0.07))])
    assert "women (sex), less often" in comparing([grouping((-0.03, -0.07, -0.01))])


def fifth(rate: float, low: float, high: float) -> CostGroup:
    return CostGroup(10, 1.0, 0.5, 1.5, rate, low, high)


def test_dearer_plans_hold_better_only_where_the_limits_are_apart():
    cheap = fifth(0.10, 0.08, 0.12)
    assert dearer([cheap, fifth(0.02, 0.01, 0.03)]).startswith("Yes")
    assert dearer([cheap, fifth(0.20, 0.15, 0.25)]).startswith("No:")
    assert dearer([cheap, fifth(0.09, 0.05, 0.13)]).startswith("These plans show no clear difference")
    assert dearer([cheap]).startswith("There are too few")
