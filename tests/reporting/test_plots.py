"""Plots show the numbers of their values, on the axes given, and say so where there is nothing to show."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

import holdfast as hf
from holdfast.auditing.comparison import Comparison
from holdfast.explaining.advice import Advice
from holdfast.explaining.person import Change, PersonAdvice, PersonPlan
from holdfast.guarantees.promises import Promise
from holdfast.reporting.plots.advice import cost_groups, describe_advice, draw_advice
from holdfast.reporting.plots.agreement_costs import draw_agreement_costs
from holdfast.reporting.plots.audits import draw_audit
from holdfast.reporting.plots.comparisons import draw_comparison
from holdfast.reporting.plots.people import draw_person
from holdfast.reporting.plots.plotting import PLOTS, svg_of
from holdfast.reporting.plots.promises import describe_promise, draw_promise
from holdfast.search.agreement_cost import AgreementCost
from loans import applicants, model, schema, shared_advice, train_rows


def explainer(retrain):
    return hf.Explainer(model(), train_rows(), want="yes", schema=schema(), retrain=retrain, workers=1)


@pytest.fixture(scope="module")
def held() -> Advice:
    return shared_advice(100)


@pytest.fixture(scope="module")
def two_kinds() -> Advice:
    retrain = [*hf.changes.bootstrap(24), *hf.changes.leave_out(24, 0.3)]
    return explainer(retrain).explain(applicants(30))


@pytest.fixture(scope="module")
def promised() -> Promise:
    promise = (
        explainer(hf.changes.bootstrap(33))
        .explain(applicants(16), promise=0.1, parameter_values=(0.0, 0.3, 0.6))
        .promise
    )
    assert promise.promised
    return promise


@pytest.fixture(scope="module")
def not_audited() -> Advice:
    return explainer(None).explain(applicants(12))


@pytest.fixture
def axes() -> Axes:
    return Figure(layout="constrained").subplots()


def line(axes: Axes, label: str) -> np.ndarray:
    """The points of the line whose label begins so: (n, 2)."""
    (found,) = [one for one in axes.lines if str(one.get_label()).startswith(label)]
    return np.asarray(found.get_xydata())


def whiskers(axes: Axes, label: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """The marks of error bars, and the ends of their bars."""
    (found,) = [
        one for one in axes.containers if isinstance(one, ErrorbarContainer) and str(one.get_label()).startswith(label)
    ]
    return np.asarray(found[0].get_xydata()), [np.array(bars.get_segments()) for bars in found[2]]


def words(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


def sentence(axes: Axes) -> str:
    assert not axes.axison
    (text,) = axes.texts
    return text.get_text().replace("\n", " ")


# ---- advice ----


def test_groups_of_plans_are_fifths_by_cost(held):
    groups, cost = cost_groups(held), held.counterfactuals.cost(held.norm).double().numpy()
    assert len(groups) == 5
    assert sum(group.plans for group in groups) == len(cost)
    assert max(group.plans for group in groups) - min(group.plans for group in groups) <= 1
    assert groups[0].cheapest == cost.min()
    assert groups[-1].dearest == cost.max()
    for before, after in pairwise(groups):
        assert before.dearest <= after.cheapest
    shares = [group.rate * group.plans for group in groups]
    assert sum(shares) / len(cost) == pytest.approx(held.audit.rate)
    rows = torch.from_numpy(np.argsort(cost, kind="stable")[: groups[0].plans])
    assert (groups[0].low, groups[0].high) == held.audit.of_rows(rows).interval()


def test_few_plans_make_few_groups(two_kinds):
    plans = len(two_kinds.given)
    assert 8 <= plans < 40
    assert len(cost_groups(two_kinds)) == plans // 8


def test_advice_is_drawn_as_its_numbers(held, axes):
    draw_advice(axes, held)
    cost = held.counterfactuals.cost(held.norm).double().numpy()
    np.testing.assert_allclose(line(axes, "one plan"), np.stack([cost, 100 * held.audit.per_row], 1))
    groups = cost_groups(held)
    marks, (across, up) = whiskers(axes, "a fifth of the plans")
    np.testing.assert_allclose(marks, [(one.cost, 100 * one.rate) for one in groups])
    np.testing.assert_allclose(up[:, :, 1], [(100 * one.low, 100 * one.high) for one in groups], atol=1e-9)
    np.testing.assert_allclose(across[:, :, 0], [(one.cheapest, one.dearest) for one in groups])
    assert line(axes, "asked")[:, 1] == pytest.approx([10, 10])
    assert "asked for each plan: at most 10 %" in words(axes)
    bottom, top = axes.get_ylim()
    assert bottom < 0
    assert top > max(100 * one.high for one in groups)


def test_axes_that_are_shared_show_the_values_of_both(held, two_kinds):
    left, right = Figure().subplots(1, 2, sharey=True)
    draw_advice(left, two_kinds)
    draw_advice(right, held)
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[1] > 100 * max(two_kinds.audit.per_row.max(), held.audit.per_row.max())


def test_what_was_not_asked_is_not_drawn(two_kinds, axes):
    draw_advice(axes, two_kinds)
    assert not [text for text in words(axes) if "asked" in text]


def test_many_single_plans_are_left_out(held, axes, monkeypatch):
    monkeypatch.setattr("holdfast.reporting.plots.advice.MANY", 10)
    draw_advice(axes, held)
    assert not [text for text in words(axes) if text == "one plan"]


def test_the_groups_are_told_in_words(held):
    told = describe_advice(held)
    assert told.count("invalidated (95 % interval") == 5
    assert f"{cost_groups(held)[0].plans} plans that cost" in told


def test_advice_that_nobody_audited_says_so(not_audited, axes):
    draw_advice(axes, not_audited)
    assert "no audit models" in sentence(axes)
    assert cost_groups(not_audited) == []
    assert "Nothing is drawn" in describe_advice(not_audited)


def test_advice_without_plans_says_so(held, axes):
    answers = held.given
    none = replace(answers, counterfactuals=answers.counterfactuals[:0], place=answers.place[:0], plan=answers.plan[:0])
    draw_advice(axes, replace(held, given=replace(none, audit=None)))
    assert "No plan is given" in sentence(axes)


# ---- audit ----


def test_an_audit_is_drawn_by_kind_with_every_model(two_kinds, axes):
    audit = two_kinds.audit
    draw_audit(axes, audit)
    parts = audit.by_kind
    marks, (across,) = whiskers(axes, "all models")
    np.testing.assert_allclose(marks, [(100 * part.rate, place) for place, part in enumerate(parts.values())])
    expected = [[100 * limit for limit in part.interval()] for part in parts.values()]
    np.testing.assert_allclose(across[:, :, 0], expected, atol=1e-9)
    dots = np.concatenate([one.get_xdata() for one in axes.lines if one.get_marker() == "."])
    np.testing.assert_allclose(np.sort(dots), np.sort(100 * audit.per_member))
    for place, dot in enumerate(one for one in axes.lines if one.get_marker() == "."):
        assert (np.abs(dot.get_ydata() - place) < 0.5).all()
    np.testing.assert_allclose(line(axes, "rows whose")[:, 0], [100 * part.baseline_flips for part in parts.values()])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["bootstrap\n8 models", "leave-out\n8 models"]


def test_an_audit_of_nothing_says_so(two_kinds, axes):
    answer = two_kinds.counterfactuals
    nothing = replace(two_kinds.audit, counterfactuals=replace(answer, found=torch.zeros_like(answer.found)))
    draw_audit(axes, nothing)
    assert "Nothing was found" in sentence(axes)


def test_the_name_of_a_kind_is_no_mathematics(two_kinds, axes):
    audit = replace(two_kinds.audit, kinds=("a$\\frac{$", *["<b>\x1b[31m"] * 15))
    draw_audit(axes, audit)
    axes.figure.draw_without_rendering()
    assert "x1b" in axes.get_yticklabels()[1].get_text()


# ---- promise ----


def test_a_promise_is_drawn_as_its_curve(promised, axes):
    draw_promise(axes, promised)
    curve = promised.curve
    np.testing.assert_allclose(line(axes, "bootstrap: could"), np.stack([curve["cost_l1"], 100 * curve["bound"]], 1))
    np.testing.assert_allclose(line(axes, "bootstrap: selection"), np.stack([curve["cost_l1"], 100 * curve["loss"]], 1))
    assert line(axes, "rate asked: 10 %")[:, 1] == pytest.approx([10, 10])
    chosen = curve[curve["value"] == promised.value].iloc[0]
    np.testing.assert_allclose(line(axes, "chosen"), [(chosen["cost_l1"], 100 * chosen["bound"])])
    assert f"chosen: caution = {promised.value:g}" in words(axes)
    (mark,), (up,) = whiskers(axes, "bootstrap: audit models")
    assert mark[1] == pytest.approx(100 * promised.realised.rate)
    np.testing.assert_allclose(
        up[0, :, 1], [100 * promised.realised.rate, 100 * promised.realised_limit("bootstrap")], atol=1e-9
    )
    assert promised.statement in describe_promise(promised)


def test_a_promise_that_was_searched_and_refused_has_a_curve_and_no_choice(promised, axes):
    refused = replace(promised, value=None, counterfactuals=None, audit=None, refusal="No value keeps the rate.")
    draw_promise(axes, refused)
    assert len(line(axes, "bootstrap: could")) == len(promised.steps)
    assert not [text for text in words(axes) if text.startswith("chosen") or "nothing" in text]


def test_a_promise_that_was_refused_at_once_says_why(promised, axes):
    refused = replace(promised, value=None, audit=None, steps=(), calibrations=(), refusal="A rate of 1% needs 99.")
    draw_promise(axes, refused)
    assert sentence(axes) == "Nothing is promised. A rate of 1% needs 99."


# ---- one person ----

PLANS = (
    PersonPlan(
        1, (Change("income", 30_000, 45_000), Change("duration", 48, 12), Change("job", "none", "$clerk$")), 2.5
    ),
    PersonPlan(2, (Change("income", 30_000, 60_000), Change("tax_rate", 1.5, 1.25, follows=True)), 3.0, 7, 8, 0.5, 1.0),
)
PERSON = PersonAdvice(8004, "no", "yes", PLANS)


def ends(axes: Axes) -> list[tuple[float, float]]:
    """Where each line begins and where it ends."""
    now, then = ([float(one.get_xdata()[0]) for one in axes.lines if one.get_gid() == end] for end in ("now", "then"))
    return list(zip(now, then, strict=True))


def test_a_person_moves_on_a_scale_of_each_feature_from_zero(axes):
    draw_person(axes, PERSON)
    expected = [(0.5, 0.75), (1, 0.25), (0, 1), (0.5, 1), (1, 1.25 / 1.5)]
    np.testing.assert_allclose(ends(axes), expected)
    ticks = [text.get_text() for text in axes.get_yticklabels()]
    assert ticks == ["income", "duration", "job", "income", "tax rate (follows)"]


def test_every_value_of_a_person_is_written_beside_its_mark(axes):
    draw_person(axes, PERSON)
    axes.figure.draw_without_rendering()
    written = [text.get_text() for text in axes.texts]
    for value in ("30,000", "45,000", "48", "12", "none", "$clerk$", "60,000", "1.5", "1.25"):
        assert value in written
    assert "Plan 1 costs 2.5" in written
    assert "Plan 2 costs 3; 7 of 8 audit models accept it" in written
    assert axes.get_legend().get_title().get_text() == "8004: 'no' now, 'yes' wanted"


def test_what_is_below_zero_not_known_or_long_is_drawn_too(axes):
    odd = (
        Change("balance", -50.0, 150.0),
        Change("delay", float("nan"), 3.0),
        Change("owner", False, True),
        Change("x" * 90, "<script>\x1b[31m", "y" * 90),
    )
    draw_person(axes, replace(PERSON, plans=(PersonPlan(1, odd, 1.0),)))
    axes.figure.draw_without_rendering()
    np.testing.assert_allclose(ends(axes), [(0, 1), (0, 1), (0, 1), (0, 1)])
    written = [text.get_text() for text in (*axes.texts, *axes.get_yticklabels())]
    assert "not known" in written
    assert "<script>\\x1b[31m" in written
    assert max(map(len, written)) <= 40
    left, right = axes.get_xlim()
    assert left < 0 < 1 < right


def test_plans_that_do_not_hold_are_told_apart(held, axes):
    draw_person(axes, replace(PERSON, plans=(), not_durable=PLANS[1:], why_not="not durable"))
    assert "Not durable: plan 2 costs 3; 7 of 8 audit models accept it" in [text.get_text() for text in axes.texts]


def test_a_person_without_plans_is_told_why(axes):
    draw_person(axes, replace(PERSON, plans=(), why_not="the deployed model says 'yes' already"))
    assert sentence(axes) == "8004: no plan. The deployed model says 'yes' already."


def test_the_people_of_advice_are_drawn_as_they_are_told(held, axes):
    label = held.status.index[held.status == "plan"][0]
    draw_person(axes, held.of(label))
    assert len(ends(axes)) == sum(len(plan.changes) for plan in held.of(label).plans)


# ---- the cost of agreement, methods side by side ----


@pytest.fixture(scope="module")
def price(held) -> AgreementCost:
    """Three people: one with an answer at both shares, one at the first alone, one at none."""
    answer = held.counterfactuals[:3]
    answers = tuple(
        replace(answer, found=torch.tensor(found), point=answer.origin + step)
        for found, step in (([True, True, False], 0.1), ([True, False, False], 0.2))
    )
    return AgreementCost((0.5, 1.0), answers, torch.tensor([[0.5, 1.0], [0.5, torch.nan], [torch.nan, torch.nan]]))


def test_the_agreement_cost_is_drawn_for_everybody_and_for_those_with_every_answer(price, axes):
    draw_agreement_costs(axes, price, row=1)
    cost = price.cost.double().numpy()
    each = line(axes, "one person")[:, 1].reshape(3, 3)
    np.testing.assert_allclose(each[:, :2], cost)
    assert np.isnan(each[:, 2]).all()
    np.testing.assert_allclose(line(axes, "mean of the 1 people")[:, 1], cost[0])
    np.testing.assert_allclose(line(axes, "row")[:, 1], cost[1])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["50 %\n2 found", "100 %\n1 found"]


def test_a_price_that_nobody_can_pay_is_told(price, axes):
    nothing = tuple(replace(one, found=torch.zeros_like(one.found)) for one in price.answers)
    draw_agreement_costs(axes, replace(price, answers=nothing))
    assert sentence(axes) == "No counterfactual was found that even 50% of the models accept."


@pytest.fixture(scope="module")
def comparison(two_kinds) -> Comparison:
    audit = two_kinds.audit
    wrong = 1 - audit.counterfactuals.target.expand_as(audit.predictions)
    return hf.compare({"min-l1": audit, "all $wrong$": replace(audit, predictions=wrong)}, norm=1)


def test_methods_are_drawn_by_cost_and_rate(comparison, axes):
    draw_comparison(axes, comparison)
    axes.figure.draw_without_rendering()
    for one in comparison.table().to_dict("records"):
        (mark,), (up,) = whiskers(axes, one["method"].replace("$", "\\$"))
        np.testing.assert_allclose(mark, [one["cost"], 100 * one["rate"]])
        np.testing.assert_allclose(up[0, :, 1], [100 * one["low"], 100 * one["high"]], atol=1e-9)
    front = comparison.table().query("front")
    np.testing.assert_allclose(line(axes, "the front"), np.stack([front["cost"], 100 * front["rate"]], 1))


# ---- by one name ----


@pytest.fixture(scope="module")
def values(held, promised, two_kinds, price, comparison) -> list[object]:
    return [held, PERSON, two_kinds.audit, comparison, promised, price]


def test_every_kind_of_value_is_tried_here(values):
    assert [type(value) for value in values] == list(PLOTS)


@pytest.mark.parametrize("number", range(len(PLOTS)), ids=[kind.__name__ for kind in PLOTS])
def test_a_value_is_drawn_on_the_axes_given(values, axes, number):
    before, shown = dict(matplotlib.rcParams), plt.get_fignums()
    assert hf.plot(values[number], axes) is axes
    axes.figure.draw_without_rendering()
    assert axes.has_data()
    assert plt.get_fignums() == shown
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("number", range(len(PLOTS)), ids=[kind.__name__ for kind in PLOTS])
def test_without_axes_there_is_one_figure_that_a_notebook_shows(values, number):
    before, shown = dict(matplotlib.rcParams), plt.get_fignums()
    axes = hf.plot(values[number])
    try:
        assert len(plt.get_fignums()) == len(shown) + 1
        assert plt.gcf() is axes.figure
        axes.figure.draw_without_rendering()
    finally:
        plt.close(axes.figure)
    assert dict(matplotlib.rcParams) == before


def test_words_have_the_colour_of_the_users_style(held):
    with plt.style.context("dark_background"):
        axes = Figure().subplots()
    hf.plot(held, axes)
    (asked,) = [one for one in axes.lines if str(one.get_label()).startswith("asked")]
    assert asked.get_color() == "white"


# ---- on a page ----


def test_advice_and_promises_are_figures_of_a_page(held, promised):
    before = dict(matplotlib.rcParams)
    for value, description in ((held, describe_advice(held)), (promised, describe_promise(promised))):
        svg = svg_of(value, title="As a picture", name="figure")
        assert svg == svg_of(value, title="As a picture", name="figure")
        assert ElementTree.fromstring(svg)[1].text == description
    assert dict(matplotlib.rcParams) == before
