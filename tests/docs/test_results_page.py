"""docs/results.md is what results/ says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import make_results
from holdfast.paper.declared import PAPER

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_the_one_that_the_results_give():
    made, kept = make_results.page(), (DOCS / "results.md").read_text(encoding="utf-8")
    assert made == kept, "run python docs/make_results.py"


def test_every_reason_has_its_words():
    words = (DOCS / "results.template.md").read_text(encoding="utf-8")
    headings = re.findall(r"^### (.+)$", words, flags=re.MULTILINE)
    assert set(make_results.REASONS.values()) == set(headings)


def test_a_cell_without_a_reason_is_told():
    with pytest.raises(SystemExit, match="warfarin pgd cost_l2 is out of tolerance and REASONS says nothing"):
        make_results.reason("warfarin", "pgd", "cost_l2")


def test_the_results_are_whole():
    """All cells of both readings, but for the method that was added later (`bench/matched.py`)."""
    rows = make_results.flat("paper")
    assert not rows.duplicated(["settings", "dataset", "method", "base_seed", "change"]).any()
    for name, own in rows.groupby("settings"):
        methods = set(PAPER[name].names) - {"margin-matched"}
        assert set(own["method"]) == methods
        assert len(own) == 6 * len(methods) * 5 * 2
    assert (rows["members"] == 100).all()
