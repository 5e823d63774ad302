import logging
import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
import torch

from holdfast import Encoding, Feature, Schema
from holdfast.tabular.people import FEWEST_PEOPLE, People, learned_ranges

LEVELS = ("north", "south", "west")
SCHEMA = Schema(
    (
        Feature("age", "integer", mutable=False),
        Feature("gain", "real"),
        Feature("owner", "binary", levels=("no", "yes")),
        Feature("grade", "ordinal", levels=("low", "middle", "high")),
        Feature("region", "categorical", levels=LEVELS),
        Feature("job", "categorical", levels=("clerk", "cook"), zero_level="none"),
    ),
    label="class",
    classes=(0, 1),
)


def table_of(rows: int, seed: int) -> pd.DataFrame:
    """People with a spike and a heavy tail, ties, and levels that depend on their numbers."""
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 80, rows)
    gain = np.where(draw.random(rows) < 0.8, 0.0, np.exp(draw.normal(8, 1.5, rows)).round(2))
    owner = draw.random(rows) < age / 90
    return pd.DataFrame(
        {
            "age": age,
            "gain": gain,
            "owner": np.where(owner, "yes", "no"),
            "grade": draw.choice(["low", "middle", "high"], rows, p=[0.5, 0.3, 0.2]),
            "region": draw.choice(LEVELS, rows, p=[0.6, 0.3, 0.1]),
            "job": np.where(age > 65, "none", draw.choice(["clerk", "cook", "none"], rows)),
            "class": (age + draw.normal(0, 15, rows) > 50).astype(int),
        }
    )


def fitted(table: pd.DataFrame, scaling="standard", **options) -> tuple[Encoding, torch.Tensor, People]:
    encoding = Encoding.fit(table, SCHEMA, scaling)
    x, y = encoding.encode(table, torch.float64), encoding.labels(table)
    return encoding, x, People.fit(x, y, encoding.places, encoding.shift, encoding.scale, 2, **options)


def score(column: pd.Series, value: float) -> float:
    """The normal score of a value that occurs in the column."""
    below, same = (column < value).sum(), (column == value).sum()
    return NormalDist().inv_cdf((below + same / 2) / len(column))


def described(table: pd.DataFrame) -> list[tuple[tuple[float, ...], tuple[str, ...]]]:
    """Of every row the scores of its numbers, and its levels."""
    grade = table["grade"].map(["low", "middle", "high"].index)
    lines = [[score(column, value) for value in column] for column in (table["age"], table["gain"], grade)]
    levels = [table[name].tolist() for name in ("owner", "region", "job")]
    return list(zip(zip(*lines, strict=True), zip(*levels, strict=True), strict=True))


def apart(one, other) -> float:
    """The distance of two rows, from its definition."""
    (numbers, levels), (others, other_levels) = one, other
    squares = [(a - b) ** 2 for a, b in zip(numbers, others, strict=True)]
    return math.sqrt(sum(squares) + sum(a != b for a, b in zip(levels, other_levels, strict=True)))


def mean_of_nearest(distances: list[float], count: int = 5) -> float:
    return sum(sorted(distances)[:count]) / min(count, len(distances))


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_the_distance_is_what_its_definition_says(scaling):
    table = table_of(90, 0)
    _, x, people = fitted(table, scaling)
    rows = described(table)
    for target in (0, 1):
        others = [row for row, own in zip(rows, table["class"], strict=True) if own == target]
        expected = [mean_of_nearest([apart(one, other) for other in others]) for one in rows]
        torch.testing.assert_close(people.distance(x, target), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(
    ("column", "levels"), [("owner", ("no", "yes")), ("region", LEVELS), ("job", ("clerk", "cook", "none"))]
)
def test_one_changed_level_counts_one(column, levels):
    table = table_of(200, 1)
    encoding, _, people = fitted(table)
    for one in levels:
        for other in levels:
            pair = table.iloc[:1].loc[[0, 0]].assign(**{column: [one, other]})
            a, b = people.coordinates(encoding.encode(pair, torch.float64))
            assert float((a - b).norm()) == pytest.approx(float(one != other), abs=1e-12)


def test_a_missing_level_is_a_level_of_its_own():
    places = [(Feature("job", "categorical", levels=("clerk", "cook"), missing=True), slice(0, 2))]
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)
    people = People.fit(x, torch.zeros(3), places, np.zeros(2), np.ones(2), 1)
    apart = torch.cdist(people.coordinates(x), people.coordinates(x))
    torch.testing.assert_close(apart, 1 - torch.eye(3, dtype=torch.float64))


