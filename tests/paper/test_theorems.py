from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from conftest import few_or_many
from torch import Tensor

import perceptrons
from holdfast.paper.theorems import further_but_no_safer, proposition1, theorem2
from holdfast.theory.regions import Piece, boundary_piece, linear_map, pattern, piece_distance
from perceptrons import Perceptron

drawn = partial(perceptrons.drawn, bias=0.5)


def retopped(network: Perceptron, size: float, seed: int) -> Perceptron:
    """The same network with another top layer, biases included."""
    generator = torch.Generator().manual_seed(seed)
    weight, bias = (
        part[-1] + size * torch.randn(part[-1].shape, generator=generator).double()
        for part in (network.weights, network.biases)
    )
    return Perceptron((*network.weights[:-1], weight), (*network.biases[:-1], bias))


def of(hidden: list[list[float]], shifts: list[float], top: list[float], shift: float = 0.0) -> Perceptron:
    """One hidden layer, a row of weights for each unit; class 1 where top·relu(...) + shift > 0."""
    z, b = torch.tensor(top).double(), torch.tensor([shift]).double()
    return Perceptron(
        (torch.tensor(hidden).double().T, torch.stack([-z, z], 1) / 2),
        (torch.tensor(shifts).double(), torch.cat([-b, b]) / 2),
    )


def vector(*numbers: float) -> Tensor:
    return torch.tensor(numbers).double()


def rows(n: int, d: int, seed: int = 1) -> Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed)).double()


# ------------------------------------------------------------------------------------------------ Theorem 1, Lemma 1

# min(u, v) > 0: u − relu(u − v) with u = relu(u + 10) − 10. Its boundary is u = 0 above the diagonal, v = 0 below it.
CORNER = of([[1, 0], [1, -1]], [10, 0], [1, -1], -10)
# |v − ½| < ½: two parallel boundaries, v = 0 and v = 1.
BAND = of([[0, 1], [0, -1]], [-0.5, 0.5], [-1, -1], 0.5)


def ramp(length: float) -> Perceptron:
    """v > relu(u) − relu(u − length): flat up to u = 0, then at 45 degrees, then flat again."""
    return of([[0, 1], [1, 0], [1, 0]], [10, 0, -length], [1, -1, 1], -10)


def two_pieces(network: Perceptron, one: Tensor, other: Tensor) -> tuple[Piece, Piece]:
    return boundary_piece(network, one), boundary_piece(network, other)


def test_theorem_1_on_orthogonal_boundaries():
    """From (1, 2), 2 away from v = 0, the foot on u = 0 is (0, 2): on a boundary, and still 2 away from v = 0."""
    first, second = two_pieces(CORNER, vector(2, 1), vector(1, 2))
    found = further_but_no_safer(vector(1, 2), first, second)
    assert found.point is not None
    torch.testing.assert_close(found.point, vector(0, 2))
    assert found.lands == (True, True)
    assert found.orthogonal
    assert found.from_first == pytest.approx((2, 2))
    assert found.from_second == pytest.approx((1, 0))
    assert found.step == 0
    assert found.holds


def test_without_right_angles_theorem_1_fails():
    """x = (−1, 4) is 4 above the flat piece and 5/√2 from the ramp, and both feet are on them, at 45 degrees.

    The ramp ends at (2, 2), so that none of its points is further than √8 < 4 from the flat piece: there is no x'.
    """
    first, second = two_pieces(ramp(2), vector(-1, 4), vector(1, 4))
    x = vector(-1, 4)
    found = further_but_no_safer(x, first, second)
    assert found.lands == (True, True)
    assert found.cosine == pytest.approx(0.5**0.5)
    assert not found.orthogonal
    assert found.point is None
    assert not found.holds
    assert "leaves the second piece" in found.reason
    assert found.from_first[0] == pytest.approx(4)
    assert found.from_second[0] == pytest.approx(12.5**0.5)
    on_ramp = torch.linspace(0, 2, 201).double()[:, None] * vector(1, 1)
    assert max(piece_distance(second, point)[0] for point in on_ramp) < 1e-9
    assert max(piece_distance(first, point)[0] for point in on_ramp) == pytest.approx(8**0.5)


