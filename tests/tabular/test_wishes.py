from dataclasses import replace

import pytest
import torch
from conftest import EVERYTHING, everything, linear
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import PGD, Encoding, MinCost, Space, Wish, other_class
from holdfast.search.failures import random_points
from holdfast.tabular.personal import Personal

NAMES = [feature.name for feature in EVERYTHING.features]


def columns_of(encoding, name):
    return next(place for feature, place in encoding.places if feature.name == name)


@pytest.mark.parametrize(
    "method", [PGD(radius=6.0, levels=3, steps=20), MinCost(norm=1, steps=10), MinCost(norm=2, steps=10)]
)
def test_each_person_gets_their_own_wish(method, family, rows, encoding):
    model, x = family[0], rows[0]
    wishes = [Wish(keep=("debt", "job")), None, Wish(ranges={"debt": (500, 1500), "grade": ("middle", "middle")})] * 20
    space = encoding.space_for(wishes)
    answer = method(model, x, other_class(model, x), space)
    assert answer.found.sum() > 10
    assert not space.violations(answer.point, x).any()
    after, before = encoding.decode(answer.point), encoding.decode(x)
    assert (after["debt"] == before["debt"])[0::3].all()
    assert (after["job"] == before["job"])[0::3].all()
    moved = (after["debt"] != before["debt"])[2::3]
    assert after["debt"][2::3][moved].between(500, 1500).all()
    assert set(after["grade"][2::3][(after["grade"] != before["grade"])[2::3]]) <= {"middle"}
    free = method(model, x, answer.target, encoding.space)
    assert torch.equal(answer.found[1::3], free.found[1::3])  # no wish: as if there were no wishes at all
    torch.testing.assert_close(answer.cost(1)[1::3], free.cost(1)[1::3], rtol=1e-3, atol=1e-3, equal_nan=True)


def test_one_wish_for_everybody_is_the_schema_with_that_wish(family, rows):
    model, x = family[0], rows[0]
    encoding = Encoding.fit(everything(), EVERYTHING)
    fixed = replace(encoding, schema=EVERYTHING.revise("debt", mutable=False)).space
    wished = encoding.space_for(Wish(keep=("debt",)), rows=len(x))
    target = other_class(model, x)
    one, other = MinCost(norm=1)(model, x, target, wished), MinCost(norm=1)(model, x, target, fixed)
    assert torch.equal(one.found, other.found)
    assert not (one.point != x)[:, columns_of(encoding, "debt")].any()


def test_a_preferred_feature_counts_a_third(encoding):
    space = encoding.space_for([None, Wish(prefer=("job",))])
    job = columns_of(encoding, "job")
    others = torch.ones(encoding.width, dtype=torch.bool)
    others[job] = False
    assert (space.weights[0] == 1).all()
    assert (space.weights[1, others] == 1).all()
    torch.testing.assert_close(space.weights[1, job], torch.full((4,), 1 / 3, dtype=torch.float64))


@pytest.mark.parametrize("norm", [1, 2])
def test_a_preferred_column_is_changed_instead_of_one_that_would_be_a_little_cheaper(norm):
    x, target = torch.zeros(2, 2), torch.ones(2, dtype=torch.long)
    people = Personal.none(2, 2)
    people.weight[1, 1] = 1 / 3
    space = replace(Space.box(torch.full((2,), -9.0), torch.full((2,), 9.0)), personal=people.to(x))
    answer = MinCost(norm=norm)(linear(torch.tensor([1.0, 0.5]), -1.0), x, target, space)
    assert answer.found.all()
    if norm == 1:  # cheapest by |gradient| / weight: 1 against 0.5, then 1 against 1.5
        expected = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    else:  # g / w² · short / Σ g² / w²
        expected = torch.tensor([[0.8, 0.4], [1 / 3.25, 4.5 / 3.25]])
    torch.testing.assert_close(answer.point, expected, rtol=0.02, atol=0.01)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sets(st.sampled_from(NAMES)), min_size=3, max_size=3))
