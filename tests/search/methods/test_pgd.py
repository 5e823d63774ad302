import pytest
import torch
from conftest import linear

from holdfast import PGD, Space

W = torch.tensor([3.0, 4.0])
WIDE = Space.box(torch.full((2,), -50.0), torch.full((2,), 50.0))


def rows():
    x = 3 * torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    return x[(x @ W - 1) / 5 < 0]  # all on the side of class 0


def test_a_linear_model_is_reached_at_the_first_ball_that_crosses_the_boundary():
    """In a ball of ε the search ends at distance ε along w, so the cost is the smallest rung above the distance."""
    x = rows()
    distance = ((x @ W - 1) / 5).abs()
    answer = PGD(radius=4.0, levels=10)(linear(W, -1.0), x, torch.ones(len(x), dtype=torch.long), WIDE)
    rung = torch.ceil(distance / 0.4) * 0.4
    clear = (rung - distance) > 0.02  # a row on the edge of a ball may go either way
    assert torch.equal(answer.found[clear], (distance < 4)[clear])
    within = clear & answer.found
    torch.testing.assert_close(answer.cost()[within], rung[within], rtol=0.02, atol=0.01)
    moved = answer.point[within] - x[within]
    assert (moved @ W / 5 > 0.99 * moved.norm(dim=1)).all()


def test_the_ball_is_never_left_and_the_box_is_kept():
    x = rows()
    space = Space.box(torch.tensor([-50.0, -50.0]), torch.tensor([0.5, 50.0]))
    inside = x[x[:, 0] <= 0.5]
    answer = PGD(radius=2.0)(linear(W, -1.0), inside, torch.ones(len(inside), dtype=torch.long), space)
    assert answer.found.any()
    assert (answer.cost()[answer.found] <= 2.0 + 1e-5).all()
    assert (answer.point[:, 0] <= 0.5).all()


def test_the_last_iterate_counts_not_the_first_that_crosses():
    """A confident point inside the ball, not the one nearest to the boundary."""
    x = torch.tensor([[-1.0, 0.0]])
    model = linear(torch.tensor([1.0, 0.0]), 0.0)
    answer = PGD(radius=4.0, levels=1)(model, x, torch.tensor([1]), WIDE)
    assert answer.cost().item() == pytest.approx(4.0, rel=1e-3)


def test_the_start_is_in_the_unit_ball_and_differs_by_seed():
    starts = torch.cat([PGD(seed=seed)._start(torch.zeros(1, 5)) for seed in range(200)])
    lengths = starts.norm(dim=1)
    assert lengths.max() <= 1
    assert lengths.mean() == pytest.approx(5 / 6, abs=0.03)  # E‖u‖ = d/(d+1) for the uniform ball
    assert starts.mean(0).abs().max() < 0.12


@pytest.mark.parametrize(
    "settings", [{"radius": 0}, {"radius": -1}, {"radius": float("inf")}, {"levels": 0}, {"steps": 0}]
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="must be above 0"):
        PGD(**settings)


def test_printing_shows_what_ran():
    assert repr(PGD(radius=2.0)) == "PGD(radius=2.0, levels=10, steps=100, random_start=True, seed=0)"