def test_a_bell_shaped_number_counts_by_its_standard_deviation():
    draw = np.random.default_rng(2)
    schema = Schema((Feature("a", "real"),), label="class", classes=(0, 1))
    table = pd.DataFrame({"a": draw.normal(100, 20, 20_000), "class": 0})
    encoding = Encoding.fit(table, schema)
    x = encoding.encode(table, torch.float64)
    people = People.fit(x, torch.zeros(len(x)), encoding.places, encoding.shift, encoding.scale, 2)
    at = encoding.encode(pd.DataFrame({"a": [60.0, 80.0, 100.0, 120.0, 140.0]}), torch.float64)
    gaps = people.coordinates(at).flatten().diff()
    torch.testing.assert_close(gaps, torch.ones_like(gaps), atol=0.06, rtol=0)


def test_a_larger_number_has_a_larger_coordinate_also_beyond_the_data():
    table = table_of(300, 3)
    encoding, _, people = fitted(table)
    gains = np.array([-1e6, -5.0, 0.0, 0.5, *sorted(table["gain"].unique())[1:], 1e6, 1e7])
    rows = table.iloc[:1].loc[[0] * len(gains)].assign(gain=gains)
    line = people.coordinates(encoding.encode(rows, torch.float64))[:, 1]
    assert (line.diff() > 0).all()


def test_a_column_of_one_value_changes_no_distance():
    table = table_of(100, 4).assign(gain=7.0)
    _, x, people = fitted(table)
    assert people.distance(x, 0).isfinite().all()
    assert (people.coordinates(x)[:, 1] == 0).all()


def test_single_precision_is_exact_enough():
    """Far from the origin of the encoding, with people who lie at distance 0 and next to each other."""
    table = table_of(400, 5)
    table["gain"] += 1e6
    table = pd.concat([table, table.iloc[:50]], ignore_index=True)
    _, x, people = fitted(table)
    single = people.distance(x.float(), 1)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), people.distance(x, 1), atol=1e-4, rtol=1e-4)


def test_the_threshold_is_the_quantile_of_people_measured_against_the_others():
    table = table_of(80, 6)
    _, _, people = fitted(table, share=0.8)
    rows = described(table)
    for target in (0, 1):
        own = [row for row, label in zip(rows, table["class"], strict=True) if label == target]
        alone = sorted(
            mean_of_nearest([apart(one, other) for j, other in enumerate(own) if j != i]) for i, one in enumerate(own)
        )
        k = math.ceil(0.8 * (len(own) + 1))
        assert float(people.thresholds[target]) == pytest.approx(alone[k - 1])


def test_duplicates_leave_each_other_at_no_distance():
    table = pd.concat([table_of(15, 7)] * 8, ignore_index=True)
    _, x, people = fitted(table)
    assert (people.distance(x, 0)[table["class"].to_numpy() == 0] == 0).all()
    present = table["class"].value_counts()
    assert all(float(people.thresholds[target]) == 0 for target in (0, 1) if present[target] >= FEWEST_PEOPLE)
    assert people.plausible(x, encoded_classes(table), x).all()


def encoded_classes(table: pd.DataFrame) -> torch.Tensor:
    return torch.tensor(table["class"].to_numpy())


