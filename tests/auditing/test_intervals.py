import numpy as np
import pytest
from scipy import stats

from holdfast.auditing import intervals
from holdfast.auditing.intervals import (
    BETS,
    FEWEST_INVALIDATED,
    bootstrap_interval,
    clopper_pearson,
    mean_interval,
    member_interval,
    members_needed,
    rate_interval,
    running_interval,
    upper_limit,
)
from interval_laws import DRAWS


def test_clopper_pearson_is_scipys_exact_interval():
    for trials in (1, 7, 100):
        low, high = clopper_pearson(np.arange(trials + 1), trials, 0.9)
        for count in range(trials + 1):
            exact = stats.binomtest(count, trials).proportion_ci(0.9, method="exact")
            assert (low[count], high[count]) == pytest.approx((exact.low, exact.high), abs=1e-12)


@pytest.mark.parametrize("trials", [1, 2, 20, 1000])
def test_draws_of_0_and_1_give_the_exact_binomial_limits(trials):
    for count in {0, 1, trials // 3, trials - 1, trials}:
        for confidence in (0.5, 0.95, 0.9999):
            values = np.arange(trials) < count
            low, high = clopper_pearson(count, trials, confidence)
            assert member_interval(values, confidence) == pytest.approx((float(low), float(high)), abs=1e-9)
            assert upper_limit(values, (1 + confidence) / 2) == pytest.approx(float(high), abs=1e-9)


def test_two_points_are_covered_as_often_as_binomial_draws():
    """Exactly, not by simulation: where the limits of a law on two points are those of 0 and 1, moved and stretched.

    Not so at the side on which the other end of [0, 1] lies further away: there the limits are wider still.
    """
    for low, high in ((0.0, 1.0), (0.02, 1.0), (0.2, 0.6), (0.97, 0.98)):
        limits = np.array([upper_limit(np.where(np.arange(12) < count, high, low)) for count in range(13)])
        for share in np.append(np.linspace(0, 1, 101), 1 - 0.05 ** (1 / 12) + 1e-6):
            held = stats.binom.pmf(np.arange(13), 12, share) @ (limits >= low + (high - low) * share)
            assert held >= 0.95 - 1e-12


def test_gaffkes_limits_are_quantiles_of_a_mean_with_dirichlet_weights():
    draw = np.random.default_rng(10)
    values = draw.beta(1, 4, 25)
    weights = draw.dirichlet(np.ones(26), 100_000)
    low, high = member_interval(values, 0.9)
    assert (weights @ np.append(values, 0) < low).mean() == pytest.approx(0.05, abs=0.003)
    assert (weights @ np.append(values, 1) > high).mean() == pytest.approx(0.05, abs=0.003)
    assert upper_limit(values) == pytest.approx(high, abs=1e-12)


def test_gaffkes_interval_is_narrower_than_the_bets_and_inside_them():
    draw = np.random.default_rng(11)
    for sample, _ in DRAWS.values():
        for members in (2, 20, 100):
            values = sample(draw, members)
            (low, high), (bet_low, bet_high) = member_interval(values), mean_interval(values)
            assert bet_low - 1e-9 <= low <= values.mean() <= high <= bet_high + 1e-9
            assert high - low < (0.9 if members > 2 else 1) * (bet_high - bet_low)


def test_one_larger_draw_moves_gaffkes_limits_up_and_never_down():
    values = np.random.default_rng(12).beta(1, 3, 15)
    low, high = member_interval(values)
    for place in range(15):
        more = values.copy()
        more[place] += 0.5 * (1 - more[place])
        raised = member_interval(more)
        assert low < raised[0]
        assert high < raised[1]


def test_the_members_of_one_kind_and_of_several():
    rates = np.random.default_rng(13).beta(1, 3, 30)
    assert rate_interval(rates, ("seeds",) * 30, 0.9) == member_interval(rates, 0.9)
    assert rate_interval(rates, ("seeds",) * 29 + ("bootstrap",), 0.9) == mean_interval(rates, 0.9)


@pytest.mark.parametrize("values", [[0.0], [1.0], [0.3], np.zeros(50), np.ones(50), np.full(50, 1e-12), [5e-324, 1.0]])
def test_upper_limits_at_the_edges(values):
    below, limit, above = (upper_limit(values, confidence) for confidence in (0.5, 0.95, 0.999))
    assert np.mean(values) <= below <= limit <= above <= 1
    if np.max(values) < 1:
        assert below < limit < above < 1
    if len(values) == 1:  # Markov's inequality, for 1 − X
        assert limit == pytest.approx(1 - 0.05 * (1 - values[0]))


@pytest.mark.parametrize("interval", [mean_interval, member_interval])
def test_the_interval_adapts_to_the_spread_and_to_the_number(interval):
    def width(values):
        low, high = interval(values)
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


@pytest.mark.parametrize("interval", [mean_interval, member_interval])
def test_order_does_not_matter_and_turning_turns(interval):
    values = np.random.default_rng(2).beta(1, 3, 40)
    assert interval(values) == interval(values[::-1])
    low, high = interval(values)
    assert interval(1 - values) == pytest.approx((1 - high, 1 - low))
    assert low < values.mean() < high
    wider = interval(values, 0.99)
    assert wider[0] < low < high < wider[1]


@pytest.mark.parametrize("interval", [mean_interval, member_interval, upper_limit])
def test_what_is_no_rate_is_refused(interval):
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        interval([0.5, 1.5])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        interval([0.5, np.nan])
    with pytest.raises(ValueError, match="draws"):
        interval([])
    with pytest.raises(ValueError, match="confidence"):
        interval([0.5], confidence=95)


def bisected(draws, tail):
    """The lower limit as it is defined: the m at which the mixed capital is 1/tail."""
    low, high = 0.0, draws.mean()
    for _ in range(100):
        middle = (low + high) / 2
        growth = np.log(1 - BETS[:, None] + BETS[:, None] * draws / middle).sum(1) if middle else np.full(1, np.inf)
        refuted = np.logaddexp.reduce(growth) - np.log(len(BETS)) >= -np.log(tail)
        low, high = (middle, high) if refuted else (low, middle)
    return low


@pytest.mark.parametrize("members", [1, 2, 30, 300])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-9])
def test_the_limits_are_those_of_a_plain_bisection(members, confidence):
    draw = np.random.default_rng(3)
    samples = [sample(draw, members) for sample, _ in DRAWS.values()]
    samples += [
        draw.beta(1e-3, 1, members),
        draw.beta(1e5, 3e5, members),
        np.full(members, 1e-12),
        np.full(members, 0.5),
    ]
    for values in samples:
        expected = bisected(values, (1 - confidence) / 2), 1 - bisected(1 - values, (1 - confidence) / 2)
        assert mean_interval(values, confidence) == pytest.approx(expected, rel=0, abs=1e-9)


