"""BetaRCE, as a baseline: its bound, what it finds, and what it has seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from holdfast import Family, MinCost, Recipe, Retraining, Space, audit, other_class, predict, seeds, train
from holdfast.models.merged import merged
from holdfast.paper.reference.betarce import BetaRCE, lower_bound

QUICK = {"delta": 0.7, "method": MinCost(norm=1, steps=20, constants=3)}


@pytest.fixture(scope="module")
def retrained(rows):
    """Twelve networks for the search, twelve that only audit."""
    x, y = rows
    family = train(x, y, Recipe((16, 8), epochs=30, batch=16), [*seeds(12), *seeds(12, start=50)])
    return family[:12], family[12:]


@pytest.fixture(scope="module")
def question(family, rows):
    return family[0], rows[0], other_class(family[0], rows[0])


@pytest.fixture(scope="module")
def spaces(rows, encoding):
    return {"free": Space.free(rows[0]), "schema": encoding.space}


@pytest.fixture(scope="module")
def answers(question, spaces, retrained):
    method = BetaRCE(retrained[0], **QUICK)
    return {key: method(*question, space) for key, space in spaces.items()}


# ---- the bound ----


def test_the_bound_is_the_quantile_of_the_posterior():
    for members in (1, 7, 32):
        agreeing = np.arange(members + 1)
        expected = stats.beta.ppf(0.05, 0.5 + agreeing, 0.5 + members - agreeing)
        np.testing.assert_allclose(lower_bound(agreeing, members, 0.95), expected, rtol=1e-10)


def test_thirty_two_of_thirty_two_state_what_the_paper_prints():
    assert lower_bound(32, 32, 0.95) == pytest.approx(0.942, abs=5e-4)
    assert lower_bound(31, 32, 0.95) < 0.9  # so that delta = 0.9 asks for all of 32


def test_the_bound_is_right_for_a_point_that_no_model_has_chosen():
    """Jeffreys' prior and a probability drawn from it: by definition 95 % of the probabilities are above."""
    draw = np.random.default_rng(0)
    probability = draw.beta(0.5, 0.5, 20_000)
    stated = lower_bound(draw.binomial(32, probability), 32, 0.95)
    assert (probability >= stated).mean() == pytest.approx(0.95, abs=0.006)


def test_so_many_members_are_needed_as_reach_delta(retrained):
    method = BetaRCE(retrained[0], delta=0.7)
    assert lower_bound(method.needed, 12, 0.95) >= 0.7 > lower_bound(method.needed - 1, 12, 0.95)
    assert BetaRCE(retrained[0], delta=0.8).needed == 12
    assert BetaRCE(retrained[0], delta=1e-9).needed == 1  # never none


# ---- what it finds ----


@pytest.mark.parametrize("key", ["free", "schema"])
def test_what_is_found_keeps_the_space_the_class_and_delta(key, answers, question, spaces, retrained):
    (model, x, target), answer = question, answers[key]
    found = answer.found
    assert answer.success > 0.5
    assert torch.equal(answer.origin, x)
    assert not spaces[key].violations(answer.point[found], x[found]).any()
    assert (predict(model, answer.point[found]) == target[found]).all()
    agree = (retrained[0].predict(answer.point) == target).sum(0)[found]
    stated = BetaRCE(retrained[0], **QUICK).statement(model, answer)
    expected = stats.beta.ppf(0.05, 0.5 + agree.numpy(), 0.5 + 12 - agree.numpy())
    np.testing.assert_allclose(stated[found].numpy(), expected, rtol=1e-10)
    assert (stated[found] >= 0.7).all()
    assert stated[~found].isnan().all()


@pytest.mark.parametrize("key", ["free", "schema"])
def test_a_counterfactual_that_is_robust_already_stays_and_others_move(key, answers, question, spaces, retrained):
    (model, x, target), answer = question, answers[key]
    base = QUICK["method"](model, x, target, spaces[key])
    agree = (retrained[0].predict(base.point) == target).sum(0)
    robust = base.found & (agree >= BetaRCE(retrained[0], **QUICK).needed)
    others = base.found & ~robust & answer.found
    assert robust.any()
    assert others.any()
    assert torch.equal(answer.point[robust], base.point[robust])
    assert (answer.point[others] != base.point[others]).any(1).all()


