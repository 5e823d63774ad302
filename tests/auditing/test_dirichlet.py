import numpy as np
import pytest
from scipy import stats

from holdfast.auditing.dirichlet import exceeded, upper_quantile


def raced(points, counts, t):
    """P(Σ D·p > t) for Dirichlet(1, …, 1) weights, by the memoryless race of exponential draws: all terms positive.

    W(i, j) is the probability that the first i draws above t outweigh the first j below it.
    """
    apart = np.repeat(points, counts.astype(int)) - t
    above, below = apart[apart > 0], -apart[apart <= 0]
    chance = np.zeros(len(below) + 1)
    for up in above:
        before, chance[0] = chance.copy(), 1
        for place, down in enumerate(below, 1):
            chance[place] = (up * chance[place - 1] + down * before[place]) / (up + down)
    return chance[-1]


def samples(draw, n):
    yield draw.beta(1, 3, n)
    yield draw.binomial(100, 0.1, n) / 100
    yield draw.binomial(1, 0.1, n).astype(float)
    yield np.full(n, draw.random())
    yield 0.4 + 0.01 * draw.random(n)
    yield draw.beta(0.05, 0.05, n)
    yield 10.0 ** -draw.integers(0, 14, n)  # on many scales at once
    yield 1 - 10.0 ** -draw.integers(1, 8, n)
    yield np.exp(-draw.exponential(30, n))


@pytest.mark.parametrize("tail", [1e-6, 0.001, 0.025, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("number", [1, 2, 5, 30])
def test_the_quantile_is_that_of_an_exact_recursion(number, tail):
    draw = np.random.default_rng(0)
    for values in [*samples(draw, number), *samples(draw, number)]:
        for sign, end in ((1, 1.0), (-1, 0.0)):
            points, counts = np.unique(np.append(sign * values, end), return_counts=True)
            if len(points) == 1:
                continue
            t = upper_quantile(points, counts.astype(float), tail)
            assert points[0] <= t <= points[-1]
            if min(t - points[0], points[-1] - t) > 1e-8 * abs(t):  # nearer to an end, t itself is rounded
                assert raced(points, counts, t) == pytest.approx(tail, rel=1e-7)


def test_two_points_give_the_quantiles_of_a_beta_law():
    for first, second in ((1, 1), (1, 99), (99, 1), (34, 67), (1, 100_000), (99_999, 2), (0.3, 0.7), (12.5, 3.1)):
        for tail in (1e-9, 0.025, 0.5, 0.975):
            t = upper_quantile(np.array([0.0, 1.0]), np.array([first, second]), tail)
            assert t == pytest.approx(stats.beta.isf(tail, second, first), rel=1e-7, abs=1e-12)


def test_the_quantile_is_that_of_many_draws():
    draw = np.random.default_rng(1)
    for points in samples(draw, 12):
        if np.ptp(points) == 0:
            assert upper_quantile(points, np.ones(12), 0.1) == points[0]
            continue
        weights = draw.uniform(0.2, 3, 12)  # need not be whole
        means = draw.dirichlet(weights, 40_000) @ points
        for tail in (0.025, 0.4):
            assert (means > upper_quantile(points, weights, tail)).mean() == pytest.approx(tail, abs=0.012)


def test_moving_and_stretching_the_points_moves_and_stretches_the_quantile():
    points, weights = np.random.default_rng(2).random(20), np.ones(20)
    t = upper_quantile(points, weights, 0.1)
    assert upper_quantile(5 + 1e-200 * points, weights, 0.1) == 5  # all are 5 in floating point
    assert upper_quantile(1e-200 * points, weights, 0.1) == pytest.approx(1e-200 * t, rel=1e-9, abs=0)
    assert upper_quantile(3 - 7 * points, weights, 0.9) == pytest.approx(3 - 7 * t, rel=1e-9)
    assert upper_quantile(points[::-1], weights, 0.1) == pytest.approx(t, rel=1e-12)


def test_the_slope_is_that_of_the_probability():
    points, weights = np.random.default_rng(3).beta(1, 3, 30), np.full(30, 1.5)
    for t in (0.15, 0.25, 0.35):
        rise = exceeded(points, weights, t + 1e-5)[0] - exceeded(points, weights, t - 1e-5)[0]
        assert exceeded(points, weights, t)[1] == pytest.approx(rise / 2e-5, rel=1e-5)
