"""The demo on the shipped data, small; the full one is a command of its own."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import small_demo
from holdfast.demo import CARD, FEWEST_SELECTING, RATE, demo, demo_text
from holdfast.guarantees.calibration import fewest_models

KEYS = {"dataset", "method", "space", "change", "members", "rows", "found", "rate", "low", "high", "cost_l1", "cost_l2",
        "seconds", "spread", "found_and_held", "baseline_flips"}  # fmt: skip

SEARCHES = {"schema": ("min-l1", "min-l1+sns", "promised"), "free": ("pgd", "pgd+sns")}


@pytest.fixture(scope="module")
def result():
    """With small networks; the slow test has the demo's own."""
    with pytest.MonkeyPatch.context() as patch:
        small_demo.shrink(patch.setattr)
        patch.setattr("holdfast.demo.RATE", 0.3)
        return demo(rows=24, members=4)


def test_rows_cover_every_method_change_and_space(result):
    assert {(row["space"], row["method"], row["change"]) for row in result.rows} == {
        (space, method, change)
        for space, methods in SEARCHES.items()
        for method in methods
        for change in ("seeds", "leave-one-out")
    }
    turned_down = int((result.advice.status != "has the class").sum())
    for row in result.rows:
        assert set(row) == KEYS
        assert (row["dataset"], row["members"]) == ("german", 4)
        assert row["rows"] == (24 if row["space"] == "free" else turned_down)  # a person wants to be accepted
        assert 0 <= row["low"] <= row["rate"] <= row["high"] <= 1
        assert row["cost_l2"] <= row["cost_l1"]


def test_sns_holds_better_and_costs_more(result):
    cell = {(row["space"], row["method"], row["change"]): row for row in result.rows}
    for space, (search, *_) in SEARCHES.items():
        before, after = cell[space, search, "seeds"], cell[space, f"{search}+sns", "seeds"]
        assert after["rate"] < before["rate"]
        assert after["cost_l2"] > before["cost_l2"]


def test_the_table_of_counterfactuals_is_about_the_applicants_in_their_units(result):
    table, schema = CARD.load()
    _, asked = CARD.divide(table)
    frame = result.counterfactuals
    assert frame["applicant"].nunique() == 24
    now = frame[frame["method"] == "now"].set_index("applicant")
    pd.testing.assert_frame_equal(
        now[list(schema.names)], asked.iloc[:24][list(schema.names)].sort_index(), check_names=False, check_dtype=False
    )
    for method in ("min-l1", "min-l1+sns"):
        advised = frame[frame["method"] == method].set_index("applicant")
        assert advised["held"][advised["found"].astype(bool)].between(0, 8).all()
        for feature in schema.features:
            if not feature.mutable:
                assert advised[feature.name].tolist() == now[feature.name].tolist()
        schema.check(advised.reset_index())


def test_the_story_is_of_a_person_who_was_turned_down(result):
    story = result.story
    frame = result.counterfactuals
    assert story.wanted == "good"
    assert [advice.method for advice in story.advice] == list(SEARCHES["schema"])
    turned_down = frame[frame["wanted"] == "good"]
    helped = turned_down.groupby("applicant")["found"].all()
    turned_down = turned_down[turned_down["applicant"].isin(helped[helped].index)]
    assert story.people == turned_down["applicant"].nunique()
    for advice in story.advice:
        assert advice.usual == pytest.approx(turned_down[turned_down["method"] == advice.method]["held"].mean() / 8)
        row = frame[(frame["applicant"] == story.person) & (frame["method"] == advice.method)].iloc[0]
        now = frame[(frame["applicant"] == story.person) & (frame["method"] == "now")].iloc[0]
        assert (advice.plan.held, advice.plan.members) == (row["held"], 8)
        assert {change.feature for change in advice.plan.changes} == {
            name for name in CARD.schema.names if row[name] != now[name]
        }
        assert all(
            (change.before, change.after) == (now[change.feature], row[change.feature])
            for change in advice.plan.changes
        )


def test_there_are_enough_selection_networks_for_the_rate():
    assert fewest_models(RATE) <= FEWEST_SELECTING


