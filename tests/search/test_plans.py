import functools
from dataclasses import replace

import pandas as pd
import pytest
import torch
from conftest import everything, linear

from holdfast import (
    METHODS,
    PGD,
    Counterfactuals,
    Encoding,
    Feature,
    Follows,
    MinCost,
    Schema,
    Space,
    Wish,
    make_method,
    other_class,
    plans,
)
from holdfast.search.pipeline import Pipeline

SOME = ["min-l1", "min-l2", "pgd+sns"]
NAMES = [*SOME, *(pytest.param(name, marks=pytest.mark.slow) for name in sorted({*METHODS, "min-l1+sparse"} - {*SOME}))]
PEOPLE = 8


def little(method):
    """The same method with little to do."""
    if isinstance(method, Pipeline):
        return replace(method, method=little(method.method), stabilisers=tuple(map(little, method.stabilisers)))
    few = {"steps": 10, "levels": 3, "constants": 3, "epochs": 5, "samples": 50, "shells": 4}
    method = replace(method, **{name: few[name] for name in few if hasattr(method, name)})
    return replace(method, radius=6.0) if isinstance(method, PGD) else method


def changed(plan, space):
    return space.per_feature((plan.point != plan.origin).to(plan.point)) > 0


@pytest.fixture(scope="module")
def three(family, rows, encoding):
    """``three(name)`` are three plans of everybody by that method or pipeline, searched once."""
    model, x, space = family[0], rows[0][:PEOPLE], encoding.space

    @functools.cache
    def search(name):
        return plans(little(make_method(name)).fit(*rows, space), model, x, other_class(model, x), space)

    return search


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_valid_and_no_plan_contains_another(name, three, family, encoding):
    found, space = three(name), encoding.space
    # Samples of an autoencoder seldom leave all features of another plan alone.
    assert (found.count >= 1).any() if name == "latent" else (found.count >= 2).sum() >= 5
    for plan in found.answers:
        assert isinstance(plan, Counterfactuals)
        assert not space.violations(plan.point, plan.origin).any()
        assert torch.equal(family[0](plan.point[plan.found]).argmax(1), plan.target[plan.found])
    for number, one in enumerate(found.answers):
        for other in found.answers[:number]:
            both = one.found & other.found
            sets = changed(one, space)[both], changed(other, space)[both]
            assert not (sets[0] | ~sets[1]).all(1).any()
            assert not (sets[1] | ~sets[0]).all(1).any()


@pytest.mark.parametrize("name", NAMES)
def test_the_cheapest_plan_comes_first_and_later_ones_only_after_it(name, three):
    found = three(name)
    norm = {"min-l2": 2, "margin": 2, "prototype": 1}.get(name, 1)
    costs = torch.stack([plan.cost(norm) for plan in found.answers], dim=1)
    torch.testing.assert_close(found.cost, costs, equal_nan=True)
    there = ~costs.isnan()
    assert (there[:, :-1] | ~there[:, 1:]).all()  # no plan after a missing one
    following = there[:, 1:]
    assert (costs[:, 1:][following] >= costs[:, :-1][following]).all()
    assert torch.equal(found.count, there.sum(1))


def test_one_plan_is_what_the_method_finds(family, rows, encoding, three):
    model, x, space = family[0], rows[0][:PEOPLE], encoding.space
    method = little(MinCost(norm=1))
    alone = method(model, x, other_class(model, x), space)
    one = plans(method, model, x, alone.target, space, count=1)
    assert len(one.answers) == 1
    assert torch.equal(one.answers[0].point, alone.point)
    assert torch.equal(one.answers[0].found, alone.found)
    kept = torch.stack([(plan.point == alone.point).all(1) for plan in three("min-l1").answers]).any(0)
    assert kept[alone.found].all()  # it is among the three, whatever its rank


def test_a_linear_model_has_a_plan_for_each_of_its_columns():
    x = torch.zeros(4, 3)
    space = Space.box(torch.full((3,), -9.0), torch.full((3,), 9.0))
    model = linear(torch.tensor([3.0, 2.0, 1.0]), -1.0)
    found = plans(MinCost(norm=1), model, x, torch.ones(4, dtype=torch.long), space)
    assert found.count.tolist() == [3] * 4
    expected = torch.tensor([1 / 3, 1 / 2, 1.0]).expand(4, 3)  # the distance to the boundary along each column
    torch.testing.assert_close(found.cost, expected, rtol=0.01, atol=1e-3)
    for column, plan in enumerate(found.answers):
        assert (plan.point != x).nonzero()[:, 1].tolist() == [column] * 4


def test_where_no_plan_stands_apart_two_may_share_a_feature_but_not_all():
    """Only a step of two columns is enough, and the last is needed always: {0, 2} and {1, 2}."""
    x = torch.zeros(3, 3)
    space = Space.box(torch.zeros(3), torch.ones(3))
    model = linear(torch.tensor([1.0, 0.9, 1.0]), -1.5)
    found = plans(MinCost(norm=1), model, x, torch.ones(3, dtype=torch.long), space)
    sets = [set((plan.point != x)[0].nonzero().flatten().tolist()) for plan in found.answers if plan.found[0]]
    assert len(sets) >= 2
    assert not any(one <= other for one in sets for other in sets if one is not other)
    assert set.intersection(*map(set, sets[:2]))


