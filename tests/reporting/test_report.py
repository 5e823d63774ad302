"""The report says what the advice says, of everybody, and nothing in it is obeyed."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
import loans
from holdfast.explaining.person import STATUS
from holdfast.reporting.groups import FEWEST_PEOPLE, groupings
from holdfast.reporting.html.page import report_text
from holdfast.reporting.html.summary import reasons
from loans import shared_advice, shared_explainer

HOSTILE = "</script><script>alert(1)</script><!--"


def explainer() -> hf.Explainer:
    return shared_explainer(12)


def advice() -> hf.Advice:
    return shared_advice(90, 12)


def several_plans() -> hf.Advice:
    return shared_advice(6, 12, plans=2)


def data_of(text: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1])


def section(text: str, name: str) -> str:
    """The words of one part of the page."""
    found = re.search(rf'<section id="{name}".*?</section>', text, re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found[0])).split()) if found else ""


def test_each_card_says_what_the_advice_says():
    advice = several_plans()
    data = data_of(report_text(advice))
    names = [name for name, _ in data["features"]]
    assert [row[0] for row in data["people"]] == [str(label) for label in advice.people.index]
    assert max(len(row[5]) for row in data["people"]) > 1
    for row, (label, status) in zip(data["people"], advice.status.items(), strict=True):
        person = advice.of(label)
        assert STATUS[row[1]] == status
        assert [data["words"][place] for place in row[2:4]] == [person.now, person.wanted]
        assert len(row[5]) == len(person.plans)
        for (cost, held, holding, moved), plan in zip(row[5], person.plans, strict=True):
            assert f"{cost:g}" == f"{plan.cost:.3g}"  # the figure that `Advice.of` prints
            assert (held, data["members"]) == (plan.held, plan.members)
            assert data["words"][holding] == plan.holding
            told = [
                f"{names[place]}: {data['words'][row[4][place]]} → {data['words'][then]}"
                + (" (follows)" if follows else "")
                for place, then, follows, _ in moved
            ]
            assert told == [str(change) for change in plan.changes]
            assert sum(part for *_, part in moved) == pytest.approx(plan.cost, rel=1e-2)
        assert (data["words"][row[7]] if row[7] >= 0 else None) == person.why_not


def test_what_may_not_change_is_known_to_the_cards():
    assert dict(data_of(report_text(advice()))["features"]) == {
        "income": "may only rise", "savings": "may only rise", "duration": "may change", "age": "never changes",
        "housing": "may change",
    }  # fmt: skip


def test_the_summary_has_the_rates_of_the_audit():
    text = report_text(advice())
    low, high = advice().audit.interval()
    told = section(text, "holding")
    assert f"{advice().audit.rate:.1%} ({low:.1%} to {high:.1%})" in told
    (one,) = advice().summary()["audited"]
    assert f"{one['at_most']:.1%}" in told
    needed = 0.9 * one["models"]
    assert f"accepts {int((advice().given.held >= needed).sum())} of {len(advice().given)} plans" in told


def test_the_same_advice_gives_the_same_page(tmp_path):
    made = date(2026, 11, 16)
    first = hf.report(advice(), tmp_path / "a.html", groups=["housing"], made=made)
    second = hf.report(advice(), tmp_path / "b.html", groups=["housing"], made=made)
    assert first.read_bytes() == second.read_bytes()
    assert "2026-11-16" in first.read_text(encoding="utf-8")


def test_it_stands_alone():
    text = report_text(advice(), groups=["housing"])
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#)""", text), "nothing is fetched"
    assert not re.findall(r"url\((?!#)", text)
    assert "@import" not in text
    assert "default-src 'none'" in text


def hostile() -> hf.Advice:
    """Names, levels and labels that try to be more than text."""
    name, level = f"{HOSTILE} & \"x\" 'y'", f"own{HOSTILE}\x1b[31m\u2028\u202e"
    table, people = (
        rows.rename(columns={"savings": name}).assign(housing=rows["housing"].replace("own", level))
        for rows in (loans.train_rows(), loans.applicants(40))
    )
    people["id"] = [f"{HOSTILE}{row}" for row in range(len(people))]
    by_score = lambda rows: np.stack([5 - rows[name] / 1000, rows[name] / 1000], axis=1)  # noqa: E731
    features = tuple(
        replace(one, name=name) if one.name == "savings" else one
        for one in loans.schema().revise("housing", levels=("free", level, "rent")).features
    )
    schema = hf.Schema(features, "approved", ("no", "yes"))
    return hf.Explainer(by_score, table, schema=schema, want="yes", outputs="logits").explain(people, plans=2)


def test_nothing_in_a_table_is_obeyed():
    told = hostile()
    text = report_text(told, groups=["housing"], title=f"{HOSTILE} title")
    assert text.count("<script") == text.count("</script>") == 2, "the data and the script"
    assert "<!--" not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)
    assert data_of(text)["people"][3][0] == f"{HOSTILE}3"


# ---- groups ----


