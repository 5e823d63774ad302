import math
from itertools import combinations, pairwise

import pytest
import torch
from conftest import few_or_many

from holdfast.families.perceptron import Network
from holdfast.families.recipe import Retraining
from holdfast.theory import lipschitz as module
from holdfast.theory.influence import in_unit_ball
from holdfast.theory.lipschitz import lipschitz_bound, sampled_lipschitz

ABOVE = 1 + 1e-9  # what the tests allow for their own rounding


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def network(sizes, seed=0):
    pairs = list(pairwise(sizes))
    weights = tuple(draw(*pair, seed=97 * seed + i) * (2 / pair[0]) ** 0.5 for i, pair in enumerate(pairs))
    return Network(weights, tuple(draw(b, seed=97 * seed + 50 + i) / 3 for i, (_, b) in enumerate(pairs)), Retraining())


def jacobian(net, x):
    """W₁ D₁ W₂ ... at each point: (m, d, c)."""
    slope = torch.eye(x.shape[1], dtype=torch.float64).expand(len(x), -1, -1)
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        x, slope = x @ weight + bias, slope @ weight
        slope, x = slope * (x > 0)[:, None], x.relu()
    return slope @ net.weights[-1]


def norms(net, x):
    return torch.linalg.matrix_norm(jacobian(net, x), 2)


def in_ball(x, radius, count, seed=0):
    """Points of each row's ball, half of them on its surface: (count, n, d)."""
    away = in_unit_ball(count, x.shape[1], seed)
    away[::2] /= away[::2].norm(dim=1, keepdim=True)
    return x + radius * away[:, None]


def middles(net, start, end):
    """A point inside each linear piece of the segment: kinks are found layer by layer, exactly up to rounding."""
    parts = torch.tensor([0.0, 1.0], dtype=torch.float64)
    for depth in range(1, len(net.weights)):
        values = start + parts[:, None] * (end - start)
        for weight, bias in zip(net.weights[: depth - 1], net.biases[: depth - 1], strict=True):
            values = (values @ weight + bias).relu()
        values = values @ net.weights[depth - 1] + net.biases[depth - 1]  # linear between the parts
        left, right = values[:-1], values[1:]
        where = (left * right < 0).nonzero()
        share = left[where[:, 0], where[:, 1]] / (left - right)[where[:, 0], where[:, 1]]
        kinks = parts[where[:, 0]] + share * parts.diff()[where[:, 0]]
        parts = torch.cat([parts, kinks]).unique()
    inside = (parts[:-1] + parts[1:]) / 2
    return start + inside[:, None] * (end - start)


def cells(net, centre, radius):
    """A point inside every linear region that meets a disc, for two inputs and one hidden layer.

    A region that meets the disc has a corner in it or a piece of the circle.
    """
    normals, offsets = net.weights[0].T, net.biases[0] + centre @ net.weights[0]  # lines n·δ + o = 0 around the centre
    points = []
    for i, j in combinations(range(len(normals)), 2):
        pair = normals[[i, j]]
        corner = torch.linalg.solve(pair, -offsets[[i, j]])
        if corner.norm() < radius:
            for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
                points.append(corner + 1e-9 * torch.linalg.solve(pair, torch.tensor(signs, dtype=torch.float64)))
    angles = [torch.tensor([0.0], dtype=torch.float64)]
    for normal, offset in zip(normals, offsets, strict=True):
        reach = offset.abs() / (normal.norm() * radius)
        if reach < 1:
            towards, half = torch.atan2(normal[1], normal[0]), torch.acos(-offset / (normal.norm() * radius))
            angles.append(torch.stack([towards - half, towards + half]) % (2 * math.pi))
    around = torch.cat(angles).sort().values
    between = (around + torch.cat([around[1:], around[:1] + 2 * math.pi])) / 2
    points += list(radius * (1 - 1e-12) * torch.stack([between.cos(), between.sin()], 1))
    return centre + torch.stack(points)


