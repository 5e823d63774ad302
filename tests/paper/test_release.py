"""The released code's arithmetic, by known answers, and by computing the same in another way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import linear

from holdfast import PGD, SNS, Counterfactuals, Space, assess, other_class, predict
from holdfast.paper import release
from holdfast.paper.reference.art import ElasticNetART
from holdfast.paper.release import ReleasedLatent, ReleasedPGD, ReleasedSNS
from holdfast.search.methods.latent import Latent, forward

W = torch.tensor([3.0, 4.0])
WIDE = Space.box(torch.full((2,), -50.0), torch.full((2,), 50.0))


def ones(x):
    return torch.ones(len(x), dtype=torch.long)


def rows_of_class_0(count=200):
    x = 3 * torch.randn(count, 2, generator=torch.Generator().manual_seed(0))
    return x[x @ W - 1 < 0]


# ---- PGD ----


@pytest.mark.parametrize("radius", [0.1, 0.3])
def test_the_steps_together_are_twice_the_radius_squared(radius):
    """From the same start along w and against it: where neither meets the sphere they end 4ε² apart."""
    x, method = torch.zeros(500, 2), ReleasedPGD(radius=radius, levels=1, steps=40)
    along, against = (method(linear(sign * W / 5, -2.0), x, ones(x), WIDE).point for sign in (1, -1))
    inside = (along.norm(dim=1) < 0.99 * radius) & (against.norm(dim=1) < 0.99 * radius)
    assert inside.sum() > 100
    torch.testing.assert_close((along - against)[inside], (4 * radius**2 * W / 5).expand(int(inside.sum()), 2))
    start = (along + against)[inside] / 2  # one a row
    assert len(start.unique(dim=0)) == len(start)
    assert start.norm(dim=1).max() > 0.5 * radius


def test_how_far_each_ball_of_the_ladder_gets(monkeypatch):
    """With the row for a start a ball of ε gets min(ε, 2ε²) along w; the first that crosses the plane counts."""
    monkeypatch.setattr(release, "in_shell", lambda count, width, *rest: torch.zeros(count, width))
    x = rows_of_class_0()
    distance = (1 - x @ W) / 5
    answer = ReleasedPGD(radius=2.0, levels=10, steps=50)(linear(W, -1.0), x, ones(x), WIDE)
    ladder = torch.arange(1, 11) / 5
    gets = torch.minimum(ladder, 2 * ladder**2)
    clear = (gets - distance[:, None]).abs().amin(1) > 0.01  # a row on the edge may go either way
    found = distance < 2
    assert torch.equal(answer.found[clear], found[clear])
    expected = torch.stack([gets[gets > far][0] for far in distance[clear & found]])
    torch.testing.assert_close(answer.cost(2)[clear & found], expected, rtol=1e-4, atol=1e-4)
    assert len(expected.unique()) == 10  # every ball counted for some row


def test_with_large_balls_it_finds_what_pgd_finds():
    x = rows_of_class_0()
    x = x[(1 - x @ W) / 5 > 1.2]  # smaller balls than this may not be crossed from where one starts
    model = linear(W, -1.0)
    ours, known = (method(model, x, ones(x), WIDE) for method in (ReleasedPGD(radius=4.0), PGD(radius=4.0)))
    assert 0.1 < known.success < 0.9
    assert torch.equal(ours.found, known.found)
    torch.testing.assert_close(ours.cost(2), known.cost(2), rtol=0.01, atol=0.01, equal_nan=True)
    moved = (ours.point - x)[ours.found]
    assert (moved @ W / 5 > 0.99 * moved.norm(dim=1)).all()


def test_neither_the_ball_nor_the_space_is_left(family, rows):
    space = Space.box(torch.tensor([-50.0, -50.0]), torch.tensor([0.5, 50.0]))
    x = rows_of_class_0()
    x = x[x[:, 0] <= 0.5]
    answer = ReleasedPGD(radius=2.0, steps=30)(linear(W, -1.0), x, ones(x), space)
    assert answer.found.any()
    assert not answer.found.all()
    assert ((answer.point - x).norm(dim=1) <= 2.0 * (1 + 1e-5)).all()  # those that were not found too
    assert (answer.point[:, 0] <= 0.5).all()
    model, x = family[0], rows[0]
    answer = ReleasedPGD(radius=6.0, steps=30)(model, x, other_class(model, x), Space.free(x))
    assert answer.success > 0.5
    assert (answer.cost(2)[answer.found] <= 6.0 * (1 + 1e-5)).all()
    assert (answer.point >= x.min()).all()
    assert (answer.point <= x.max()).all()


def test_where_the_network_is_certain_there_is_nothing_to_follow():
    """Its probability is 1 to the last bit, so along w and against it end at the start; PGD's logits still tell."""
    x = torch.zeros(20, 2)
    method = ReleasedPGD(radius=0.3, steps=10)
    along, against = (method(linear(sign * W, -500.0), x, ones(x), WIDE).point for sign in (1, -1))
    assert torch.equal(along, against)
    assert (along != 0).any(1).all()
    along, against = (PGD(radius=0.3, steps=10)(linear(sign * W, -500.0), x, ones(x), WIDE).point for sign in (1, -1))
    assert ((along - against) @ W > 0).all()


