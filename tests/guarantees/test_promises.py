"""Promises by real searches and real retrained models."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import linear

import holdfast as hf
from holdfast.datasets.prepared import prepare
from holdfast.guarantees.calibration import bounds, smallest
from holdfast.models.model import Model
from holdfast.search.methods.rehearsed import Rehearsed

RATE, VALUES = 0.1, (0.0, 2.0, 6.0, 12.0)
CHEAP = hf.Margin(search=hf.MinCost(norm=1, steps=10, constants=3))


@dataclass(frozen=True)
class World:
    x: torch.Tensor
    y: torch.Tensor
    base: Model
    rehearsed: hf.Family
    selection: hf.Family
    audit: hf.Family
    rows: torch.Tensor
    target: torch.Tensor
    space: hf.Space

    def promise(self, method=CHEAP, selection=None, **given):
        usual = {"rate": RATE, "parameter_values": VALUES}
        asked = (method, self.base, self.rows, self.target, self.space)
        return hf.promise(*asked, selection or self.selection, **{**usual, **given})


def people(rows: int = 60) -> pd.DataFrame:
    """Three numbers, of which two decide; a tenth of the outcomes are chance."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.normal(size=(rows, 3)), columns=["income", "debt", "age"])
    score = table["income"] - table["debt"] + draw.normal(0, 0.3, rows)
    return table.assign(outcome=np.where(score > 0, "yes", "no"))


ENCODING = hf.Encoding.fit(people(), hf.Schema.infer(people(), label="outcome"))
RECIPE = hf.Recipe((8,), epochs=60, batch=16, learning_rate=0.01)


@pytest.fixture(scope="module")
def world():
    """A table of 60 people: a deployed network, 4 rehearsals, 30 models to select with and 30 to audit with."""
    x, y = ENCODING.encode(people()), ENCODING.labels(people())
    family = hf.train(x, y, RECIPE, [hf.Retraining(), *hf.seeds(64)])
    rows, wide = x[:20], hf.Space.box(torch.full((3,), -40.0), torch.full((3,), 40.0))
    target = hf.other_class(family[0], rows)
    return World(x, y, family[0], family[1:5], family[5:35], family[35:], rows, target, wide)


@pytest.fixture(scope="module")
def promised(world):
    return world.promise(audit=world.audit)


def test_a_promise_is_the_smallest_value_that_keeps_the_rate(world, promised):
    losses = []
    for value in VALUES:
        found = replace(CHEAP, log_odds=value)(world.base, world.rows, world.target, world.space)
        losses.append(hf.audit(found, world.selection).per_member)
    place = smallest(bounds(np.stack(losses)), RATE)
    assert place is not None
    assert place > 0
    assert promised.value == VALUES[place]
    assert promised.method == hf.Margin(log_odds=VALUES[place], search=CHEAP.search)
    own = promised.method(world.base, world.rows, world.target, world.space)
    assert torch.equal(own.point, promised.counterfactuals.point)
    assert torch.equal(own.found, promised.promised_rows)
    np.testing.assert_allclose(promised.curve["loss"], np.stack(losses).mean(1))
    np.testing.assert_allclose(promised.curve["bound"], bounds(np.stack(losses)))
    assert promised.curve["bound"][place] <= RATE < promised.curve["bound"][place - 1]
    assert promised.selected_by == {"seeds": 30}


def test_what_was_realised_is_an_audit_by_audit_models(world, promised):
    expected = hf.audit(promised.counterfactuals, world.audit)
    assert promised.realised.rate == expected.rate
    limit = promised.realised_limit("seeds")
    assert expected.rate < limit < 0.3
    assert promised.realised_limit("seeds", 0.99) > limit
    with pytest.raises(ValueError, match="there are seeds"):
        promised.realised_limit("bootstrap")