def test_a_longer_ramp_lets_one_walk_far_enough():
    """From the foot (1.5, 1.5), s₂ cos θ / sin θ = 5/√2 along the ramp, to (4, 4): the point with d(x', H₁) = 4."""
    first, second = two_pieces(ramp(20), vector(-1, 4), vector(1, 4))
    found = further_but_no_safer(vector(-1, 4), first, second)
    assert found.point is not None
    torch.testing.assert_close(found.point, vector(4, 4))
    assert found.step == pytest.approx(12.5**0.5)
    assert found.holds


def test_lemma_1_fails_for_parallel_boundaries():
    """From (0, −3) all of v = 1 is 1 away from v = 0, which is 3 away from x: no x', and yet two boundaries."""
    first, second = two_pieces(BAND, vector(0, 0), vector(0, 1))
    found = further_but_no_safer(vector(0, -3), first, second)
    assert found.lands == (True, True)
    assert found.point is None
    assert "parallel" in found.reason
    far = torch.linspace(-100, 100, 41).double()
    assert max(piece_distance(first, vector(float(u), 1))[0] for u in far) == pytest.approx(1)
    # Between them, and from so near to the first that the second is more than twice as far, there is one.
    for v in (0.3, -0.5, -1.0):
        found = further_but_no_safer(vector(0, v), first, second)
        assert found.holds
        torch.testing.assert_close(found.point, vector(0, 1))


def test_lemma_1_holds_where_the_boundaries_are_cones():
    """Without biases a foot on H₂ that is not on H₁ can be scaled; on one and the same piece nothing helps."""
    scaled = 0
    for seed in range(4):
        network = drawn(3, 6, 2, seed=seed, bias=0.0)
        x = rows(40, 3, seed=seed)
        _, region = torch.unique(pattern(network, x), dim=0, return_inverse=True)
        pieces = [boundary_piece(network, x[region == number][0]) for number in range(int(region.max()) + 1)]
        pieces = [piece for piece in pieces if piece.normal.any()]  # where all units are off the logits tie all over
        for point in x[:2]:
            for first in pieces:
                for second in pieces:
                    found = further_but_no_safer(point, first, second)
                    if first is second:
                        assert found.point is None
                    elif found.lands[1]:
                        assert found.holds
                    scaled += "cones" in found.reason
    assert scaled > 5


@pytest.mark.parametrize("seed", range(4))
def test_a_promised_point_keeps_its_promise(seed):
    """On random pieces with random sides: whatever is returned holds, by distances to the pieces themselves."""
    generator = torch.Generator().manual_seed(seed)
    promised = 0
    for _ in range(100):
        sides, limits = torch.randn(2, 4, 3, generator=generator).double(), torch.rand(2, 4, generator=generator) * 4
        normals, offsets = torch.randn(2, 3, generator=generator).double(), torch.randn(2, generator=generator).tolist()
        first, second = (Piece(normals[i], offsets[i], sides[i], limits[i].double()) for i in (0, 1))
        found = further_but_no_safer(torch.randn(3, generator=generator).double(), first, second)
        assert found.holds == (found.point is not None)
        promised += found.holds
    assert promised > 10


def test_feet_that_miss_their_pieces_promise_nothing():
    first, second = two_pieces(CORNER, vector(2, 1), vector(1, 2))
    missed = further_but_no_safer(vector(2, -1), first, second)
    assert missed.lands == (True, False)
    assert missed.point is None
    missed = further_but_no_safer(vector(-1, 2), first, second)
    assert missed.lands == (False, True)
    assert missed.point is None
    assert "first" in missed.reason
    there = further_but_no_safer(vector(0, 2), first, second)
    assert there.point is None
    assert "already" in there.reason
    with pytest.raises(ValueError, match="normal is zero"):
        further_but_no_safer(vector(1, 2), first, Piece(vector(0, 0), 0.0, second.sides, second.limits))


# ------------------------------------------------------------------------------------------------ Theorem 2

SHAPES = [(10, 8, 1), (10, 8, 4, 2), (4, 12, 2), (20, 16, 2, 2), (30, 3, 1), (50, 2, 1), (3, 2), (6, 10, 5, 5, 1)]


@pytest.mark.parametrize("sizes", SHAPES)
@few_or_many("networks", 60, 300)
def test_theorem_2_is_never_violated(networks, sizes):
    """Networks of each shape, 4 points in each, top layers that moved a little or a lot."""
    for seed in range(networks):
        network = drawn(*sizes, seed=seed, bias=(0.0, 0.5, 2.0)[seed % 3])
        other = retopped(network, (0.03, 1.0, 10.0)[seed % 5 % 3], seed=seed + 5000)
        x = rows(4, sizes[0], seed=seed) * (0.3, 1.0, 5.0)[seed % 7 % 3]
        assert theorem2(network, other, x, count=16).holds.all()


