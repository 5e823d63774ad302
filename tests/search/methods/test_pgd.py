from dataclasses import replace

import pandas as pd
import pytest
import torch
from conftest import linear

from holdfast import PGD, Encoding, Feature, Recipe, Retraining, Schema, Space, make_method, other_class, train
from holdfast.datasets.prepared import prepare

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
    with pytest.raises(ValueError, match="must be"):
        PGD(**settings)


def test_printing_shows_what_ran():
    assert repr(PGD(radius=2.0)) == "PGD(radius=2.0, levels=10, steps=100, random_start=True, seed=0)"


# ---- a radius that the space decides ----


def steep(encoding):
    """A model that asks for a level which is rare, so that turning it on is a long way."""
    weight = torch.zeros(encoding.width)
    weight[[name.startswith("job=rare") for name in encoding.columns].index(True)] = 1.0
    return linear(weight, -1.0)


def rare(rows=200, share=0.01):
    job = ["rare" if row < share * rows else ("one", "two")[row % 2] for row in range(rows)]
    table = pd.DataFrame({"job": job, "age": [30 + row % 20 for row in range(rows)], "y": ["no", "yes"] * (rows // 2)})
    features = (
        Feature("job", "categorical", levels=("one", "two", "rare")),
        Feature("age", "integer", lower=18, upper=70),
    )
    return table, Encoding.fit(table, Schema(features, "y", ("no", "yes")), plausible=None)


def test_without_a_radius_the_ladder_goes_on_where_levels_are_far_apart():
    table, encoding = rare()
    x, model = encoding.encode(table)[4:9], steep(encoding)
    target = torch.ones(len(x), dtype=torch.long)
    near, wide = (method(model, x, target, encoding.space) for method in (PGD(radius=3.0), PGD()))
    assert not near.found.any()
    assert wide.found.all()
    assert wide.cost().min() > 3
    assert make_method("pgd") == PGD()


def test_rows_that_three_finds_keep_their_answer_and_one_by_one_is_the_same():
    table, encoding = rare()
    x, weight = encoding.encode(table)[:15], torch.zeros(encoding.width)
    weight[-1], weight[2] = 1.0, 0.2
    model = linear(weight, -0.5)
    target = other_class(model, x)
    near, wide = (method(model, x, target, encoding.space) for method in (PGD(radius=3.0), PGD()))
    assert int(near.found.sum()) > 0
    assert torch.equal(near.point[near.found], wide.point[near.found])
    alone = [PGD()(model, x[row : row + 1], target[row : row + 1], encoding.space).point for row in range(0, 15, 7)]
    assert torch.equal(torch.cat(alone), wide.point[::7])


def test_in_a_box_the_default_is_three_to_the_bit():
    x = rows()
    target = torch.ones(len(x), dtype=torch.long)
    for space in (WIDE, Space.free(x)):
        three, default = (method(linear(W, -12.0), x, target, space) for method in (PGD(radius=3.0), PGD()))
        assert not three.found.all()
        assert torch.equal(three.point, default.point)
        assert torch.equal(three.found, default.found)


def test_in_a_space_without_bounds_the_search_ends():
    x = rows()[:3]
    ends = torch.full((2,), torch.inf)
    space = replace(Space.box(-ends, ends), direction=torch.tensor([1.0, 0.0]))
    constant = linear(torch.zeros(2), -1.0)
    answer = PGD(levels=1, steps=2)(constant, x, torch.ones(len(x), dtype=torch.long), space)
    assert not answer.found.any()


@pytest.mark.slow
def test_german_finds_more_where_constraints_hold():
    german = prepare("german")
    x, y = german.rows
    model = train(x, y, Recipe((16,), epochs=5), [Retraining()])[0]
    asked = german.question(20)
    target, space = other_class(model, asked), german.encoding.space
    near, wide = (PGD(radius, levels=5, steps=20)(model, asked, target, space) for radius in (3.0, None))
    assert int(wide.found.sum()) > 1.3 * int(near.found.sum())
    assert bool(wide.found[near.found].all())
