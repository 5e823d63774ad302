import pytest
import torch
from conftest import linear

from holdfast import MinCost, Space, other_class, predict
from holdfast.paper.reference.alibi import AlibiPrototype
from holdfast.search.methods.prototype import Prototype, prototypes

W = torch.tensor([3.0, -4.0, 1.0, 0.5, 2.0])
WIDE = Space.box(torch.full((5,), -50.0), torch.full((5,), 50.0))
MODEL = linear(W, -1.0)


def drawn(count, seed=0):
    return torch.randn(count, 5, generator=torch.Generator().manual_seed(seed))


def asked(count=80):
    """Rows on the side of class 0, and the wish for class 1."""
    x = drawn(4 * count, seed=1)
    x = x[x @ W < 1][:count]
    return x, torch.ones(len(x), dtype=torch.long)


def fitted(space=WIDE, **settings):
    return Prototype(**settings).fit(drawn(500), torch.zeros(500), space)


def three_classes(r):
    return torch.stack([r[:, 0], r[:, 1], 0 * r[:, 2]], -1)


# ---- prototypes ----


@pytest.mark.parametrize("nearest", [1, 7, 20])
def test_the_prototype_is_the_kth_nearest_row_predicted_as_the_target(nearest):
    rows, x = drawn(500), drawn(60, seed=2)
    target = torch.arange(60) % 3
    found, known = prototypes(three_classes, rows, x, target, nearest)
    far = (x[:, None] - rows).double().norm(dim=-1)
    far[predict(three_classes, rows) != target[:, None]] = torch.inf
    assert known.all()
    assert torch.equal(found, rows[far.argsort(1)[:, nearest - 1]])


def test_of_too_few_rows_the_farthest_and_of_none_none():
    rows = torch.tensor([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 9.0, 0.0]])
    x, target = torch.zeros(3, 3), torch.tensor([0, 1, 2])
    found, known = prototypes(three_classes, rows, x, target, 20)
    assert known.tolist() == [True, True, False]
    assert torch.equal(found, torch.stack([rows[0], rows[2], x[2]]))


def test_a_class_that_no_row_is_predicted_as_is_not_found_and_hurts_no_other():
    def no_one_is_two(r):
        return torch.stack([r @ W - 1, 1 - r @ W, 9 * r[:, 0] - 60], -1)

    x, _ = asked()
    target = torch.arange(len(x)) % 2 * 2  # class 2 is within reach, but no training row is there
    answer = fitted()(no_one_is_two, x, target, WIDE)
    assert torch.equal(answer.found, target == 0)
    assert torch.equal(answer.point[target == 2], x[target == 2])


# ---- the search ----


def elastic_net_optimum(x, beta):
    """Least beta · ‖δ‖₁ + ‖δ‖₂² with w·δ ≥ s: δ = soft(λw, beta)/2, with the λ at which w·δ = s."""
    short = (1 - x @ W)[:, None]
    low, high = torch.zeros_like(short), torch.full_like(short, 1e3)
    for _ in range(60):
        middle = (low + high) / 2
        moved = W.sign() * (middle * W.abs() - beta).clamp_min(0) / 2
        less = moved @ W[:, None] < short
        low, high = torch.where(less, middle, low), torch.where(less, high, middle)
    return beta * moved.abs().sum(1) + (moved**2).sum(1)


@pytest.mark.parametrize("beta", [0.1, 0.5])
def test_without_the_prototype_it_is_the_elastic_net_optimum(beta):
    x, target = asked()
    answer = fitted(theta=0.0, beta=beta, steps=200, constants=10)(MODEL, x, target, WIDE)
    moved = answer.point - x
    assert answer.found.all()
    cost, least = beta * moved.abs().sum(1) + (moved**2).sum(1), elastic_net_optimum(x, beta)
    assert (cost > least - 1e-3).all()
    torch.testing.assert_close(cost, least, rtol=0.05, atol=2e-3)


def test_without_prototype_and_l1_it_costs_what_min_cost_costs():
    x, target = asked()
    answer = fitted(theta=0.0, beta=0.0)(MODEL, x, target, WIDE)
    torch.testing.assert_close(answer.cost(), MinCost(norm=2)(MODEL, x, target, WIDE).cost(), rtol=0.05, atol=5e-3)


def test_a_large_theta_leads_straight_to_the_prototype_and_stops_where_the_class_begins():
    x, target = asked()
    method = fitted(theta=1e6)
    guide, _ = prototypes(MODEL, method.rows, x, target, 20)
    answer = method(MODEL, x, target, WIDE)
    way, moved = guide - x, answer.point - x
    share = (moved * way).sum(1) / (way**2).sum(1)
    entered = (1 - x @ W) / (way @ W)
    assert answer.found.all()
    torch.testing.assert_close(moved, share[:, None] * way, rtol=0, atol=1e-3)
    assert (share >= entered).all()
    assert (share - entered).max() < 0.15  # a step with its momentum