def test_whoever_keeps_a_feature_keeps_all_its_columns(kept):
    table = everything(3)
    encoding = Encoding.fit(everything(), EVERYTHING)
    x = encoding.encode(table)
    mask = torch.zeros(3, encoding.width, dtype=torch.bool)
    for row, names in enumerate(kept):
        for name in names:
            mask[row, columns_of(encoding, name).start] = True  # one column is enough
    by_mask = encoding.space.keeping(mask)
    by_wish = encoding.space_for([Wish(keep=tuple(names)) for names in kept])
    assert torch.equal(by_mask.changeable, by_wish.changeable)
    for point in random_points(by_mask, x, 20):
        assert not by_mask.violations(point, x).any()
        for row, names in enumerate(kept):
            for name in names:
                place = columns_of(encoding, name)
                assert torch.equal(point[row, place], x[row, place])


def test_keeping_narrows_what_people_may_do_and_never_widens_it(encoding):
    space = encoding.space_for([Wish(keep=("income",)), None])
    none = torch.zeros(2, space.width, dtype=torch.bool)
    assert torch.equal(space.keeping(none).changeable, space.changeable)
    debt = none.clone()
    debt[:, columns_of(encoding, "debt")] = True
    assert torch.equal(space.keeping(debt).changeable, space.changeable & ~debt)
    assert not debt[:, columns_of(encoding, "income")].any()  # what was handed over stays as it was
    assert encoding.space.personal is None
    with pytest.raises(ValueError, match=r"this space is for 2 people, but kept has 3 rows"):
        space.keeping(none[:1].expand(3, -1))


def test_a_group_is_changed_whole_or_not_at_all(encoding):
    people = Personal.none(2, encoding.width)
    people.mutable[1, columns_of(encoding, "job").start] = False
    with pytest.raises(ValueError, match="some columns of the group"):
        replace(encoding.space, personal=people)


def test_who_is_outside_their_own_range_may_stay_there(encoding, rows):
    x = rows[0]
    space = encoding.space_for(Wish(ranges={"debt": (0, 100)}), rows=len(x))
    assert not space.violations(x, x).any()
    assert torch.equal(space.snap(x, x), x)


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (Wish(keep=("incom",)), r"'incom', which is no feature of the schema \(did you mean 'income'\?\)"),
        (Wish(prefer=("outcome",)), "'outcome', which is no feature"),
        (Wish(ranges={"job": ("clerk", "nurse")}), "'job', whose levels have no order"),
        (Wish(ranges={"debt": (9000, 9900)}), "leaves nothing: the schema allows 0 to 4000"),
        (Wish(ranges={"debt": (300, 200)}), "ends before it begins"),
        (Wish(ranges={"grade": ("middl", "high")}), r"the level 'middl' \(did you mean 'middle'\?\)"),
    ],
)
def test_a_wish_that_does_not_fit_the_schema_is_refused(wish, says, encoding):
    with pytest.raises(ValueError, match=says):
        encoding.space_for([None, wish])


def test_a_wish_is_a_value_of_names():
    assert Wish(keep=["a"]) == Wish(keep=("a",))
    with pytest.raises(ValueError, match="keeps \\['a'\\] but would change it too"):
        Wish(keep=("a",), ranges={"a": (0, 1)})
    with pytest.raises(TypeError, match="expected two numbers"):
        Encoding.fit(everything(), EVERYTHING).space_for([Wish(ranges={"debt": ("a", "b")})])


def test_a_space_for_some_people_is_not_for_others(encoding, rows, family):
    space = encoding.space_for([None] * 5)
    with pytest.raises(ValueError, match="this space is for 5 people, but there are 60 rows"):
        PGD()(family[0], rows[0], other_class(family[0], rows[0]), space)
    assert isinstance(space, Space)