def test_the_same_seed_gives_the_same_bytes(family, rows):
    x = rows[0]
    target = other_class(family[0], x)

    def points(seed):
        return ReleasedPGD(radius=2.0, levels=3, steps=10, seed=seed)(family[0], x, target, Space.free(x)).point

    assert torch.equal(points(0), points(0))
    assert (points(0) != points(1)).any(1).all()


def test_rows_that_have_the_class_stay_and_change_nothing_for_others():
    x = 3 * torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
    model, method = linear(W, -1.0), ReleasedPGD(radius=2.0, steps=20)
    answer = method(model, x, ones(x), WIDE)
    there = predict(model, x) == 1
    assert 20 < there.sum() < 80
    assert torch.equal(answer.point[there], x[there])
    assert answer.found[there].all()
    assert (answer.point[~there] != x[~there]).any(1).all()
    fewer = torch.where(torch.arange(100) < 50, predict(model, x), 1)  # half of the rows want what they have
    torch.testing.assert_close(method(model, x, fewer, WIDE).point[50:], answer.point[50:])


# ---- SNS ----


def peak(r):
    """Class 1 around a peak at r₂ = 1."""
    logit = 3 - (r[:, 1] - 1) ** 2 / 2
    return torch.stack([-logit, logit], -1) / 2


def cliff(r):
    """The probability of class 1 grows along r₂ and drops to nothing beyond 1.1."""
    logit = 3 * r[:, 1] - 100 * torch.relu(r[:, 1] - 1.1)
    return torch.stack([-logit, logit], -1) / 2


def begun(model, x):
    """Rows that are counterfactuals already."""
    return assess(model, x, x, predict(model, x), WIDE if x.shape[1] == 2 else Space.free(x))


@pytest.mark.parametrize("fitted", [False, True])
def test_sns_keeps_its_ball_and_the_class_and_once_fitted_the_columns(fitted, family, rows):
    x, y = rows
    space, method = Space.free(x), ReleasedSNS(radius=2.0, steps=40)
    begin = begun(family[0], x)
    stable = (method.fit(x, y, space) if fitted else method)(family[0], begin, space)
    assert stable.found.all()
    assert ((stable.point - x).norm(dim=1) <= 2.0 * (1 + 1e-5)).all()
    value = SNS(points=10).value
    assert value(family[0], stable.point, begin.target).mean() > value(family[0], x, begin.target).mean() + 0.01
    outside = (stable.point < x.amin(0)) | (stable.point > x.amax(0))
    assert outside.any() != fitted
    assert (stable.point >= x.min()).all()  # of all columns, in any case
    assert (stable.point <= x.max()).all()


def test_sns_goes_straight_along_w():
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    stable = ReleasedSNS(radius=2.0)(linear(W / 10, 3.0), begun(linear(W, 30.0), x), WIDE)
    torch.testing.assert_close(stable.point, x + 2.0 * W / 5, rtol=1e-3, atol=1e-2)


