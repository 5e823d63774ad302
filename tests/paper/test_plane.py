"""What the paper's figures show is computed, and true of the networks at hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from holdfast import Recipe, seeds, train
from holdfast.paper import plane
from holdfast.theory.regions import linear_map, pattern


@pytest.fixture(scope="module")
def shown() -> plane.Disagreement:
    return plane.disagreement()


@pytest.fixture(scope="module")
def paths() -> plane.Paths:
    return plane.paths(rows=12, members=3, recipe=Recipe((32, 16), epochs=30), points=21, workers=1)


@dataclass(frozen=True)
class Hidden:
    """One hidden layer, a row of weights for each unit; class 1 where top·relu(...) + shift > 0."""

    hidden: Tensor
    shifts: Tensor
    top: Tensor
    shift: float

    @property
    def weights(self) -> tuple[Tensor, ...]:
        return self.hidden.T, torch.stack([-self.top, self.top], 1) / 2

    @property
    def biases(self) -> tuple[Tensor, ...]:
        return self.shifts, torch.tensor([-self.shift, self.shift]) / 2


# Class 1 inside the diamond |u| + |v| < 1: four regions, one a quadrant, each with one side of it.
DIAMOND = Hidden(torch.tensor([[1.0, 0], [-1, 0], [0, 1], [0, -1]]), torch.zeros(4), -torch.ones(4), 1.0)


# ---- Figure 1 ----


def test_two_counterfactuals_of_equal_cost_meet_different_fates_in_deep_networks(shown):
    x, y = plane.cloud()
    first, second = (train(x, y, plane.DEEP, seeds(1, start=seed), workers=1)[0] for seed in (0, 2))
    person, points = torch.from_numpy(shown.person).float(), torch.from_numpy(shown.deep.point).float()
    assert first(person[None]).argmax(1).tolist() == second(person[None]).argmax(1).tolist() == [0]
    assert first(points).argmax(1).tolist() == [1, 1]
    assert second(points).argmax(1).tolist() == [1, 0]
    assert shown.deep.holds.tolist() == [True, False]
    cost = (points - person).norm(dim=1)
    torch.testing.assert_close(cost[0], cost[1], rtol=1e-5, atol=0)
    np.testing.assert_allclose(shown.deep.cost, cost, rtol=1e-5)


def test_cost_and_distance_from_the_boundary_are_the_same_for_all_four(shown):
    margins: list[float] = []
    np.testing.assert_allclose([*shown.deep.cost, *shown.linear.cost], shown.deep.cost[0])
    x, y = plane.cloud()
    for twins, recipe in ((shown.deep, plane.DEEP), (shown.linear, plane.LINEAR)):
        network = train(x, y, recipe, seeds(1, start=0), workers=1)[0]
        margins += [boundary_distance(network, point) for point in twins.point]
    assert min(margins) > 0.1
    assert np.ptp(margins) < 0.1 * np.mean(margins)


def boundary_distance(network, point: np.ndarray) -> float:
    """How far a network of two inputs goes on accepting, along the shortest of 720 rays: to a thousandth."""
    angles, steps = torch.arange(720) * torch.pi / 360, torch.arange(2000) / 1000
    rays = torch.stack([angles.cos(), angles.sin()], 1)
    places = torch.from_numpy(point).float() + steps[:, None, None] * rays  # (steps, rays, 2)
    accepted = network(places.flatten(0, 1)).argmax(1).view(len(steps), len(rays)) == 1
    return float(steps[(~accepted).any(1)][0])


def test_counterfactuals_of_linear_networks_share_their_fate(shown):
    assert shown.linear.holds.all()
    assert np.linalg.norm(shown.linear.point[0] - shown.linear.point[1]) > 1  # two, not one twice


def test_linear_networks_of_different_seeds_differ_much_less_than_deep_ones(shown):
    assert shown.deep.apart > 3 * shown.linear.apart
    accepts = shown.deep.score > 0
    assert shown.deep.apart == (accepts[0] != accepts[1]).mean()


def test_the_grid_shows_the_person_where_they_are(shown):
    """The first axis of the scores is up, the second across."""
    up, across = (np.abs(shown.axis - shown.person[axis]).argmin() for axis in (1, 0))
    assert (shown.deep.score[:, up, across] < 0).all()
    for twins in (shown.deep, shown.linear):
        for point, holds in zip(twins.point, twins.holds, strict=True):
            up, across = (np.abs(shown.axis - point[axis]).argmin() for axis in (1, 0))
            assert (twins.score[:, up, across] > 0).tolist() == [True, holds]


def test_networks_without_a_disagreement_say_so():
    with pytest.raises(ValueError, match=r"seeds \(1, 1\) is invalidated; take another pair"):
        plane.disagreement((1, 1), members=2, places=61)


# ---- Figure 2(a) ----


def test_the_diamond_has_four_regions_and_four_sides():
    shown = plane.regions(DIAMOND, limit=2.0)
    assert len(shown.cells) == 4
    assert sorted(cell.area for cell in shown.cells) == pytest.approx([4.0] * 4)
    assert [cell.length for cell in shown.cells] == pytest.approx([2**0.5] * 4)
    for cell in shown.cells:
        assert cell.gradient == pytest.approx(-np.sign(cell.centre))  # towards the middle
        assert np.abs(cell.boundary).sum(1) == pytest.approx([1.0, 1.0])
        assert np.abs(cell.accepted).sum(1).max() == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [3, 7])
def test_gradients_are_normal_to_the_boundary_and_regions_fill_the_plane(seed):
    network = plane.small_network(seed)
    shown = plane.regions(network)
    assert sum(cell.area for cell in shown.cells) == pytest.approx((2 * plane.LIMIT) ** 2)
    crossed = [cell for cell in shown.cells if cell.boundary is not None]
    assert len(crossed) > 3
    for cell in crossed:
        along = cell.boundary[1] - cell.boundary[0]
        assert abs(along @ cell.gradient) < 1e-9 * cell.length * cell.slope
        logits = network(torch.from_numpy(cell.boundary).float())
        torch.testing.assert_close(logits[:, 0], logits[:, 1], rtol=1e-4, atol=1e-4)
    for normal in shown.normals:
        cell = shown.cells[normal.cell]
        step = normal.foot - normal.point
        assert step @ cell.gradient == pytest.approx(normal.length * cell.slope)  # the same direction
        assert normal.foot @ cell.gradient == pytest.approx(cell.offset)
    assert [normal.crossed for normal in shown.normals] == [True, True, False]


def test_no_region_is_missed_or_shown_twice():
    network = plane.small_network()
    shown = plane.regions(network)
    centres = torch.from_numpy(np.stack([cell.centre for cell in shown.cells]))
    patterns = {tuple(row) for row in pattern(network, centres).tolist()}
    assert len(patterns) == len(shown.cells)
    places = plane.LIMIT * (2 * torch.rand(5000, 2, generator=torch.Generator().manual_seed(0)) - 1)
    assert {tuple(row) for row in pattern(network, places).tolist()} <= patterns
    slope, _ = linear_map(network, centres)
    np.testing.assert_allclose([cell.gradient for cell in shown.cells], slope[:, 1] - slope[:, 0], atol=1e-12)


# ---- Figure 2(b) ----


def test_sns_raises_the_mean_of_the_path(paths):
    assert (paths.after.mean(1) > paths.before.mean(1)).all()
    assert paths.retrained_after.mean() > paths.retrained_before.mean()
    assert paths.held_after > paths.held_before


def test_paths_begin_at_zero_and_end_at_a_counterfactual(paths):
    assert paths.t[[0, -1]].tolist() == [0, 1]
    assert paths.before.shape == paths.after.shape == (12, 21)
    assert paths.retrained_before.shape == paths.retrained_after.shape == (3, 21)
    np.testing.assert_array_equal(paths.before[:, 0], paths.after[:, 0])  # the same place for all
    assert len(np.unique(paths.before[:, 0].round(5))) <= 2  # a class each
    assert (paths.before[:, -1] > 0.5).all()
    assert (paths.after[:, -1] > 0.5).all()
