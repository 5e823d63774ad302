import tracemalloc

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Encoding, Feature, Schema
from holdfast.tabular.encoding import SCALINGS


@pytest.mark.parametrize("scaling", SCALINGS)
def test_decoding_an_encoded_row_returns_the_row(scaling):
    table = everything()
    encoding = Encoding.fit(table, EVERYTHING, scaling)
    back = encoding.decode(encoding.encode(table))
    for feature in EVERYTHING.features:
        if feature.kind == "real":
            np.testing.assert_allclose(back[feature.name], table[feature.name], rtol=1e-6)
        else:
            assert back[feature.name].tolist() == table[feature.name].tolist()


def test_columns_are_named_and_groups_are_one_hot(encoding):
    assert encoding.columns == (
        "income", "age", "debt", "owner", "grade",
        "job=clerk", "job=nurse", "job=baker", "job=none", "delay=0", "delay=1", "delay=2",
    )  # fmt: skip
    raw = Encoding.fit(everything(), EVERYTHING, "none").encode(everything())
    assert raw[:, 5:9].sum(1).eq(1).all()
    assert raw[:, 9:].sum(1).tolist() == (everything()["delay"] != -9).astype(float).tolist()
    assert raw[:, 4].unique().tolist() == [0, 1, 2]


def test_scalings_do_what_they_say():
    table = everything()
    standard = Encoding.fit(table, EVERYTHING, "standard").encode(table, torch.float64)
    torch.testing.assert_close(standard.mean(0), torch.zeros(12, dtype=torch.float64))
    torch.testing.assert_close(standard.std(0, correction=0), torch.ones(12, dtype=torch.float64))
    numeric = Encoding.fit(table, EVERYTHING, "standard-numeric").encode(table, torch.float64)
    torch.testing.assert_close(numeric[:, :3], standard[:, :3])
    assert set(numeric[:, 3:].unique().tolist()) == {0, 1, 2}
    each = Encoding.fit(table, EVERYTHING, "minmax").encode(table)
    assert (each.amin(0) == 0).all()
    assert (each.amax(0) == 1).all()
    whole = Encoding.fit(table, EVERYTHING, "minmax-global").encode(table)
    assert (whole.min(), whole.max()) == (0, 1)
    raw = Encoding.fit(table, EVERYTHING, "none").encode(table)
    torch.testing.assert_close(whole, (raw - raw.min()) / (raw.max() - raw.min()))


@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_constant_column_and_an_unseen_level_are_handled(scaling):
    table = everything().assign(age=40)
    table = table[table["job"] != "baker"]
    encoding = Encoding.fit(table, EVERYTHING, scaling)
    x = encoding.encode(table)
    assert x.isfinite().all()
    assert (x[:, 1] == x[0, 1]).all()
    assert encoding.decode(x)["age"].eq(40).all()
    encoding.space.check_origin(x)
    assert not encoding.space.violations(x, x).any()


@pytest.mark.parametrize("dtype", [int, float, "uint8"])
def test_truth_values_may_come_as_numbers_and_back(encoding, dtype):
    """True, 1 and 1.0 are one level."""
    table = everything()
    assert torch.equal(encoding.encode(table.assign(owner=table["owner"].astype(dtype))), encoding.encode(table))
    numbers = Encoding.fit(table.assign(owner=1 * table["owner"]), EVERYTHING.revise("owner", levels=(0, 1)))
    assert torch.equal(numbers.encode(table), encoding.encode(table))


def test_reals_come_back_as_the_shortest_decimal_of_the_same_bits(encoding):
    table = everything()
    back = encoding.decode(encoding.encode(table))
    assert back["income"].tolist() == table["income"].tolist()  # two decimals, exactly
    assert torch.equal(encoding.encode(back), encoding.encode(table))
    zero = encoding.decode(encoding.encode(table.assign(income=0.0)))["income"]
    assert (zero == 0).all()
    assert not np.signbit(zero).any()


def test_a_target_is_a_class_for_every_row(encoding):
    assert encoding.target("yes", 3).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="no class 'maybe'; the classes are 'no', 'yes'"):
        encoding.target("maybe", 3)