def test_a_promise_says_what_it_is(promised):
    said = promised.statement
    assert f"Promised for {int(promised.promised_rows.sum())} of 20 rows" in said
    assert "at most 10% of them on average" in said
    assert "Refusals count as 0%" in said
    assert "Not promised: anything for a single person, for people who come later, for other kinds of change" in said
    assert "chosen by 30 seeds: log_odds" in repr(promised)
    assert "95 % upper limit" in repr(promised)
    assert "<table" in promised._repr_html_()
    assert said.split(".")[0].replace("'", "&#x27;") in promised._repr_html_()


def test_a_summary_is_json_and_names_every_model(world, promised):
    told = json.loads(json.dumps(promised.summary(), allow_nan=False))
    assert told["promised"] is True
    assert (told["rate"], told["parameter"]) == (RATE, {"name": "log_odds", "value": promised.value})
    assert told["members"]["selection"] == list(world.selection.fingerprints)
    assert told["members"]["audit"] == list(world.audit.fingerprints)
    assert len(told["curve"]) == len(VALUES)
    assert told["realised"][0]["limit"] == promised.realised_limit("seeds")


def test_rehearsals_are_kept_apart_from_those_who_choose_and_those_who_judge(world):
    method = Rehearsed(world.rehearsed, search=CHEAP.search)
    few = replace(world, rows=world.rows[:6], target=world.target[:6])
    result = few.promise(method, audit=world.audit, parameter_values=None)
    assert result.promised
    assert result.summary()["parameter"]["name"] == "caution"
    assert set(world.rehearsed.fingerprints) <= result.counterfactuals.seen
    assert result.summary()["members"]["rehearsal"] == list(world.rehearsed.fingerprints)
    for shared in ({"selection": world.rehearsed}, {"audit": world.rehearsed}):
        with pytest.raises(ValueError, match="the search has seen"):
            world.promise(method, rate=0.5, **shared)


@dataclass(frozen=True)
class Secretive(hf.MinCost):
    """Its rehearsals are none of its fields: what it has seen is known when it has searched."""

    parameter = "first"

    def __call__(self, model, x, target, space):
        answer = super().__call__(model, x, target, space)
        return replace(answer, seen=answer.seen | Secretive.watched)


def test_a_method_that_has_looked_is_found_out_by_what_it_has_seen(world):
    Secretive.watched = frozenset(world.selection.fingerprints[:1])
    with pytest.raises(ValueError, match=r"members \[0\] of the selection family"):
        world.promise(Secretive(steps=2, constants=1), parameter_values=(1.0, 2.0))


# ---- nothing promised ----


def test_too_few_models_are_told_before_anything_is_searched(world):
    refused = world.promise(selection=world.selection[:8])
    assert not refused.promised
    assert refused.steps == ()
    assert refused.counterfactuals is None
    assert not refused.promised_rows.any()
    assert "needs 9 selection models of each kind or more" in refused.refusal
    assert "there are 8 of kind 'seeds'" in refused.refusal
    assert refused.statement.startswith("Nothing is promised.")
    assert len(refused.curve) == 0
    assert "Promise of nothing" in repr(refused)
    json.dumps(refused.summary(), allow_nan=False)
    assert refused._repr_html_()


def test_a_rate_that_no_value_keeps_is_refused_with_what_would_do(world):
    refused = world.promise(parameter_values=(0.0, 0.1), rate=0.05)
    assert not refused.promised
    assert refused.value is None
    best = refused.curve["bound"].iloc[-1]
    assert f"'seeds' could promise {best:.3g} at best" in refused.refusal
    assert "Larger values of log_odds may do" in refused.refusal
    assert "selection models that are new" in refused.refusal
    close = world.promise(parameter_values=(2.0, 6.0), rate=0.033)
    assert not close.promised
    assert f"About {close.calibrations[0].wanted} selection models" in close.refusal


def test_nothing_found_is_nothing_promised(world):
    narrow = hf.Space.box(world.x.min(0).values - 1e-3, world.x.max(0).values + 1e-3)
    fixed = replace(narrow, mutable=torch.zeros_like(narrow.mutable))
    asked = (CHEAP, world.base, world.rows, world.target, fixed, world.selection)
    refused = hf.promise(*asked, rate=RATE, parameter_values=VALUES)
    assert not refused.promised
    assert "Nothing was found" in refused.refusal