def test_the_running_interval_is_the_intersection_of_the_intervals_so_far():
    draw = np.random.default_rng(4)
    for values in (draw.beta(1, 3, 60), draw.binomial(1, 0.2, 60), draw.binomial(50, 0.01, 60) / 50, np.full(60, 0.4)):
        so_far = np.array([mean_interval(values[: number + 1], 0.9) for number in range(60)])
        low, high = running_interval(values, 0.9)
        np.testing.assert_allclose(low, np.maximum.accumulate(so_far[:, 0]), rtol=0, atol=1e-9)
        np.testing.assert_allclose(high, np.minimum.accumulate(so_far[:, 1]), rtol=0, atol=1e-9)


def test_the_running_interval_narrows_and_does_not_know_the_future():
    values = np.random.default_rng(5).beta(2, 5, 150)
    low, high = running_interval(values)
    assert low.shape == high.shape == (150,)
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) <= 0).all()
    last = mean_interval(values)
    assert last[0] - 1e-9 <= low[-1] < high[-1] <= last[1] + 1e-9
    for limits, first in zip((low, high), running_interval(values[:40]), strict=True):
        np.testing.assert_allclose(limits[:40], first, rtol=0, atol=1e-9)
    turned = running_interval(1 - values)
    np.testing.assert_allclose(turned, (1 - high, 1 - low), rtol=0, atol=1e-9)


def test_a_running_interval_at_the_edges():
    low, high = running_interval(np.zeros(100))
    assert (low == 0).all()
    assert high[-1] == pytest.approx(mean_interval(np.zeros(100))[1], abs=1e-12)
    low, high = running_interval([1.0])
    assert (low[0], high[0]) == pytest.approx(mean_interval([1.0]))
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        running_interval([0.5, -0.1])
    with pytest.raises(ValueError, match="draws"):
        running_interval([])
    with pytest.raises(ValueError, match="confidence"):
        running_interval([0.5], confidence=95)


def test_a_mean_that_moves_is_reported():
    with pytest.warns(UserWarning, match="after 1"):
        low, high = running_interval(np.repeat([0.0, 1.0], 100))
    assert low[-1] > high[-1]
    running_interval(np.tile([0.0, 1.0], 100))


def invalidated_at_random(members, rows, seed=0):
    """Uneven rows, uneven members."""
    draw = np.random.default_rng(seed)
    return draw.random((members, rows)) < draw.beta(1, 3, rows) * draw.beta(4, 1, (members, 1))


def test_the_bootstrap_is_a_plain_loop_over_resampled_tables():
    invalidated, draws = invalidated_at_random(7, 30), intervals.AT_ONCE + 20
    means = []
    for members, rows in intervals._weights(7, 30, draws, seed=5):
        assert (members.sum(1) == 7).all()
        assert (rows.sum(1) == 30).all()
        for often, frequent in zip(members.astype(int), rows.astype(int), strict=True):
            means.append(np.repeat(np.repeat(invalidated, often, axis=0), frequent, axis=1).mean())
    assert len(means) == draws
    expected = np.quantile(means, [0.05, 0.95])
    assert bootstrap_interval(invalidated, 0.9, draws, seed=5) == pytest.approx(tuple(expected), abs=1e-12)


