import numpy as np
import pytest
from scipy import stats

from holdfast.intervals import clopper_pearson, mean_interval


def test_clopper_pearson_is_scipys_exact_interval():
    for trials in (1, 7, 100):
        low, high = clopper_pearson(np.arange(trials + 1), trials, 0.9)
        for count in range(trials + 1):
            exact = stats.binomtest(count, trials).proportion_ci(0.9, method="exact")
            assert (low[count], high[count]) == pytest.approx((exact.low, exact.high), abs=1e-12)


DRAWS = {
    "rare, over 60 rows": (lambda draw, n: draw.binomial(60, 0.003, n) / 60, 0.003),
    "seldom, over 200 rows": (lambda draw, n: draw.binomial(200, 0.07, n) / 200, 0.07),
    "all or nothing": (lambda draw, n: draw.binomial(1, 0.1, n), 0.1),
    "skewed": (lambda draw, n: draw.beta(0.5, 2, n), 0.2),
    "narrow": (lambda draw, n: draw.beta(70, 30, n), 0.7),
    "coin": (lambda draw, n: draw.binomial(1, 0.5, n), 0.5),
}


@pytest.mark.parametrize("members", [1, 10, 100])
@pytest.mark.parametrize("name", DRAWS)
def test_mean_interval_covers(name, members):
    sample, mean = DRAWS[name]
    draw = np.random.default_rng(0)
    limits = np.array([mean_interval(sample(draw, members)) for _ in range(300)])
    covered = ((limits[:, 0] <= mean) & (mean <= limits[:, 1])).mean()
    assert covered > 0.93


def test_the_interval_holds_for_draws_of_different_means():
    draw = np.random.default_rng(0)
    means = np.linspace(0, 0.6, 50)
    limits = np.array([mean_interval(draw.binomial(1, means)) for _ in range(300)])
    assert ((limits[:, 0] <= means.mean()) & (means.mean() <= limits[:, 1])).mean() > 0.93


def test_the_interval_adapts_to_the_spread_and_to_the_number():
    def width(values):
        low, high = mean_interval(values)
        return high - low

    draw = np.random.default_rng(1)
    narrow, wide = draw.beta(70, 30, 100), draw.binomial(1, 0.7, 100)
    assert width(narrow) < 0.4 * width(wide)
    assert width(np.tile(narrow, 10)) < 0.5 * width(narrow)
    assert width(wide) < 2 * 1.36 / np.sqrt(100) * 1.5  # not far above Hoeffding's, which ignores the spread


def test_extremes():
    low, high = mean_interval(np.zeros(100))
    assert low == 0
    assert stats.beta.ppf(0.975, 1, 100) < high < 0.05  # never below the exact limit of 0 in 100
    assert mean_interval(np.ones(100)) == pytest.approx((1 - high, 1))


def test_order_does_not_matter_and_turning_turns():
    values = np.random.default_rng(2).beta(1, 3, 40)
    assert mean_interval(values) == mean_interval(values[::-1])
    low, high = mean_interval(values)
    assert mean_interval(1 - values) == pytest.approx((1 - high, 1 - low))
    assert low < values.mean() < high
    wider = mean_interval(values, 0.99)
    assert wider[0] < low < high < wider[1]


def test_what_is_no_rate_is_refused():
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        mean_interval([0.5, 1.5])
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        mean_interval([0.5, np.nan])
    with pytest.raises(ValueError, match="one draw or more"):
        mean_interval([])
    with pytest.raises(ValueError, match="confidence must lie between"):
        mean_interval([0.5], confidence=95)
