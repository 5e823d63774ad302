"""What people ask for themselves reaches every part of the search, and nobody else's advice."""

from __future__ import annotations

import pandas as pd
import pytest

import holdfast as hf
from holdfast.explaining.answering import REASONS
from holdfast.search import batches
from loans import applicants, model, schema, shared_advice, shared_explainer, train_rows

PEOPLE = 24
KEEP = hf.Wish(keep=("income",))
MODEST = hf.Wish(ranges={"income": (20, 50)})


@pytest.fixture(scope="module")
def explainer():
    return shared_explainer(12)


@pytest.fixture(scope="module")
def free():
    """Without any wish."""
    return shared_advice(PEOPLE, 12)


def changed(table, feature):
    return set(table.loc[table["feature"] == feature, "id"])


def moved(wide, feature):
    """Who is told to change a feature."""
    own = applicants(PEOPLE).set_index("id")[feature]
    return {label for label, value in zip(wide["id"], wide[feature], strict=True) if value != own[label]}


@pytest.mark.parametrize(
    "asked",
    [{"hold": 0.9}, {"promise": 0.4, "parameter_values": (0.0, 0.4)}, {"plans": 2}, {"hold": 1.0, "method": "min-l1"}],
)
def test_wishes_reach_every_search_and_the_fall_back(explainer, asked):
    without = explainer.explain(applicants(PEOPLE), **asked)
    asking = sorted(moved(pd.concat([without.wide(), without.not_durable()]), "income"))[::2]
    assert len(asking) > 3
    advice = explainer.explain(applicants(PEOPLE), wishes=dict.fromkeys(asking, KEEP), **asked)
    assert advice.status[asking].isin(["plan", "not durable"]).any()
    told = pd.concat([advice.wide(), advice.not_durable()])
    assert moved(told, "income").isdisjoint(asking)
    assert moved(told, "income")  # others still do
    assert advice.decided["wishes"] == len(asking)


def test_who_has_no_wish_is_told_the_same(explainer, free):
    one = sorted(changed(free.table(), "income"))[0]
    advice = explainer.explain(applicants(PEOPLE), hold=0.9, wishes={one: KEEP})
    others = free.table()[free.table()["id"] != one].reset_index(drop=True)
    pd.testing.assert_frame_equal(advice.table()[advice.table()["id"] != one].reset_index(drop=True), others)
    assert advice.of(one).wish == KEEP
    assert "Their wish: keep 'income'" in str(advice.of(one))
    assert [wish for wish in advice.wishes if wish is not None] == [KEEP]


def test_ranges_are_in_the_tables_units(explainer, free):
    advice = explainer.explain(applicants(PEOPLE), hold=0.9, wishes=MODEST)
    told = advice.table().query("feature == 'income'")
    assert len(told)
    assert told["then"].between(20, 50).all()
    assert not free.table().query("feature == 'income'")["then"].between(20, 50).all()
    assert advice.decided["wishes"] == PEOPLE


def test_a_list_a_series_and_a_dictionary_are_one_thing(explainer):
    labels = applicants(PEOPLE)["id"].tolist()
    by_label = dict.fromkeys(labels[::3], KEEP)
    forms = [by_label, pd.Series(by_label), [by_label.get(label) for label in labels],
             pd.Series([by_label.get(label, float("nan")) for label in labels], index=labels)]  # fmt: skip
    first, *others = [explainer.explain(applicants(PEOPLE), wishes=form) for form in forms]
    for other in others:
        assert other.wishes == first.wishes
        pd.testing.assert_frame_equal(other.wide(), first.wide())


def test_batches_know_whose_wish_is_whose(explainer, monkeypatch):
    people = applicants(60)
    wishes = [KEEP if place % 3 else None for place in range(len(people))]
    at_once = explainer.explain(people, wishes=wishes)
    monkeypatch.setattr(batches, "ROWS_AT_ONCE", 16)
    assert (at_once.status != "has the class").sum() > 16
    pd.testing.assert_frame_equal(explainer.explain(people, wishes=wishes).wide(), at_once.wide())


def test_a_wish_in_the_way_is_named(explainer):
    everything = hf.Wish(keep=("income", "savings", "duration", "housing"))
    advice = explainer.explain(applicants(PEOPLE), wishes=everything)
    assert not len(advice.table())
    reasons = [advice.of(label).why_not for label in advice.status[advice.status == "nothing found"].index]
    assert len(reasons) > 5
    assert all("the wish to keep" in reason for reason in reasons[:5])
    assert all("the constraints allow no change at all" in reason for reason in reasons[5:])


def test_what_only_the_promise_is_too_careful_for_is_said_so(explainer):
    """Whoever may earn only just enough for the deployed model finds nothing that its retrainings accept too."""
    others = ("savings", "duration", "housing")
    plain = explainer.explain(applicants(PEOPLE), wishes=hf.Wish(keep=others)).table().set_index("id")
    tight = {label: hf.Wish(keep=others, ranges={"income": (0, then)}) for label, then in plain["then"].items()}
    stuck = list(tight)[: REASONS + 2]  # some who are told the reason in full, and some by random points
    advice = explainer.explain(
        applicants(PEOPLE), promise=0.4, parameter_values=(0.2, 0.4), wishes={label: tight[label] for label in stuck}
    )
    assert advice.promise.promised
    (reason,) = {advice.of(label).why_not for label in stuck}
    assert reason.startswith("no plan was found that is safe enough for the promise")


def test_nobodys_wish_is_no_wish(explainer):
    for nobody in (None, {}, [None] * PEOPLE):
        advice = explainer.explain(applicants(PEOPLE), wishes=nobody)
        assert advice.wishes == ()
        assert advice.decided["wishes"] == 0


def never(rows, seed):
    raise AssertionError("nothing may be trained before the wishes are known to be good")


@pytest.mark.parametrize(
    ("wishes", "error", "match"),
    [
        ({8300: KEEP, 7: KEEP}, ValueError, "wishes names 7, who is nobody of the people"),
        ([KEEP], ValueError, "1 entries for 24 people"),
        ("income", TypeError, "wishes is a str; give a Wish for everybody"),
        ({8300: "income"}, TypeError, "the wish of 8300 is 'income'"),
        (hf.Wish(keep=("incme",)), ValueError, "names 'incme', which is no feature of the schema"),
        ({8300: hf.Wish(ranges={"duration": (900, 1000)})}, ValueError, "leaves nothing"),
        (pd.Series([KEEP, KEEP], index=[8300, 8300]), ValueError, "several entries for 8300"),
    ],
)  # fmt: skip
def test_wrong_wishes_are_told_before_models_are_made(wishes, error, match):
    own = hf.Explainer(model(), train_rows(), want="yes", schema=schema(), retrain=never, workers=1)
    with pytest.raises(error, match=match):
        own.explain(applicants(PEOPLE), hold=0.9, wishes=wishes)