def test_the_share_of_new_people_who_pass_is_as_asked():
    """Over splits the mean is within the binomial interval, on top of the spread that the thresholds add."""
    passed = []
    for seed in range(12):
        table = table_of(1200, 100 + seed)
        train, test = table.iloc[:600], table.iloc[600:]
        encoding, _, people = fitted(train)
        x, y = encoding.encode(test, torch.float64), encoding.labels(test)
        passed.append(float((people.distance(x, y) <= people.thresholds[y]).double().mean()))
    # One split varies by the test rows and by the training rows alike: variance 2 · 0.95 · 0.05 / 600.
    deviation = math.sqrt(2 * 0.95 * 0.05 / 600 / len(passed))
    assert abs(np.mean(passed) - 0.95) < 3 * deviation + 1 / 300  # a class of 300 rounds up


def within_ages(ages):
    def inside(train, test):
        low, high = np.quantile(ages[train], [0.015, 0.985])
        return (ages[test] >= low) & (ages[test] <= high)

    return inside


def test_people_outside_the_ranges_count_as_not_passing():
    """Ranges that lose 3 % leave 2 % to the distance: together they pass 95 %."""
    together, alone = [], []
    for seed in range(12):
        table = table_of(1200, 200 + seed)
        train, test = table.iloc[:600].reset_index(drop=True), table.iloc[600:]
        encoding, _, people = fitted(train, inside_folds=within_ages(train["age"].to_numpy()))
        x, y = encoding.encode(test, torch.float64), encoding.labels(test)
        near = (people.distance(x, y) <= people.thresholds[y]).numpy()
        low, high = np.quantile(train["age"], [0.015, 0.985])
        alone.append(near.mean())
        together.append((near & test["age"].between(low, high).to_numpy()).mean())
    deviation = math.sqrt(2 * 0.95 * 0.05 / 600 / len(together))
    assert abs(np.mean(together) - 0.95) < 3 * deviation + 1 / 300
    assert np.mean(alone) > 0.96


def test_folds_hold_out_every_row_once_and_never_train_on_it():
    table, asked = table_of(103, 8), []

    def inside(train, test):
        assert not set(train) & set(test)
        assert len(train) + len(test) == len(table)
        asked.extend(test)
        return np.ones(len(test), dtype=bool)

    _, _, people = fitted(table, inside_folds=inside, folds=5)
    assert sorted(asked) == list(range(len(table)))
    assert torch.equal(people.thresholds, fitted(table)[2].thresholds)


def test_ranges_that_lose_too_many_leave_the_largest_distance(caplog):
    table = table_of(200, 9)
    with caplog.at_level(logging.WARNING):
        _, _, people = fitted(table, inside_folds=lambda train, test: test % 4 > 0)
    assert "ranges of numbers alone pass" in caplog.text
    assert people.thresholds.isfinite().all()
    assert (people.thresholds >= fitted(table)[2].thresholds).all()
    none = fitted(table, inside_folds=lambda train, test: test < 0)[2]
    assert none.thresholds.isfinite().all()


def test_an_unusual_person_may_stay_as_unusual_as_they_are():
    table = table_of(500, 10)
    encoding, _, people = fitted(table)
    odd = table.iloc[:2].assign(age=79, job="clerk", gain=[9e6, 9e6], grade="low", region=["west", "west"])
    odd.loc[1, "gain"] = 1.1e7
    a, b = encoding.encode(odd, torch.float64).split(1)
    usual = encoding.encode(table.iloc[2:3], torch.float64)
    assert float(people.distance(a, 0)) > float(people.thresholds[0])
    assert people.plausible(a, 0, a).all()
    assert people.plausible(a, 0, b).all()
    assert not people.plausible(b, 0, a).any()
    assert not people.plausible(a, 0, usual).any()
    torch.testing.assert_close(people.limits(a, 0), people.distance(a, 0) / people.thresholds[0])


