"""Every rendering of advice is made from one view, so that all of them say the same."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import holdfast as hf
from holdfast.explaining.advice_files import PEOPLE, read_people
from holdfast.reporting.advice_text import advice_text
from holdfast.reporting.html.page import report_text
from loans import applicants, model, schema, train_rows


@pytest.fixture(scope="module")
def advice() -> hf.Advice:
    settings = {"schema": schema(), "want": "yes", "retrain": hf.changes.bootstrap(12), "workers": 1}
    return hf.Explainer(model(), train_rows(), **settings).explain(applicants(20), hold=0.9, plans=2)


def on_a_terminal(advice: hf.Advice) -> str:
    console = Console(width=300)
    with console.capture() as captured:
        console.print(advice_text(advice, Path("report.html")))
    return captured.get()


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_all_renderings_have_the_rates_and_the_warnings_of_the_view(advice):
    doubted = replace(advice, decided={**advice.decided, "warnings": ["one model answers all alike"]})
    (rate,) = doubted.view.rates
    for text in (repr(doubted), on_a_terminal(doubted), words(doubted._repr_html_()), words(report_text(doubted))):
        assert str(rate) in text
        assert "one model answers all alike" in text
        assert f"{len(doubted)} people" in text


def test_all_renderings_have_the_words_of_a_plan(advice):
    person = next(person for person in advice.view.people if person.plans)
    for text in (str(advice.of(person.person)), on_a_terminal(advice), words(advice._repr_html_())):
        assert person.plans[0].holding in text
        assert str(person.plans[0].changes[0]) in text
    assert person.plans[0].holding in report_text(advice)


def test_the_view_counts_what_the_tables_have(advice):
    wide = advice.wide()
    assert advice.view.counts == {status: int((advice.status == status).sum()) for status in advice.view.counts}
    assert advice.view.plans == wide["found"].sum() == sum(len(person.plans) for person in advice.view.people)
    assert advice.view.refused == (advice.status != "has the class").sum()


def test_the_parts_of_a_cost_add_up(advice):
    for person in advice.view.people:
        for plan in person.plans:
            assert sum(change.cost for change in plan.changes) == pytest.approx(plan.cost, rel=1e-4)


def test_the_file_of_people_has_what_the_view_has(advice, tmp_path):
    advice.save(tmp_path)
    people = read_people(tmp_path / PEOPLE)
    assert list(people) == [str(label) for label in advice.people.index]
    assert tuple(people.values()) == advice.view.people


@pytest.mark.parametrize("line", ["{", "[]", '{"person": 1}', '{"plans": [3], "not_durable": []}'])
def test_a_line_that_is_no_person_is_refused(line, tmp_path):
    (tmp_path / PEOPLE).write_text(line + "\n")
    with pytest.raises(ValueError, match=f"{PEOPLE} has a line"):
        read_people(tmp_path / PEOPLE)
