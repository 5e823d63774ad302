"""Moves that are harder than others, or counted by the people they pass, cost so: known answers on linear models."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything, linear
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Counterfactuals, Encoding, Feature, MinCost, Schema, Space, Wish, other_class

NUMBERS = st.floats(0.2, 5).map(lambda number: round(number, 2))
ONE = torch.ones(1, dtype=torch.long)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=3))
def test_the_cheapest_column_of_a_linear_model_has_the_largest_gradient_per_weight(drawn):
    gradient, weight = torch.tensor(drawn).unbind(1)
    worth = (gradient / weight).sort(descending=True).values
    if worth[0] < 1.05 * worth[1]:
        return
    space = replace(Space.box(torch.full((3,), -99.0), torch.full((3,), 99.0)), weight=weight)
    answer = MinCost(norm=1)(linear(gradient, -1.0), torch.zeros(1, 3), ONE, space)
    assert answer.found.all()
    best = int((gradient / weight).argmax())
    assert answer.point[0].nonzero().flatten().tolist() == [best]
    assert float(answer.point[0, best]) == pytest.approx(1 / float(gradient[best]), rel=0.01)


@settings(max_examples=6, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=3))
def test_the_cheapest_point_of_a_linear_model_in_squares(drawn):
    gradient, weight = torch.tensor(drawn).unbind(1)
    space = replace(Space.box(torch.full((3,), -99.0), torch.full((3,), 99.0)), weight=weight)
    answer = MinCost(norm=2)(linear(gradient, -1.0), torch.zeros(1, 3), ONE, space)
    buying = gradient / weight**2
    nearest = buying / (gradient * buying).sum()
    least = float((weight * nearest).square().sum())
    assert answer.found.all()
    assert float((weight * answer.point[0]).square().sum()) == pytest.approx(least, rel=0.03)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("schema", [True, False])
def test_weights_that_are_all_one_change_no_bit(norm, schema, family, rows, encoding):
    model, x = family[0], rows[0][:10]
    space = encoding.space if schema else Space.free(rows[0])
    method = MinCost(norm=norm, steps=10, constants=3)
    target = other_class(model, x)
    plain, weighted = (
        method(model, x, target, each) for each in (space, replace(space, weight=torch.ones_like(space.lower)))
    )
    assert torch.equal(plain.point, weighted.point)
    assert encoding.space.weight is None


def test_a_difficult_feature_is_changed_only_where_nothing_else_helps(family, rows):
    model, x = family[0], rows[0][:30]
    target = other_class(model, x)
    often = {}
    for difficulty in (1.0, 20.0):
        encoding = Encoding.fit(everything(), EVERYTHING.revise("debt", difficulty=difficulty))
        answer = MinCost(norm=1, steps=10, constants=3)(model, x, target, encoding.space)
        often[difficulty] = int((answer.point != x)[:, encoding.columns.index("debt")].sum())
    assert often[20.0] < often[1.0] / 2


def test_weights_must_be_numbers_above_zero_for_each_column():
    space = Space.box(torch.zeros(2), torch.ones(2))
    for wrong in (torch.ones(3), torch.tensor([1.0, 0.0]), torch.tensor([1.0, torch.inf])):
        with pytest.raises(ValueError, match="weight must"):
            replace(space, weight=wrong)
    with pytest.raises(ValueError, match="quantiles must have the shape"):
        replace(space, quantiles=torch.zeros(3, 2))


# ---- costs as they are reported, and percentiles ----


def crowded() -> tuple[pd.DataFrame, Schema]:
    """Many people have a wage near 0 and hardly anybody a debt between 0 and 1; both columns have one spread."""
    draw = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "wage": draw.normal(0, 1, 400),
            "debt": np.concatenate([draw.normal(0, 0.01, 40), draw.choice([-1.0, 1.0], 360)]),
            "job": draw.choice(["a", "b", "c"], 400),
        }
    )
    features = (
        Feature("wage", "real", lower=-4, upper=4, ranges=((-4, 4),)),
        Feature("debt", "real", lower=-4, upper=4, ranges=((-4, 4),)),
        Feature("job", "categorical", levels=("a", "b"), zero_level="c"),
    )
    return table.assign(y=draw.choice([0, 1], 400)), Schema(features, "y", (0, 1))


def test_costs_by_four_measures():
    table, schema = crowded()
    encoding = Encoding.fit(table, schema.revise("wage", difficulty=3.0), scaling="none")
    before = pd.DataFrame({"wage": [0.0, 0.0, 0.0], "debt": [0.5, 0.5, 0.5], "job": ["a", "a", "c"]})
    after = pd.DataFrame({"wage": [1.0, 0.0, 0.0], "debt": [0.5, 0.5, 0.9], "job": ["a", "b", "b"]})
    x, point = encoding.encode(before), encoding.encode(after)
    answer = Counterfactuals(x, point, torch.ones(3).long(), torch.ones(3).bool())
    costs = answer.costs(encoding)
    assert costs.columns.tolist() == ["l1", "l2", "difficulty", "percentile"]
    assert costs["l1"].tolist() == pytest.approx([1.0, 2.0, 1.4])
    assert costs["difficulty"].tolist() == pytest.approx([3.0, 2.0, 1.4])
    between = ((table["wage"] > 0) & (table["wage"] < 1)).mean()
    # A level counts 1, whether it is one that has a column or not; nobody's debt lies between 0.5 and 0.9.
    assert costs["percentile"].tolist() == pytest.approx([between, 1.0, 1.0], abs=0.02)
    nothing = replace(answer, found=torch.tensor([True, False, True])).costs(encoding)
    assert nothing.loc[1].isna().all()


def test_by_percentile_the_way_past_few_people_is_the_cheapest():
    table, schema = crowded()
    encoding = Encoding.fit(table, schema.revise("job", mutable=False), scaling="none", plausible=None)
    x = encoding.encode(pd.DataFrame({"wage": [0.0], "debt": [0.1], "job": ["a"]}))
    model = linear(torch.tensor([1.0, 0.9, 0.0, 0.0]), -0.6)
    spaces = [encoding.space, encoding.space_by("percentile"), encoding.space_for([Wish()], by="percentile")]
    changed = [MinCost(norm=1)(model, x, ONE, space).changes(encoding)["feature"].tolist() for space in spaces]
    assert changed == [["wage"], ["debt"], ["debt"]]  # by length, by the people passed


def test_a_measure_that_nobody_knows_is_refused(encoding):
    assert encoding.space_by("deviation") is encoding.space
    with pytest.raises(ValueError, match="'deviation' or by 'percentile', got 'median'"):
        encoding.space_by("median")
    with pytest.raises(ValueError, match="knows no percentiles"):
        replace(encoding, percentiles=None).space_by("percentile")