def test_the_larger_theta_the_nearer_to_the_prototype_and_the_dearer():
    x, target = asked()
    guide, _ = prototypes(MODEL, drawn(500), x, target, 20)
    answers = [fitted(theta=theta)(MODEL, x, target, WIDE) for theta in (0.0, 1.0, 10.0, 100.0)]
    far = [(answer.point - guide).norm(dim=1).mean().item() for answer in answers]
    costs = [answer.cost().mean().item() for answer in answers]
    assert all(answer.found.all() for answer in answers)
    assert far == sorted(far, reverse=True)
    assert costs == sorted(costs)
    assert far[-1] < 0.9 * far[0]


@pytest.mark.parametrize("method", [Prototype(), AlibiPrototype(steps=10)], ids=["own", "alibi"])
def test_who_has_the_class_stays(method, family, rows, encoding):
    model, (x, y) = family[0], rows
    for space in (encoding.space, Space.free(x)):
        answer = method.fit(x, y, space)(model, x, predict(model, x), space)
        assert answer.found.all()
        assert torch.equal(answer.point, x)


@pytest.mark.parametrize("method", [Prototype(), AlibiPrototype(steps=30)], ids=["own", "alibi"])
def test_the_schema_is_kept_inside_the_search_and_nearly_all_are_found(method, family, rows, encoding):
    model, (x, y), space = family[0], rows, encoding.space
    target = other_class(model, x)
    answer = method.fit(x, y, space)(model, x, target, space)
    found = answer.found
    assert found.float().mean() > 0.9
    assert not space.violations(answer.point[found], x[found]).any()
    assert torch.equal(answer.point[:, ~space.mutable], x[:, ~space.mutable])
    assert (predict(model, answer.point[found]) == target[found]).all()


def test_in_a_schema_too_it_stays_nearer_to_the_prototype_than_the_cheapest_point(family, rows, encoding):
    model, (x, y), space = family[0], rows, encoding.space
    target = other_class(model, x)
    guide, _ = prototypes(model, x, x, target, 20)
    own, cheapest = Prototype().fit(x, y, space)(model, x, target, space), MinCost()(model, x, target, space)
    both = own.found & cheapest.found
    far = [(answer.point - guide)[both].norm(dim=1).mean() for answer in (own, cheapest)]
    assert far[0] < far[1]


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(Prototype(steps=10, constants=2), id="own"),
        pytest.param(Prototype(), id="own, in full", marks=pytest.mark.slow),
        pytest.param(AlibiPrototype(steps=3), id="alibi"),
        pytest.param(AlibiPrototype(steps=10), id="alibi, longer", marks=pytest.mark.slow),
    ],
)
def test_batched_is_one_by_one(method, family, rows, encoding):
    """In float64, so that the last bit of a matrix product decides nothing."""
    network, (x, y) = family[0], rows

    def model(r):
        for weight, bias in zip(network.weights[:-1], network.biases[:-1], strict=True):
            r = torch.relu(r @ weight.double() + bias.double())
        return r @ network.weights[-1].double() + network.biases[-1].double()

    for space in (encoding.space, Space.free(x)):
        own = space.snap(x.double(), x.double())
        target, ready = other_class(model, own), method.fit(x, y, space)
        together = ready(model, own, target, space)
        for row in range(0, len(x), 13):
            alone = ready(model, own[row : row + 1], target[row : row + 1], space)
            torch.testing.assert_close(alone.point[0], together.point[row])
            assert alone.found[0] == together.found[row]


# ---- the value ----


def test_without_rows_it_says_what_to_do():
    x, target = asked()
    with pytest.raises(ValueError, match=r"use Prototype\(\)\.fit\(x, y, space\)"):
        Prototype()(MODEL, x, target, WIDE)


def test_rows_of_another_width_are_refused():
    x, target = asked()
    with pytest.raises(ValueError, match=r"expected x \(n, 5\), got \(500, 4\)"):
        Prototype().fit(drawn(500)[:, :4], target, WIDE)
    four = Space.box(WIDE.lower[:4], WIDE.upper[:4])
    with pytest.raises(ValueError, match="fitted to rows of 5 columns but asked about 4"):
        fitted()(linear(W[:4], -1.0), x[:, :4], target, four)


def test_fitting_gives_a_new_value_and_printing_shows_settings_not_rows():
    method = Prototype(theta=10.0)
    ready = method.fit(drawn(500), torch.zeros(500), WIDE)
    assert method.rows is None
    assert torch.equal(ready.rows, drawn(500))
    assert ready == method
    assert repr(ready) == (
        "Prototype(theta=10.0, beta=0.1, nearest=20, learning_rate=0.01, steps=50, constants=4, first=10.0, "
        "categories='abdm')"
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"theta": -1},
        {"theta": float("nan")},
        {"beta": -0.1},
        {"nearest": 0},
        {"learning_rate": 0},
        {"steps": 0},
        {"constants": 0},
        {"first": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        Prototype(**settings)