def test_rows_do_not_depend_on_one_another():
    table = table_of(700, 11)
    _, x, people = fitted(table)
    x, target = x.float(), encoded_classes(table)
    together = people.distance(x, target)
    for row in (0, 17, 699):
        torch.testing.assert_close(people.distance(x[row : row + 1], target[row : row + 1]), together[row : row + 1])
        torch.testing.assert_close(people.distance(x[row : row + 1], int(target[row])), together[row : row + 1])
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(people.distance(x[order], target[order]), together[order])
    assert people.distance(x[:0], target[:0]).shape == (0,)
    assert people.within(x, target, together).all()
    assert not people.within(x, target, together - 0.01).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [30, 260, 1500])
def test_within_a_limit_is_what_the_distance_says(rows, dtype):
    table = table_of(rows, 20)
    _, x, people = fitted(table)
    x, target = x.to(dtype), encoded_classes(table)
    x = x + 0.2 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    distance = people.distance(x, target)
    for limit in (torch.full_like(distance, torch.inf), distance.mean().expand(rows), distance.flip(0), -distance):
        sure = (distance - limit).abs() > 1e-4 * distance
        assert torch.equal(people.within(x, target, limit)[sure], (distance <= limit)[sure])
    assert people.within(x, target, distance).all()
    assert not people.within(x, target, 0.99 * distance - 1e-4).any()


def test_distances_are_not_followed_by_gradients():
    table = table_of(60, 21)
    _, x, people = fitted(table)
    x.requires_grad_()
    assert not people.distance(x, 1).requires_grad
    assert people.plausible(x, 1, x).all()


def test_ranges_are_learned_without_the_rows_they_judge():
    """What the schema declares excludes nobody, and what is missing stays."""
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, -9.0, np.nan])
    train, test = np.arange(1, 4), np.arange(7)
    open_ended, from_zero = Feature("a", "real"), Feature("a", "real", lower=0)
    inside = learned_ranges([(open_ended, values)])(train, test)
    assert inside.tolist() == [False, True, True, True, False, False, True]
    inside = learned_ranges([(from_zero, values)])(train, test)
    assert inside.tolist() == [True, True, True, True, False, True, True]
    assert learned_ranges([(Feature("a", "real", lower=20), values)])(train, test).all()
    assert learned_ranges([(Feature("a", "real", ranges=((2, 3),)), values)])(train, test).all()
    assert learned_ranges([])(train, test).all()


def test_a_large_class_is_cut_and_its_threshold_holds_at_that_density():
    train, test = table_of(4000, 13), table_of(2000, 14)
    encoding, _, people = fitted(train, most=300)
    assert [len(rows) for rows in people.encoded] == [300, 300]
    again = fitted(train, most=300)[2]
    assert all(torch.equal(a, b) for a, b in zip(people.encoded, again.encoded, strict=True))
    assert not torch.equal(fitted(train, most=300, seed=1)[2].encoded[0], people.encoded[0])
    x, y = encoding.encode(test, torch.float64), encoding.labels(test)
    passed = float((people.distance(x, y) <= people.thresholds[y]).double().mean())
    assert abs(passed - 0.95) < 4 * math.sqrt(0.95 * 0.05 / 600)


def test_a_tiny_class_has_no_threshold_and_an_empty_one_passes_everything(caplog):
    table = table_of(300, 15)
    few = pd.concat([table[table["class"] == 0], table[table["class"] == 1].iloc[:3]], ignore_index=True)
    with caplog.at_level(logging.INFO):
        _, x, people = fitted(few)
    assert f"class 1 has 3 people, fewer than {FEWEST_PEOPLE}" in caplog.text
    assert people.thresholds[1] == torch.inf
    assert people.plausible(x, 1, x).all()
    _, x, people = fitted(few[few["class"] == 0])
    assert len(people.encoded[1]) == 0
    assert people.plausible(x, 1, x).all()


def test_to_another_dtype_and_back_again():
    table = table_of(100, 16)
    _, x, people = fitted(table)
    single = people.to(x.float())
    assert single.to(x.float()) is single
    tensors = [*single.points, *single.encoded, single.thresholds, single.metric.slopes, single.metric.center]
    assert {tensor.dtype for tensor in tensors} == {torch.float32}
    assert single.metric.numbers.dtype == torch.long
    assert "People(" in repr(people)