def test_the_spheres_grow_around_the_counterfactual_and_end(question, spaces, retrained):
    model, x, target = question
    method = BetaRCE(retrained[0], **QUICK, step=0.05, spheres=4)
    base, answer = method.method(model, x, target, spaces["free"]), method(model, x, target, spaces["free"])
    moved = torch.linalg.vector_norm(answer.point - base.point, dim=1)[answer.found]
    assert (moved <= 4 * 0.05 * (1 + 1e-5)).all()
    wider = replace(method, spheres=100)(model, x, target, spaces["free"])
    assert (answer.found <= wider.found).all()
    assert torch.equal(wider.point[answer.found], answer.point[answer.found])
    assert int(wider.found.sum()) > int(answer.found.sum())


def test_a_counterfactual_of_a_plane_moves_to_the_farthest_plane():
    """Models that want x₀ above 0, 1, ... 11, in two dimensions: all agree from 11 on, and 0.2 is next to it."""

    def above(bound):
        return lambda x: torch.stack([bound - x[:, 0], x[:, 0] - bound], 1)

    family = Family.from_models([above(float(bound)) for bound in range(12)])
    x, target = torch.tensor([[-1.0, 0.0], [-2.0, 3.0]]), torch.ones(2, dtype=torch.long)
    space = Space.box(torch.full((2,), -50.0), torch.full((2,), 50.0))
    method = BetaRCE(family, delta=0.8, step=0.2, samples=400)
    answer = method(above(0.0), x, target, space)
    assert answer.found.all()
    assert (answer.point[:, 0] > 11).all()
    assert (answer.point[:, 0] < 11.2).all()


def test_rows_do_not_depend_on_their_neighbours_and_the_same_call_gives_the_same_bytes(
    question, spaces, retrained, answers
):
    model, x, target = question
    method = BetaRCE(retrained[0], **QUICK)
    again = method(model, x, target, spaces["free"])
    assert torch.equal(again.point, answers["free"].point)
    assert torch.equal(again.found, answers["free"].found)
    other = replace(method, seed=1)(model, x, target, spaces["free"])
    assert not torch.equal(other.point, again.point)
    some = method(model, x[5:9], target[5:9], spaces["free"])
    torch.testing.assert_close(some.point, again.point[5:9], rtol=1e-4, atol=1e-4)


def test_merged_classes_are_merged_in_the_family_too(rows, encoding):
    x, _ = rows
    y = torch.arange(len(x)) % 3
    family = train(x, y, Recipe((8,), epochs=10, batch=16), [Retraining(), *seeds(5)], classes=3)
    model = merged(family[0], ((0,), (1, 2)))
    method = BetaRCE(family[1:], delta=0.4, method=QUICK["method"])
    answer = method(model, x, other_class(model, x), encoding.space.without_people())
    assert answer.found.any()
    assert (method.statement(model, answer)[answer.found] >= 0.4).all()


def test_no_rows_give_no_rows(question, spaces, retrained):
    model, x, target = question
    assert len(BetaRCE(retrained[0], **QUICK)(model, x[:0], target[:0], spaces["schema"])) == 0


# ---- what it has seen, and how it is asked for ----


def test_an_audit_refuses_the_models_that_the_search_has_seen(family, answers, retrained):
    steering, others = retrained
    for answer in answers.values():
        with pytest.raises(ValueError, match="that the search has seen"):
            audit(answer, steering[3:4])
        with pytest.raises(ValueError, match="that the search has seen"):
            audit(answer, family)  # which holds the deployed model
        assert audit(answer, others).rate >= 0


def test_its_repr_says_how_many_members_and_not_which(retrained):
    text = repr(BetaRCE(retrained[0], delta=0.7))
    assert "members=12" in text
    assert "Family" not in text


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"delta": 0.95}, ValueError, "12 models that all agree give a bound of 0.85.*use 38 models or more"),
        ({"delta": 1.5}, ValueError, "delta must lie between 0 and 1"),
        ({"confidence": 0}, ValueError, "confidence must lie between 0 and 1"),
        ({"step": 0, "delta": 0.7}, ValueError, "step must be above 0"),
        ({"samples": 1.5, "delta": 0.7}, TypeError, "samples must be a whole number"),
        ({"method": "pgd", "delta": 0.7}, TypeError, "must be a method"),
        ({"family": []}, TypeError, "expected a Family"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, error, message, retrained):
    with pytest.raises(error, match=message):
        BetaRCE(**{"family": retrained[0]} | settings)
