import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import linear

from holdfast import PGD, Encoding, Feature, Schema, Space, other_class, predict, why_not
from holdfast.search.random_points import random_points

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