@pytest.mark.slow
def test_where_nobody_was_turned_down_there_is_nothing_to_promise(tmp_path, monkeypatch):
    small_demo.shrink(monkeypatch.setattr)
    told = demo(rows=1, members=1, seed=1)  # whose network accepts the first applicant
    assert told.advice.status.tolist() == ["has the class"]
    assert told.promise is None
    assert "promised" not in set(told.counterfactuals["method"])
    assert all(path.is_file() for path in told.save(tmp_path))
    assert demo_text(told)


def test_the_advice_is_for_those_who_were_turned_down_with_their_own_wishes(result):
    advice, frame = result.advice, result.counterfactuals
    now = frame[frame["method"] == "now"].set_index("applicant")
    wanted = frame[frame["wanted"] == "good"]["applicant"]
    assert set(advice.people.index) == set(now.index)
    assert set(advice.status[advice.status != "has the class"].index) == set(wanted)
    assert set(advice.people["sex"]) == {"man", "woman"}
    assert advice.decided["wishes"] == len(advice)
    assert advice.decided["retrained"] == {
        "rehearsal": {"seeds": 4}, "selection": {"seeds": 20}, "audit": {"seeds": 4},
    }  # fmt: skip
    for label in advice.people.index:
        low, high = advice.of(label).wish.ranges["credit_amount"]
        assert (low, high) == (0.75 * now.loc[label, "credit_amount"], now.loc[label, "credit_amount"])
    promised = frame[(frame["method"] == "promised") & frame["found"].eq(True)].set_index("applicant")
    told = advice.wide().query("found").set_index("id").sort_index()
    assert told.index.tolist() == promised.index.tolist()
    assert told["credit_amount"].tolist() == promised["credit_amount"].tolist()


@pytest.mark.slow
def test_the_promised_advice_is_told_beside_the_others(monkeypatch):
    monkeypatch.setattr("holdfast.demo.RATE", 0.15)
    told = demo(rows=60, members=30)
    assert told.promise.promised
    assert told.advice.decided["retrained"] == {
        "rehearsal": {"seeds": 32}, "selection": {"seeds": 30}, "audit": {"seeds": 30},
    }  # fmt: skip
    assert [advice.method for advice in told.story.advice] == list(SEARCHES["schema"])
    cell = {(row["method"], row["change"]): row for row in told.rows if row["space"] == "schema"}
    assert cell["promised", "seeds"]["rate"] < cell["min-l1", "seeds"]["rate"]
    assert cell["min-l1+sns", "seeds"]["rate"] < cell["min-l1", "seeds"]["rate"]
    promised = told.counterfactuals[told.counterfactuals["method"] == "promised"]
    assert int(promised["found"].sum()) == int(told.promise.promised_rows.sum())
    assert set(promised["wanted"][promised["found"].astype(bool)]) == {"good"}


def test_the_files_hold_what_the_value_holds(result, tmp_path):
    table, numbers, report, letter = result.save(tmp_path / "out", "holdfast demo --rows 24")
    assert json.loads(numbers.read_text()) == result.rows
    assert len(pd.read_csv(table)) == 96
    assert sorted((tmp_path / "out").iterdir()) == [table, letter, report, numbers]
    page = report.read_text(encoding="utf-8")
    assert "advice for 24 applicants" in page
    assert "holdfast demo --rows 24" in page
    assert "The model is a network that holdfast trained" in page
    assert "Example Bank" in letter.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_results(monkeypatch):
    small_demo.shrink(monkeypatch.setattr)
    monkeypatch.setattr("holdfast.demo.RATE", 0.15)
    one, two = (demo(rows=12, members=4, workers=workers) for workers in (1, 2))
    timeless = [
        [{key: value for key, value in row.items() if key != "seconds"} for row in own.rows] for own in (one, two)
    ]
    assert timeless[0] == timeless[1]
    pd.testing.assert_frame_equal(one.counterfactuals, two.counterfactuals)


@pytest.mark.parametrize("rows", [-3, 0, 201])
def test_rows_that_are_not_there_are_refused(rows):
    with pytest.raises(ValueError, match=f"{rows}.*from 1 to 200"):
        demo(rows=rows)
