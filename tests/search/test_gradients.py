import math

import pytest
import torch

from holdfast.search import gradients
from holdfast.search.gradients import Ball, by_rows
from holdfast.tabular.space import Space

NORMS = [1, 2, math.inf]


def balls(norm, count=200, width=7):
    draw = torch.Generator().manual_seed(0)
    center = torch.randn(count, width, generator=draw, dtype=torch.float64)
    radius = torch.rand(count, generator=draw, dtype=torch.float64) + 0.1
    point = center + 2 * torch.randn(count, width, generator=draw, dtype=torch.float64)
    return Ball(center, radius, norm), point


@pytest.mark.parametrize("norm", NORMS)
def test_no_point_of_the_ball_is_nearer_than_the_projection(norm):
    """(y − P(x)) · (x − P(x)) ≤ 0 for every y of a convex set is what makes P(x) the nearest point to x."""
    ball, point = balls(norm)
    inside = ball.into(point)
    assert ball.holds(inside[:, None]).all()
    draw = torch.Generator().manual_seed(1)
    for _ in range(100):
        way = torch.randn(point.shape, generator=draw, dtype=torch.float64)
        corners = way / torch.linalg.vector_norm(way, norm, dim=1, keepdim=True) * ball.radius[:, None]
        other = ball.center + corners  # on the sphere
        assert (((other - inside) * (point - inside)).sum(1) <= 1e-9).all()


@pytest.mark.parametrize("norm", NORMS)
def test_what_is_inside_stays_to_the_bit(norm):
    ball, point = balls(norm)
    inside = ball.center + (point - ball.center) * 1e-3
    assert torch.equal(ball.into(inside), inside)
    assert torch.equal(ball.into(ball.center), ball.center)
    outside = ~ball.holds(point[:, None])[:, 0]
    assert outside.any()
    assert (ball.into(point) != point)[outside].any(1).all()


def test_known_projections():
    center, radius = torch.zeros(1, 3), torch.tensor([2.0])
    point = torch.tensor([[3.0, -2.0, 0.5]])
    assert Ball(center, radius, math.inf).into(point).tolist() == [[2.0, -2.0, 0.5]]
    assert Ball(center, radius, 1).into(point).tolist() == [[1.5, -0.5, 0.0]]  # each shrinks by 1.5
    torch.testing.assert_close(Ball(center, radius, 2).into(point), point * 2 / point.norm())


def test_some_rows_are_the_same_rows():
    ball, point = balls(1)
    rows = torch.tensor([3, 190, 7])
    assert torch.equal(ball.of(rows).into(point[rows]), ball.into(point)[rows])


ANYWHERE = Space.box(torch.tensor([-torch.inf]), torch.tensor([torch.inf]))


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_rows_searched_some_at_a_time_are_joined_in_their_order(count, monkeypatch):
    monkeypatch.setattr(gradients, "ROWS_AT_ONCE", 3)
    sizes = []

    def shifted(space, x, by):
        sizes.append(len(x))
        return x + by[:, None]

    x, by = torch.arange(2 * count).view(count, 2), 100 * torch.arange(count)
    assert torch.equal(by_rows(ANYWHERE, shifted, x, by), x + by[:, None])
    assert sum(sizes) == count
    assert max(sizes) <= 3
    assert len(sizes) == max(1, math.ceil(count / 3))


def test_a_device_is_given_more_rows_at_a_time():
    """Meta tensors have no numbers, but they are not on a CPU."""
    sizes = {}
    for device in ("cpu", "meta"):
        x = torch.empty(gradients.ROWS_AT_ONCE_ON_DEVICE + 1, 1, device=device)
        by_rows(ANYWHERE, lambda _, x: sizes.setdefault(x.device.type, []).append(len(x)) or x, x)
    assert sizes == {"cpu": [gradients.ROWS_AT_ONCE] * 16 + [1], "meta": [gradients.ROWS_AT_ONCE_ON_DEVICE, 1]}