def test_labels_follow_the_order_of_the_classes(encoding):
    table = everything()
    assert encoding.labels(table).tolist() == (table["outcome"] == "yes").astype(int).tolist()


def test_the_space_carries_the_schema_in_encoded_units(encoding):
    space = encoding.space
    names = list(encoding.columns)
    income, age, debt = names.index("income"), names.index("age"), names.index("debt")
    raw_upper = space.upper * torch.from_numpy(encoding.scale) + torch.from_numpy(encoding.shift)
    assert raw_upper[income] == pytest.approx(200)
    assert raw_upper[age] == everything()["age"].max()
    assert space.step[debt] == 100
    assert space.mutable.tolist() == [True, False] + [True] * 10
    assert space.direction.tolist() == [1, 0, 0, 0, 1] + [0] * 7
    assert [group.columns for group in space.groups] == [(5, 6, 7, 8), (9, 10, 11)]
    assert [group.optional for group in space.groups] == [False, True]
    assert space.groups[0].avoid == (8,)
    assert space.groups[1].avoid_none


def test_what_cannot_be_encoded_is_refused(encoding):
    with pytest.raises(TypeError, match=r"expected a Schema, got str; Schema\.load"):
        Encoding.fit(everything(), "schema.toml")
    with pytest.raises(ValueError, match="scaling is 'robust'; choose one of standard"):
        Encoding.fit(everything(), EVERYTHING, "robust")
    with pytest.raises(ValueError, match="'job' has levels 'pilot'"):
        encoding.encode(everything().assign(job="pilot"))
    with pytest.raises(ValueError, match=r"matrix of 12 columns, got shape \(3, 4\)"):
        encoding.decode(torch.zeros(3, 4))
    schema = Schema((Feature("age", "integer", upper=3),), "outcome", ("no", "yes"))
    with pytest.raises(ValueError, match="'age': bounds .* are empty"):
        Encoding.fit(everything(), schema)


def test_a_label_is_not_needed_to_encode(encoding):
    table = everything().drop(columns="outcome")
    assert encoding.encode(table).shape == (60, 12)
    assert isinstance(encoding.decode(encoding.encode(table)), pd.DataFrame)


