"""The space with relations, on a census with every kind of them: what snaps, completes and judges agrees with itself
and with a second opinion (`people_checks`)."""

from __future__ import annotations

from functools import cache

import pandas as pd
import torch
from census import CENSUS, census
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from people_checks import violations
from torch import Tensor

from holdfast import Counterfactuals, Encoding, Feature, Implies, Schema, Space

ROWS = 60
seeds = st.integers(0, 10_000)
few = settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])  # a seed has no simpler form


@cache
def encoding() -> Encoding:
    return Encoding.fit(census(), CENSUS)


@cache
def people(dtype: torch.dtype = torch.float32) -> tuple[pd.DataFrame, Tensor, Space]:
    """People, those who break a relation or lie outside their bounds among them."""
    table = census(ROWS, seed=3)
    x = encoding().encode(table, dtype)
    return table, x, encoding().space.to(x)


def somewhere(x: Tensor, seed: int, size: float) -> Tensor:
    """Away from home in some columns."""
    draw = torch.Generator().manual_seed(seed)
    noise = torch.randn(x.shape, generator=draw, dtype=torch.float64).to(x)
    return torch.where(torch.rand(x.shape, generator=draw) < 0.4, x + size * noise, x)


def mixed(x: Tensor, seed: int, share: float) -> Tensor:
    """Some features of each row from another person, as they are."""
    draw = torch.Generator().manual_seed(seed)
    others, point = x[torch.randperm(len(x), generator=draw)], x.clone()
    for _, place in encoding().places:
        taken = torch.rand(len(x), 1, generator=draw) < share
        point[:, place] = torch.where(taken, others[:, place], x[:, place])
    return point


def second_opinion(table: pd.DataFrame, x: Tensor, point: Tensor) -> set[int]:
    """The rows that `people_checks` finds something wrong with."""
    told = Counterfactuals(x, point, torch.zeros(len(x), dtype=torch.int64), torch.ones(len(x), dtype=torch.bool))
    ranges = dict(zip(CENSUS.names, encoding().ranges, strict=True))
    found = violations(encoding().schema, table, told.to_frame(encoding(), table), census(), ranges)
    return {row for row, _ in found}


def test_everybody_may_stay_whatever_they_break():
    table, x, space = people()
    assert len(CENSUS.broken(table)) > 2, "some people break a relation"
    assert not space.violations(x, x).any()
    assert torch.equal(space.snap(x, x), x)
    assert second_opinion(table, x, x) == set()


@given(seed=seeds, size=st.sampled_from([0.1, 1.0, 5.0]), dtype=st.sampled_from([torch.float32, torch.float64]))
@few
def test_snapping_gives_valid_points_and_leaves_them_alone(seed, size, dtype):
    table, x, space = people(dtype)
    once = space.snap(somewhere(x, seed, size), x)
    assert not space.violations(once, x).any()
    assert torch.equal(space.snap(once, x), once)
    assert second_opinion(table, x, once) == set()


@given(seed=seeds, share=st.sampled_from([0.05, 0.3, 1.0]))
@few
def test_snapping_another_persons_features_gives_valid_points(seed, share):
    table, x, space = people()
    once = space.snap(mixed(x, seed, share), x)
    assert not space.violations(once, x).any()
    assert torch.equal(space.snap(once, x), once)
    assert second_opinion(table, x, once) == set()


@given(seed=seeds)
@few
def test_rows_do_not_depend_on_one_another(seed):
    _, x, space = people()
    point = somewhere(x, seed, 1.0)
    together, wrong = space.snap(point, x), space.violations(point, x)
    for row in (0, seed % len(x)):
        alone = slice(row, row + 1)
        assert torch.equal(space.snap(point[alone], x[alone]), together[alone])
        assert torch.equal(space.violations(point[alone], x[alone]), wrong[alone])


@given(seed=seeds, size=st.sampled_from([0.3, 2.0]))
@few
def test_completing_keeps_what_is_kept_and_ends_in_valid_points(seed, size):
    _, x, space = people()
    apart = space.snap_apart(somewhere(x, seed, size), x)
    assert not space.violations_apart(apart, x).any()
    kept = torch.zeros_like(apart, dtype=torch.bool)
    draw = torch.Generator().manual_seed(seed)
    for _, place in encoding().places:
        kept[:, place] = torch.rand(len(x), 1, generator=draw) < 0.2
    whole, valid = space.completed(apart, x, kept)
    assert torch.equal(whole[kept], apart[kept])
    assert not space.violations(whole, x)[valid].any()
    assert valid.any()
    fine = ~space.violations(apart, x).any(1)
    assert valid[fine].all()
    assert torch.equal(whole[fine], apart[fine]), "what breaks nothing stays as it is"


@given(seed=seeds, dtype=st.sampled_from([torch.float32, torch.float64]))
@few
def test_values_are_written_with_the_bits_that_encoding_gives(seed, dtype):
    _, x, space = people(dtype)
    others = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))]
    before, after = space.values(x), space.values(others)
    after = torch.where(after.isnan(), before, after)  # nobody is told to lose a value
    written = space.related.written(x, before, after, space.lower, space.upper)
    again = space.values(written)
    assert torch.equal(again.nan_to_num(-1), after.nan_to_num(-1))
    assert torch.equal(space.related.written(x, before, before, space.lower, space.upper), x)
    for feature, columns in enumerate(space.related.columns):
        own = ~space.values(others)[:, feature].isnan()
        assert torch.equal(written[own][:, list(columns)], others[own][:, list(columns)])
    rest = torch.ones(x.shape[1], dtype=torch.bool)
    rest[[column for columns in space.related.columns for column in columns]] = False
    assert torch.equal(written[:, rest], x[:, rest])


@given(seed=seeds, share=st.sampled_from([0.02, 0.1, 0.3]))
@example(seed=433, share=0.02)  # somebody comes to work exactly as many hours as a relation names
@few
def test_two_opinions_agree_on_who_could_do_this(seed, share):
    table, x, space = people()
    for point in (mixed(x, seed, share), space.snap_apart(somewhere(x, seed, 2.0), x)):
        wrong = set(torch.nonzero(space.violations(point, x).any(1)).flatten().tolist())
        assert wrong == second_opinion(table, x, point)


def test_a_category_of_one_level_is_a_level_and_no_number():
    """Who has a guarantor has a reason for it; the level that is all zeros is the second one."""
    features = (
        Feature("guarantor", "categorical", levels=("yes",), zero_level="no"),
        Feature("reason", "categorical", levels=("asked", "rich")),
    )
    relation = Implies({"guarantor": ("yes",)}, {"reason": ("asked",)})
    table = pd.DataFrame({"guarantor": ["yes", "no", "no"], "reason": ["asked", "rich", "asked"], "y": [0, 1, 0]})
    encoding = Encoding.fit(table, Schema(features, "y", (0, 1), (relation,)), plausible=None)
    x, space = encoding.encode(table), encoding.space
    assert space.values(x).tolist() == [[0, 0], [1, 1], [1, 0]]
    assert not space.violations(x, x).any()
    wanted = x[[0, 0, 0]]
    wanted[:, 1:] = x[1, 1:]  # with a guarantor, and rich
    assert space.violations(wanted, x).any(1).all()
    assert not space.violations(space.snap(wanted, x), x).any()