@pytest.mark.parametrize("sizes", [(4, 3), (4, 3, 2), (5, 8, 2), (5, 8, 6, 3), (3, 7, 5, 4, 2)])
@few_or_many("networks", 10, 60)
def test_lower_and_true_and_upper_are_in_this_order(networks, sizes):
    """Networks of every size, 3 balls and 3 radii each: the truth is at least what 40 points of a ball show."""
    for seed in range(networks):
        net, x = network(sizes, seed), draw(3, sizes[0], seed=1000 + seed)
        for radius in (0.01, 0.3, 2.0):
            upper = lipschitz_bound(net, x, radius)
            shown = norms(net, in_ball(x, radius, 40, seed).flatten(0, 1)).view(40, 3).amax(0)
            assert (shown <= upper * ABOVE).all()
            lower = sampled_lipschitz(net, x, radius, 20, seed)
            assert (lower <= upper * ABOVE).all()
            assert (lower >= norms(net, x) * (1 - 1e-9)).all()


@few_or_many("networks", 60, 400)
def test_the_truth_of_every_region_of_a_disc(networks):
    """Three discs a network with their regions enumerated: sampled ≤ true ≤ bound, and the bound is not far off."""
    ratios = []
    for seed in range(networks):
        net, x = network((2, 5, 2), seed), draw(3, 2, seed=2000 + seed)
        radius = (0.05, 0.3, 1.0, 3.0)[seed % 4]
        upper = lipschitz_bound(net, x, radius)
        lower = sampled_lipschitz(net, x, radius, 30, seed)
        true = torch.stack([norms(net, cells(net, centre, radius)).max() for centre in x])
        assert (lower <= true * ABOVE).all()
        assert (true <= upper * ABOVE).all()
        ratios.append((upper / true)[true > 0])
    assert torch.cat(ratios).median() < 1.1
    assert torch.cat(ratios).max() < 3


@pytest.mark.parametrize("sizes", [(1, 6, 2), (1, 5, 4, 3)])
@few_or_many("networks", 15, 100)
def test_the_truth_of_every_piece_of_the_ball_of_one_input(networks, sizes):
    """A ball of one input is a segment, whose linear pieces can be listed."""
    for seed in range(networks):
        net = network(sizes, seed)
        x, radius = draw(3, 1, seed=3000 + seed), (0.05, 0.5, 2.0)[seed % 3]
        true = torch.stack([norms(net, middles(net, row - radius, row + radius)).max() for row in x])
        assert (true <= lipschitz_bound(net, x, radius) * ABOVE).all()


@pytest.mark.parametrize("of", ["logits", "margin"])
def test_inside_one_region_the_bound_is_the_norm_of_the_jacobian(of):
    net, x = network((6, 12, 8, 5, 3)), draw(200, 6, seed=1)
    target = torch.arange(200) % 3 if of == "margin" else None
    slopes = jacobian(net, x)
    if target is None:
        true = torch.linalg.matrix_norm(slopes, 2)
    else:
        gaps = slopes.gather(2, target[:, None, None].expand(-1, 6, 1)) - slopes
        true = gaps.norm(dim=1).amax(1)
    upper = lipschitz_bound(net, x, 1e-7, target)
    torch.testing.assert_close(upper, true, rtol=1e-11, atol=1e-13)
    assert (upper >= true).all()  # rounded outwards


@pytest.mark.parametrize("radius", [0.0, 1.0, 1e6])
def test_linear_networks_are_exact_at_any_radius(radius):
    net, x = network((5, 3)), draw(4, 5)
    true = torch.linalg.matrix_norm(net.weights[0], 2).expand(4)
    torch.testing.assert_close(lipschitz_bound(net, x, radius), true, rtol=1e-12, atol=0)
    torch.testing.assert_close(sampled_lipschitz(net, x, radius), true, rtol=1e-12, atol=0)
    gaps = net.weights[0][:, 2:] - net.weights[0][:, :2]
    margins = lipschitz_bound(net, x, radius, torch.full((4,), 2))
    torch.testing.assert_close(margins, gaps.norm(dim=0).max().expand(4))


def test_on_a_kink_both_slopes_count():
    """relu(x): a ball of radius 0 at 0, and balls that end before the kink and after it."""
    one = torch.ones(1, 1, dtype=torch.float64)
    ramp = Network((one, one), (torch.zeros(1).double(), torch.zeros(1).double()), Retraining())
    assert lipschitz_bound(ramp, torch.zeros(1, 1), 0.0) == pytest.approx(1)
    assert lipschitz_bound(ramp, torch.full((1, 1), -1.0), 0.5) == pytest.approx(0, abs=1e-12)
    assert lipschitz_bound(ramp, torch.full((1, 1), -1.0), 1.5) == pytest.approx(1)