def test_the_last_iterate_counts_though_the_first_was_better():
    """Steps of 1 from 0.9 around the peak at 1: to 1.9, back, and to 1.9 again."""
    x = torch.tensor([[0.0, 0.9]])
    begin, method = begun(peak, x), ReleasedSNS(radius=1.5, steps=3, points=1)
    stable = method(peak, begin, WIDE)
    torch.testing.assert_close(stable.point, torch.tensor([[0.0, 1.9]]), rtol=0, atol=0.01)
    value = SNS(points=1).value
    assert value(peak, stable.point, begin.target) < value(peak, x, begin.target)
    assert torch.equal(SNS(radius=1.5, steps=3, points=1)(peak, begin, WIDE).point, x)  # the best is where it began


def test_the_last_iterate_that_has_the_class_counts():
    """Steps of 0.7 from 0.5 over the cliff, back, and over it again."""
    x = torch.tensor([[0.0, 0.5]])
    stable = ReleasedSNS(radius=1.05, steps=3, points=1)(cliff, begun(cliff, x), WIDE)
    assert stable.found.all()
    torch.testing.assert_close(stable.point, x, rtol=0, atol=0.01)
    assert not torch.equal(stable.point, x)
    once = ReleasedSNS(radius=0.7, steps=1, points=1)(cliff, begun(cliff, x), WIDE)
    assert torch.equal(once.point, x)  # without one, the start to the bit


def test_the_noise_is_small_drawn_by_the_seed_and_the_same_for_all_rows():
    """No gradient leads along r₁, so what is there is the noise."""
    x = torch.tensor([[0.0, 0.9], [2.0, 0.5], [-1.0, 1.2]])

    def moved(**settings):
        return (ReleasedSNS(radius=1.5, steps=3, **settings)(peak, begun(peak, x), WIDE).point - x)[:, 0]

    noise = moved()
    assert 0 < noise.abs().max() < 5e-3
    torch.testing.assert_close(noise, noise[:1].expand(3), rtol=0, atol=1e-6)
    assert torch.equal(noise, moved())
    assert not torch.equal(noise, moved(seed=1))
    assert (moved(noise=0.0) == 0).all()


def test_rows_not_found_pass_through_unchanged_whatever_their_class():
    x = torch.tensor([[5.0, 5.0], [4.0, 4.0]])
    begin = Counterfactuals(x, x, torch.tensor([1, 1]), torch.tensor([False, True]))
    stable = ReleasedSNS(radius=1.0)(linear(W / 50, 0.0), begin, WIDE)
    assert torch.equal(stable.point[0], x[0])
    assert stable.found.tolist() == [False, True]
    assert not torch.equal(stable.point[1], x[1])


# ---- the autoencoder's ----


def everywhere(klass):
    """One class wherever one looks, with a gradient."""
    return lambda r: torch.stack([r[:, 0] / 100, r[:, 0] / 100 + 200 * klass - 100], -1)


@pytest.fixture(scope="module")
def fitted(rows):
    """Rows with a column that never changes, in float64, and the method fitted to other rows than it is asked about."""
    x = rows[0].double()
    x[:, 2] = 0.25
    small = Latent(learning_rate=5e-3, batch=16, epochs=60, sizes=(32, 4), unit_codes=False)
    return ReleasedLatent(radius=2.0, samples=40, rounds=3, latent=small).fit(x[20:], rows[1][20:], Space.free(x)), x


def scaled(x):
    low, width = x.amin(0), x.amax(0) - x.amin(0)
    return torch.where(width > 0, (x - low) / width, 0)


def codes(method, x):
    return forward(method.latent.autoencoder.to(x).encoder, scaled(x))


def decoded(method, code):
    return forward(method.latent.autoencoder.to(code).decoder, code).sigmoid()


def test_where_every_reconstruction_has_the_class_it_is_the_answer_left_between_0_and_1(fitted):
    method, x = fitted
    answer = method(everywhere(1), x, ones(x), Space.free(x))
    assert answer.found.all()
    torch.testing.assert_close(answer.point, decoded(method, codes(method, x)))
    assert (answer.point >= 0).all()
    assert (answer.point <= 1).all()


def test_where_nothing_has_the_class_all_rows_get_the_first_ones_reconstruction(fitted):
    method, x = fitted
    answer = method(everywhere(0), x, ones(x), Space.free(x))
    assert not answer.found.any()
    torch.testing.assert_close(answer.point, decoded(method, codes(method, x)[:1]).expand_as(x))


