"""A certificate is right when nothing inside it flips a class, and worth something when little outside is left."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from holdfast import predict
from holdfast.theory import certificates
from holdfast.theory.certificates import Absolute, Relative, certified_radius, margin_bound

CHANGES = {
    "absolute": Absolute(),
    "relative": Relative(),
    "first layer": Absolute((1.0, *[0.0] * 2)),
    "last layer": Relative((0.0, 0.0, 1.0)),
    "scaled": Absolute((0.1, 1.0, 3.0)),
}


@dataclass(frozen=True, eq=False)
class Net:
    weights: tuple[Tensor, ...]  # (in, out), or (n, in, out): a network of its own for each row
    biases: tuple[Tensor, ...]

    def __call__(self, x: Tensor) -> Tensor:
        h = x
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = (h[:, None] @ weight)[:, 0] + bias if weight.ndim == 3 else h @ weight + bias
            h = torch.relu(h) if place < len(self.weights) - 1 else h
        return h


def drawn(*sizes: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Net:
    draw = torch.Generator().manual_seed(seed)
    weights = [torch.randn(a, b, generator=draw, dtype=dtype) / a**0.5 for a, b in itertools.pairwise(sizes)]
    return Net(tuple(weights), tuple(0.3 * torch.randn(b, generator=draw, dtype=dtype) for b in sizes[1:]))


def points(count: int, columns: int, seed: int = 0) -> Tensor:
    """Standardised: either sign."""
    return torch.randn(count, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def margins(net: Net, x: Tensor, target: Tensor) -> Tensor:
    logits = net(x)
    return logits.gather(1, target[:, None])[:, 0] - logits.scatter(1, target[:, None], -torch.inf).amax(1)


def moved(net: Net, change, by: list[tuple[Tensor, Tensor]], delta: Tensor) -> Net:
    """A network for each row: parameters + delta · reach · by, with ``by`` between -1 and 1."""
    reach = [(r.to(delta), b.to(delta)) for r, b in change.reach(net)]
    return Net(
        tuple(w + delta[:, None, None] * r * b for w, (r, _), (b, _) in zip(net.weights, reach, by, strict=True)),
        tuple(c + delta[:, None] * r * b for c, (_, r), (_, b) in zip(net.biases, reach, by, strict=True)),
    )


def random_moves(net: Net, rows: int, draw: torch.Generator, corners: bool) -> list[tuple[Tensor, Tensor]]:
    def one(like: Tensor) -> Tensor:
        move = 2 * torch.rand(rows, *like.shape, generator=draw, dtype=like.dtype) - 1
        return move.sign() if corners else move

    return [(one(w), one(b)) for w, b in zip(net.weights, net.biases, strict=True)]


def attacked(net: Net, x: Tensor, target: Tensor, delta: Tensor, change, steps: int = 10, seed: int = 0) -> Tensor:
    """The lowest margin that sign-gradient steps on all parameters find in the box: full corners first, then smaller
    steps from a random start: (n,)."""
    draw = torch.Generator().manual_seed(seed)
    worst = margins(net, x, target)
    for start, step in (("zero", 2.0), ("zero", 0.25), ("random", 0.25)):
        by = random_moves(net, len(x), draw, corners=False)
        flat = [t if start == "random" else torch.zeros_like(t) for pair in by for t in pair]
        for _ in range(steps):
            flat = [t.detach().requires_grad_() for t in flat]
            pairs = list(zip(flat[::2], flat[1::2], strict=True))
            value = margins(moved(net, change, pairs, delta), x, target)
            worst = torch.minimum(worst, value.detach())
            gradient = torch.autograd.grad(value.sum(), flat, allow_unused=True)
            flat = [(t if g is None else t - step * g.sign()).clamp(-1, 1) for t, g in zip(flat, gradient, strict=True)]
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
        worst = torch.minimum(worst, margins(moved(net, change, pairs, delta), x, target).detach())
    return worst


def interval_bound(net: Net, x: Tensor, target: Tensor, delta: float) -> Tensor:
    """Interval arithmetic as in a textbook, one product at a time, for an absolute change; every ReLU for itself."""
    low = high = x
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        ends = [a[:, :, None] * w for a in (low, high) for w in (weight - delta, weight + delta)]
        low = (torch.stack(ends).amin(0).sum(1) + bias - delta).clamp_min(0)
        high = (torch.stack(ends).amax(0).sum(1) + bias + delta).clamp_min(0)
    weight, bias = net.weights[-1].T, net.biases[-1]
    apart = weight[target][:, None] - weight  # (n, c, in)
    ends = [a[:, None] * (apart + sign * 2 * delta) for a in (low, high) for sign in (-1, 1)]
    sums = torch.stack(ends).amin(0).sum(-1) + bias[target][:, None] - bias - 2 * delta
    return sums.scatter(1, target[:, None], torch.inf).amin(1)


# ---- exact where the answer is known ----


@pytest.mark.parametrize("classes", [2, 4])
def test_one_layer_has_a_closed_form(classes):
    """Each of two logits loses or gains δ (‖x‖₁ + 1), so they meet at δ = margin / (2 (‖x‖₁ + 1))."""
    net, x = drawn(5, classes), points(200, 5)
    target = predict(net, x)
    expected = margins(net, x, target) / (2 * (x.abs().sum(1) + 1))
    torch.testing.assert_close(certified_radius(net, x, target), expected, rtol=1e-6, atol=1e-12)


def test_one_layer_relative():
    """The weights' share: δ = margin / (Σ |xᵢ| (|w_tᵢ| + |w_oᵢ|) + |b_t| + |b_o|)."""
    net, x = drawn(5, 2), points(200, 5)
    target = predict(net, x)
    reach = x.abs() @ net.weights[0].abs().sum(1) + net.biases[0].abs().sum()
    torch.testing.assert_close(certified_radius(net, x, target, Relative()), margins(net, x, target) / reach)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("change", [Absolute(), Relative(), Absolute((1.0, 0.5))])
