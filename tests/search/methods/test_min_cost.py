"""The cheapest point is known for a linear model, and can be found by trying everything in a small discrete space."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from conftest import linear

from holdfast import Margin, MinCost, Space, other_class, predict
from holdfast.models.scores import log_odds
from holdfast.paper.keys import described

W, B = torch.tensor([3.0, 4.0, 0.5]), -1.0
WIDE = Space.box(torch.full((3,), -50.0), torch.full((3,), 50.0))


@pytest.fixture(scope="module")
def x():
    return torch.randn(80, 3, generator=torch.Generator().manual_seed(0))


def test_l2_is_the_distance_to_the_plane(x):
    model = linear(W, B)
    answer = MinCost(norm=2)(model, x, other_class(model, x), WIDE)
    assert answer.found.all()
    torch.testing.assert_close(answer.cost(2), (x @ W + B).abs() / W.norm(), rtol=0.01, atol=1e-3)


def test_l1_moves_the_one_coordinate_that_counts_most(x):
    model = linear(W, B)
    answer = MinCost(norm=1)(model, x, other_class(model, x), WIDE)
    assert answer.found.all()
    torch.testing.assert_close(answer.cost(1), (x @ W + B).abs() / 4.0, rtol=0.01, atol=1e-3)
    assert (answer.sparsity == 1).all()
    assert torch.equal(answer.point[:, [0, 2]], x[:, [0, 2]])  # by no bit


def test_a_box_sends_it_to_the_next_coordinate(x):
    """The best column is held at its bounds, so what is missing is paid for in the second best."""
    model, target = linear(W, B), torch.ones(len(x), dtype=torch.long)
    tight = Space.box(torch.tensor([-50.0, -50.0, -50.0]), torch.tensor([50.0, 0.1, 50.0]))
    rows = torch.where(torch.arange(3) == 1, x.clamp_max(0.1), x)
    answer = MinCost(norm=1)(model, rows, target, tight)
    gap = -(rows @ W + B)
    by_second = (0.1 - rows[:, 1]) * 4.0
    expected = torch.where(gap <= by_second, gap / 4, (0.1 - rows[:, 1]) + (gap - by_second) / 3).clamp_min(0)
    assert answer.found.all()
    torch.testing.assert_close(answer.cost(1), expected, rtol=0.02, atol=2e-3)


def test_a_curved_boundary():
    """From inside a circle the nearest way out is along the radius."""
    rows = torch.tensor([[0.5, 0.0], [0.0, -0.2], [0.3, 0.4], [-0.6, 0.1]])
    model = lambda r: torch.stack([1 - r.norm(dim=1), r.norm(dim=1) - 1], -1) * 3  # noqa: E731
    target = torch.ones(4, dtype=torch.long)
    answer = MinCost(norm=2)(model, rows, target, Space.box(torch.full((2,), -5.0), torch.full((2,), 5.0)))
    torch.testing.assert_close(answer.cost(2), 1 - rows.norm(dim=1), rtol=0.01, atol=2e-3)


def test_three_classes_each_to_the_nearest_plane():
    corners = torch.tensor([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
    rows = 0.5 * torch.randn(60, 2, generator=torch.Generator().manual_seed(1)) + corners[0]
    model = lambda r: r @ corners.T  # noqa: E731
    target = torch.where(torch.arange(60) % 2 == 0, 1, 2)
    answer = MinCost(norm=2)(model, rows, target, Space.box(torch.full((2,), -50.0), torch.full((2,), 50.0)))
    assert answer.found.all()
    away = corners[target] - corners[0]
    plane = ((rows * -away).sum(1) / away.norm(dim=1)).clamp_min(0)  # to where target and class 0 are even
    assert (answer.cost(2) >= plane - 1e-3).all()
    easy = model(answer.point).topk(2).values.diff().abs()[:, 0] < 0.01
    assert easy.float().mean() > 0.9  # ends on a boundary


def test_margin_reaches_its_level_and_no_more(x):
    model = linear(W, B)
    target = other_class(model, x)
    for level in (0.6, 0.9):
        answer = Margin(level=level)(model, x, target, WIDE)
        assert answer.found.all()
        reached = model(answer.point).softmax(1).gather(1, target[:, None])[:, 0]
        assert (reached >= level).all()
        assert (reached <= level + 0.01).all()
        logit = torch.tensor(level).logit()
        sign = 2 * target - 1
        expected = (logit - sign * (x @ W + B)) / W.norm()
        torch.testing.assert_close(answer.cost(2), expected, rtol=0.01, atol=1e-3)


def test_log_odds_are_asked_for_where_a_probability_has_no_digits_left(x):
    """At log-odds of 24 a float32 probability is 1: a level could not say so."""
    model = linear(W, B)
    target = other_class(model, x)
    for asked in (0.0, 4.0, 24.0):
        answer = Margin(log_odds=asked)(model, x, target, WIDE)
        assert answer.found.all()
        reached = log_odds(model, answer.point, target)
        assert (reached >= asked).all()
        assert (reached <= asked + 0.05).all()
        expected = (asked - (2 * target - 1) * (x @ W + B)) / W.norm()
        torch.testing.assert_close(answer.cost(2), expected, rtol=0.01, atol=1e-3)
    assert torch.tensor(24.0).sigmoid() == 1


def test_a_level_and_its_log_odds_are_one_search(x):
    model, level = linear(W, B), 0.9
    target = other_class(model, x)
    same = [Margin(level=level), Margin(log_odds=math.log(level / (1 - level)))]
    points = [method(model, x, target, WIDE).point for method in same]
    assert torch.equal(*points)


def test_a_margin_has_a_level_or_log_odds():
    assert repr(Margin()) == f"Margin(level=0.75, search={MinCost()!r})"
    tuned = replace(Margin(search=MinCost(norm=1)), **{Margin.parameter: 4.0})
    assert tuned == Margin(log_odds=4.0, search=MinCost(norm=1))
    assert repr(tuned) == f"Margin(log_odds=4.0, search={MinCost(norm=1)!r})"
    assert replace(tuned, log_odds=6.0).least == 6.0
    with pytest.raises(ValueError, match="not both"):
        Margin(level=0.9, log_odds=4.0)


def test_a_study_finds_its_margins_by_the_key_they_always_had():
    """The key of 0.1, which had no log-odds."""
    own = ["holdfast.methods.margin.Margin", {"level": 0.75, "search": described(MinCost())}]
    assert described(Margin()) == described(Margin(level=0.75)) == own
    assert described(Margin(log_odds=4.0)) == [own[0], {"level": None, "search": own[1]["search"], "log_odds": 4.0}]


def test_a_level_that_cannot_be_reached_is_not_found(x):
    box = Space.box(x.min(0).values - 0.01, x.max(0).values + 0.01)
    model = linear(W / 100, 0.0)
    target = other_class(model, x)
    assert not Margin(level=0.99)(model, x, target, box).found.any()
    assert MinCost()(model, x, target, box).found.all()


@pytest.mark.parametrize("norm", [1, 2])
def test_in_a_small_discrete_space_it_is_close_to_the_best_there_is(norm, family, rows, encoding):
    """Every combination of what eight people could do, tried one by one, on a grid of ten values a number."""
    model, x, space = family[0], rows[0][:8], encoding.space
    target = other_class(model, x)
    answer = MinCost(norm=norm)(model, x, target, space)
    best = [_cheapest_by_force(model, x[row], int(target[row]), space, norm) for row in range(len(x))]
    there = [row for row in range(len(x)) if best[row] is not None]
    assert len(there) > 5
    assert answer.found[there].all()
    ratio = answer.cost(norm)[there] / torch.tensor([best[row] for row in there])
    assert ratio.mean() <= 1.02
    assert ratio.max() <= 1.3


def _cheapest_by_force(model, x, target, space, norm):
    choices = []
    for mask in space.features:
        columns = torch.nonzero(mask).flatten()
        values = [x[columns]]
        if len(columns) == 1:
            low, high = (bound[0, columns] for bound in space.bounds(x[None]))
            values += [low + share * (high - low) for share in torch.linspace(0, 1, 10)]
        else:
            values += [torch.where(torch.arange(len(columns)) == level, 1e3, -1e3) for level in range(len(columns) + 1)]
        snapped = []
        for value in values:
            point = x.clone()
            point[columns] = value
            snapped.append(space.snap(point[None], x[None])[0, columns])
        choices.append((columns, torch.unique(torch.stack(snapped), dim=0)))
    points = [x.clone()[None]]
    for columns, values in choices:
        grown = points[0].repeat_interleave(len(values), 0)
        grown[:, columns] = values.repeat(len(points[0]), 1)
        points = [grown]
    inside = predict(model, points[0]) == target
    if space.people is not None:
        wanted, origin = torch.full_like(inside, target, dtype=torch.long), x.expand_as(points[0])
        inside &= space.people.plausible(points[0], wanted, origin)
    if not inside.any():
        return None
    return float(torch.linalg.vector_norm(points[0][inside] - x, norm, dim=1).min())


@pytest.mark.parametrize("settings", [{"norm": 3}, {"steps": 0}, {"learning_rate": 0}, {"constants": 0}, {"first": 0}])
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        MinCost(**settings)


@pytest.mark.parametrize("level", [0.0, 1.0, 75])
def test_a_level_is_a_probability(level):
    with pytest.raises(ValueError, match="a probability between 0 and 1"):
        Margin(level=level)
