"""The autoencoder learns, and the answer is the nearest of what it decodes around a row."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from scipy.stats import kstest

from holdfast import Space, other_class, predict
from holdfast.models.scores import margin
from holdfast.search.gradients import LEAST_SCORE
from holdfast.search.methods import latent
from holdfast.search.methods.latent import Latent, in_shell

SMALL = Latent(sizes=(32, 4), epochs=100, batch=16, samples=80, radius=0.5)


@pytest.fixture(scope="module")
def fitted(rows, encoding):
    return SMALL.fit(*rows, encoding.space)


@pytest.fixture(scope="module")
def question(family, rows):
    return family[0], rows[0], other_class(family[0], rows[0])


def double(network):
    """The same network in float64, where the last bit of a matrix product decides nothing."""
    return replace(
        network,
        weights=tuple(weight.double() for weight in network.weights),
        biases=tuple(bias.double() for bias in network.biases),
    )


def weights(method):
    return [tensor for layer in (*method.autoencoder.encoder, *method.autoencoder.decoder) for tensor in layer]


# ---- the autoencoder ----


def test_rows_it_has_not_seen_are_reconstructed_better_than_by_the_mean_row(rows, encoding):
    x, y = rows
    seen, unseen = x[:45], x[45:]
    autoencoder = replace(SMALL, sizes=(64, 8), learning_rate=5e-3).fit(seen, y[:45], encoding.space).autoencoder
    error = (autoencoder.decode(autoencoder.encode(unseen)) - unseen).square().sum(1).mean()
    assert error < 0.5 * (unseen - seen.mean(0)).square().sum(1).mean()


def test_what_is_decoded_keeps_the_range_of_the_data_and_columns_that_never_change(rows, encoding):
    x = rows[0].clone()
    x[:, 2] = 0.25
    autoencoder = SMALL.fit(x, rows[1], encoding.space).autoencoder
    decoded = autoencoder.decode(50 * torch.randn(200, 4, generator=torch.Generator().manual_seed(0)))
    assert (decoded >= x.amin(0) - 1e-6).all()
    assert (decoded <= x.amax(0) + 1e-6).all()
    assert (decoded[:, 2] == 0.25).all()


def test_codes_have_unit_variance_however_long_the_training(rows, encoding):
    for epochs in (5, 100):
        autoencoder = replace(SMALL, epochs=epochs).fit(*rows, encoding.space).autoencoder
        assert autoencoder.encode(rows[0]).var(0, correction=0).mean() == pytest.approx(1, rel=1e-4)


def test_scaling_codes_does_not_change_what_is_reconstructed(rows, fitted):
    x, known = rows[0], fitted.autoencoder
    (inward, bias), (outward, other) = known.encoder[-1], known.decoder[0]
    stretched = replace(
        known,
        encoder=(*known.encoder[:-1], (10 * inward, 10 * bias)),
        decoder=((outward / 10, other), *known.decoder[1:]),
    )
    unit = latent._with_unit_codes(stretched, x)
    torch.testing.assert_close(unit.encode(x), known.encode(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(unit.decode(unit.encode(x)), known.decode(known.encode(x)), rtol=1e-4, atol=1e-4)


def test_codes_left_as_they_were_trained_differ_by_one_factor_and_reconstruct_the_same(rows, encoding, fitted):
    x, unit = rows[0], fitted.autoencoder
    plain = replace(SMALL, unit_codes=False).fit(*rows, encoding.space).autoencoder
    spread = plain.encode(x).var(0, correction=0).mean().sqrt()
    assert abs(spread - 1) > 0.1
    torch.testing.assert_close(plain.encode(x), spread * unit.encode(x), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(plain.decode(plain.encode(x)), unit.decode(unit.encode(x)), rtol=1e-4, atol=1e-4)


def test_the_same_fit_gives_the_same_bytes_another_seed_does_not(rows, encoding, fitted):
    again, other = (SMALL.fit(*rows, encoding.space, seed=seed) for seed in (0, 1))
    assert all(torch.equal(one, two) for one, two in zip(weights(fitted), weights(again), strict=True))
    assert not torch.equal(weights(fitted)[0], weights(other)[0])


def test_steps_end_a_training_early(rows, encoding, fitted):
    one_epoch = replace(SMALL, epochs=1).fit(*rows, encoding.space)  # 60 rows in batches of 16 are four steps
    four_steps = replace(SMALL, steps=4).fit(*rows, encoding.space)
    assert all(torch.equal(one, two) for one, two in zip(weights(one_epoch), weights(four_steps), strict=True))
    assert not torch.equal(weights(one_epoch)[0], weights(fitted)[0])


def test_fitting_leaves_the_method_and_the_callers_random_numbers_and_threads_alone(rows, encoding, question):
    method, before, threads = replace(SMALL, epochs=2), torch.random.get_rng_state(), torch.get_num_threads()
    with torch.no_grad():
        fitted = method.fit(*rows, encoding.space)
        fitted(*question, encoding.space)
    assert method.autoencoder is None
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    assert not any(weight.requires_grad for weight in weights(fitted))


def test_one_row_can_be_fitted_none_or_what_is_not_finite_cannot(rows, encoding):
    x, y = rows
    autoencoder = SMALL.fit(x[:1], y[:1], encoding.space).autoencoder
    assert torch.equal(autoencoder.decode(autoencoder.encode(x[:1])), x[:1])
    for bad, fact in ((x[:0], "got none"), (x[0], f"n, {x.shape[1]}"), (torch.full_like(x, torch.nan), "not finite")):
        with pytest.raises(ValueError, match=fact):
            SMALL.fit(bad, y, encoding.space)


# ---- the samples ----


@pytest.mark.parametrize(("inner", "outer"), [(0.0, 2.0), (1.5, 2.0)])
def test_samples_are_uniform_between_two_spheres(inner, outer):
    """The share of the volume within r is (r³ − inner³) / (outer³ − inner³), and no direction is preferred."""
    points = in_shell(4000, 3, inner, outer, torch.Generator().manual_seed(0)).double()
    volume = (points.norm(dim=1) ** 3 - inner**3) / (outer**3 - inner**3)
    assert kstest(volume.numpy(), "uniform").pvalue > 0.01
    direction = points / points.norm(dim=1, keepdim=True)
    for column in direction.T:  # Archimedes: each coordinate of a uniform direction in three dimensions is uniform
        assert kstest(((column + 1) / 2).numpy(), "uniform").pvalue > 0.01


def test_the_ball_is_drawn_alike_whatever_the_shells_and_shells_do_not_overlap():
    """With codes of two numbers, where a quarter of the ball of 2 lies in the ball of 1."""
    (ball,), (first, second) = Latent(shells=1)._draws(2), Latent(shells=2)._draws(2)
    assert torch.equal(ball, first)
    assert torch.equal(ball[0], torch.zeros(2))
    assert ball.shape == (1281, 2)
    assert ball.norm(dim=1).max() <= 1 + 1e-6
    assert second.norm(dim=1).min() >= 1 - 1e-6
    assert 1.9 < second.norm(dim=1).max() <= 2 + 1e-5


# ---- the search ----


@pytest.mark.parametrize("where", ["schema", "free"])
def test_the_answer_is_the_nearest_candidate_of_the_class(where, question, encoding, fitted):
    """Against one row at a time, every candidate in one list."""
    model, x, target = question
    space = encoding.space if where == "schema" else Space.free(x)
    answer = fitted(model, x, target, space)
    autoencoder, (away,) = fitted.autoencoder, fitted._draws(4)
    for row, origin in enumerate(x):
        candidates = autoencoder.decode(autoencoder.encode(origin[None]) + away)
        valid = space.snap(candidates, origin.expand_as(candidates))
        there = margin(model, valid, target[row].expand(len(valid))) > LEAST_SCORE
        if space.people is not None:
            likely = space.people.plausible(valid, target[row].expand(len(valid)), origin.expand_as(valid))
            assert bool(answer.implausible[row]) == bool(there.any() and not (there & likely).any())
            there = there & likely if (there & likely).any() else there
            if answer.implausible[row]:
                nearest = valid[there][(valid[there] - origin).norm(dim=1).argmin()]
                torch.testing.assert_close(answer.point[row], nearest)
                continue
        assert bool(answer.found[row]) == bool(there.any())
        if there.any():
            least = (valid[there] - origin).norm(dim=1).min()
            torch.testing.assert_close(answer.cost()[row], least)
            assert (valid[there] - answer.point[row]).abs().sum(1).min() < 1e-4  # it is one of them
        else:
            assert torch.equal(answer.point[row], origin)  # nothing is put in its place
    assert 0 < answer.found.sum() < len(x)


def test_a_reconstruction_of_the_class_is_a_candidate(rows, encoding):
    """An autoencoder that knows one row decodes it everywhere, so whoever wants that row's class gets that row."""
    x, y = rows
    space = Space.free(x)
    model = lambda r: torch.stack([-(r - x[0]).square().sum(1) + 0.1, 0 * r[:, 0]], -1)  # noqa: E731 class 0 around it
    answer = SMALL.fit(x[:1], y[:1], space)(model, x, torch.zeros(len(x), dtype=torch.long), space)
    assert answer.found.all()
    torch.testing.assert_close(answer.point, x[:1].expand_as(x))