def test_one_hidden_layer_is_exact(seed, change):
    """Two inputs, two units, two logits: the least margin over all 2¹² corners of the box, to the last digits.

    The least margin is at a corner: it is affine in each parameter of the last layer and monotone in each of the first.
    """
    net, x = drawn(2, 2, 2, seed=seed), points(6, 2, seed)
    target, delta = predict(net, x), 0.2
    corners = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=12)), dtype=torch.float64)
    by = [
        (corners[:, 0:4].view(-1, 2, 2), corners[:, 4:6]),
        (corners[:, 6:10].view(-1, 2, 2), corners[:, 10:12]),
    ]
    others = moved(net, change, by, torch.full((len(corners),), delta, dtype=torch.float64))
    for row in range(len(x)):
        least = margins(others, x[row : row + 1].expand(len(corners), -1), target[row].expand(len(corners))).min()
        bound = margin_bound(net, x[row : row + 1], target[row : row + 1], delta, change)
        torch.testing.assert_close(bound[0], least, rtol=1e-9, atol=1e-9)


def test_by_hand():
    """h = relu(±x), logits (h₁ − h₂, 0), at x = -3 for class 1: with all at δ = 0.1 the first unit is at most
    -3 · 0.9 + 0.1 < 0, so off; the second is at least 3 · 0.9 - 0.1 = 2.6, and counts 1 - 2 · 0.1 = 0.8 times; the
    biases differ by 0.2 at most: 2.6 · 0.8 - 0.2 = 1.88."""
    net = Net(
        (torch.tensor([[1.0, -1.0]]).double(), torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).double()),
        (torch.zeros(2).double(), torch.zeros(2).double()),
    )
    bound = margin_bound(net, torch.tensor([[-3.0]]).double(), torch.tensor([1]), 0.1)
    torch.testing.assert_close(bound, torch.tensor([1.88]).double())


def test_relative_changes_leave_zeros_alone():
    """With one column that counts and no biases: logits (w x, 0) keep their sign for every δ < 1, whatever x₂."""
    net = Net((torch.tensor([[2.0, 0.0], [0.0, 0.0]]).double(),), (torch.zeros(2).double(),))
    x = torch.tensor([[1.0, 5.0], [0.1, -7.0]]).double()
    radius = certified_radius(net, x, torch.tensor([0, 0]), Relative())
    torch.testing.assert_close(radius, torch.ones(2).double())
    nothing = Net((torch.zeros(2, 2).double(),), (torch.zeros(2).double(),))
    assert (certified_radius(nothing, x, torch.tensor([0, 1]), Relative()) == 0).all()  # a tie is no class


def test_layers_that_stay_do_not_count():
    net, x = drawn(4, 6, 5, 3), points(50, 4)
    target = predict(net, x)
    everything = certified_radius(net, x, target)
    for place in range(3):
        alone = Absolute(tuple(float(layer == place) for layer in range(3)))
        assert (certified_radius(net, x, target, alone) > everything).all()
    frozen = margin_bound(net, x, target, 5.0, Absolute((0.0, 0.0, 0.0)))
    torch.testing.assert_close(frozen, margins(net, x, target))
    torch.testing.assert_close(certified_radius(net, x, target, Absolute((2.0, 2.0, 2.0))), everything / 2)


