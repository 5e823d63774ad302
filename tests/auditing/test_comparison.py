"""Methods side by side: on the same rows, before the same members."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from holdfast import Audit, Counterfactuals
from holdfast.auditing.comparison import Comparison, compare
from holdfast.auditing.intervals import mean_interval, member_interval

ORIGIN = torch.arange(10.0).reshape(5, 2)
KINDS = ("seeds", "seeds", "leave-one-out")
ALL = (1, 1, 1, 1, 1)


def made(invalidated, cost, found=ALL, kinds=KINDS, origin=ORIGIN, before=None) -> Audit:
    """An audit in which members (k) invalidate rows (n) as given, at the costs given, all of it in the first column."""
    invalidated, found = torch.tensor(invalidated), torch.tensor(found).bool()
    away = torch.zeros_like(origin)
    away[:, 0] = torch.tensor(cost, dtype=origin.dtype)
    answer = Counterfactuals(origin, origin + away, torch.ones(len(origin), dtype=torch.int64), found, 2)
    return Audit(1 - invalidated, answer, kinds, before)


#              row 0  1  2  3  4
PGD = made([[1, 1, 0, 0, 1], [1, 0, 1, 0, 1], [0, 0, 0, 0, 1]], (1.0, 2.0, 3.0, 4.0, 9.0))
SNS = made([[0, 1, 0, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 0]], (2.0, 4.0, 6.0, 9.0, 5.0), (1, 1, 1, 0, 1))
# Dearer than SNS on the rows 0, 1, 2 that all find, and invalidated as often.
FAR = made([[0, 1, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1]], (3.0, 6.0, 9.0, 1.0, 9.0), (1, 1, 1, 1, 0))


@pytest.fixture
def three() -> Comparison:
    return compare({"pgd+sns": SNS, "pgd": PGD, "far": FAR})


def test_rates_and_costs_are_those_of_the_rows_that_all_methods_found(three):
    assert three.common.tolist() == [True, True, True, False, False]
    table = three.table()
    assert list(table["method"]) == ["pgd", "pgd+sns", "far"]  # cheapest first
    assert table["cost"].tolist() == [2.0, 4.0, 6.0]
    assert table["rate"].tolist() == pytest.approx([4 / 9, 1 / 9, 1 / 9])
    assert table["found"].tolist() == [5, 4, 4]
    assert table["common"].tolist() == [3, 3, 3]
    assert table["found_and_held"].tolist() == pytest.approx([8 / 15, 11 / 15, 11 / 15])  # of all pairs
    assert table["spread"][0] == pytest.approx(np.std([2 / 3, 2 / 3, 0]))
    assert (table["low"][0], table["high"][0]) == mean_interval([2 / 3, 2 / 3, 0])


def test_the_cost_is_that_of_the_norm():
    origin = torch.zeros(2, 2)
    answer = Counterfactuals(origin, origin + torch.tensor([3.0, 4.0]), torch.ones(2).long(), torch.ones(2).bool())
    one = Audit(torch.ones(1, 2).long(), answer, ("seeds",))
    assert compare({"a": one, "b": one}).table()["cost"].tolist() == [5.0, 5.0]
    assert compare({"a": one, "b": one}, norm=1).table()["cost"].tolist() == [7.0, 7.0]


def test_on_the_front_is_what_none_beats(three):
    assert three.front == ("pgd", "pgd+sns")  # far is as stable as pgd+sns but dearer
    assert three.table()["front"].tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("points", "front"),
    [
        ({"a": (1.0, 1), "b": (1.0, 1)}, ("a", "b")),  # alike: neither is better
        ({"a": (1.0, 1), "b": (1.0, 2)}, ("a",)),  # as cheap but less stable
        ({"a": (2.0, 1), "b": (1.0, 1)}, ("b",)),  # as stable but dearer
        ({"a": (1.0, 3), "b": (2.0, 2), "c": (3.0, 1)}, ("a", "b", "c")),
        ({"a": (1.0, 1), "b": (2.0, 2), "c": (3.0, 1), "d": (0.5, 3)}, ("d", "a")),
    ],
)
def test_ties_on_the_front(points, front):
    audits = {
        name: made([[1] * invalidated + [0] * (5 - invalidated)] * 3, (cost,) * 5)
        for name, (cost, invalidated) in points.items()
    }
    assert compare(audits).front == front


def test_differences_are_paired_by_member(three):
    lines = three.differences()
    assert list(zip(lines["method"], lines["other"], strict=True)) == [
        ("pgd+sns", "pgd"),
        ("pgd+sns", "far"),
        ("pgd", "far"),
    ]
    assert lines["difference"].tolist() == pytest.approx([-1 / 3, 0, 1 / 3])  # the first's rate less the second's
    apart = np.array([1 / 3, 0, 0]) - np.array([2 / 3, 2 / 3, 0])
    level = 1 - 0.05 / 3  # three pairs hold at once
    low, high = mean_interval((apart + 1) / 2, level)
    assert (lines["low"][0], lines["high"][0]) == pytest.approx((2 * low - 1, 2 * high - 1), abs=1e-12)
    single = compare({"pgd+sns": SNS, "pgd": PGD}).differences(0.8)
    shared = np.array([1 / 4, 0, 0]) - np.array([3 / 4, 3 / 4, 1 / 4])  # on the rows 0, 1, 2, 4
    low, high = mean_interval((shared + 1) / 2, 0.8)  # one pair: the level itself
    assert (single["low"][0], single["high"][0]) == pytest.approx((2 * low - 1, 2 * high - 1), abs=1e-12)


def test_members_of_one_kind_give_narrower_limits(three):
    pooled, one_kind = three.differences(), three.of("seeds").differences()
    apart = np.array([1 / 3, 0]) - np.array([2 / 3, 2 / 3])
    low, high = member_interval((apart + 1) / 2, 1 - 0.05 / 3)
    assert (one_kind["low"][0], one_kind["high"][0]) == pytest.approx((2 * low - 1, 2 * high - 1), abs=1e-12)
    assert len(pooled) == len(one_kind)


def test_only_what_cannot_be_chance_is_significant():
    kinds = ("seeds",) * 60
    hard = torch.randint(0, 2, (60, 5), generator=torch.Generator().manual_seed(0))
    low = made(torch.zeros(60, 5).long().tolist(), ALL, kinds=kinds)
    high = made(torch.ones(60, 5).long().tolist(), ALL, kinds=kinds)
    even, twin = (made(hard.tolist(), ALL, kinds=kinds) for _ in range(2))
    lines = compare({"low": low, "even": even, "high": high, "twin": twin}).differences()
    significant = {
        (one, other): bool(apart) for one, other, apart in lines[["method", "other", "significant"]].to_numpy()
    }
    assert significant == {
        ("low", "even"): True,
        ("low", "high"): True,
        ("low", "twin"): True,
        ("even", "high"): True,
        ("even", "twin"): False,
        ("high", "twin"): True,
    }
    signs = {(one, other): apart for one, other, apart in lines[["method", "other", "difference"]].to_numpy()}
    assert signs["low", "high"] == -1
    assert signs["even", "twin"] == 0
    assert signs["high", "twin"] > 0
    assert (lines["low"] <= lines["difference"]).all()
    assert (lines["difference"] <= lines["high"]).all()


def test_r_squared_is_that_of_a_line_over_all_methods(three):
    cost = np.array([2, 4, 6, 5, 1, 2, 3, 4, 9, 3, 6, 9, 1])  # of the rows that each method itself has found
    rate = np.array([0, 1, 0, 0, 2, 1, 1, 0, 3, 0, 1, 0, 0]) / 3
    line = np.polyval(np.polyfit(cost, rate, 1), cost)
    expected = 1 - ((rate - line) ** 2).sum() / ((rate - rate.mean()) ** 2).sum()
    assert three.r_squared() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("invalidated", "cost"), [([1, 0, 0, 1, 0], (0.1,) * 5), ([0] * 5, (1.0, 2.0, 3.0, 4.0, 5.0))], ids=["cost", "rate"]
)
def test_without_variation_there_is_no_r_squared(invalidated, cost):
    one = made([invalidated] * 3, cost, (1, 1, 1, 0, 0), origin=torch.zeros(5, 2).double())
    assert np.isnan(compare({"a": one, "b": one}).r_squared())


def test_permuting_rows_or_members_changes_nothing(three):
    rows, members = torch.tensor([4, 2, 0, 3, 1]), [2, 0, 1]
    turned = compare({name: audit.of_rows(rows) for name, audit in three.audits.items()})
    kinds = tuple(KINDS[member] for member in members)
    shuffled = compare(
        {name: Audit(audit.predictions[members], audit.counterfactuals, kinds) for name, audit in three.audits.items()}
    )
    for other in (turned, shuffled):
        assert other.table().equals(three.table())
        assert other.front == three.front
        assert other.differences()["difference"].tolist() == pytest.approx(three.differences()["difference"].tolist())
        assert other.differences()["low"].tolist() == pytest.approx(three.differences()["low"].tolist(), abs=1e-9)
        assert other.r_squared() == pytest.approx(three.r_squared(), abs=1e-12)


def test_one_kind_of_change(three):
    seeds = three.of("seeds")
    assert seeds.norm == three.norm
    assert seeds.table()["rate"].tolist() == pytest.approx([4 / 6, 1 / 6, 1 / 6])
    assert three.of("leave-one-out").table()["rate"].tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="no member of kind 'noise'"):
        three.of("noise")


BEFORE = torch.zeros(3, 5, dtype=torch.int64)


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({}, r"two audits or more by the name of their method, got 1 \(Audit\)"),
        ({"b": 3}, r"two audits or more .* got 2 \(Audit, int\)"),
        ({"b": made([[0] * 5] * 3, ALL, origin=ORIGIN + 1)}, "'b' explains 5 rows and 'a' 5, or others"),
        ({"b": made([[0] * 4] * 3, ALL[:4], ALL[:4], origin=ORIGIN[:4])}, "'b' explains 4 rows and 'a' 5"),
        ({"b": made([[0] * 5] * 2, ALL, kinds=KINDS[:2])}, "'b' was audited by 2 members and 'a' by 3"),
        ({"b": made([[0] * 5] * 3, ALL, kinds=KINDS[::-1])}, "or in another order"),
        ({"b": made([[0] * 5] * 3, ALL, before=1 - BEFORE)}, "not the same models; audit both with one family"),
        ({"b": made([[0] * 5] * 3, ALL, (0,) * 5)}, "no row was found by every method"),
    ],
)
def test_what_cannot_be_compared_is_refused(others, message):
    first = made([[0] * 5] * 3, ALL, before=BEFORE)
    with pytest.raises(ValueError, match=message):
        compare({"a": first, **others})


def test_answers_for_different_classes_are_not_compared():
    one = made([[0] * 5] * 3, ALL)
    wish = dataclasses.replace(one.counterfactuals, target=1 - one.counterfactuals.target)
    with pytest.raises(ValueError, match="'b' and 'a' were asked for different classes"):
        compare({"a": one, "b": dataclasses.replace(one, counterfactuals=wish)})


def test_nothing_at_all_is_refused():
    with pytest.raises(ValueError, match=r"got 0 \(nothing\)"):
        compare({})


def test_one_page_says_it_all(three):
    text = repr(three)
    assert "3 rows that all 3 methods found" in text
    lines = text.splitlines()
    assert lines[1].startswith("  * pgd ")
    assert "cost    2.000" in lines[1]
    assert "44.4% invalidated" in lines[1]
    assert "found and held 53.3%" in lines[1]
    assert lines[2].startswith("  * pgd+sns ")
    assert lines[3].startswith("    far ")
    assert "no significant difference at 95 %: pgd+sns = pgd, pgd+sns = far, pgd = far" in text
    assert "nan" not in text


def test_a_notebook_shows_both_tables(three):
    html = three._repr_html_()
    assert html.count("<table") == 2
    for shown in (
        "pgd+sns",
        "44.4%",
        "2.000",
        "found and held",
        "<td>yes</td>",
        "<td>no</td>",
        "-33.3%",
        "3 rows that every",
    ):
        assert shown in html
    assert "nan" not in html.lower()
    assert "True" not in html


def test_a_significant_difference_is_not_listed_as_none():
    kinds = ("seeds",) * 60
    never, always = (made([[value] * 5] * 60, ALL, kinds=kinds) for value in (0, 1))
    assert "no significant difference" not in repr(compare({"never": never, "always": always}))