def test_the_first_rows_reconstruction_is_found_if_it_has_the_class(fitted):
    """Class 1 is a small ball around that reconstruction: no other, and no sample in the table's units, is in it."""
    method, x = fitted
    first = decoded(method, codes(method, x))[:1]

    def model(r):
        far = torch.linalg.vector_norm(r - first, dim=1)
        return torch.stack([far - 1e-3, 1e-3 - far], -1)

    assert predict(model, decoded(method, codes(method, x))).tolist() == [1] + [0] * (len(x) - 1)
    answer = method(model, x, ones(x), Space.free(x))
    assert answer.found.all()
    torch.testing.assert_close(answer.point, first.expand_as(x))


def by_hand(method, model, x, target):
    """The same, row by row, sample by sample."""
    low, width = x.amin(0), x.amax(0) - x.amin(0)
    center, draws = codes(method, x), list(method._draws(codes(method, x)))
    answers, rounds = [], []
    for row, code in enumerate(center):
        plain = decoded(method, code[None])
        answer, ended = decoded(method, center[:1])[0], None
        if predict(model, plain)[0] == target[row]:
            answer, ended = plain[0], -1
        for number, away in enumerate(draws):
            if ended is None:
                samples = low + width * decoded(method, code + away)
                right = samples[predict(model, samples) == target[row]]
                if len(right):
                    ended, answer = number, right[(right - scaled(x)[row]).norm(dim=1).argmin()]
        answers.append(answer)
        rounds.append(ended)
    return torch.stack(answers), rounds


@pytest.fixture(scope="module")
def question(fitted):
    """A plane through the reconstructions: some rows have the class there, some near there, some nowhere."""
    method, x = fitted
    method = replace(method, samples=12, radius=8.0)
    way = torch.randn(x.shape[1], generator=torch.Generator().manual_seed(3)).double()
    back = x.amin(0) + (x.amax(0) - x.amin(0)) * decoded(method, codes(method, x))
    return method, linear(way, -float((back @ way).quantile(0.7))), x


def test_it_is_the_nearest_sample_of_the_first_round_that_has_one(question):
    method, model, x = question
    target = torch.arange(len(x)) % 2
    expected, rounds = by_hand(method, model, x, target)
    assert {-1, 0, None} < set(rounds)  # every way to end, and a later round
    answer = method(model, x, target, Space.box(torch.full_like(x[0], -50), torch.full_like(x[0], 50)))
    torch.testing.assert_close(answer.point, expected)
    found = [ended is not None for ended in rounds]
    assert answer.found[found].all()


def test_how_many_rows_are_decoded_at_a_time_does_not_matter(question, monkeypatch):
    method, model, x = question
    whole = method(model, x, ones(x), Space.free(x))
    monkeypatch.setattr(release, "ROWS_AT_ONCE", 7)
    torch.testing.assert_close(method(model, x, ones(x), Space.free(x)).point, whole.point)


def test_no_sample_is_further_than_about_the_radius_over_the_root_of_their_number():
    method = ReleasedLatent(radius=2.0)
    draws = list(method._draws(torch.zeros(1, 32)))
    assert [tuple(away.shape) for away in draws] == [(256, 32)] * 5
    assert not torch.equal(draws[0], draws[1])
    for away, again in zip(draws, method._draws(torch.zeros(1, 32)), strict=True):
        assert torch.equal(away, again)
        assert away.norm() <= 2.0  # all of them together
        assert away.norm(dim=1).max() < 1.5 * 2.0 / 16
        assert away.norm(dim=1).mean() == pytest.approx(2.0 / 16 / 2, rel=0.1)
    assert not torch.equal(next(replace(method, seed=1)._draws(torch.zeros(1, 32))), draws[0])


def test_latent_is_trained_as_it_was_there_and_must_be_fitted(rows, family):
    method = ReleasedLatent(radius=1.0)
    assert method.latent == Latent(learning_rate=1e-4, batch=512, epochs=100, steps=1_000_000, unit_codes=False)
    with pytest.raises(ValueError, match="no autoencoder yet; fit the method to the data first"):
        method(family[0], rows[0], other_class(family[0], rows[0]), Space.free(rows[0]))