def test_differences_along_the_line_are_not_enough():
    """The trap: h's Lipschitz constant ON the line, taken for K, breaks the inequality for many networks."""
    broken = 0
    for seed in range(500):
        network = drawn(50, 2, 1, seed=seed)
        both = theorem2(network, retopped(network, 1.0, seed=seed + 5000), rows(4, 50, seed=seed), count=16)
        assert (both.along <= both.lipschitz * (1 + 1e-9)).all()
        assert both.holds.all()
        broken += int((both.left > both.along * both.factor).sum())
    assert 600 < broken < 1200  # of 2,000; of wider networks fewer


def slope(logit: float) -> float:
    return 1 / (1 + math.exp(-logit)) / (1 + math.exp(logit))


def test_theorem_2_by_hand():
    """h(x) = relu(x₁ + 1), so K = 1; w = 2 against w' = −1, at x = (1, 3), the influence taken at x / 2 alone."""
    network, other = (
        Perceptron((vector(1, 0)[:, None], vector(top)[:, None]), (vector(1), vector(0.5))) for top in (2.0, -1.0)
    )
    both = theorem2(network, other, torch.tensor([[1.0, 3.0]]), count=1)
    here, there = slope(4.5), slope(-1.5)
    assert float(both.ratio) == pytest.approx(there / here)
    assert float(both.lipschitz) == pytest.approx(1)
    assert float(both.along) == pytest.approx(0.1**0.5)
    assert float(both.left) == pytest.approx(2 * slope(3.5) + slope(-1))
    assert float(both.right) == pytest.approx(here * (2 + there / here) + 0.5 * (2 + 0.5 * 3))
    # Straight along x₂ nothing changes: the constant along the line is 0, and so would be the bound with it.
    flat = theorem2(network, other, torch.tensor([[0.0, 3.0]]))
    assert float(flat.along) == 0 < float(flat.left)
    assert flat.holds.all()


def test_the_largest_jacobian_is_found_between_the_crossings():
    """One input, units relu(2x), relu(5x − 2.5), relu(1 − 4x) − past ¼ the third is off, past ½ the second is on."""
    network = of([[2], [5], [-4]], [0, -2.5, 1], [1, 1, 1])
    found = theorem2(network, retopped(network, 1.0, 0), torch.tensor([[0.2], [0.4], [1.0]]))
    torch.testing.assert_close(found.lipschitz, vector(20**0.5, 20**0.5, 29**0.5))
    # A unit that is on for a hair's breadth, which no sample would meet: relu(9000 relu(x − ½) − 1e6 relu(x − ½ − ε))
    hair = Perceptron(
        (torch.ones(1, 2).double(), vector(9000, -1e6)[:, None], torch.ones(1, 1).double()),
        (vector(-0.5, -0.5 - 1e-7), vector(0), vector(0)),
    )
    found = theorem2(hair, hair, torch.ones(1, 1), count=10)
    assert float(found.lipschitz) == pytest.approx(991_000)


@pytest.mark.parametrize("sizes", [(4, 12, 2), (6, 10, 5, 5, 1)])
def test_the_line_agrees_with_many_samples_and_the_influence_with_autograd(sizes):
    network = drawn(*sizes)
    other, x = retopped(network, 1.0, 1), rows(30, sizes[0])
    found = theorem2(network, other, x, count=25)

    def hidden(row: Tensor) -> Tensor:
        top = torch.eye(network.weights[-1].shape[0]).double()
        return Perceptron((*network.weights[:-1], top), (*network.biases[:-1], top[0] * 0))(row[None])[0].relu()

    jacobian = torch.func.vmap(torch.func.jacrev(hidden))
    sampled = torch.stack([torch.linalg.matrix_norm(jacobian(t * x), 2) for t in torch.linspace(0.001, 1, 500)])
    assert (sampled.amax(0) <= found.lipschitz * (1 + 1e-9)).all()
    assert (sampled.amax(0) >= found.lipschitz * (1 - 1e-9)).double().mean() > 0.8  # the rest fell between samples

    def chance(model: Perceptron, row: Tensor) -> Tensor:
        logits = model(row[None])[0]
        return torch.sigmoid(logits[1] - logits[0] if len(logits) == 2 else logits[0])

    influence = []
    for model in (network, other):
        gradient = torch.func.vmap(torch.func.grad(lambda row, model=model: chance(model, row)))
        influence.append(torch.stack([gradient((i + 0.5) / 25 * x) for i in range(25)]).mean(0))
    torch.testing.assert_close(found.left, (influence[0] - influence[1]).norm(dim=1), rtol=1e-9, atol=1e-12)