def test_nobody_asked_is_nothing_promised(world):
    asked = (CHEAP, world.base, world.rows[:0], world.target[:0], world.space, world.selection)
    refused = hf.promise(*asked, rate=RATE)
    assert not refused.promised
    assert "any of 0 rows" in refused.refusal


def test_the_grid_ends_before_too_few_are_found(world):
    near = hf.Space.box(world.x.min(0).values, world.x.max(0).values)
    asked = (CHEAP, world.base, world.rows, world.target, near, world.selection)
    parameter_values = (0.0, 2.0, 4.0, 8.0, 16.0, 64.0)
    half = hf.promise(*asked, rate=RATE, parameter_values=parameter_values)
    assert 1 <= len(half.steps) < len(parameter_values)
    assert all(step.found >= 10 for step in half.steps[1:])
    every = hf.promise(*asked, rate=RATE, parameter_values=parameter_values, least_found=0.0)
    assert len(every.steps) >= len(half.steps)
    assert all(step.found >= 1 for step in every.steps)
    if not half.promised:
        assert "lower least_found" in half.refusal


# ---- who may choose and judge ----


def test_an_audit_family_that_chose_is_refused(world):
    with pytest.raises(ValueError, match="2 members of the audit family"):
        world.promise(audit=world.selection[:2])
    copies = hf.Family.from_models([world.selection[0]], kind="seeds")
    with pytest.raises(ValueError, match="share no member"):
        world.promise(audit=copies)


def test_kinds_choose_apart_and_the_largest_value_is_taken(world):
    other = hf.train(world.x, world.y, RECIPE, hf.changes.bootstrap(30))
    both = hf.Family(
        (*world.selection.stacks, *other.stacks),
        (*world.selection.retrainings, *other.retrainings),
        _places(world.selection, other),
        fingerprints=(*world.selection.fingerprints, *other.fingerprints),
    )
    alone = [world.promise(selection=family, rate=0.08).value for family in (world.selection, other)]
    together = world.promise(selection=both, rate=0.08)
    assert alone[0] < alone[1]
    assert together.value == alone[1]
    assert together.selected_by == {"seeds": 30, "bootstrap": 30}
    assert set(together.curve["kind"]) == {"seeds", "bootstrap"}
    assert "of kind 'seeds' or 'bootstrap'" in together.statement


def _places(first, second):
    start = sum(len(stack) for stack in first.stacks)
    return (*first.places, *(start + place for place in second.places))


def test_an_answer_of_nan_counts_as_invalidated(world):
    silent = lambda rows: torch.full((len(rows), 2), torch.nan)  # noqa: E731
    models = [world.selection[place] for place in range(5)]
    good = world.promise(selection=hf.Family.from_models(models), rate=0.5, parameter_values=(0.0, 6.0))
    with pytest.warns(UserWarning, match=r"members \[5\] .* answer NaN"):
        spoilt = world.promise(
            selection=hf.Family.from_models([*models, silent]), rate=0.5, parameter_values=(0.0, 6.0)
        )
    np.testing.assert_allclose(spoilt.calibrations[0].losses[:, -1], 1)
    np.testing.assert_allclose(spoilt.calibrations[0].losses[:, :-1], good.calibrations[0].losses)


def test_of_several_plans_none_may_be_invalidated(world):
    result = world.promise(plans=2, audit=world.audit, parameter_values=(6.0, 12.0), rate=0.25)
    assert result.promised
    answers = result.plans.answers
    assert len(answers) == 2
    assert answers[1].found.any()
    for family, own in (
        (world.audit, result.realised.per_member),
        (world.selection, result.calibrations[0].losses[[step.value for step in result.steps].index(result.value)]),
    ):
        wrong = [(family.predict(one.point) != one.target) & one.found for one in answers]
        expected = (wrong[0] | wrong[1])[:, answers[0].found].double().mean(1)
        np.testing.assert_allclose(own, expected)
    assert result.realised.rate >= hf.audit(answers[0], world.audit).rate
    assert "any of its plans" in result.statement


