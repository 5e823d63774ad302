"""Advice is possible and plausible: judged again by code that shares nothing with the search (`people_checks`)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pandas as pd
import pytest
import torch
from census import CENSUS, census
from conftest import EVERYTHING, everything, linear, load_once
from people_checks import violations
from torch import Tensor

from holdfast import (
    PGD,
    Counterfactuals,
    Encoding,
    Feature,
    MinCost,
    Recipe,
    Retraining,
    Schema,
    assess,
    datasets,
    make_method,
    other_class,
    predict,
    train,
)
from holdfast.models.merged import merged
from holdfast.models.model import Model
from holdfast.search.methods import METHODS
from holdfast.tabular.people import People

DATASETS = ("german", "heloc", "taiwan", "ctg", "warfarin", "seizure")
SEARCHES = (*METHODS, "min-l1+sns", "pgd+sparse")
FAST = {  # every dataset once; the slow run has all of them
    "census": "min-l1",
    "german": "prototype",
    "heloc": "min-l2",
    "taiwan": "margin",
    "ctg": "min-l1+sparse",
    "warfarin": "pgd",
    "seizure": "prototype",
}

slow = pytest.mark.slow


@dataclass(frozen=True, eq=False)
class World:
    """A table with its encoding, and a network that was trained a little."""

    table: pd.DataFrame  # what the encoding was fitted to
    test: pd.DataFrame
    encoding: Encoding
    model: Model

    @functools.cached_property
    def rows(self) -> tuple[Tensor, Tensor]:
        return self.encoding.encode(self.table), self.encoding.labels(self.table)

    def asked(self, count: int) -> pd.DataFrame:
        """So many people, as far as possible half of either class."""
        classes = predict(self.model, self.encoding.encode(self.test)).numpy()
        half = [self.test[classes == label].iloc[: (count + 1) // 2] for label in (0, 1)]
        return pd.concat([*half, self.test.drop([*half[0].index, *half[1].index])]).iloc[:count]

    def answered(self, search: str, people: pd.DataFrame, plausible: bool = True) -> Counterfactuals:
        x, space = self.encoding.encode(people), self.encoding.space
        space = space if plausible else space.without_people()
        method = make_method(search).fit(self.rows[0][:1000], self.rows[1][:1000], space)
        return method(self.model, x, other_class(self.model, x), space)

    def wrong(self, answer: Counterfactuals, people: pd.DataFrame, which: Tensor | None = None) -> list:
        """What the second opinion says about the points of some rows, those that were found unless told otherwise."""
        which = (answer.found if which is None else which).numpy()
        told = Counterfactuals(answer.origin, answer.point, answer.target, torch.ones_like(answer.found))
        ranges = dict(zip(self.encoding.schema.names, self.encoding.ranges, strict=True))
        after = told.to_frame(self.encoding, people)
        return violations(self.encoding.schema, people[which], after[which], self.table, ranges)


def fitted(table: pd.DataFrame, schema: Schema, test: pd.DataFrame, scaling="standard", most: int = 1000) -> World:
    encoding = Encoding.fit(table, schema, scaling)
    x, y = encoding.encode(table.iloc[:most]), encoding.labels(table.iloc[:most])
    model = train(x, y, Recipe((16, 8), epochs=20, batch=32), [Retraining()])[0]
    grouped = merged(model, ((0,), tuple(range(1, len(schema.classes))))) if len(schema.classes) > 2 else model
    return World(table, test, encoding, grouped)


@functools.cache
def world(name: str) -> World:
    if name == "census":
        return fitted(census(500), CENSUS, census(100, seed=1))
    table, schema = load_once(name)
    learned, asked = datasets.card(name).divide(table)
    return fitted(learned.iloc[:1000], schema, asked, datasets.card(name).scaling)


# ---- possible ----


@pytest.mark.parametrize(("name", "search"), FAST.items())
def test_a_second_opinion_finds_nothing_wrong_with_any_answer(name, search):
    people = world(name).asked(3)
    answer = world(name).answered(search, people)
    assert world(name).wrong(answer, people) == []
    assert world(name).wrong(answer, people, answer.implausible) == []


@slow
@pytest.mark.parametrize("name", FAST)
def test_a_second_opinion_finds_nothing_wrong_with_many_answers(name):
    people, found = world(name).asked(8), 0
    for search, plausible in [*((search, True) for search in SEARCHES), ("min-l1", False), ("pgd+sparse", False)]:
        answer = world(name).answered(search, people, plausible)
        assert world(name).wrong(answer, people) == [], search
        found += int(answer.found.sum())
    assert found > 8


def test_the_second_opinion_is_one():
    """Every kind of wrong advice is told, and nothing else."""
    table = census(60)
    person = table.loc[
        (table["education"] == "school") & (table["marital"] == "single") & table["paid"].notna() & (table["loans"] > 3)
    ].iloc[[0]]
    person = person.assign(gain=0, loss=0, paid=1.0, loans=4, least="low", grade="middle", flag=1.0, hours=20.0)
    person = person.assign(income=person["salary"] + person["bonus"], region=None, health="bad", role="alone", loans=4)
    schema = CENSUS.learned(table)
    age = int(person["age"].iloc[0])
    right = (
        {},
        {"region": "west"},
        {"flag": 99.0},
        {"education": "college", "education_num": 13, "age": age + 4},
        {"marital": "married", "role": "wife"},
        {"gain": 150},
        {"bonus": person["bonus"].iloc[0] + 2, "income": person["income"].iloc[0] + 2},
        {"months": person["months"].iloc[0] + 3, "on_file": person["on_file"].iloc[0] + 3},
    )
    wrong = {
        "sex may not change": {"sex": "male" if person["sex"].iloc[0] == "female" else "female"},
        "hours is lost": {"hours": None},
        "loans is out of bounds": {"loans": 21},
        "flag is where nobody is": {"flag": 50.0},
        "paid goes the wrong way": {"paid": 0.0},
        "grade goes the wrong way": {"grade": "low"},
        "education goes the wrong way": {"education": "none", "education_num": 4},
        "gain is off its grid": {"gain": 120},
        "hours is off its grid": {"hours": 20.2},
        "education is to be avoided": {"education": "unknown", "education_num": 1},
        "marital is to be avoided": {"marital": "widowed"},
        "role is no level": {"role": "uncle"},
        "education fixes education_num: broken": {"education_num": 10},
        "age rises with education: moved otherwise": {"age": age + 1},
        "on_file rises with months: moved otherwise": {"months": person["months"].iloc[0] + 3},
        "if marital is married, then role is husband or wife: broken": {"marital": "married"},
        "if hours is at least 60, then health is fair or good: broken": {"hours": 65.0},
        "at most one of gain and loss is above 0: broken": {"gain": 100, "loss": 3},
        "paid <= loans: broken": {"paid": 5.0},
        "least <= grade: broken": {"least": "high"},
        "income = salary + bonus: broken": {"bonus": person["bonus"].iloc[0] + 0.01},
    }
    changes = [*right, *wrong.values()]
    after = pd.concat([person.assign(**change) for change in changes])
    found = violations(schema, pd.concat([person] * len(changes)), after, table)
    assert {row for row, _ in found} == set(range(len(right), len(changes)))
    assert {(row, told) for row, told in enumerate(wrong, start=len(right))} <= set(found)


def test_who_breaks_a_relation_may_go_on_but_no_further():
    table = census(60)
    schema = CENSUS.learned(table)
    person = table.iloc[[0]].assign(paid=9.0, loans=7, marital="married", role="alone")
    for change in ({}, {"loans": 8}, {"paid": 9.0, "loans": 12}, {"role": "wife"}):
        assert not [what for _, what in violations(schema, person, person.assign(**change), table) if "broken" in what]
    for change in ({"paid": 10.0}, {"loans": 6}):
        assert (0, "paid <= loans: broken") in violations(schema, person, person.assign(**change), table)


# ---- plausible ----


def unlikeness(people: People, x: Tensor, target: Tensor, groups: tuple[tuple[int, ...], ...]) -> Tensor:
    """The mean distance to the five nearest people in units of the threshold, by measuring every distance."""
    points, found = people.coordinates(x.double()), torch.full((len(x),), torch.inf, dtype=torch.float64)
    for row, label in enumerate(target.tolist()):
        for member in groups[label]:
            others = people.coordinates(people.encoded[member].double())
            away = (others - points[row]).square().sum(1).sqrt().sort().values[:5].mean()
            found[row] = min(found[row], away / people.thresholds[member].double())
    return found


def judged_again(people: People, answer: Counterfactuals, groups=((0,), (1,))) -> Tensor:
    """Which points pass for a person, or are no less like one than the person is now: (n,)."""
    now, then = (unlikeness(people, part, answer.target, groups) for part in (answer.origin, answer.point))
    torch.testing.assert_close(answer.unlikeness.double(), torch.stack([now, then], 1), rtol=1e-3, atol=1e-3)
    return then <= now.clamp_min(1) + 1e-4


@pytest.fixture(scope="module")
def plain() -> World:
    """No relations, so that searching is quick; a model that asks for much, so that some answers are implausible."""
    table = everything(400)
    encoding = Encoding.fit(table, EVERYTHING)
    weight = torch.zeros(encoding.width)
    weight[[0, 2]], weight[5:9] = torch.tensor([1.0, -1.0]), torch.tensor([0.2, 0.1, 1.5, -0.4])
    return World(table, everything(40, seed=2), encoding, linear(weight, -4.5))


@pytest.fixture(scope="module")
def answers(plain) -> dict[str, Counterfactuals]:
    return {search: plain.answered(search, plain.test) for search in ("min-l1", "prototype", "margin")}


def test_what_is_found_is_plausible_and_what_is_implausible_is_not_found(plain, answers):
    for search, answer in answers.items():
        passes = judged_again(plain.encoding.people, answer)
        assert passes[answer.found].all(), search
        assert not passes[answer.implausible].any(), search
        assert not (answer.found & answer.implausible).any()
        assert (predict(plain.model, answer.point) == answer.target)[answer.found | answer.implausible].all()
        assert plain.wrong(answer, plain.test, answer.found | answer.implausible) == []
    assert all(bool(answer.found.any()) for answer in answers.values())


def test_without_people_every_valid_point_of_the_class_will_do(plain, answers):
    anyone = plain.answered("min-l1", plain.test, plausible=False)
    assert anyone.implausible is None
    assert anyone.unlikeness is None
    either = answers["min-l1"].found | answers["min-l1"].implausible
    assert torch.equal(anyone.found, either)
    both = answers["min-l1"].found
    assert (answers["min-l1"].cost(1) >= anyone.cost(1) - 1e-5)[both].all()
    assert plain.encoding.space.people is not None, "the space itself is as it was"
    assert plain.wrong(anyone, plain.test) == []


def test_who_is_unusual_may_stay_as_unusual(plain):
    """Strangers, who take each column from another person, are like nobody; they need not become so."""
    rows = [plain.table[name].sample(len(plain.test), random_state=n).to_numpy() for n, name in enumerate(plain.table)]
    strange = pd.DataFrame(dict(zip(plain.table, rows, strict=True))).assign(income=190.0, age=79)
    strange = strange[predict(plain.model, plain.encoding.encode(strange)).numpy() == 0].iloc[:20]
    if strange.empty:
        strange = plain.test.assign(age=79, debt=4000, income=120.0)
    answer = plain.answered("min-l1", strange)
    assert judged_again(plain.encoding.people, answer)[answer.found].all()
    stayed = answer.found & (answer.unlikeness[:, 1] > 1)
    assert stayed.any()
    assert answer.unusual[stayed].all()


def test_a_class_of_several_is_any_of_them():
    """A merged model: who passes for one class of a group passes."""
    table = everything(400).assign(outcome=lambda t: pd.cut(t["income"], [-1e9, 44, 56, 1e9], labels=["a", "b", "c"]))
    table["outcome"] = table["outcome"].astype(str)
    schema = Schema(EVERYTHING.features, "outcome", ("a", "b", "c"))
    encoding = Encoding.fit(table, schema)
    x, y = encoding.encode(table), encoding.labels(table)
    model = merged(train(x, y, Recipe((8,), epochs=15, batch=32), [Retraining()])[0], ((0,), (1, 2)))
    rows = x[:30]
    answer = MinCost(norm=1)(model, rows, other_class(model, rows), encoding.space)
    passes = judged_again(encoding.people, answer, groups=((0,), (1, 2)))
    assert answer.found.any()
    assert passes[answer.found].all()
    assert not passes[answer.implausible].any()


def test_a_model_of_other_classes_is_refused(plain):
    x = plain.encoding.encode(plain.test)

    def three(rows: Tensor) -> Tensor:
        return torch.cat([plain.model(rows), torch.zeros_like(rows[:, :1])], 1)

    target = torch.zeros(len(x), dtype=torch.int64)
    said = "the model has 3 classes, but the people that answers must resemble have 2"
    with pytest.raises(ValueError, match=said):
        MinCost(norm=1)(three, x, target, plain.encoding.space)
    with pytest.raises(ValueError, match=said):
        assess(three, x, x, target, plain.encoding.space)
    assert len(assess(three, x, x, target, plain.encoding.space.without_people())) == len(x)


def served_by_a_donor(own: World, answer: Counterfactuals) -> Tensor:
    """For whom a person of the class with their own immutable columns is a valid and plausible answer: (n,)."""
    x, y = own.rows
    space, served = own.encoding.space, torch.zeros_like(answer.found)
    for row in range(len(answer)):
        donors = torch.where(space.mutable, x, answer.origin[row])
        donors = donors[y == answer.target[row]]
        home, target = answer.origin[row].expand_as(donors), answer.target[row].expand(len(donors))
        good = ~space.violations(donors, home).any(1) & (predict(own.model, donors) == target)
        good &= space.people.plausible(donors, target, home) & (donors != home).any(1)
        served[row] = bool(good.any())
    return served


def test_whom_a_donor_would_serve_is_served(plain, answers):
    served = served_by_a_donor(plain, answers["min-l1"])
    assert served.sum() > 20
    assert answers["min-l1"].found[served].all()


@slow
@pytest.mark.parametrize("name", ["census", "heloc", "german"])
def test_whom_a_donor_would_serve_is_served_under_relations(name):
    answer = world(name).answered("min-l1", world(name).asked(12))
    served = served_by_a_donor(world(name), answer)
    assert answer.found[served].all()


def test_a_class_that_nobody_has_is_searched_for_like_any_other():
    draw = torch.Generator().manual_seed(0)
    table = pd.DataFrame({"a": torch.randn(60, generator=draw).numpy(), "y": ["no", "maybe"] * 30})
    encoding = Encoding.fit(table, Schema((Feature("a", "real"),), "y", ("no", "maybe", "yes")))
    x = encoding.encode(table)[:5]

    def never(x):
        return torch.cat([x, -x, 0 * x - 50], dim=1)

    def sometimes(x):
        return torch.cat([0 * x, 0 * x - 1, x - 1], dim=1)

    target = torch.full((5,), 2)
    for method in (MinCost(norm=1), PGD(radius=9.0)):
        assert not method(never, x, target, encoding.space).found.any()
        assert method(sometimes, x, target, encoding.space).found.all()