@pytest.mark.parametrize("of", ["logits", "margin"])
@few_or_many("networks", 3, 20)
def test_a_larger_ball_leaves_more_open(networks, of):
    """What is decided in a ball is decided in a smaller one. The bound itself may fall a little as the ball grows, a
    unit that is taken for undecided having the smaller middle, but not much below where it was."""
    for seed in range(networks):
        net, x = network((6, 14, 8, 3), seed), draw(20, 6, seed=seed)
        target = torch.arange(20) % 3 if of == "margin" else None
        radii = torch.logspace(-3, 1, 20).double().tolist()
        bounds = torch.stack([lipschitz_bound(net, x, radius, target) for radius in radii])
        assert (bounds >= 0.75 * bounds.cummax(0).values).all()
        assert (bounds[-1] >= bounds[0]).all()
        if of == "logits":
            product = math.prod(float(torch.linalg.matrix_norm(weight, 2)) for weight in net.weights)
            assert (bounds <= product * ABOVE).all()
            torch.testing.assert_close(lipschitz_bound(net, x, 1e6), lipschitz_bound(net, x, math.inf))
        inner = list(zip(net.weights[:-1], net.biases[:-1], strict=True))
        before = None
        for radius in radii:
            relus, _ = module._decided(inner, x, radius)
            undecided = torch.cat([layer.undecided for layer in relus], 1)
            assert before is None or (undecided | ~before).all()
            before = undecided


def test_scales_come_out_where_they_went_in():
    net, x = network((4, 9, 6, 2)), draw(30, 4, seed=1)
    first, second, last = net.weights
    b1, b2, b3 = net.biases
    bound = lipschitz_bound(net, x, 0.4)
    steeper = Network((first, second, 3 * last), (b1, b2, b3 + 1), Retraining())
    torch.testing.assert_close(lipschitz_bound(steeper, x, 0.4), 3 * bound)
    moved = Network((8 * first, second / 8, last), (8 * b1, b2, b3), Retraining())  # relu is positively homogeneous
    torch.testing.assert_close(lipschitz_bound(moved, x, 0.4), bound)
    zoomed = Network((first / 5, second, last), (b1, b2, b3), Retraining())
    torch.testing.assert_close(lipschitz_bound(zoomed, 5 * x, 2.0), bound / 5)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    shuffled = Network((first[:, order], second[order], last), (b1[order], b2, b3), Retraining())
    torch.testing.assert_close(lipschitz_bound(shuffled, x, 0.4), bound)
    turn = torch.linalg.qr(draw(4, 4, seed=9)).Q  # the ball and the l2 slopes do not see a rotation of the inputs
    tiny = Network((turn.T @ first, second, last), (b1, b2, b3), Retraining())
    torch.testing.assert_close(lipschitz_bound(tiny, x @ turn, 1e-7), lipschitz_bound(net, x, 1e-7))


def test_no_two_points_of_a_ball_differ_by_more():
    """25,000 slopes between pairs of points, of all logits and of margins."""
    for seed in range(5):
        net, x = network((8, 20, 12, 3), seed), draw(50, 8, seed=seed)
        target = torch.arange(50) % 3
        radius = (0.01, 0.3, 0.6, 1.0, 1.5)[seed]
        a, b = in_ball(x, radius, 200, seed).view(2, 100, 50, 8)
        b[50:] = a[50:] + 1e-3 * (b[50:] - a[50:])  # half the pairs are close together
        rise, run = net(a) - net(b), (a - b).norm(dim=-1)
        assert (rise.norm(dim=-1) <= lipschitz_bound(net, x, radius) * run * ABOVE + 1e-12).all()
        steepest = lipschitz_bound(net, x, radius, target)
        gaps = rise.gather(2, target.expand(100, 50)[..., None]) - rise  # of the target's logit and each other
        assert (gaps.abs() <= (steepest * run)[..., None] * ABOVE + 1e-12).all()
        margins = [_margin(net(p), target) for p in (a, b)]
        assert ((margins[0] - margins[1]).abs() <= steepest * run * ABOVE + 1e-12).all()


