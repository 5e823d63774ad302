import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything

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