# ---- never wrong ----


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("seed", range(4))
def test_nothing_inside_the_radius_flips_a_class(seed, change):
    net, x = drawn(6, 12, 8, 3, seed=seed), points(40, 6, seed)
    target = predict(net, x)
    radius = certified_radius(net, x, target, change)
    assert (radius > 0).all()
    bound = margin_bound(net, x, target, radius, change)
    assert (bound > 0).all()
    draw = torch.Generator().manual_seed(seed)
    for corners in (False, True):
        for _ in range(7):  # 4 seeds × 5 changes × 2 × 7 × 40 rows: 11,200 networks
            by = random_moves(net, len(x), draw, corners)
            assert (margins(moved(net, change, by, radius), x, target) > bound - 1e-12).all()
    assert (attacked(net, x, target, radius, change, seed=seed) > bound - 1e-12).all()


@pytest.mark.parametrize("sizes", [(5, 3), (5, 16, 2), (5, 12, 10, 8, 6, 2)])
def test_the_bound_is_below_every_attack_at_any_size_of_change(sizes):
    net, x = drawn(*sizes, seed=3), points(60, 5)
    target = predict(net, x)
    for delta in (0.0, 0.003, 0.03, 0.1):
        deltas = torch.full((60,), delta, dtype=torch.float64)
        assert (margin_bound(net, x, target, delta) <= attacked(net, x, target, deltas, Absolute())).all()


def test_trained_networks_in_their_own_precision(family, rows):
    network, x = family[0], rows[0]
    net, target = Net(network.weights, network.biases), predict(network, x)
    for change in (Absolute(), Relative()):
        radius = certified_radius(network, x, target, change)
        assert (radius > 0).all()
        worst = attacked(net, x, target, radius.float(), change)
        assert (worst > 0).all()


def test_what_the_network_itself_rounds_away_is_not_certified():
    """10⁸ − 10⁸ + 1 is 1, and in single precision, in another order, 0."""
    weight, bias = torch.tensor([[1e8, 0.0], [-1e8, 0.0]]), torch.tensor([1.0, 0.0])
    x, target = torch.ones(1, 2), torch.tensor([0])
    assert certified_radius(Net((weight,), (bias,)), x, target) == 0
    double = certified_radius(Net((weight.double(),), (bias.double(),)), x.double(), target)
    torch.testing.assert_close(double, torch.tensor([1 / 6]).double(), rtol=1e-4, atol=0)


def blind_to_signs(net: Net, x: Tensor, target: Tensor) -> Tensor:
    """A certificate for one layer that takes (W ± δ) x for the ends of an interval, which they are for x ≥ 0 only."""
    return margins(net, x, target) / (2 * (x.sum(1).abs() + 1))


def test_the_sign_of_the_input_matters():
    """At x = (3, -3) the weights' moves cancel for who adds them up with their signs: a radius seven times too large,
    and inside it a network that says the other class."""
    net = Net((torch.tensor([[1.0, 0.0], [0.0, 1.0]]).double(),), (torch.zeros(2).double(),))
    x, target = torch.tensor([[3.0, -3.0]]).double(), torch.tensor([0])
    naive, true = blind_to_signs(net, x, target), certified_radius(net, x, target)
    torch.testing.assert_close(naive, torch.tensor([3.0]).double())
    torch.testing.assert_close(true, torch.tensor([6 / 14]).double())
    worse = torch.tensor([[-1.0, 1.0], [1.0, -1.0]]).double()  # against the sign of each input
    for delta, flips in ((0.5 * float(naive), True), (1.01 * float(true), True), (0.99 * float(true), False)):
        other = Net((net.weights[0] + delta * worse,), (torch.tensor([-delta, delta]).double(),))
        assert (int(predict(other, x)) != 0) is flips
    x = x.abs()  # of one sign both agree
    torch.testing.assert_close(
        blind_to_signs(net, x + torch.eye(2)[:1], target), certified_radius(net, x + torch.eye(2)[:1], target)
    )


def test_without_the_sign_a_hidden_layer_is_certified_wrongly_too(monkeypatch):
    """The same mistake in the library's own first layer, and the attack finds it."""
    net, x = drawn(8, 16, 2), points(60, 8)
    target = predict(net, x)

    def wrong(box, x, delta):
        center, away = x @ box.weight + box.bias, delta[:, None] * (x @ box.reach + box.bias_reach)
        return torch.minimum(center - away, center + away), torch.maximum(center - away, center + away)

    assert (attacked(net, x, target, certified_radius(net, x, target), Absolute()) > 0).all()
    monkeypatch.setattr(certificates, "_first", wrong)
    flipped = attacked(net, x, target, certified_radius(net, x, target), Absolute()) < 0
    assert flipped.double().mean() > 0.5


# ---- not vacuous, and well behaved ----