def _margin(logits, target):
    index = target.expand(logits.shape[:2])[..., None]
    return logits.gather(2, index)[..., 0] - logits.scatter(2, index, -math.inf).amax(2)


def test_undecided_units_must_count(monkeypatch):
    """The truth test has teeth: a bound that leaves out what undecided units may do is caught."""

    def broken(seed):
        net, x = network((2, 5, 2), seed), draw(3, 2, seed=2000 + seed)
        upper = lipschitz_bound(net, x, 1.0)
        true = torch.stack([norms(net, cells(net, centre, 1.0)).max() for centre in x])
        return bool((true > upper * ABOVE).any())

    assert not any(broken(seed) for seed in range(20))
    monkeypatch.setattr(module._Relus, "undecided", property(lambda self: torch.zeros_like(self.mean).bool()))
    monkeypatch.setattr(module, "_entrywise", lambda slope: torch.full_like(slope.middle[:, 0, 0], math.inf))
    assert any(broken(seed) for seed in range(20))


def test_rows_do_not_meet_and_float32_weights_are_taken_as_they_are(monkeypatch):
    net, x = network((6, 10, 2)), draw(23, 6)
    together, sampled = lipschitz_bound(net, x, 0.5), sampled_lipschitz(net, x, 0.5)
    monkeypatch.setattr(module, "NUMBERS", 300)
    torch.testing.assert_close(lipschitz_bound(net, x, 0.5), together, rtol=1e-12, atol=0)
    torch.testing.assert_close(sampled_lipschitz(net, x, 0.5), sampled, rtol=1e-12, atol=0)
    single = Network(tuple(w.float() for w in net.weights), tuple(b.float() for b in net.biases), Retraining())
    double = Network(tuple(w.double() for w in single.weights), tuple(b.double() for b in single.biases), Retraining())
    assert torch.equal(lipschitz_bound(single, x.float(), 0.5), lipschitz_bound(double, x.float(), 0.5))
    assert lipschitz_bound(single, x.float(), 0.5).dtype == torch.float64
    assert lipschitz_bound(net, x[:0], 0.5).shape == sampled_lipschitz(net, x[:0], 0.5).shape == (0,)


def test_sampling_takes_any_map_and_grows_with_its_sample():
    x = torch.tensor([[0.3, -0.2], [2.0, 1.0]], dtype=torch.float64)
    smooth = sampled_lipschitz(lambda r: r.square().sum(1), x, 0.5, 2000)  # the slope is 2‖x‖, at most 2 (‖x‖ + 0.5)
    most = 2 * (x.norm(dim=1) + 0.5)
    assert (smooth <= most).all()
    torch.testing.assert_close(smooth, most, rtol=0.02, atol=0)
    torch.testing.assert_close(sampled_lipschitz(lambda r: r.square().sum(1), x, 0.0, 1), 2 * x.norm(dim=1))
    vectors = sampled_lipschitz(lambda r: torch.stack([3 * r[:, 0], r[:, 1]], 1), x, 0.5, 3)
    torch.testing.assert_close(vectors, torch.full((2,), 3.0).double())


def test_settings_that_make_no_sense_are_refused():
    net, x = network((3, 4, 2)), draw(2, 3)
    with pytest.raises(ValueError, match="radius must be"):
        lipschitz_bound(net, x, -0.5)
    with pytest.raises(ValueError, match="radius must be"):
        lipschitz_bound(net, x, math.nan)


def test_each_of_the_two_ways_is_sometimes_the_better():
    net, x = network((6, 14, 8, 3), 1), draw(200, 6)
    inner = list(zip(net.weights[:-1], net.biases[:-1], strict=True))
    relus, slope = module._decided(inner, x, 0.1)
    head = net.weights[-1].T.expand(200, -1, -1)
    entries = module._entrywise(slope.times(head.mT))
    layers = module._steepest(relus, module._Interval(head, torch.zeros_like(head)))
    assert (entries < layers * 0.99).double().mean() > 0.05
    assert (layers < entries * 0.99).double().mean() > 0.3
    torch.testing.assert_close(lipschitz_bound(net, x, 0.1), torch.minimum(entries, layers))
