from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from holdfast.theory.regions import (
    boundary_distance_inside,
    boundary_piece,
    facet_distance,
    linear_map,
    pattern,
    piece_distance,
    polytope,
)
from perceptrons import Perceptron, drawn


def rows(n: int, d: int, seed: int = 1) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)).double()


def of(hidden: list[list[float]], shifts: list[float], top: list[float], shift: float = 0.0) -> Perceptron:
    """One hidden layer, a row of weights for each unit; class 1 where top·relu(...) + shift > 0."""
    z, b = torch.tensor(top).double(), torch.tensor([shift]).double()
    return Perceptron(
        (torch.tensor(hidden).double().T, torch.stack([-z, z], 1) / 2),
        (torch.tensor(shifts).double(), torch.cat([-b, b]) / 2),
    )


LINEAR = Perceptron((torch.tensor([[0.0, 3.0], [0.0, 4.0]]).double(),), (torch.tensor([0.0, -1.0]).double(),))
# Class 1 where u > 1 and v > 1, or rather min(u, v) > 1: u − relu(u − v) > 1, with u = relu(u + 10) − 10.
CORNER = of([[1, 0], [1, -1]], [10, 0], [1, -1], -11)
# Class 1 inside the diamond |u| + |v| < 1.
NETWORKS = [drawn(2, 8, 2), drawn(3, 6, 5, 3), drawn(5, 9, 7, 2), drawn(4, 10, 2, bias=0.0), CORNER, LINEAR]


# ------------------------------------------------------------------------------------------------ one region


@pytest.mark.parametrize("network", NETWORKS)
def test_the_region_map_is_the_network_all_over_the_region(network):
    d = network.weights[0].shape[0]
    x = rows(40, d)
    (slope, shift), (sides, limits) = linear_map(network, x), polytope(network, x)
    assert slope.shape == (40, network.weights[-1].shape[1], d)
    assert sides.shape == (40, sum(bias.numel() for bias in network.biases[:-1]), d)
    compared = 0
    for step in rows(200, d, seed=2):
        other = x + 0.3 * step
        inside = ((sides @ other[:, :, None])[:, :, 0] <= limits).all(1)
        said = (slope @ other[:, :, None])[:, :, 0] + shift
        torch.testing.assert_close(said[inside], network(other)[inside], rtol=1e-12, atol=1e-12)
        assert torch.equal(pattern(network, other)[inside], pattern(network, x)[inside])
        assert (pattern(network, other)[~inside] != pattern(network, x)[~inside]).any(1).all()
        compared += int(inside.sum())
    assert compared > 200