def numbers(*values):
    table = pd.DataFrame({"money": values, "age": range(len(values)), "outcome": ["no", "yes"] * (len(values) // 2)})
    return table, Schema((Feature("money", "real"), Feature("age", "integer")), "outcome", ("no", "yes"))


HUGE, TINY = (1e200, 2e200, 3e200, 5e200), (1e-200, 2e-200, 3e-200, 5e-200)
ENDS = (-1.7e308, 1.7e308, 0.0, 1.0)
NEAR = (1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3)  # one number in float32


DIVIDE = r"'money' goes from 1e\+200 to 5e\+200: with scaling=.* divide or multiply it first"
MULTIPLY = "'money' goes from 1e-200 to 5e-200: with scaling=.* divide or multiply it first"
BOTH = r"'money' goes from -1\.7e\+308 to 1\.7e\+308: .* divide or multiply it first"
SUBTRACT = r"'money' goes from 1000000000 to 1000000003: .* subtract its smallest number, or choose another scaling"
BESIDE = "'age' goes from 0 to 3: .*, or choose another scaling"


@pytest.mark.parametrize(
    ("values", "standard", "minmax", "together", "none"),
    [
        (HUGE, DIVIDE, None, BESIDE, DIVIDE),
        (TINY, MULTIPLY, None, MULTIPLY, MULTIPLY),
        (ENDS, BOTH, BOTH, BOTH, BOTH),
        (NEAR, None, None, SUBTRACT, SUBTRACT),
    ],
)
def test_a_column_that_varies_varies_once_it_is_encoded(values, standard, minmax, together, none):
    table, schema = numbers(*values)
    for scaling, said in zip(SCALINGS, (standard, standard, minmax, together, none), strict=True):
        if said is not None:
            with pytest.raises(ValueError, match=said):
                Encoding.fit(table, schema, scaling)
            continue
        encoding = Encoding.fit(table, schema, scaling)
        x = encoding.encode(table)
        assert x.isfinite().all()
        assert len(x[:, 0].unique()) > 1
        np.testing.assert_allclose(encoding.decode(x)["money"], table["money"], rtol=1e-5)


def test_only_the_columns_to_blame_are_named():
    table, schema = numbers(*ENDS)
    with pytest.raises(ValueError, match="'money'") as caught:
        Encoding.fit(table, schema, "minmax-global")
    assert "'age'" not in str(caught.value)
    both = table.assign(age=[0, 1e200, 2e200, 3e200])
    with pytest.raises(ValueError, match="(?s)'money'.*'age'"):
        Encoding.fit(both, schema.revise("age", kind="real"))


def test_bounds_and_levels_stay_apart_too():
    table, schema = numbers(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(ValueError, match=r"'money': bounds 1 to 1e\+300 .* 1 to 4; choose bounds nearer to the rows"):
        Encoding.fit(table, schema.revise("money", upper=1e300))
    with pytest.raises(ValueError, match="'job': its levels could not be told apart"):
        Encoding.fit(
            everything().assign(income=[-1e9, 1e9] * 30), EVERYTHING.revise("income", lower=-1e9), "minmax-global"
        )


def test_a_row_with_too_large_a_number_is_named(encoding):
    table = everything().set_index(pd.Index([f"p{row}" for row in range(60)]))
    table.loc["p7", "income"] = 1e60
    with pytest.raises(
        ValueError, match=r"column 'income', row 'p7': 1e\+60 is too large a number to encode as float32"
    ):
        encoding.encode(table)
    assert encoding.encode(table, torch.float64).isfinite().all()
    assert encoding.encode_unchecked(table).isfinite().logical_not().nonzero().tolist() == [[7, 0]]
    with pytest.raises(TypeError, match=r"dtype is torch\.int64; rows are encoded as numbers with fractions"):
        encoding.encode(everything(), torch.int64)


def test_whole_numbers_end_where_tables_keep_them():
    table, schema = numbers(1.0, 2.0, 3e19, 4.0)
    assert Schema.infer(table, "outcome")["money"].kind == "real"
    with pytest.raises(ValueError, match=r"column 'money' has 3e\+19: whole numbers end before 2\^63"):
        Encoding.fit(table, schema.revise("money", kind="integer"))
    with pytest.raises(ValueError, match=r"feature 'n': upper is 1e\+20, but whole numbers end before 2\^63"):
        Feature("n", "integer", upper=1e20)
    below = float(np.nextafter(2.0**63, 0))
    table, schema = numbers(-below, 0.0, below, below)
    back = Encoding.fit(table, schema.revise("money", kind="integer"), "none")
    assert back.decode(back.encode(table))["money"].tolist() == [-int(below), 0, int(below), int(below)]


def cities(levels, rows):
    table = pd.DataFrame({"city": [f"c{row % levels}" for row in range(rows)], "y": [row % 2 for row in range(rows)]})
    return table, Schema((Feature("city", "categorical", levels=tuple(f"c{n}" for n in range(levels))),), "y", (0, 1))


def test_rows_that_do_not_fit_into_memory_are_refused_before_they_are_made(monkeypatch):
    table, schema = cities(10_000, 30_000)
    monkeypatch.setattr("holdfast.utils.memory.available", lambda: 400_000_000)
    said = (
        "encoding 30000 rows as 10000 columns needs about 0.5 GB of memory, and 0.4 GB are available; 10000 columns "
        "are for the levels of 'city': join the rare ones, or take fewer rows at a time"
    )
    with pytest.raises(ValueError, match=said):
        Encoding.fit(table, schema)
    monkeypatch.setattr("holdfast.utils.memory.available", lambda: 1_000_000_000)
    few, schema = cities(10_000, 10_000)
    encoding = Encoding.fit(few, schema)
    with pytest.raises(ValueError, match=r"encoding 30000 rows as 10000 columns needs about 1\.7 GB"):
        encoding.encode(table)


def test_columns_in_blocks_have_the_bits_of_all_at_once():
    table, schema = cities(2500, 3000)
    table = table.assign(city=table["city"].sample(frac=1, random_state=0).to_numpy(), age=np.arange(3000) ** 1.5)
    schema = Schema((Feature("age", "real"), *schema.features), "y", (0, 1))
    onehot = np.eye(2500)[[int(city[1:]) for city in table["city"]]]
    raw = np.concatenate([table[["age"]].to_numpy(), onehot], axis=1)
    encoding = Encoding.fit(table, schema)
    assert (encoding.shift == raw.mean(axis=0)).all()
    assert (encoding.scale == raw.std(axis=0)).all()
    whole = torch.from_numpy((raw - raw.mean(axis=0)) / raw.std(axis=0))
    assert torch.equal(encoding.encode(table, torch.float64), whole)
    assert torch.equal(encoding.encode(table), whole.float())


def test_encoding_takes_little_more_memory_than_its_result():
    table, schema = cities(5000, 1500)
    tracemalloc.start()  # sees what numpy takes, not what torch takes: the result is torch's
    try:
        encoding = Encoding.fit(table, schema, "none")
        encoding.encode(table)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 1500 * 5000 * 8  # one matrix of float64, and the square of all levels alone would have 200 MB


# ---- missing values ----

HOLES = EVERYTHING.revise("income", "age", "debt", "grade", "job", missing=True).revise(
    "delay", kind="categorical", levels=(0, 1, 2, -9), zero_level=None, missing=True
)
HOLED = ("income", "age", "debt", "grade", "job", "delay")


def holed(rows=60, seed=0, share=0.2):
    draw = np.random.default_rng(seed)
    table = everything(rows, seed)
    return table.assign(**{name: table[name].astype(object).mask(draw.random(rows) < share) for name in HOLED}).astype(
        {"income": float, "age": float, "debt": float}
    )


def same(left, right):
    return bool((left.isna() == right.isna()).all()) and left.dropna().tolist() == right.dropna().tolist()


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_missing_values_come_back_missing(scaling, dtype):
    table = holed()
    encoding = Encoding.fit(table, HOLES, scaling)
    x = encoding.encode(table, dtype)
    assert x.isfinite().all()
    for back in (encoding.decode(x), encoding.decode(x.float()), encoding.decode(x.double())):
        for name in HOLED:
            assert table[name].isna().any()
            assert (back[name].isna() == table[name].isna()).all()
            if name != "income":
                assert same(back[name], table[name])
    assert torch.equal(encoding.encode(encoding.decode(x), dtype), x)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.none() | st.integers(-50, 50) | st.sampled_from([10**6, -(10**6)]), min_size=2, max_size=30).filter(
        lambda cells: any(cell is not None for cell in cells)
    ),
    st.sampled_from([None, 1.0, 5.0, 100.0]),
    st.sampled_from(SCALINGS),
)
def test_no_number_is_taken_for_a_missing_one(cells, step, scaling):
    table = pd.DataFrame({"n": pd.Series(cells, dtype=float), "y": np.arange(len(cells)) % 2})
    feature = Feature("n", "integer" if step == 1 else "real", step=step, missing=True)
    encoding = Encoding.fit(table, Schema((feature,), "y", (0, 1)), scaling)
    x = encoding.encode(table)
    back = encoding.decode(x)["n"]
    assert (back.isna() == table["n"].isna()).all()
    assert torch.equal(encoding.encode(encoding.decode(x)), x)
    known = table["n"].dropna()
    assert known.min() - (step or 1) <= encoding.fill[0] <= known.max() + (step or 1)
    assert (encoding.ranges[0][0][0], encoding.ranges[0][-1][1]) == (known.min(), known.max())
    if step:
        assert encoding.fill[0] / step % 1 == 0.5


def test_missing_values_do_not_count_in_means_spreads_and_ranges():
    table = holed(200)
    encoding, known = Encoding.fit(table, HOLES), table["income"].dropna().to_numpy()
    assert (encoding.shift[0], encoding.scale[0]) == (known.mean(), known.std())
    ages = table["age"].dropna()
    assert encoding.ranges[1] == ((ages.min(), ages.max()),)
    full = Encoding.fit(everything(), EVERYTHING)
    loose = Encoding.fit(everything(), EVERYTHING.revise("income", "age", "grade", missing=True))
    assert np.isnan(full.fill).all()
    assert (full.shift == loose.shift).all()
    assert (full.scale == loose.scale).all()
    assert torch.equal(full.encode(everything()), loose.encode(everything()))


def test_columns_without_missing_values_keep_their_type():
    back = Encoding.fit(everything(), EVERYTHING).decode(Encoding.fit(everything(), EVERYTHING).encode(everything()))
    assert back["age"].dtype == np.int64
    holes = Encoding.fit(holed(), HOLES)
    assert holes.decode(holes.encode(holed()))["age"].dtype == np.float64  # as pandas keeps them


@pytest.mark.parametrize("kind", ["Int64", "Float64", object])
def test_missing_values_may_be_of_any_kind(kind):
    table = holed()
    encoding = Encoding.fit(table, HOLES)
    other = table.assign(age=table["age"].astype(kind))
    assert torch.equal(encoding.encode(other), encoding.encode(table))
    one = pd.DataFrame([dict.fromkeys(HOLED) | {"owner": True}])
    assert encoding.decode(encoding.encode(one))[list(HOLED)].isna().all(axis=None)


def test_no_one_is_told_to_lose_a_value_and_anyone_may_get_one():
    table = holed()
    encoding = Encoding.fit(table, HOLES)
    x, space = encoding.encode(table), encoding.space
    space.check_origin(x)
    assert not space.violations(x, x).any()
    lost = table[table["job"].notna()]
    start = encoding.encode(lost)
    assert space.violations(encoding.encode(lost.assign(job=None)), start).any(1).all()
    assert (
        space.violations(encoding.encode(lost.assign(grade=None)), start)[lost["grade"].notna().tolist()].any(1).all()
    )
    found = table[table["job"].isna()]
    assert not space.violations(encoding.encode(found.assign(job="clerk")), encoding.encode(found)).any()
    moved = space.snap(x + torch.randn(x.shape, generator=torch.Generator().manual_seed(0)), x)
    assert not space.violations(moved, x).any()
    gone = encoding.decode(moved).isna() & table[list(HOLES.names)].isna().eq(False)
    assert not gone.any(axis=None)


def test_missing_values_where_there_are_to_be_none_are_refused(encoding):
    said = r"'age' has 60 missing values .*; or let them stay as they are: revise\(\"age\", missing=True\)"
    with pytest.raises(ValueError, match=said):
        encoding.encode(everything().assign(age=np.nan))
    with pytest.raises(ValueError, match=r'revise\("owner", kind="categorical", missing=True\)'):
        encoding.encode(everything().assign(owner=None))
    with pytest.raises(ValueError, match=r"columns \['age'\] have missing values and no others"):
        Encoding.fit(everything().assign(age=np.nan), HOLES)
    with pytest.raises(ValueError, match="'age' should hold whole numbers but has 30.5"):
        HOLES.check(everything().assign(age=[None, 30.5] * 30))
    with pytest.raises(ValueError, match="'age' should hold numbers but is"):
        HOLES.check(everything().assign(age=[None, "x"] * 30))
    with pytest.raises(ValueError, match="'job' has levels 'pilot'"):
        HOLES.check(everything().assign(job=[None, "pilot"] * 30))


def test_numbers_too_close_together_leave_no_room_for_missing_ones():
    table, schema = numbers(*range(2**25, 2**25 + 400, 2))
    table.loc[0, "money"] = np.nan
    schema = schema.revise("money", kind="integer", missing=True)
    with pytest.raises(ValueError, match="'money': no number near its mean is left to encode missing values"):
        Encoding.fit(table, schema, "none")
    encoding = Encoding.fit(table, schema)
    assert encoding.decode(encoding.encode(table))["money"].isna().tolist() == [True] + [False] * 199


def test_missing_values_beside_very_large_numbers():
    table, schema = numbers(1e200, -1e200, np.nan, 3e200)
    encoding = Encoding.fit(table, schema.revise("money", missing=True), "minmax")
    assert encoding.decode(encoding.encode(table))["money"].isna().tolist() == [False, False, True, False]
