import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything, linear

from holdfast import (
    PGD,
    Encoding,
    Feature,
    MinCost,
    Ordered,
    Schema,
    Space,
    Wish,
    other_class,
    predict,
    why_not,
)
from holdfast.search.random_points import random_points
from holdfast.search.relaxing import relaxations

W = torch.tensor([1.0, 1.0])


def in_class(model, points, target):
    """Which points (tries, n, d) have their row's target class: (tries, n)."""
    return torch.stack([predict(model, each) for each in points]) == target


def test_each_failure_has_its_reason():
    x, target = torch.tensor([[-1.0, -1.0], [-1.0, -1.0]]), torch.tensor([1, 0])
    wide = Space.box(torch.full((2,), -2.0), torch.full((2,), 2.0))
    near = PGD(radius=0.1)(linear(W, 0.0), x, target, wide)
    assert why_not(linear(W, 0.0), near, wide)[1] is None  # is there already
    assert "allow a larger radius" in why_not(linear(W, 0.0), near, wide)[0]
    far = PGD(radius=9.0)(linear(W, -5.0), x, target, wide)
    assert "the constraints may allow none" in why_not(linear(W, -5.0), far, wide)[0]
    fixed = replace(wide, mutable=torch.zeros(2, dtype=torch.bool))
    stuck = PGD()(linear(W, 0.0), x, target, fixed)
    assert "allow no change" in why_not(linear(W, 0.0), stuck, fixed)[0]

    def constant(r):
        return torch.stack([0 * r[:, 0] + 2, 0 * r[:, 0]], -1)

    assert "does not depend on what may change" in why_not(constant, PGD()(constant, x, target, wide), wide)[0]


def test_the_distance_it_names_is_that_of_the_nearest_random_point_of_the_class(family, rows, encoding):
    model, x, space = family[0], rows[0], encoding.space
    answer = PGD(radius=0.01)(model, x, other_class(model, x), space)
    reasons = why_not(model, answer, space, tries=500, seed=3)
    assert [reason is None for reason in reasons] == answer.found.tolist()
    points = random_points(space, x, 500, seed=3)
    away = torch.where(in_class(model, points, answer.target), (points - x).norm(dim=-1), torch.inf).amin(0)
    missed = [(reason, nearest) for reason, nearest in zip(reasons, away.tolist(), strict=True) if reason]
    assert len(missed) > 10
    for reason, nearest in missed:
        assert "allow a larger radius" in reason
        assert float(re.search(r"distance ([\d.e+]+)", reason)[1]) == pytest.approx(nearest, rel=0.005)  # 3 digits


def test_where_nobody_is_like_the_only_point_that_is_what_it_says():
    """Loans are half of the income, and the model accepts large incomes with small loans alone."""
    rng = np.random.default_rng(0)
    income = rng.uniform(0, 100, 300)
    known = pd.DataFrame({"income": income, "loan": income / 2 + rng.uniform(-3, 3, 300), "risk": [0, 1] * 150})
    schema = Schema((Feature("income", "real"), Feature("loan", "real", mutable=False)), "risk", (0, 1))
    encoding = Encoding.fit(known, schema, "none")
    x, target = torch.tensor([[10.0, 5.0], [30.0, 1.0], [10.0, 5.0]]), torch.tensor([1, 1, 1])
    model, space = linear(torch.tensor([1.0, 0.0]), -90.0), encoding.space
    answer = PGD(radius=99.0)(model, x, target, space)
    answer = replace(answer, found=answer.found | torch.tensor([False, False, True]))  # somebody else's, say
    assert answer.implausible.all()
    (now, there), (odd, further) = answer.unlikeness[:2].tolist()
    assert now < 1 < there
    assert 1 < odd < further
    told = (
        "only a point that nobody is like has the target class: it is {:.3g} times as far from people of that class as "
        "the limit; the point is in answer.point"
    )
    also = f". As they are, they are already {odd:.3g} times as far from them as the limit"
    assert why_not(model, answer, space) == (told.format(there), told.format(further) + also, None)
    assert predict(model, answer.point).tolist() == [1, 1, 1]