def test_whoever_needs_no_change_has_one_plan_and_whoever_cannot_get_there_none():
    x = torch.tensor([[2.0, 2.0], [-1.0, -1.0]])
    space = replace(Space.box(torch.full((2,), -3.0), torch.full((2,), 3.0)), mutable=torch.zeros(2).bool())
    found = plans(MinCost(norm=1), linear(torch.ones(2), 0.0), x, torch.ones(2, dtype=torch.long), space)
    assert found.count.tolist() == [1, 0]
    assert found.cost[0, 0] == 0
    assert repr(found) == "Plans(2 people: 1 with 1, 0 with 2, 0 with 3 or more)"
    nobody = plans(MinCost(norm=1), linear(torch.ones(2), 0.0), x[:0], torch.ones(0, dtype=torch.long), space)
    assert len(nobody) == 0


def test_plans_keep_what_a_person_wishes(family, rows, encoding):
    model, x = family[0], rows[0][:4]
    wishes = [Wish(keep=("debt",)), Wish(prefer=("job",))] * 2
    found = plans(little(MinCost(norm=1)), model, x, other_class(model, x), encoding.space_for(wishes), count=2)
    debt = encoding.columns.index("debt")
    assert found.count.sum() >= 5
    for plan in found.answers:
        assert torch.equal(plan.point[::2, debt], x[::2, debt])


def test_a_table_of_plans_has_a_row_for_every_person_and_plan(three, encoding):
    table = everything().iloc[:PEOPLE].set_axis([f"person {row}" for row in range(PEOPLE)])
    found = three("min-l1")
    frame = found.to_frame(encoding, table)
    assert frame.columns[:3].tolist() == ["row", "plan", "found"]
    assert frame.columns[3:].tolist() == [*encoding.schema.names, "cost", "cost_l1", "cost_l2"]
    assert len(frame) == int(found.count.clamp_min(1).sum())
    assert frame.groupby("row", sort=False).size().index.tolist() == table.index.tolist()
    for label, own in frame.groupby("row"):
        row = table.index.get_loc(label)
        assert own["found"].sum() == found.count[row]
        assert own["plan"].tolist() == list(range(1, len(own) + 1))
        assert own["cost"].is_monotonic_increasing or not own["found"].any()
    same = frame["age"].to_numpy() == table.loc[frame["row"], "age"].to_numpy()
    assert same.all()  # nobody's age changes


def test_changes_are_told_plan_by_plan(three, encoding):
    found = three("min-l1")
    told = found.changes(encoding)
    assert told.columns.tolist() == ["row", "plan", "feature", "before", "after"]
    assert told[["row", "plan"]].apply(tuple, axis=1).is_monotonic_increasing
    for rank, plan in enumerate(found.answers, start=1):
        own = told[told["plan"] == rank].drop(columns="plan").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, plan.changes(encoding))


def test_plans_of_people_with_labels_are_told_by_them_in_the_order_of_the_rows(three, encoding):
    found, people = three("min-l1"), [f"p{PEOPLE - row:03}" for row in range(PEOPLE)]
    told, plain = found.labelled(people).changes(encoding), found.changes(encoding)
    assert told["row"].tolist() == [people[row] for row in plain["row"]]
    pd.testing.assert_frame_equal(told.drop(columns="row"), plain.drop(columns="row"))
    frame = found.labelled(people).to_frame(encoding)
    assert frame["row"].tolist() == [people[row] for row in found.to_frame(encoding)["row"]]


def test_names_that_the_table_has_already_stay_its_own():
    from holdfast.search.plans import _free

    assert _free("plan", ["plan", "plan_"]) == "plan__"


def test_what_only_follows_another_feature_does_not_count():
    """Age rises with the years of study: plans may not differ by it, nor be kept apart by it."""
    features = (
        Feature("study", "integer", lower=0, upper=9),
        Feature("savings", "integer", lower=0, upper=9),
        Feature("age", "integer", mutable=False, lower=18, upper=90),
    )
    schema = Schema(features, "y", (0, 1)).relate(Follows("age", "study", rate=1.0))
    table = pd.DataFrame({"study": [0, 4, 9], "savings": [0, 5, 9], "age": [18, 40, 90], "y": [0, 1, 1]})
    encoding = Encoding.fit(table, schema, scaling="none", plausible=None)
    x = encoding.encode(pd.DataFrame({"study": [2], "savings": [2], "age": [30]}))
    model = linear(torch.tensor([1.0, 0.3, 0.0]), -3.4)  # one year of study, or savings of 5
    found = plans(MinCost(norm=1), model, x, torch.ones(1, dtype=torch.long), encoding.space)
    assert found.count.tolist() == [2]
    told = found.changes(encoding).groupby("plan")["feature"].apply(set)
    assert sorted(map(sorted, told)) == [["age", "study"], ["savings"]]