def test_a_larger_ball_finds_at_least_as_many(question, encoding, fitted):
    counts = [int(replace(fitted, radius=radius)(*question, encoding.space).found.sum()) for radius in (0.1, 0.5, 2.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_shells_find_what_one_small_ball_does_not_and_keep_what_it_does(question, encoding, fitted):
    one, many = (replace(fitted, radius=0.2, shells=shells)(*question, encoding.space) for shells in (1, 12))
    assert torch.equal(many.point[one.found], one.point[one.found])
    assert one.found.sum() < many.found.sum()
    assert many.found.float().mean() > 0.9


def test_the_space_is_kept(question, encoding, fitted):
    model, x, target = question
    answer = replace(fitted, shells=5)(model, x, target, encoding.space)
    found = answer.found
    assert found.float().mean() > 0.5
    assert not encoding.space.violations(answer.point[found], x[found]).any()
    assert (predict(model, answer.point[found]) == target[found]).all()
    assert torch.equal(answer.point[:, ~encoding.space.mutable], x[:, ~encoding.space.mutable])
    assert torch.equal(encoding.encode(answer.to_frame(encoding))[found], answer.point[found])


def test_who_is_there_already_need_not_move(question, encoding, fitted):
    model, x, _ = question
    answer = fitted(model, x, predict(model, x), encoding.space)
    assert answer.found.all()
    assert torch.equal(answer.point, x)


def test_batched_is_one_by_one_in_any_order(question, encoding, fitted):
    network, x, target = question
    model, x, method = double(network), x.double(), replace(fitted, shells=3)
    for space in (encoding.space, Space.free(x)):
        x = space.snap(x, x)
        together = method(model, x, target, space)
        order = torch.randperm(len(x), generator=torch.Generator().manual_seed(1))[:12]
        shuffled = method(model, x[order], target[order], space)
        torch.testing.assert_close(shuffled.point, together.point[order])
        assert torch.equal(shuffled.found, together.found[order])
        for row in order[:4].tolist():
            alone = method(model, x[row : row + 1], target[row : row + 1], space)
            torch.testing.assert_close(alone.point[0], together.point[row])


@pytest.mark.parametrize(("together", "numbers"), [(7, 7 * 32 * 3), (1, 1), (10**6, 10**9)])
def test_how_many_are_tried_at_a_time_does_not_matter(together, numbers, question, encoding, fitted, monkeypatch):
    network, x, target = question
    x, target = x[:10].double(), target[:10]
    model, x = double(network), encoding.space.snap(x, x)
    usual = fitted(model, x, target, encoding.space)
    monkeypatch.setattr(latent, "SAMPLES_AT_ONCE", together)
    monkeypatch.setattr(latent, "NUMBERS_AT_ONCE", numbers)
    unusual = fitted(model, x, target, encoding.space)
    assert torch.equal(usual.found, unusual.found)
    torch.testing.assert_close(usual.point, unusual.point)


def test_no_call_of_the_model_or_the_decoder_is_larger_than_allowed(question, encoding, fitted, monkeypatch):
    """Rows × samples × the widest layer stays below NUMBERS, whatever the number of rows and samples."""
    network, x, target = question
    monkeypatch.setattr(latent, "SAMPLES_AT_ONCE", 16)
    monkeypatch.setattr(latent, "NUMBERS_AT_ONCE", 16 * 32 * 5)
    asked = []

    def model(rows):
        asked.append(len(rows))
        return network(rows)

    fitted(model, x, target, encoding.space)
    assert max(asked[2:-1]) == 16 * 5  # after the question's check and where the rows are, before the last word
    assert len(asked) > 60


# ---- the edge ----


def test_without_a_fit_it_says_what_to_do(question, encoding):
    with pytest.raises(ValueError, match=r"no autoencoder yet.*Latent\(\)\.fit\(x, y, space\)"):
        SMALL(*question, encoding.space)


def test_rows_of_another_width_are_refused(question, fitted):
    x = torch.zeros(3, 5)
    space = Space.box(-torch.ones(5), torch.ones(5))
    with pytest.raises(ValueError, match="fitted to rows of 12 columns but these have 5"):
        fitted(lambda r: torch.stack([r[:, 0], -r[:, 0]], -1), x, torch.zeros(3, dtype=torch.long), space)


@pytest.mark.parametrize(
    "settings",
    [
        {"radius": 0},
        {"radius": float("inf")},
        {"samples": 0},
        {"shells": 0},
        {"sizes": ()},
        {"sizes": (8, 0)},
        {"epochs": 0},
        {"steps": 0},
        {"batch": 0},
        {"learning_rate": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        Latent(**settings)


def test_printing_shows_what_ran(fitted):
    assert repr(fitted) == repr(SMALL)
    assert "radius=0.5, samples=80, shells=1, seed=2021, sizes=(32, 4)" in repr(fitted)