def test_random_points_are_valid_and_reach_every_level(rows, encoding):
    x, space = rows[0], encoding.space
    points = random_points(space, x, 200)
    for point in points[:20]:
        assert not space.violations(point, x).any()
    for group in space.groups:
        columns = [column for column in group.columns if column not in group.avoid]
        assert (points[:, :, columns] > 0).any(0).any(0).all()


def test_where_everything_was_found_there_is_nothing_to_explain(family, rows, encoding):
    model, x = family[0], rows[0]
    answer = PGD(radius=20.0)(model, x[:5], other_class(model, x[:5]), Space.free(x))
    assert answer.found.all()
    assert why_not(model, answer, Space.free(x)) == (None,) * 5
    assert why_not(model, answer[:0], Space.free(x)) == ()


# ---- with an encoding: which constraints stand in the way ----


QUICK = MinCost(norm=1, steps=3, constants=1)


def told(model, table, schema, fit, wishes=None):
    """Why nobody of the table gets class 1, with the constraints as they are."""
    encoding = Encoding.fit(fit, schema, scaling="none", plausible=None)
    x, space = encoding.encode(table), encoding.space if wishes is None else encoding.space_for(wishes)
    answer = QUICK(model, x, torch.ones(len(x), dtype=torch.long), space)
    return why_not(model, answer, space, encoding=encoding, method=QUICK), answer


def numbers(**settings):
    """Two numbers between 0 and 1 and a job, of which only what the settings say may change."""
    features = (
        Feature("a", "real", lower=0, upper=1, **settings.get("a", {})),
        Feature("b", "real", lower=0, upper=1, **settings.get("b", {})),
        Feature("job", "categorical", levels=("x", "y", "z"), **settings.get("job", {"mutable": False})),
    )
    return Schema(features, "y", (0, 1))


HOME = pd.DataFrame({"a": [0.5], "b": [0.5], "job": ["x"]})
SPREAD = pd.DataFrame({"a": [0.0, 1.0, 0.5], "b": [0.0, 1.0, 0.5], "job": ["x", "y", "z"]})
FIXED = {"mutable": False}


def test_every_single_constraint_that_stands_in_the_way_is_named_the_cheapest_first():
    model = linear(torch.tensor([1.0, 0.0, 0.0, 2.0, 0.0]), -1.6)  # a above 1.6, or a above -0.4 and job y
    reasons, _ = told(model, HOME, numbers(b=FIXED), SPREAD)
    assert reasons == ("possible if 'a' may rise above 1, or if 'job' may change",)
    down = linear(torch.tensor([-1.0, 0.0, 0.0, 0.0, 0.0]), 0.2)  # a below 0.2
    reasons, _ = told(down, HOME, numbers(a={"direction": "rise"}), SPREAD)
    assert reasons == ("possible if 'a' may fall",)
    none = linear(torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0]), -0.5)  # job z
    avoided = numbers(job={"avoid": ("z",)})
    assert told(none, HOME, avoided, SPREAD)[0] == ("possible if 'job' may become 'z'",)
    back = linear(torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]), -0.5)  # job x, which is the first
    ordered = numbers(job={"direction": "rise"})
    assert told(back, HOME.assign(job="y"), ordered, SPREAD)[0] == ("possible if 'job' may fall",)
    assert told(none, HOME, numbers(), SPREAD)[0] == ("possible if 'job' may change",)


def test_where_no_single_constraint_is_enough_the_smallest_set_is_named():
    model = linear(torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0]), -2.9)  # a and b near 1, and job y
    reasons, _ = told(model, HOME, numbers(a={"direction": "fall"}), SPREAD)
    enough = [("a' may rise", "job' may change"), ("b' may rise above 1", "job' may change")]
    enough += [("a' may rise above 1", "a' may rise"), ("a' may rise", "b' may rise above 1")]
    assert reasons[0] in [f"possible if '{one} and '{other}" for one, other in enough]
    far = linear(torch.tensor([1.0, 1.0, 0.0, 1.0, 0.0]), -90.0)
    assert told(far, HOME, numbers(), SPREAD)[0][0].startswith("nothing was found even with every constraint taken")


