from dataclasses import replace

import torch
from conftest import linear

from holdfast import PGD, Space, other_class, why_not
from holdfast.search.failures import random_points

W = torch.tensor([1.0, 1.0])


def test_each_failure_has_its_reason():
    x, target = torch.tensor([[-1.0, -1.0], [-1.0, -1.0]]), torch.tensor([1, 0])
    wide = Space.box(torch.full((2,), -2.0), torch.full((2,), 2.0))
    near = PGD(radius=0.1)(linear(W, 0.0), x, target, wide)
    assert why_not(linear(W, 0.0), near, wide)[1] is None  # is there already
    assert "allow more radius" in why_not(linear(W, 0.0), near, wide)[0]
    far = PGD(radius=9.0)(linear(W, -5.0), x, target, wide)
    assert "the constraints may leave none" in why_not(linear(W, -5.0), far, wide)[0]
    fixed = replace(wide, mutable=torch.zeros(2, dtype=torch.bool))
    stuck = PGD()(linear(W, 0.0), x, target, fixed)
    assert "leave no room" in why_not(linear(W, 0.0), stuck, fixed)[0]

    def constant(r):
        return torch.stack([0 * r[:, 0] + 2, 0 * r[:, 0]], -1)

    assert "does not depend on what may change" in why_not(constant, PGD()(constant, x, target, wide), wide)[0]


def test_the_distance_it_names_is_that_of_a_point_of_the_class(family, rows, encoding):
    model, x, space = family[0], rows[0], encoding.space
    answer = PGD(radius=0.01)(model, x, other_class(model, x), space)
    reasons = why_not(model, answer, space)
    assert [reason is None for reason in reasons] == answer.found.tolist()
    assert any(reason and "allow more radius" in reason for reason in reasons)


def test_random_points_are_valid_and_reach_every_level(rows, encoding):
    x, space = rows[0], encoding.space
    points = random_points(space, x, 200)
    for point in points[:20]:
        assert not space.violations(point, x).any()
    for group in space.groups:
        columns = [column for column in group.columns if column not in group.avoid]
        assert (points[:, :, columns] > 0).any(0).any(0).all()