@pytest.mark.parametrize("sizes", [(5, 3), (5, 16, 2), (6, 12, 8, 3), (5, 12, 10, 8, 6, 2)])
def test_never_looser_than_intervals(sizes):
    net, x = drawn(*sizes, seed=1), points(80, sizes[0])
    target = predict(net, x)
    for delta in (0.0, 0.001, 0.01, 0.1, 1.0):
        ours, theirs = margin_bound(net, x, target, delta), interval_bound(net, x, target, delta)
        assert (ours >= theirs - 1e-9 * (1 + theirs.abs())).all()
        if len(sizes) <= 3:
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)  # nothing to gain
        elif delta == 0.01:
            assert (ours > theirs + 1e-4).any()


def test_close_to_what_an_attack_finds():
    """On small networks an attack flips most classes at three times the radius."""
    net, x = drawn(6, 12, 8, 3), points(100, 6)
    target = predict(net, x)
    radius = certified_radius(net, x, target)
    assert (attacked(net, x, target, 3 * radius, Absolute()) < 0).double().mean() > 0.9


@pytest.mark.parametrize("change", [Absolute(), Relative()])
def test_a_larger_change_proves_less(change):
    net, x = drawn(6, 12, 8, 4, 3), points(50, 6)
    target = predict(net, x)
    bounds = torch.stack([margin_bound(net, x, target, delta, change) for delta in torch.linspace(0, 0.5, 60)])
    torch.testing.assert_close(bounds[0], margins(net, x, target), rtol=1e-9, atol=1e-9)
    assert (bounds.diff(dim=0) < 0).all()


def test_who_is_not_in_the_class_has_no_radius():
    net, x = drawn(6, 12, 8, 3), points(50, 6)
    for wrong in (1, 2):
        assert (certified_radius(net, x, (predict(net, x) + wrong) % 3) == 0).all()


def test_batched_is_one_by_one(monkeypatch):
    net, x = drawn(6, 12, 8, 3), points(25, 6)
    target, delta = predict(net, x), torch.linspace(0, 0.1, 25)
    radius, bound = certified_radius(net, x, target), margin_bound(net, x, target, delta)
    monkeypatch.setattr(certificates, "ROWS_AT_ONCE", 4)
    torch.testing.assert_close(certified_radius(net, x, target), radius)
    torch.testing.assert_close(margin_bound(net, x, target, delta), bound)
    torch.testing.assert_close(margin_bound(net, x, target, 0.02), margin_bound(net, x, target, delta * 0 + 0.02))
    for row in range(25):
        here = slice(row, row + 1)
        torch.testing.assert_close(certified_radius(net, x[here], target[here]), radius[here])
        torch.testing.assert_close(margin_bound(net, x[here], target[here], delta[here]), bound[here])
    assert certified_radius(net, x[:0], target[:0]).shape == (0,)


def test_the_gradient_in_x_is_that_of_differences():
    net, x = drawn(4, 8, 6, 3), points(10, 4)
    target = predict(net, x)
    assert torch.autograd.gradcheck(lambda r: margin_bound(net, r, target, 0.01), x.requires_grad_())


def test_what_is_not_finite_is_not_certified():
    net = drawn(3, 4, 4, 2)
    x = torch.tensor([[torch.nan, 0.0, 0.0], [torch.inf, 1.0, 1.0], [1e300, 1.0, -1e300]]).double()
    for wanted in (0, 1):
        radius = certified_radius(net, x, torch.full((3,), wanted))
        assert (radius[:2] == 0).all()
        assert radius.isfinite().all()


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (lambda r: r, "function has no such weights"),
        (torch.nn.Linear(3, 2), "Linear has no such weights"),
        (Net((torch.zeros(3, 4),), ()), "no such biases"),
        (Net((torch.zeros(3),), (torch.zeros(3),)), "weights must have 2 dimensions"),
        (Net((torch.zeros(4, 3), torch.zeros(2, 4)), (torch.zeros(4), torch.zeros(2))), "no perceptron"),
        (Net((torch.zeros(3, 1),), (torch.zeros(1),)), "two logits or more"),
    ],
)
def test_what_is_no_perceptron_is_refused(network, message):
    with pytest.raises(TypeError, match=message):
        margin_bound(network, torch.zeros(1, 3), torch.tensor([0]), 0.1)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"x": torch.zeros(2, 4)}, r"expected x \(n, 3\)"),
        ({"target": torch.tensor([0, 2])}, "from 0 to 1"),
        ({"delta": -1.0}, "0 or more"),
        ({"delta": torch.ones(3)}, "one for each of 2 rows"),
        ({"change": Absolute((1.0, 1.0))}, "expected 1 finite scales"),
    ],
)
def test_questions_that_make_no_sense_are_refused(asked, message):
    question = {"x": torch.zeros(2, 3), "target": torch.tensor([0, 1]), "delta": 0.1} | asked
    with pytest.raises(ValueError, match=message):
        margin_bound(drawn(3, 2), **question)
