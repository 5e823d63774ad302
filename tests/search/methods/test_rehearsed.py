"""A search that asks the deployed model and its retrainings at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from holdfast import (
    PGD,
    SNS,
    Encoding,
    Family,
    MinCost,
    Recipe,
    Rehearsed,
    Retraining,
    Space,
    audit,
    make_method,
    other_class,
    plans,
    seeds,
    train,
)
from holdfast.families.changes import leave_one_out
from holdfast.models.merged import merged
from holdfast.search.pipeline import Pipeline


@pytest.fixture(scope="module")
def german(loaded):
    """Small networks of German Credit: one deployed, twelve to rehearse with, forty that judge."""
    table, schema = loaded("german")
    encoding = Encoding.fit(table[:700], schema)
    x, y = encoding.encode(table[:700]), encoding.labels(table[:700])
    networks = train(x, y, Recipe((16,), epochs=15), [Retraining(), *seeds(52)])
    rows = encoding.encode(table[700:740])
    return networks[0], networks[1:13], networks[13:], rows, other_class(networks[0], rows), encoding


def linear(weight, bias):
    w = torch.tensor([[-half, half] for half in weight]) / 2
    return lambda x: x @ w.to(x) + torch.tensor([-bias, bias]).to(x) / 2


def test_the_nearest_point_on_which_linear_models_agree():
    """Each model accepts a half plane; the nearest point of their intersection is known."""
    space = Space.free(torch.tensor([[-10.0, -10.0], [10.0, 10.0]]))
    deployed, others = linear((1.0, 0.0), -1.0), Family.from_models([linear((0.0, 1.0), -2.0), linear((1.0, 1.0), 5.0)])
    x, target = torch.zeros(1, 2), torch.ones(1, dtype=torch.int64)
    for norm in (1, 2):
        for margin in (0.0, 0.5):
            found = Rehearsed(others, margin=margin, search=MinCost(norm=norm))(deployed, x, target, space)
            assert found.found.all()
            least = torch.tensor([1 + margin, 2 + margin])
            assert bool((found.point[0] > least).all())
            assert float(found.cost(norm)) < 1.03 * float(least.norm(norm))


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_what_is_found_every_member_accepts_by_the_margin(german, margin):
    deployed, rehearsal, _, rows, target, encoding = german
    few = slice(16)
    found = Rehearsed(rehearsal, margin=margin)(deployed, rows[few], target[few], encoding.space)
    assert found.found.any()
    point, wanted = found.point[found.found], found.target[found.found]
    for model in (deployed, *(rehearsal[i] for i in range(len(rehearsal)))):
        logits = model(point)
        own = logits.gather(1, wanted[:, None])[:, 0]
        assert bool((own - logits.gather(1, 1 - wanted[:, None])[:, 0] > margin).all())
    assert not encoding.space.violations(found.point, found.origin)[found.found].any()


def test_it_holds_better_than_a_search_that_sees_one_model(german):
    deployed, rehearsal, judges, rows, target, encoding = german
    space = encoding.space.without_people()
    alone = audit(MinCost(norm=1)(deployed, rows, target, space), judges)
    rehearsed = audit(Rehearsed(rehearsal)(deployed, rows, target, space), judges)
    assert rehearsed.rate < alone.rate / 3


def test_a_soft_minimum_buys_more_than_its_members_say(german):
    """Twelve members that all agree say little about the thirteenth; at a temperature they say more."""
    deployed, rehearsal, judges, rows, target, encoding = german
    space = encoding.space.without_people()
    hard, soft = (
        Rehearsed(rehearsal, temperature=temperature)(deployed, rows, target, space) for temperature in (0.0, 0.5)
    )
    held = rehearsal.predict(soft.point) == target
    assert bool(held[:, soft.found].all())
    both = hard.found & soft.found
    assert audit(soft[both], judges).rate < audit(hard[both], judges).rate
    assert float(soft.cost(1)[both].mean()) > float(hard.cost(1)[both].mean())


def test_a_share_of_the_members_is_enough_where_it_is_asked_for(german):
    deployed, rehearsal, _, rows, target, encoding = german
    space = encoding.space.without_people()
    all_of_them, most = (Rehearsed(rehearsal, share=share)(deployed, rows, target, space) for share in (1.0, 0.75))
    agree = Rehearsed(rehearsal).agreement(deployed, most)
    assert bool((agree[most.found] >= 0.75).all())
    assert bool((agree[most.found] < 1).any())
    both = all_of_them.found & most.found
    assert float(most.cost(1)[both].mean()) < float(all_of_them.cost(1)[both].mean())
    assert bool(agree[~most.found].isnan().all())


@pytest.mark.parametrize(
    "search",
    [
        PGD(radius=10.0, levels=4, steps=20),
        make_method("min-l2"),
        Pipeline(MinCost(norm=1), (SNS(radius=2.0, steps=10),)),
    ],
)
def test_every_search_can_be_rehearsed(german, search):
    deployed, rehearsal, _, rows, target, encoding = german
    few = slice(12)
    found = Rehearsed(rehearsal, search=search)(deployed, rows[few], target[few], encoding.space.without_people())
    assert found.found.any()
    held = rehearsal.predict(found.point) == found.target
    assert bool(held[:, found.found].all())


def test_several_plans_all_of_them_accepted(german):
    deployed, rehearsal, _, rows, target, encoding = german
    several = plans(Rehearsed(rehearsal), deployed, rows[:10], target[:10], encoding.space.without_people(), count=2)
    assert int((several.count == 2).sum()) > 0
    for answer in several.answers:
        assert bool((rehearsal.predict(answer.point) == answer.target)[:, answer.found].all())


def test_the_family_is_merged_like_the_model(rows, encoding):
    x, y = rows
    three = torch.where(torch.arange(len(y)) % 3 == 0, 2, y)
    networks = train(x, three, Recipe((8,), epochs=10), [Retraining(), *seeds(4)], classes=3)
    groups = ((0,), (1, 2))
    model = merged(networks[0], groups)
    space = encoding.space.without_people()
    target = other_class(model, x)
    found = Rehearsed(networks[1:])(model, x, target, space)
    assert found.found.any()
    assert bool((networks[1:].merged(groups).predict(found.point) == target)[:, found.found].all())


def test_an_audit_refuses_what_was_rehearsed(german):
    deployed, rehearsal, judges, rows, target, encoding = german
    found = Rehearsed(rehearsal)(deployed, rows[:5], target[:5], encoding.space.without_people())
    for family in (rehearsal, rehearsal[3:5]):
        with pytest.raises(ValueError, match="the search has seen"):
            audit(found, family)
    assert len(audit(found, judges).kinds) == 40


def test_the_same_bits_twice_and_alone(german):
    deployed, rehearsal, _, rows, target, encoding = german
    space = encoding.space.without_people()
    once, again = (Rehearsed(rehearsal)(deployed, rows[:8], target[:8], space) for _ in range(2))
    torch.testing.assert_close(once.point, again.point, rtol=0, atol=0)


def test_members_of_several_shapes(german):
    deployed, rehearsal, _, rows, target, encoding = german
    space = encoding.space.without_people()
    mixed = Family.from_models([rehearsal[0], lambda x: rehearsal[1](x) * 2])
    found = Rehearsed(mixed)(deployed, rows[:6], target[:6], space)
    assert found.found.any()
    assert bool((mixed.predict(found.point) == target[:6])[:, found.found].all())


def test_left_out_rows_are_a_rehearsal_too(rows, encoding):
    x, y = rows
    networks = train(x, y, Recipe((8,), epochs=10), [Retraining(), *leave_one_out(6, len(x))])
    found = Rehearsed(networks[1:])(networks[0], x, other_class(networks[0], x), encoding.space)
    assert bool((networks[1:].predict(found.point) == found.target)[:, found.found].all())


def test_caution_is_a_share_below_zero_and_a_temperature_above(german):
    _, rehearsal, judges, *_ = german
    careful = [Rehearsed(rehearsal).with_parameter(value) for value in Rehearsed(rehearsal).parameter_values]
    assert [(one.share, one.temperature) for one in careful[2:7]] == [(0.8, 0), (0.9, 0), (1, 0), (1, 0.1), (1, 0.2)]
    # Of twelve members no share lies between 0.9, which is eleven of them, and all; of forty some do.
    assert [value for value in Rehearsed(judges).parameter_values if value <= 0] == [-0.4, -0.3, -0.2, -0.1, -0.05, 0]


def test_it_says_what_ran_without_the_family(german):
    _, rehearsal, *_ = german
    assert repr(Rehearsed(rehearsal, margin=0.5)).startswith(
        "Rehearsed(margin=0.5, share=1.0, temperature=0.0, search=MinCost("
    )
    assert "members=12" in repr(Rehearsed(rehearsal))
    assert replace(Rehearsed(rehearsal), margin=2).members == 12


@pytest.mark.parametrize("family", [None, [], np.zeros(3), lambda x: x])
def test_a_family_is_needed(family):
    with pytest.raises(TypeError, match="expected a Family"):
        Rehearsed(family)
