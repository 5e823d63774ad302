"""What one person is told: what to do, what merely follows, and whether they are unusual."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
import torch
from conftest import linear
from rich.console import Console

from holdfast import Determines, Encoding, Family, Feature, Follows, Schema, assess, audit
from holdfast.reporting.story import tell
from holdfast.reporting.tables import story_text

SCHOOLS = {"school": 9, "bachelor": 13}
SCHEMA = Schema(
    (
        Feature("degree", "ordinal", levels=tuple(SCHOOLS)),
        Feature("school_years", "integer", lower=0, upper=20),
        Feature("age", "integer", mutable=False, lower=18, upper=99),
        Feature("age_code", "integer", mutable=False, lower=0, upper=9),
        Feature("income", "integer", lower=0, upper=9000),
    ),
    "risk",
    ("bad", "good"),
    relations=(
        Determines(("degree",), "school_years", rows=tuple(SCHOOLS.items())),
        Determines(("school_years",), "degree", rows=tuple((years, degree) for degree, years in SCHOOLS.items())),
        Follows("age", "degree", by={"school": 0, "bachelor": 4}),
    ),
)
PERSON = pd.DataFrame({"degree": ["school"], "school_years": 9, "age": 30, "age_code": 3, "income": 1000})
ENCODING = Encoding.fit(PERSON, SCHEMA, "none")
INCOME = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])
MODEL = linear(INCOME, -1500.0)
MEMBERS = Family.from_models([linear(INCOME, -cut) for cut in (8500.0, 8600.0)])


def story(**changes):
    origin = ENCODING.encode(PERSON)
    point = ENCODING.encode(PERSON.assign(**changes))
    answer = assess(MODEL, origin, point, torch.tensor([1]), ENCODING.space)
    assert answer.found.all()
    return tell({"mine": audit(answer, MEMBERS)}, 0, [0], "ann", ENCODING)


def text(told):
    console = Console(width=200)
    with console.capture() as captured:
        console.print(story_text(told, "the first"))
    return captured.get()


def test_what_moves_with_another_change_is_told_as_following():
    told = story(degree="bachelor", school_years=13, age=34, income=2000)
    assert [(change.feature, change.follows) for change in told.advice[0].plan.changes] == [
        ("degree", False), ("school_years", True), ("age", True), ("income", False),
    ]  # fmt: skip
    lines = [line.strip() for line in text(told).splitlines()]
    assert "degree: school → bachelor" in lines
    assert "school years: 9 → 13 (follows)" in lines
    assert "age: 30 → 34 (follows)" in lines
    assert "income: 1,000 → 2,000" in lines


def test_nothing_follows_from_what_stays():
    (change,) = story(income=2000).advice[0].plan.changes
    assert str(change) == "income: 1,000 → 2,000"


@pytest.mark.parametrize(("unlikeness", "said"), [(None, False), (0.7, False), (1.0, False), (1.234, True)])
def test_who_is_unusual_as_they_are_is_told_so(unlikeness, said):
    told = replace(story(income=2000), unlikeness=unlikeness)
    assert ("They are unusual as they are: 1.23 times as far from people classified 'good'" in text(told)) == said


def test_the_unlikeness_is_that_of_the_person_before_the_advice():
    assert story(income=2000).unlikeness is None  # one row, without a class, is nobody to be like
    table = pd.concat([PERSON] * 60, ignore_index=True)
    table["income"], table["risk"] = range(0, 3000, 50), ["bad", "good"] * 30
    encoding = Encoding.fit(table, SCHEMA, "none")
    origin = encoding.encode(PERSON.assign(income=8000, age=60))
    answer = assess(MODEL, origin, origin, torch.tensor([1]), encoding.space)
    told = tell({"mine": audit(answer, MEMBERS)}, 0, [0], 0, encoding)
    assert told.unlikeness == pytest.approx(float(encoding.people.unlikeness(origin, answer.target)))
    assert told.unlikeness > 1
