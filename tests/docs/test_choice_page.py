"""The tables of docs/choose.md are what results/choose.jsonl says, and the decision follows from the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import make_choice

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def row():
    """A measured row; 10 people."""

    def made(method: str, found: int, invalidated: float, dataset: str = "german", wide: float = 0.01) -> dict:
        limits = {"low": max(0.0, invalidated - wide), "high": min(1.0, invalidated + wide)}
        about = {"dataset": dataset, "model": "trees", "method": method, "people": 10, "refused": False, "times": 1.5}
        return about | {"found": found, "invalidated": invalidated, "common": 5, "l1_common": 2.0} | limits

    return made


def test_the_page_is_the_one_that_the_rows_give():
    kept = (DOCS / "choose.md").read_text(encoding="utf-8")
    assert make_choice.page(kept, make_choice.rows()) == kept, "run python docs/make_choice.py"


def test_the_rows_are_whole():
    """Every kind of model on German Credit at least, each case with all methods of its kind, counts and limits."""
    every = make_choice.rows()
    assert len({row["dataset"] for row in every}) >= 3
    assert {row["model"] for row in every} == set(make_choice.KINDS)
    assert {row["method"] for row in every} == set(make_choice.CODE)
    keys = [(row["model"], row["dataset"], row["method"]) for row in every]
    assert len(keys) == len(set(keys))
    for model in make_choice.KINDS:
        methods, datasets = ({key[place] for key in keys if key[0] == model} for place in (2, 1))
        assert "german" in datasets
        assert len([key for key in keys if key[0] == model]) == len(methods) * len(datasets)
    for row in every:
        assert 0 <= row["found"] <= row["people"]
        if row["found"]:
            assert row["low"] <= row["invalidated"] <= row["high"]


def test_the_lowest_rate_decides_among_methods_that_help_enough_people(row):
    """A method cannot win by helping the few for whom it is easy."""
    every = [row("min-l1", 10, 0.5), row("margin 0.7", 10, 0.3), row("margin 0.9", 2, 0.0), row("rehearsed 8", 5, 0.1)]
    assert make_choice.best(every, "trees", ("margin 0.7", "margin 0.9")) == "margin 0.7"
    assert make_choice.best(every, "trees", ("margin 0.7", "margin 0.9", "rehearsed 8")) == "rehearsed 8"
    assert make_choice.best(every, "network", ("margin 0.7",)) is None
    every += [row("min-l1", 10, 0.5, "heloc"), row("margin 0.7", 10, 0.3, "heloc"), row("rehearsed 8", 3, 0.1, "heloc")]
    assert make_choice.best(every, "trees", ("margin 0.7", "rehearsed 8")) == "margin 0.7"


def test_of_methods_whose_limits_overlap_everywhere_the_cheapest_is_named_first(row):
    every = [row("min-l1", 10, 0.5), row("margin 0.7", 10, 0.1), row("margin 0.9", 9, 0.1), row("rehearsed 8", 9, 0.5)]
    same = make_choice.not_told_apart(every, "trees", "margin 0.7", ("margin 0.7", "margin 0.9", "rehearsed 8"))
    assert same == ["margin 0.9"]
    every[2]["times"] = 1.2
    assert make_choice.chosen(every, "trees", ("margin 0.7", "margin 0.9")) == ["margin 0.9", "margin 0.7"]
    every += [row("min-l1", 9, 0.5, "heloc"), row("margin 0.7", 10, 0.1, "heloc"), row("margin 0.9", 9, 0.2, "heloc")]
    assert make_choice.not_told_apart(every, "trees", "margin 0.7", ("margin 0.9",)) == []


def test_a_refused_promise_is_said(row):
    refused = row("promise 0.05", 0, 0.0) | {"refused": True, "invalidated": None}
    assert make_choice.figures(refused) == "refused"
    assert make_choice.best([refused], "trees", ("promise 0.05",)) == "promise 0.05"
    assert "refused" in make_choice.measured([refused])


def test_a_page_without_the_markers_is_told():
    with pytest.raises(SystemExit, match="the table goes between them"):
        make_choice.page("no tables here", [])