def test_the_order_of_rows_and_members_and_the_seed_move_the_bootstrap_hardly():
    invalidated = invalidated_at_random(50, 80)
    low, high = bootstrap_interval(invalidated)
    assert low < invalidated.mean() < high
    assert bootstrap_interval(invalidated) == (low, high)
    draw = np.random.default_rng(8)
    for other in (
        bootstrap_interval(invalidated, seed=1),
        bootstrap_interval(invalidated[draw.permutation(50)]),
        bootstrap_interval(invalidated[:, draw.permutation(80)]),
    ):
        assert other == pytest.approx((low, high), abs=0.15 * (high - low))
    turned = bootstrap_interval(~invalidated)
    assert turned == pytest.approx((1 - high, 1 - low), abs=1e-12)
    wider = bootstrap_interval(invalidated, 0.99)
    assert wider[0] < low < high < wider[1]


def test_the_bootstrap_is_withheld_where_it_would_say_nothing():
    invalidated = np.zeros((30, 200), dtype=bool)
    assert bootstrap_interval(invalidated) is None
    assert bootstrap_interval(~invalidated) is None
    invalidated[0, : FEWEST_INVALIDATED - 1] = True
    invalidated[:5, 0] = True  # more members, no more rows
    assert bootstrap_interval(invalidated) is None
    assert bootstrap_interval(~invalidated) is None
    invalidated[7, FEWEST_INVALIDATED - 1] = True
    assert bootstrap_interval(invalidated) is not None
    assert bootstrap_interval(invalidated[:1]) is None  # one member has no spread to show
    assert bootstrap_interval(invalidated[:, :0]) is None  # nothing was found


def test_the_bootstrap_refuses_what_is_no_table_of_pairs():
    for table in (np.zeros(5, dtype=bool), np.zeros((3, 20, 2), dtype=bool), np.full((3, 20), 0.5)):
        with pytest.raises(ValueError, match=r"\(members, rows\) table of booleans"):
            bootstrap_interval(table)
    with pytest.raises(ValueError, match="draws.*0"):
        bootstrap_interval(invalidated_at_random(5, 50), draws=0)


def test_the_plans_of_the_documentation():
    assert members_needed(0.1) == 402
    assert members_needed(0.1, rate=0.1) == 158
    assert members_needed(0.1, rate=0.1, spread=0.05) == 40
    assert members_needed(0.05, rate=0.1, spread=0.05) == 88
    assert members_needed(0.05, rate=0.1, spread=0.05, running=True) == 124


@pytest.mark.parametrize("running", [False, True])
def test_the_plan_is_the_fewest_members_that_are_enough(running):
    interval = mean_interval if running else member_interval
    members = members_needed(0.05, 0.3, 0.0, running=running)

    def width(values):
        low, high = interval(values)
        return high - low

    assert width(np.full(members, 0.3)) <= 0.05 < width(np.full(members - 1, 0.3))
    assert members_needed(width(np.zeros(48)) + 1e-9, 0.0, running=running) == 48


@pytest.mark.parametrize("running", [False, True])
def test_narrower_intervals_and_more_spread_need_more_members(running):
    def plan(width, rate=0.5, spread=None, confidence=0.95):
        return members_needed(width, rate, spread, confidence, running=running)

    needed = [plan(0.1, 0.3, spread) for spread in (0, 1e-9, 0.01, 0.1, 0.3, 0.45, None)]
    assert needed == sorted(needed)
    assert needed[0] == needed[1] < needed[3] < needed[4] < needed[6]
    needed = [plan(width) for width in (0.9, 0.5, 0.2, 0.1, 0.05)]
    assert needed == sorted(needed)
    assert needed[0] < needed[1] < needed[4]
    assert plan(0.1, 0.2) == plan(0.1, 0.8) == plan(0.1, 0.2, 0.4)
    assert plan(0.1, 0.2) < plan(0.1, 0.2, confidence=0.99)
    assert plan(0.1, 1e-9, 1e-7) == plan(0.1, 0)


def test_a_plan_that_cannot_be_made_says_what_to_try():
    with pytest.raises(ValueError, match="5.*0.05"):
        members_needed(5)
    with pytest.raises(ValueError, match="rate.*30"):
        members_needed(0.1, 30)
    with pytest.raises(ValueError, match="spread.*0.3.*0.4"):
        members_needed(0.1, 0.1, 0.4)
    with pytest.raises(ValueError, match="spread"):
        members_needed(0.1, 0.1, float("nan"))
    with pytest.raises(ValueError, match="100 members"):
        members_needed(0.01, most=100)
    with pytest.raises(ValueError, match="most.*0"):
        members_needed(0.1, most=0)
    with pytest.raises(ValueError, match="confidence"):
        members_needed(0.1, confidence=95)
