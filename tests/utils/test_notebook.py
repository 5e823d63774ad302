"""Values look right in a notebook: every word escaped, no colour of their own, long tables cut and said to be."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch

import holdfast as hf
from holdfast.utils import notebook
from holdfast.utils.messages import printable
from loans import applicants, model, schema, shared_advice, train_rows
from misuses import made

HOSTILE = "<script>alert('1')</script>&\x1b[31m\u202e"


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<page>{html}</page>")


def cells(html: str, number: int = 0) -> list[list[str]]:
    """The rows of one of the tables, its head first."""
    table = list(parsed(html).iter("table"))[number]
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def words(html: str) -> str:
    return " ".join("".join(one.itertext()) for one in parsed(html).iter() if one.tag == "p")


# ---- parts ----


def test_whatever_is_shown_is_escaped():
    parts = (
        notebook.table({HOSTILE: [HOSTILE]}, of=HOSTILE, most=0), notebook.table({HOSTILE: [HOSTILE]}),
        notebook.sentence(HOSTILE), notebook.heading(HOSTILE), notebook.note(HOSTILE),
    )  # fmt: skip
    html = notebook.page(*parts)
    assert "<script" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    shown = r"<script>alert('1')</script>&\x1b[31m\u202e"
    assert cells(html, 1) == [[shown], [shown]]
    assert words(html).count(shown) == 4


def test_shares_are_percentages_and_what_is_not_known_is_a_dash():
    html = notebook.table(
        {"found_and_held": [0.5, float("nan"), None], "models": [3, 4, 5], "cost": ["1.25", "2", "3"]}
    )
    assert cells(html) == [
        ["found and held", "models", "cost"], ["50.0%", "3", "1.25"], ["-", "4", "2"], ["-", "5", "3"],
    ]  # fmt: skip


def test_a_long_table_is_cut_and_says_so():
    html = notebook.table({"feature": list(map(str, range(1200)))}, of="features", most=7)
    assert len(cells(html)) == 1 + 7
    assert "The first 7 of 1,200 features are shown." in html
    assert "are shown" not in notebook.table({"feature": list(map(str, range(7)))}, most=7)
    assert len(cells(notebook.table({"level": ["x" * 9999]}))[1][0]) < 400


def test_an_empty_table_has_its_head():
    assert cells(notebook.table({"kind": [], "rate": []})) == [["kind", "rate"]]


def test_colours_are_those_of_the_page():
    style = parsed(notebook.page(notebook.table({"a": [1]}))).find("style").text
    assert set(re.findall(r"(?<![\w-])color: ([^;}]+?)\s*[;}]", style)) == {"inherit"}
    assert set(re.findall(r"background: ([^;}]+?)\s*[;}]", style)) == {"none"}
    assert "currentColor" in style
    assert not re.search(r"#[0-9a-f]{3}|black|white(?!-space)", style)
    assert "overflow-x: auto" in style
    for rule in re.findall(r"^\s*([^{}]+)\{", style, re.MULTILINE):  # nothing else on the page is touched
        assert all(part.strip().startswith("div.holdfast") for part in rule.split(","))


# ---- values ----


@pytest.fixture(scope="module")
def advice() -> hf.Advice:
    return shared_advice(12, plans=2)


def hostile_schema() -> hf.Schema:
    return hf.Schema(
        (
            hf.Feature(HOSTILE, "categorical", levels=(HOSTILE, "b", "c"), avoid=("c",)),
            hf.Feature("debt", "integer", ranges=((0, 41310), (99999, 99999)), missing=True, direction="fall"),
            hf.Feature("limit", "real", lower=0, step=0.5, difficulty=2),
            hf.Feature("age", "integer", lower=18, upper=90, mutable=False),
            hf.Feature("city", "categorical", levels=tuple(map(str, range(20)))),
        ),
        label=HOSTILE + "!",
        classes=("no", HOSTILE),
        relations=(hf.Ordered(("debt", "limit")),),
    )


def test_a_schema_has_a_row_for_each_feature_and_its_relations_in_words():
    html = hostile_schema()._repr_html_()
    shown = printable(HOSTILE)
    assert "<script" not in html
    assert cells(html) == [
        ["feature", "kind", "settings"],
        [shown, "categorical", f"levels={[HOSTILE, 'b', 'c']}, avoid=['c']"],
        ["debt", "integer", "direction=fall, ranges=[[0, 41310], [99999, 99999]], missing=True"],
        ["limit", "real", "lower=0, step=0.5, difficulty=2"],
        ["age", "integer", "mutable=False, lower=18, upper=90"],
        ["city", "categorical", f"levels={list(map(str, range(20)))}"],
    ]
    assert f"Label {shown}!: no, {shown}." in words(html)
    assert "Always true: debt <= limit." in words(html)


def test_a_schema_of_many_features_is_cut():
    many = hf.Schema(tuple(hf.Feature(f"x{n}", "real") for n in range(80)), "y", (0, 1))
    assert "The first 50 of 80 features are shown." in many._repr_html_()


def test_counterfactuals_are_counted_and_the_first_rows_shown():
    answer = made().found.labelled([f"<b>{n}" for n in range(24)])
    html = answer._repr_html_()
    cost = float(answer.cost(1)[answer.found].double().mean())
    assert f"{int(answer.found.sum())} of 24 counterfactuals found; mean cost {cost:.3g} (l1)" in words(html)
    assert "The first 5 of 24 rows." in words(html)
    rows = cells(html)
    assert [row[0] for row in rows[1:]] == [f"<b>{n}" for n in range(5)]
    assert [row[1] for row in rows[1:]] == ["yes" if found else "no" for found in answer.found[:5].tolist()]


def test_no_counterfactuals_are_shown_as_none():
    answer = made().found
    nothing = replace(answer, found=torch.zeros_like(answer.found))._repr_html_()
    assert "0 of 24 counterfactuals found." in words(nothing)
    assert all(row[3:] == ["-", "-", "-"] for row in cells(nothing)[1:])
    assert "0 of 0 counterfactuals found." in words(answer[:0]._repr_html_())


def test_advice_shows_counts_rates_and_the_first_plans(advice):
    html = advice._repr_html_()
    summary = advice.summary()
    assert f"Advice for 12 people {summary['with_a_plan']} with a plan" in words(html)
    assert f"{summary['have_the_class']} with the class already" in words(html)
    low, high = advice.audit.interval()
    assert {"bootstrap", "8", f"{advice.audit.rate:.1%}", f"{low:.1%}", f"{high:.1%}"} <= set(cells(html, 0)[1])
    first = advice.wide().query("found").iloc[0]
    plan = advice.of(first["id"]).plans[0]
    told = "; ".join(map(str, plan.changes))
    assert cells(html, 1)[1][:4] == [str(first["id"]), "1", told, f"{plan.cost:.3g}"]
    assert cells(html, 1)[1][4] == plan.holding
    assert f"The first 5 of {len(advice.given)} plans." in words(html)


def test_warnings_of_advice_are_shown(advice):
    html = replace(advice, decided={**advice.decided, "warnings": [HOSTILE]})._repr_html_()
    assert f"Warning: {printable(HOSTILE)}" in words(html)
    assert "<script" not in html


def test_advice_without_retrained_models_or_without_plans_says_so():
    alone = hf.Explainer(model(), train_rows(), want="yes", schema=schema(), workers=1).explain(applicants(8))
    assert "Nobody knows whether this advice holds" in words(alone._repr_html_())
    answers = alone.given
    none = replace(answers, counterfactuals=answers.counterfactuals[:0], place=answers.place[:0], plan=answers.plan[:0])
    html = replace(alone, given=none)._repr_html_()
    assert "Advice for 8 people" in html
    assert "<table" not in html


def test_names_of_methods_and_kinds_are_escaped():
    audit = made().audit
    hostile = replace(audit, kinds=(HOSTILE,) * 3, surrogates=HOSTILE)
    for value in (hostile, hf.compare({HOSTILE: hostile, "pgd": hostile})):
        assert "<script" not in value._repr_html_()
        assert parsed(value._repr_html_()) is not None