def test_wishes_and_relations_are_named_too():
    model = linear(torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0]), -0.8)  # a above 0.8
    table = pd.concat([HOME] * 3, ignore_index=True)
    wishes = [Wish(keep=("a",)), Wish(ranges={"a": (0, 0.6)}), None]
    reasons, answer = told(model, table, numbers(), SPREAD, wishes=wishes)
    assert answer.found.tolist() == [False, False, True]
    assert reasons == (
        "possible if the wish to keep 'a' is dropped",
        "possible if the wish for the range of 'a' is dropped",
        None,
    )
    ordered = numbers(b=FIXED).relate(Ordered(("a", "b")))
    reasons, _ = told(model, HOME, ordered, SPREAD)
    assert "'a <= b' need not hold" in reasons[0]
    assert "'b' may change" in reasons[0]


def test_gaps_are_named_too():
    table = SPREAD.assign(y=[0, 1, 1])
    model = linear(torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0]), -0.55)
    schema = numbers(b=FIXED)
    encoding = Encoding.fit(table, schema, scaling="none", plausible=None)
    space = replace(encoding.space, gaps=((0, 0.5, 1.0),), upper=torch.tensor([0.9, 1.0, 1.0, 1.0, 1.0]).double())
    x = encoding.encode(HOME)
    answer = QUICK(model, x, torch.ones(1, dtype=torch.long), space)
    assert not answer.found.any()
    reason = why_not(model, answer, space, encoding=encoding)[0]
    assert "'a' may have values that nobody has" in reason
    assert "'a' may rise above 0.9" in reason  # where the gap ends


def test_a_row_that_another_search_finds_has_no_constraint_in_its_way(family, rows, encoding):
    model, x = family[0], rows[0][:3]
    answer = PGD(radius=0.01, levels=1, steps=2)(model, x, other_class(model, x), encoding.space)
    reasons = why_not(model, answer, encoding.space, encoding=encoding, method=QUICK)
    assert not answer.found.any()
    assert all(reason.startswith("the constraints allow it") for reason in reasons)


@pytest.mark.slow
def test_every_way_out_that_is_named_is_one(family, rows):
    """Each sentence is taken at its word: with just that constraint less, the search finds a counterfactual."""
    model, x = family[0], rows[0][:6]
    tight = EVERYTHING.revise("owner", "job", "delay", "grade", mutable=False).revise("debt", lower=1000, upper=2000)
    encoding = Encoding.fit(everything(), tight)
    answer = QUICK(model, x, other_class(model, x), encoding.space)
    reasons = why_not(model, answer, encoding.space, encoding=encoding, method=QUICK)
    assert [reason is None for reason in reasons] == answer.found.tolist()
    named = [(row, reason) for row, reason in enumerate(reasons) if reason and "possible if" in reason]
    assert len(named) >= 2
    for row, reason in named[:2]:
        together = re.findall(r"'(\w+)' may change", reason) if " and " in reason else []
        for way in [together] if together else [[name] for name in re.findall(r"'(\w+)' may change", reason)]:
            freed = replace(encoding, schema=tight.revise(*way, mutable=True)).space
            assert QUICK(model, x[row : row + 1], answer.target[row : row + 1], freed).found.all()


def test_what_does_not_belong_together_is_refused(family, rows, encoding):
    model, x = family[0], rows[0][:3]
    answer = PGD(radius=0.01, levels=1, steps=2)(model, x, other_class(model, x), encoding.space)
    with pytest.raises(TypeError, match="expected an Encoding"):
        why_not(model, answer, encoding.space, encoding="german")
    with pytest.raises(ValueError, match="pass encoding= too"):
        why_not(model, answer, encoding.space, method=MinCost())
    with pytest.raises(TypeError, match="expected a method"):
        why_not(model, answer, encoding.space, encoding=encoding, method="pgd")


def test_a_limit_is_told_in_the_tables_numbers_and_not_in_those_of_single_precision():
    """Zero, shifted by a mean and scaled by a deviation, often comes back as 5e-09."""
    for seed in range(20):
        counts = np.random.default_rng(seed).poisson(1.3, 501)
        table = pd.DataFrame({"count": counts, "y": ["no", "yes", "yes"] * 167})
        encoding = Encoding.fit(table, Schema((Feature("count", "integer", lower=0, upper=9),), "y", ("no", "yes")))
        told = [one.says for one in relaxations(encoding.space, encoding)]
        assert "'count' may fall below 0" in told
        assert "'count' may rise above 9" in told