def test_a_linear_network_is_its_own_top():
    network, other = drawn(3, 2), drawn(3, 2, seed=1)
    both = theorem2(network, other, rows(5, 3))
    torch.testing.assert_close(both.lipschitz, torch.ones(5).double())
    assert both.holds.all()
    slope_of, _ = linear_map(network, rows(5, 3))
    same = theorem2(network, network, rows(5, 3))
    assert (same.left == 0).all()
    weight = (slope_of[0, 1] - slope_of[0, 0]).norm()
    torch.testing.assert_close(same.right, (0.5 * weight).expand(5))  # C is what remains


def test_only_the_top_layer_may_differ():
    network, x = drawn(3, 4, 2), rows(2, 3)
    with pytest.raises(ValueError, match="differ below the top layer"):
        theorem2(network, drawn(3, 4, 2, seed=1), x)
    with pytest.raises(ValueError, match="the networks have layers"):
        theorem2(network, drawn(3, 5, 2), x)
    with pytest.raises(ValueError, match="about two classes"):
        theorem2(drawn(3, 4, 3), drawn(3, 4, 3), x)
    assert theorem2(network, network, x[:0]).holds.shape == (0,)


# ------------------------------------------------------------------------------------------------ Proposition 1


def test_proposition_1_by_hand():
    """q = (3, 4)·x has a gradient of 5 everywhere, and at x = (2, 0) a slope of 6 along the line."""
    q = lambda x: x @ vector(3, 4)  # noqa: E731
    found = proposition1(q, torch.stack([vector(2, 0), vector(6, 8), vector(-2, 0)]), vector(0.5, 0.25, 1))
    torch.testing.assert_close(found.norm, vector(5, 5, 5))
    torch.testing.assert_close(found.slope, vector(6, 50, -6))  # the last is negative
    torch.testing.assert_close(found.sharp, vector(3, 5, 3))  # equal to the norm where x is parallel to the gradient
    torch.testing.assert_close(found.printed, vector(1.5, 1.25, 3))  # t times as much
    assert found.holds.all()


def test_proposition_1_is_never_violated():
    negative = 0
    for seed in range(100):
        network = drawn(6, 10, 8, 2, seed=seed)
        x, t = rows(50, 6, seed=seed), torch.rand(50, generator=torch.Generator().manual_seed(seed)).double()
        for q in (lambda x, f=network: f(x).softmax(1)[:, 1], lambda x, f=network: f(x)[:, 0]):
            found = proposition1(q, x, t)
            assert found.holds.all()
            negative += int((found.slope < 0).sum())
    assert negative > 1000  # ∂σ(t x)/∂t is negative about as often as not


def test_proposition_1_in_terms_of_differences():
    network = drawn(4, 6, 2)
    q = lambda x: network(x).softmax(1)[:, 1]  # noqa: E731
    x, step = rows(20, 4), 1e-7
    found = proposition1(q, x, 0.6)
    in_t = (q((0.6 + step) * x) - q((0.6 - step) * x)) / (2 * step)
    in_r = (q((1 + step) * 0.6 * x) - q((1 - step) * 0.6 * x)) / (2 * step)
    torch.testing.assert_close(found.slope, in_t, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(found.printed, in_r.abs() / x.norm(dim=1), rtol=1e-5, atol=1e-7)


def test_proposition_1_asks_for_numbers_on_the_line():
    network = drawn(4, 6, 2)
    with pytest.raises(ValueError, match=r"q gave \(3, 2\) for 3 rows"):
        proposition1(network, rows(3, 4), 0.5)
    with pytest.raises(ValueError, match=r"t must lie in \[0, 1\]"):
        proposition1(lambda x: x.sum(1), rows(3, 4), 1.5)
    still = proposition1(lambda x: x.sum(1), torch.zeros(1, 4), 0.5)
    assert still.holds.all()
