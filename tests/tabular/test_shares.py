from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.tabular.shares import quantiles_of, share_below


def share(values, at):
    column = torch.from_numpy(quantiles_of(np.asarray(values, dtype=float)))[:, None]
    return share_below(torch.tensor(at, dtype=torch.float64)[:, None], column)[:, 0].tolist()


def test_shares_of_numbers_that_are_spread_evenly():
    assert share(np.arange(101.0), [0, 1, 37, 50.5, 100]) == pytest.approx([0.0, 0.01, 0.37, 0.505, 1.0])


def test_who_ties_counts_half():
    values = [0.0] * 60 + [1.0] * 20 + [5.0] * 20
    assert share(values, [0, 1, 5]) == pytest.approx([0.3, 0.7, 0.9], abs=0.01)
    assert share(values, [0.5, 3]) == pytest.approx([0.6, 0.8], abs=0.011)


def test_beyond_everybody_further_still_counts_more():
    assert share(np.arange(11.0), [-5, -1, 10, 12, 20]) == pytest.approx([-0.5, -0.1, 1.0, 1.2, 2.0], abs=0.05)
    assert share([7.0] * 9, [6, 7, 9]) == pytest.approx([-1, 0.5, 3.0])  # a constant column has no width


def test_missing_values_are_nobody():
    assert share([np.nan, *range(101), np.nan], [20]) == pytest.approx([0.2])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=40),
    st.lists(st.floats(-8, 8, allow_nan=False), min_size=2, max_size=5),
)
def test_shares_rise_and_are_right_up_to_a_hundredth_at_values_that_people_have(values, at):
    column = np.array(values, dtype=float)
    exact = [((column < v).mean() + (column <= v).mean()) / 2 for v in values]
    assert share(column, values) == pytest.approx(exact, abs=0.0101)
    found = share(column, sorted(at))
    assert all(low <= high + 1e-12 for low, high in pairwise(found))
