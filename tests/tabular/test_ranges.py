import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Encoding, Feature, Schema
from holdfast.tabular.ranges import gaps_of, ranges_of


def inside(values, ranges):
    return np.any([(low <= values) & (values <= high) for low, high in ranges], axis=0)


def gains(rows=5000, seed=0):
    """Nearly all zero, a skewed tail up to some forty thousand, and a code for "too many to say"."""
    draw = np.random.default_rng(seed)
    values = np.where(draw.random(rows) < 0.08, draw.lognormal(8.3, 0.7, rows).round().clip(100, 41_310), 0)
    return np.where(draw.random(rows) < 0.005, 99_999, values)


def test_a_code_far_out_is_a_range_of_its_own():
    values = gains()
    low, high = values[values < 99_999].max(), 99_999
    assert ranges_of(values, 1, None, None) == ((0, low), (high, high))
    assert gaps_of(ranges_of(values, 1, None, None)) == [(low, high)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("draw", ["lognormal", "pareto", "exponential", "normal", "uniform"])
def test_a_smooth_column_has_no_gaps_however_long_its_tail(draw, seed):
    random = np.random.default_rng(seed)
    values = {
        "lognormal": lambda: random.lognormal(8, 1, 1500),
        "pareto": lambda: random.pareto(1.5, 1500),
        "exponential": lambda: random.exponential(2, 1500),
        "normal": lambda: random.normal(0, 1, 1500),
        "uniform": lambda: random.random(1500),
    }[draw]()
    assert ranges_of(values, None, None, None) == ((values.min(), values.max()),)


def test_the_outermost_rows_are_cut_where_there_are_many():
    values = np.arange(10_000.0)
    assert ranges_of(values, 1, None, None) == ((10, 9989),)
    assert ranges_of(values[:1999], 1, None, None) == ((0, 1998),)


def test_a_value_that_many_rows_share_is_never_cut():
    values = np.concatenate([np.zeros(11), np.arange(100.0, 10_089)])
    assert ranges_of(values, 1, None, None)[0][0] == 0


def test_a_given_bound_is_taken_as_it_is():
    values = np.arange(10_000.0)
    assert ranges_of(values, 1, -500, None) == ((-500, 9989),)
    assert ranges_of(values, 1, 100, 20_000) == ((100, 20_000),)
    assert ranges_of(values, 1, 20_000, 30_000) == ((20_000, 30_000),)
    with pytest.raises(ValueError, match="no values between the bounds; give both lower and upper"):
        ranges_of(values, 1, 20_000, None)


def test_values_beyond_a_given_bound_do_not_count():
    codes = np.concatenate([np.full(300, -9.0), np.random.default_rng(0).integers(33, 95, 2000)])
    assert ranges_of(codes, 1, None, None) == ((-9, -9), (33, 94))
    assert ranges_of(codes, 1, 0, None) == ((0, 94),)


def test_few_rows_show_no_gaps():
    assert ranges_of(np.array([1.0, 2, 3, 1000]), 1, None, None) == ((1, 1000),)
    assert ranges_of(np.array([7.0, 7, 7]), 1, None, None) == ((7, 7),)


def test_a_step_is_no_gap():
    values = np.repeat([0.0, 1, 2, 3], 500)
    assert ranges_of(values, 1, None, None) == ((0, 3),)
    assert ranges_of(values, None, None, None) == ((0, 0), (1, 1), (2, 2), (3, 3))
    two_halves = np.repeat([0.0, 50], 500) + np.tile(np.arange(10), 100)
    assert ranges_of(two_halves, 1, None, None) == ((0, 9), (50, 59))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-8e307, 8e307) | st.integers(-3, 3).map(float), min_size=1, max_size=60),
    st.sampled_from([None, 1.0, 100.0]),
)
def test_ranges_are_in_order_and_hold_the_rows(values, step):
    values = np.repeat(values, 25)
    ranges = ranges_of(values, step, None, None)
    Feature("x", "real", ranges=ranges)  # finite, in order, apart
    assert inside(values, ranges).all()  # fewer than 2,000 rows: none is cut
    assert {end for ends in ranges for end in ends} <= set(values.tolist())


@pytest.mark.parametrize("name", ["german", "ctg", "warfarin"])
def test_people_who_were_not_seen_lie_in_the_ranges(loaded, name):
    table, schema = loaded(name)
    order = np.random.default_rng(0).permutation(len(table))
    known, others = table.iloc[order[: len(table) * 3 // 4]], table.iloc[order[len(table) * 3 // 4 :]]
    encoding = Encoding.fit(known, schema)
    kept = np.ones(len(others), dtype=bool)
    for feature, ranges in zip(schema.features, encoding.ranges, strict=True):
        if feature.is_numeric:
            kept &= inside(others[feature.name].to_numpy(float), ranges)
    assert kept.mean() >= 0.97


# ---- in a schema and its encoding ----


def table_of(values):
    return pd.DataFrame({"gain": values, "y": np.arange(len(values)) % 2})


def fitted(values, **settings):
    return Encoding.fit(table_of(values), Schema((Feature("gain", "integer", **settings),), "y", (0, 1)))


def test_an_encoding_keeps_the_ranges_and_hands_the_gaps_to_its_space():
    values = gains()
    encoding, most = fitted(values), values[values < 99_999].max()
    assert encoding.ranges == (((0, most), (99_999, 99_999)),)
    assert (encoding.lower.tolist(), encoding.upper.tolist()) == ([0], [99_999])
    ((column, low, high),) = encoding.space.gaps
    assert column == 0
    np.testing.assert_allclose(np.array([low, high]) * encoding.scale + encoding.shift, [most, 99_999])


def test_ranges_of_the_schema_win():
    encoding = fitted(gains(), ranges=((10, 20), (30, 30)))
    assert encoding.ranges == (((10, 20), (30, 30)),)
    assert (encoding.lower.tolist(), encoding.upper.tolist()) == ([10], [30])
    assert fitted(gains(), upper=50_000).ranges == (((0, 50_000),),)
    assert fitted(gains(), upper=50_000).space.gaps == ()


def test_levels_have_no_ranges():
    schema = Schema((Feature("gain", "categorical", levels=(0, 1, 2)),), "y", (0, 1))
    encoding = Encoding.fit(table_of([0, 1, 2, 1]), schema)
    assert encoding.ranges == ((),)
    assert encoding.space.gaps == ()


def test_an_outlier_that_flattens_a_column_is_no_error():
    values = np.append(np.arange(3000.0), 1e30)
    encoding = Encoding.fit(table_of(values), Schema((Feature("gain", "real"),), "y", (0, 1)))
    assert encoding.ranges == (((3, 2997),),)
    x = encoding.encode(table_of(values))
    assert not encoding.space.violations(x, x).any()