# ---- every model there can be ----


@pytest.fixture(scope="module")
def all_left_out(world):
    return hf.train(world.x, world.y, RECIPE, hf.changes.leave_one_out(len(world.x), rows=len(world.x)))


def test_of_every_model_there_can_be_the_share_is_exact(world, all_left_out):
    result = world.promise(
        selection=all_left_out, exhaustive=("leave-one-out",), rate=0.02, parameter_values=(0.0, 2.0, 4.0)
    )
    assert result.promised
    exact = hf.audit(result.counterfactuals, all_left_out).rate
    place = [step.value for step in result.steps].index(result.value)
    assert exact <= 0.02
    assert result.calibrations[0].loss[place] == pytest.approx(exact)
    assert "All 60 models that 'leave-one-out' can give were asked" in result.statement
    assert f"exactly {exact:.2%}" in result.statement
    assert "selection models" not in result.statement  # nothing is estimated
    drawn = world.promise(selection=all_left_out, rate=0.02, parameter_values=(0.0, 2.0, 4.0))
    assert drawn.value is None or drawn.value >= result.value


def test_every_model_there_can_be_may_be_rehearsed_too(world, all_left_out):
    method = Rehearsed(all_left_out[:10], search=CHEAP.search)
    result = world.promise(method, all_left_out, exhaustive="leave-one-out", rate=0.05, parameter_values=(0.0, 1.0))
    assert result.promised
    with pytest.raises(ValueError, match="the search has seen"):
        world.promise(method, all_left_out, rate=0.05, parameter_values=(0.0, 1.0))


def test_exhaustive_means_every_row_and_no_others_to_audit_with(world, all_left_out):
    with pytest.raises(ValueError, match="not each of them once"):
        world.promise(selection=all_left_out[:40], exhaustive=("leave-one-out",))
    with pytest.raises(ValueError, match="no others to audit with"):
        world.promise(selection=all_left_out, exhaustive=("leave-one-out",), audit=all_left_out[:3])


# ---- a dataset ----


@pytest.fixture(scope="module")
def german():
    own = prepare("german")
    x, y = own.rows
    family = hf.train(x, y, hf.Recipe((32,), epochs=20), [hf.Retraining(), *hf.seeds(88)])
    rows = own.question(12)
    target = hf.other_class(family[0], rows)
    return World(x, y, family[0], family[1:9], family[9:49], family[49:], rows, target, hf.Space.free(x))


@pytest.mark.parametrize("rehearsals", [0, 8])
def test_a_promise_on_german_credit_is_kept_by_audit_models(german, rehearsals):
    method = Rehearsed(german.rehearsed, search=CHEAP.search) if rehearsals else CHEAP
    result = german.promise(method, audit=german.audit, parameter_values=(2.0, 4.0) if rehearsals else (6.0, 12.0))
    assert result.promised
    assert result.realised.interval()[0] <= RATE  # forty other models do not refute it
    assert isinstance(result.curve, pd.DataFrame)


def test_a_linear_model_needs_no_larger_parameter(world):
    """Retrainings that are all the deployed model's plane, moved a little: a margin wider than that is never left."""
    weight = torch.ones(world.x.shape[1])
    moved = [linear(weight, shift) for shift in np.linspace(-0.2, 0.2, 20).tolist()]
    asked = (CHEAP, linear(weight, 0.05), world.rows)
    target = hf.other_class(asked[1], world.rows)
    result = hf.promise(
        *asked,
        target,
        hf.Space.free(world.x),
        hf.Family.from_models(moved),
        rate=0.05,
        parameter_values=(0.0, 0.1, 0.5, 1.0),
    )
    assert result.value == 0.5
    assert result.calibrations[0].loss.tolist()[2:] == [0.0, 0.0]