# ---- the elastic net of 2020 ----

CORNERS = np.array([[2.0, 0.0, 1.0], [-1.0, 1.7, 0.0], [-1.0, -1.7, -1.0]])  # weights of three classes,
BIAS = np.array([0.0, 0.3, 0.7])  # and biases: at 0, where the caps are, no two are even


def three_classes(r):
    return r @ torch.from_numpy(CORNERS).T + torch.from_numpy(BIAS)


def published(x, target, norm, rate, steps, constant):
    """One row with one constant: the cheapest iterate of the class, or the row itself."""

    def probabilities(point):
        raised = np.exp(CORNERS @ point + BIAS)
        return raised / raised.sum()

    beta = 1.0 if norm == 1 else 0.0
    best, least = x, np.inf
    point = ahead = x
    for step in range(steps):
        p = probabilities(ahead)
        slopes = p[:, None] * (CORNERS - p @ CORNERS)  # of each class's probability
        other = max((one for one in range(3) if one != target), key=lambda one: p[one])
        gradient = constant * (slopes[other] - slopes[target]) + 2 * (ahead - x)
        z = ahead - rate * (1 - step / steps) ** 2 * gradient
        following = x.copy()
        for column in range(len(x)):
            if z[column] - x[column] > beta:
                following[column] = min(z[column] - beta, 1.0)
            elif z[column] - x[column] < -beta:
                following[column] = max(z[column] + beta, 0.0)
        ahead = following + step / (step + 3) * (following - point)
        point = following
        cost = np.abs(point - x).sum() if norm == 1 else ((point - x) ** 2).sum()
        if probabilities(point).argmax() == target and cost < least:
            best, least = point, cost
    return best


@pytest.mark.parametrize(("norm", "rate", "constant"), [(2, 0.1, 3.0), (2, 0.002, 30.0), (1, 0.3, 30.0)])
def test_the_elastic_net_of_2020_is_the_published_loop(norm, rate, constant):
    draw = np.random.default_rng(0)
    x, target = draw.uniform(-0.5, 1.5, (30, 3)), np.arange(30) % 3  # beyond the caps too
    method = replace(ElasticNetART.of_2020(norm, rate), steps=25, constants=1, first=constant)
    wide = Space.box(torch.full((3,), -50.0), torch.full((3,), 50.0))
    answer = method(three_classes, torch.from_numpy(x), torch.from_numpy(target), wide)
    expected = np.stack([published(*row, norm, rate, 25, constant) for row in zip(x, target, strict=True)])
    np.testing.assert_allclose(answer.point.numpy(), expected, rtol=1e-9, atol=1e-12)
    moved = (expected != x).any(1)
    assert moved.sum() > 5
    already = (x @ CORNERS.T + BIAS).argmax(1) == target
    assert (moved & ~already).any()  # some found, and
    assert not answer.found.all()  # some not
    assert ((expected == 0) | (expected == 1)).any()  # the caps were met


def test_in_2020_the_margin_plays_no_role(family, rows):
    x = rows[0]
    target = other_class(family[0], x)

    def points(method, **settings):
        return replace(method, steps=30, constants=4, **settings)(family[0], x, target, Space.free(x)).point

    old, new = ElasticNetART.of_2020(2, 0.1), ElasticNetART(2, 0.1)
    assert torch.equal(points(old), points(old, confidence=0.0))
    assert not torch.equal(points(new), points(new, confidence=0.0))


def test_caps_hold_what_moves_and_let_stay_what_is_beyond_them():
    """Rows at 1.5 and −0.5: a column that is not moved stays there, one that is moved up comes back to 1 at most."""
    model = linear(torch.tensor([1.0, 0.0]), -0.9)
    x = torch.tensor([[0.5, 1.5], [0.5, -0.5]])
    method = replace(ElasticNetART.of_2020(2, 0.5), steps=20, constants=1, first=100.0)
    answer = method(model, x, ones(x), WIDE)
    assert answer.found.all()
    assert torch.equal(answer.point[:, 1], x[:, 1])
    assert torch.equal(answer.point[:, 0], torch.ones(2))
    free = replace(method, capped=False)(model, x, ones(x), WIDE)
    assert (free.point[:, 0] > 1).all()