@pytest.mark.parametrize("network", NETWORKS[:4])
def test_the_map_is_the_gradient(network):
    x = rows(20, network.weights[0].shape[0])
    by_autograd = torch.func.vmap(torch.func.jacrev(lambda row: network(row[None])[0]))(x)
    torch.testing.assert_close(linear_map(network, x)[0], by_autograd, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("network", NETWORKS[:3])
def test_just_beyond_the_nearest_facet_exactly_that_unit_has_turned(network):
    x = rows(60, network.weights[0].shape[0])
    distance, unit = facet_distance(network, x).min(1)
    sides, _ = polytope(network, x)
    g = sides[torch.arange(len(x)), unit]
    before, after = (
        x + share * (distance / g.norm(dim=1))[:, None] * g for share in (1 - 1e-6, 1 + 1e-6)
    )  # outwards, up to the facet and a little over it
    assert torch.equal(pattern(network, before), pattern(network, x))
    turned = pattern(network, after) != pattern(network, x)
    assert (turned.sum(1) == 1).all()
    assert torch.equal(turned.int().argmax(1), unit)


@pytest.mark.parametrize("network", NETWORKS[:3])
def test_nothing_turns_nearer_than_the_nearest_facet(network):
    x = rows(30, network.weights[0].shape[0])
    nearest = facet_distance(network, x).amin(1)
    for direction in torch.nn.functional.normalize(rows(300, x.shape[1], seed=3), dim=1):
        assert torch.equal(pattern(network, x + 0.999999 * nearest[:, None] * direction), pattern(network, x))


def test_facets_by_hand():
    """At (2, 5) the corner's units are u + 10 = 12 with gradient (1, 0), and u − v = −3 with (1, −1)."""
    x = torch.tensor([[2.0, 5.0]])
    torch.testing.assert_close(facet_distance(CORNER, x), torch.tensor([[12.0, 3 / math.sqrt(2)]]).double())
    assert pattern(CORNER, x).tolist() == [[True, False]]


def test_a_unit_without_gradient_has_no_facet_and_a_linear_network_none_at_all():
    still = of([[1, 0], [0, 0]], [0, 2], [1, 1])
    assert facet_distance(still, torch.tensor([[3.0, 0.0]])).tolist() == [[3.0, math.inf]]
    assert facet_distance(LINEAR, rows(4, 2)).shape == (4, 0)
    assert boundary_distance_inside(LINEAR, rows(4, 2)).facet.isinf().all()


def test_rows_are_taken_in_parts_and_none_at_all_is_fine():
    network = drawn(5, 9, 7, 2)
    x = rows(300, 5)
    torch.testing.assert_close(facet_distance(network, x)[150:200], facet_distance(network, x[150:200]))
    assert facet_distance(network, x[:0]).shape == (0, 16)
    assert boundary_distance_inside(network, x[:0]).distance.shape == (0,)


def test_float32_networks_are_read_in_float64():
    network = drawn(3, 6, 5, 3)
    single = Perceptron(tuple(w.float() for w in network.weights), tuple(b.float() for b in network.biases))
    assert linear_map(single, rows(5, 3).float())[0].dtype == torch.float64
    with pytest.raises(ValueError, match=r"expected x \(n, 3\), got \(5, 4\)"):
        pattern(network, rows(5, 4))


# ------------------------------------------------------------------------------------------------ the region's boundary


def test_a_linear_network_has_its_plane_everywhere():
    x = rows(50, 2)
    found = boundary_distance_inside(LINEAR, x)
    wanted = (x @ torch.tensor([3.0, 4.0]).double() - 1).abs() / 5
    torch.testing.assert_close(found.distance, wanted)
    assert found.inside.all()
    assert found.exact.all()
    torch.testing.assert_close(found.lower, wanted)
    torch.testing.assert_close((x - found.foot).norm(dim=1), wanted)


def test_the_corner_seen_from_three_sides():
    """Where u < v the map is u > 1, elsewhere v > 1: from (0, −3) the foot (0, 1) lies in the other region."""
    x = torch.tensor([[3.0, 4.0], [0.0, 6.0], [0.0, -3.0]]).double()
    found = boundary_distance_inside(CORNER, x)
    torch.testing.assert_close(found.distance, torch.tensor([2.0, 1.0, 4.0]).double())
    torch.testing.assert_close(found.foot, torch.tensor([[1.0, 4.0], [1.0, 6.0], [0.0, 1.0]]).double())
    assert found.inside.tolist() == [True, True, False]
    assert found.exact.tolist() == [False, True, False]  # (3, 4) is only 1/√2 from where the map changes
    torch.testing.assert_close(found.lower, torch.tensor([0.5**0.5, 1.0, 4.5**0.5]).double())


def test_a_row_that_is_not_of_the_class_asked_about_has_a_negative_distance():
    x = torch.tensor([[0.0, 6.0]]).double()
    found = boundary_distance_inside(CORNER, x, torch.tensor([1]))
    assert float(found.distance) == pytest.approx(-1)
    torch.testing.assert_close(found.foot, torch.tensor([[1.0, 6.0]]).double())
    assert int(found.other) == 0


@pytest.mark.parametrize("network", [drawn(2, 8, 2), drawn(2, 6, 5, 3), drawn(3, 6, 5, 3, seed=4)])
def test_what_the_region_says_brackets_the_truth(network):
    """Nothing nearer than ``lower`` has another class; a foot inside is a point of the boundary."""
    d = network.weights[0].shape[0]
    x = rows(25, d)
    local = boundary_distance_inside(network, x)
    direction = torch.nn.functional.normalize(rows(2_000, d, seed=9), dim=1)
    share = torch.rand(2_000, 1, generator=torch.Generator().manual_seed(10)).double() ** (1 / d)
    for row, lower, label in zip(x, local.lower, network(x).argmax(1), strict=True):
        ball = row + float(lower) * (1 - 1e-9) * share * direction
        assert (network(ball).argmax(1) == label).all()
    assert local.exact.any()
    torch.testing.assert_close(local.lower[local.exact], local.distance[local.exact])
    ties = network(local.foot[local.inside]).sort(1).values.diff(dim=1)[:, -1]
    assert (ties.abs() < 1e-9)[local.exact[local.inside]].all()


def test_pieces_of_boundary():
    """The corner's boundary above the diagonal is u = 1, v ≥ 1."""
    piece = boundary_piece(CORNER, torch.tensor([3.0, 4.0]).double())
    for point, wanted, at in [((3.0, 4.0), 2.0, (1.0, 4.0)), ((0.0, -3.0), 17**0.5, (1.0, 1.0))]:
        distance, nearest = piece_distance(piece, torch.tensor(point).double())
        assert distance == pytest.approx(wanted)
        torch.testing.assert_close(nearest, torch.tensor(at).double())
    flat = of([[1, 0]], [0], [1], 1)  # class 1 everywhere: relu(u) + 1 > 0
    distance, nearest = piece_distance(boundary_piece(flat, torch.tensor([3.0, 4.0]).double()), torch.zeros(2))
    assert distance == math.inf
    assert nearest.isnan().all()


def test_a_boundary_needs_two_logits():
    with pytest.raises(ValueError, match="the network has one logit"):
        boundary_distance_inside(drawn(2, 4, 1), rows(2, 2))