def test_groups_count_what_the_advice_counts():
    (by_housing,) = groupings(advice(), ["housing"])
    people, status = advice().people, advice().status
    for group in by_housing.groups:
        own = people["housing"] == group.name
        assert group.people == own.sum()
        assert group.refused == (own & (status != "has the class")).sum()
        assert group.planned == (own & (status == "plan")).sum()
        mine = own.to_numpy()[advice().given.place]
        assert group.invalidated[0] == pytest.approx(advice().audit.invalidated[:, mine].mean())
        rest = advice().audit.invalidated[:, ~mine].mean()
        assert group.beyond[0] == pytest.approx(group.invalidated[0] - rest)
        assert group.beyond[1] <= group.beyond[0] <= group.beyond[2]


def test_small_groups_are_not_shown():
    rare = advice().people.assign(branch=["few people"] * (FEWEST_PEOPLE - 1) + ["common"] * (90 - FEWEST_PEOPLE + 1))
    own = replace(advice(), people=rare)
    (by_branch,) = groupings(own, ["branch"])
    assert [group.name for group in by_branch.groups] == ["common"]
    assert (by_branch.hidden, by_branch.hidden_people) == (1, FEWEST_PEOPLE - 1)
    assert (by_branch.member[: FEWEST_PEOPLE - 1] == -1).all()
    text = report_text(own, groups=["branch"])
    assert "few people" not in text
    assert f"Not shown: 1 group with {FEWEST_PEOPLE - 1} people together." in section(text, "groups")
    enough = replace(
        advice(), people=rare.assign(branch=["few people"] * FEWEST_PEOPLE + ["common"] * (90 - FEWEST_PEOPLE))
    )
    assert len(groupings(enough, ["branch"])[0].groups) == 2


def test_numbers_are_sorted_into_bands_that_hold_everybody():
    (by_age,) = groupings(advice(), ["age"])
    assert sum(group.people for group in by_age.groups) == len(advice())
    ends = [tuple(map(int, group.name.split(" to "))) for group in by_age.groups]
    assert ends == sorted(ends)
    assert ends[0][0] == advice().people["age"].min()
    assert ends[-1][1] == advice().people["age"].max()


def test_missing_values_are_a_group():
    column = pd.Series([None] * 30 + [1.5] * 30 + [2.5] * 30, index=advice().people.index)
    (own,) = groupings(replace(advice(), people=advice().people.assign(score=column)), ["score"])
    assert {group.name: group.people for group in own.groups} == {"1.5": 30, "2.5": 30, "not known": 30}


# ---- advice of other kinds ----


def test_without_retrained_models_the_page_says_that_nobody_knows():
    own = hf.Explainer(loans.model(), loans.train_rows(), schema=loans.schema(), want="yes")
    text = report_text(own.explain(loans.applicants(12)))
    assert "Nobody knows whether this advice holds" in section(text, "warnings")
    assert "Not known." in section(text, "holding")
    assert data_of(text)["people"][0][5][0][1] is None


def test_a_promise_is_told_with_what_is_not_promised():
    own = explainer().explain(loans.applicants(12), promise=0.3, parameter_values=(0.0, 0.4))
    told = section(report_text(own), "holding")
    assert " ".join(own.promise.statement.split()) in told


def test_everybody_who_has_the_class_already_is_a_page_too():
    happy = loans.applicants(90)[(advice().status == "has the class").to_numpy()]
    text = report_text(explainer().explain(happy, hold=0.9))
    assert "No plan is given" in section(text, "holding")


def test_a_schema_read_off_the_table_is_a_warning():
    own = hf.Explainer(loans.model(), loans.train_rows().drop(columns="id"), label="approved", want="yes")
    text = report_text(own.explain(loans.applicants(10)))
    assert "Nobody said what people can change" in section(text, "warnings")
    assert "Nobody said what people can change" not in report_text(advice())


def test_bands_of_numbers_are_large_enough_to_be_shown():
    own = hf.Explainer(loans.model(), loans.train_rows(), schema=loans.schema(), want="yes")
    (by_age,) = groupings(own.explain(loans.applicants(50)), ["age"])
    assert len(by_age.groups) == 2
    assert by_age.hidden == 0


def test_reasons_that_differ_in_numbers_alone_are_counted_together():
    explainer = hf.Explainer(loans.model(), loans.train_rows(), schema=loans.schema(), want="yes")
    own = explainer.explain(loans.applicants(8))
    why = tuple(f"the nearest is at {row}.5" if row < 3 else "no way" for row in range(8))
    nobody = replace(own, why_not=why, given=own.not_durable_plans, now=("no",) * 8)
    assert reasons(nobody) == [("no way", 5), ("the nearest is at …", 3)]


def test_a_card_shows_a_persons_wish():
    wish = hf.Wish(keep=("housing",), prefer=("savings",), ranges={"income": (12.5, 500.0)})
    own = hf.Explainer(loans.model(), loans.train_rows(), schema=loans.schema(), want="yes")
    data = data_of(report_text(own.explain(loans.applicants(4), wishes=wish)))
    assert {data["words"][row[8]] for row in data["people"]} == {str(wish)}
    assert data_of(report_text(advice()))["people"][0][8] == -1
