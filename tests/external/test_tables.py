import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything, linear

from holdfast import (
    PGD,
    Determines,
    Encoding,
    Exclusive,
    Family,
    Feature,
    Follows,
    Implies,
    Ordered,
    Recipe,
    Retraining,
    Schema,
    Sums,
    audit,
    other_class,
    seeds,
    train,
)
from holdfast.explaining.file_audit import FileAudit
from holdfast.external.alibi import from_alibi
from holdfast.external.dice import from_dice
from holdfast.external.tables import from_paired, from_tables
from holdfast.models.identity import identities
from holdfast.models.merged import merged
from holdfast.tabular.reading import read_table

SCHEMA = Schema(
    (
        Feature("income", "real", lower=0, upper=100, direction="rise"),
        Feature("loan", "integer", lower=0, upper=50, step=10),
        Feature("age", "integer", mutable=False),
        Feature("job", "categorical", levels=("clerk", "baker", "none"), avoid=("none",)),
    ),
    "risk",
    ("bad", "good"),
)
DATA = pd.DataFrame(
    {
        "income": [10.1, 20.0, 30.0, 60.3],
        "loan": [10, 20, 30, 40],
        "age": [30, 40, 50, 60],
        "job": ["clerk", "baker", "none", "clerk"],
    },
    index=["ann", "bob", "cid", "dot"],
)
ENCODING = Encoding.fit(DATA, SCHEMA, "none")


def model(x):  # good from an income of 50 on
    return torch.stack([50 - x[:, 0], x[:, 0] - 50], 1)


def points(**incomes):
    """Everybody's own row, but for some incomes."""
    return DATA.assign(income=[incomes.get(name, own) for name, own in DATA["income"].items()])


def details(imported, problem):
    table = imported.problems[imported.problems["problem"] == problem]
    return dict(zip(table["row"], table["detail"], strict=True))


@pytest.fixture(scope="module")
def german(loaded):
    table, schema = loaded("german")
    table = table.iloc[:200].set_axis(range(1000, 1200))
    encoding = Encoding.fit(table, schema)
    x, y = encoding.encode(table), encoding.labels(table)
    family = train(x, y, Recipe((16,), epochs=20), [Retraining(), *seeds(3, start=5)])
    asked = table.iloc[:30]
    rows = encoding.encode(asked)
    answer = PGD(radius=4.0, levels=4, steps=15)(family[0], rows, other_class(family[0], rows), encoding.space)
    assert 0 < answer.found.sum() < len(answer)
    return asked, encoding, family, answer


def test_our_own_answers_come_back_as_they_were(german):
    asked, encoding, family, answer = german
    table = answer.to_frame(encoding, asked)
    imported = from_tables(asked, table, encoding, family[0])
    back = imported.counterfactuals
    assert torch.equal(back.found, answer.found)
    assert torch.equal(back.origin, answer.origin)
    assert torch.equal(back.point[back.found], answer.point[back.found])
    assert torch.equal(back.point[~back.found], answer.origin[~back.found])
    assert torch.equal(back.target, answer.target)
    assert back.classes == 2
    assert back.seen == answer.seen == identities(family[0])
    assert family[0].fingerprint in back.seen
    assert imported.labels.equals(asked.index)
    assert set(imported.problems["problem"]) == {"no counterfactual"}
    assert imported.problems["row"].tolist() == asked.index[~answer.found.numpy()].tolist()
    strict = from_tables(asked, table, encoding, family[0], space=encoding.space, target=answer.target)
    assert torch.equal(strict.counterfactuals.found, answer.found)


def test_a_csv_file_loses_nothing(german, tmp_path):
    asked, encoding, family, answer = german
    asked.to_csv(tmp_path / "asked.csv")
    answer.to_frame(encoding, asked).to_csv(tmp_path / "points.csv")
    asked, points = read_table(tmp_path / "asked.csv"), read_table(tmp_path / "points.csv")
    back = from_tables(asked, points, encoding, family[0]).counterfactuals
    assert torch.equal(back.found, answer.found)
    assert torch.equal(back.point[back.found], answer.point[back.found])


def test_the_order_of_the_points_does_not_matter_and_an_audit_takes_them(german):
    asked, encoding, family, answer = german
    table = answer.to_frame(encoding, asked)
    one = from_tables(asked, table, encoding, family[0])
    other = from_tables(asked, table.sample(frac=1, random_state=0), encoding, family[0])
    assert torch.equal(one.counterfactuals.point, other.counterfactuals.point)
    assert audit(one.counterfactuals, family[1:]).rate == audit(answer, family[1:]).rate
    with pytest.raises(ValueError, match="networks that the search has seen"):
        audit(one.counterfactuals, family)


def test_every_kind_of_feature_comes_back(encoding, rows, family):
    table, (x, _) = everything(), rows
    answer = PGD(radius=4.0)(family[0], x, other_class(family[0], x), encoding.space)
    back = from_tables(table, answer.to_frame(encoding, table), encoding, family[0], space=encoding.space)
    assert torch.equal(back.counterfactuals.found, answer.found)
    assert torch.equal(back.counterfactuals.point[answer.found], answer.point[answer.found])


def test_every_row_is_found_or_reported():
    imported = from_tables(DATA, points(ann=55.5, bob=49.0).drop("cid"), ENCODING, model)
    assert imported.counterfactuals.found.tolist() == [True, False, False, False]
    assert imported.counterfactuals.point[:, 0].tolist() == [55.5, 49.0, 30.0, pytest.approx(60.3)]
    assert imported.counterfactuals.target.tolist() == [1, 1, 1, 0]
    assert details(imported, "not valid for the model") == {
        "bob": "the model gives it class 'bad', not 'good'",
        "dot": "the model gives it class 'good', not 'bad'",
    }
    assert details(imported, "no counterfactual") == {"cid": "there is no counterfactual for this row"}
    assert list(imported.problems.columns) == ["row", "problem", "detail"]
    assert imported.problems["row"].tolist() == ["bob", "cid", "dot"]  # in the order of the data
    assert (
        repr(imported) == "ImportedCounterfactuals(1 of 4 rows found; not valid for the model: 2, no counterfactual: 1)"
    )


def test_where_all_is_well_there_is_nothing_to_say():
    imported = from_tables(DATA[:2], points(ann=55.0, bob=51.0)[:2], ENCODING, model)
    assert repr(imported) == "ImportedCounterfactuals(2 of 2 rows found)"
    assert imported.problems.empty


def test_rows_are_matched_by_label():
    imported = from_tables(DATA, points(ann=55.0, bob=56.0).loc[["bob", "ann"]], ENCODING, model)
    assert imported.counterfactuals.point[:2, 0].tolist() == [55, 56]
    strangers = points(ann=55.0).rename(index={"bob": "eve", "cid": "fay"})
    imported = from_tables(DATA, strangers, ENCODING, model)
    assert details(imported, "matches no row").keys() == {"eve", "fay"}
    assert details(imported, "no counterfactual").keys() == {"bob", "cid"}
    assert len(imported.counterfactuals) == 4
    assert "matches no row: 2" in repr(imported)
    with pytest.raises(ValueError, match="0, 1, 2, 3.*int64"):
        from_tables(DATA, points().reset_index(drop=True), ENCODING, model)
    twice = DATA.rename(index={"bob": "ann"})
    with pytest.raises(ValueError, match="'ann'.*several rows"):
        from_tables(twice, points(), ENCODING, model)


def test_a_row_may_have_several():
    several = pd.concat([points(bob=70.0), points(bob=40.0).loc[["bob"]], points(bob=80.0).loc[["bob"]]])
    imported = from_tables(DATA, several.drop("cid"), ENCODING, model, target=["good", "good", "bad", "good"])
    assert imported.labels.tolist() == ["ann", "bob", "bob", "bob", "cid", "dot"]
    answer = imported.counterfactuals
    assert answer.point[1:4, 0].tolist() == [70, 40, 80]  # in the order they came
    assert answer.origin[1:4, 0].tolist() == [20, 20, 20]
    assert answer.found.tolist() == [False, True, False, True, False, True]
    assert answer.target.tolist() == [1, 1, 1, 1, 0, 1]
    assert answer.to_frame(ENCODING, DATA.loc[imported.labels]).index.tolist() == imported.labels.tolist()
    assert answer.labels.equals(imported.labels)
    assert answer.changes(ENCODING)["row"].tolist() == ["bob", "bob"]


def test_an_exact_copy_counts_once_and_is_told():
    one, other = points(bob=70.0), points(bob=80.0).loc[["bob"]]
    several = pd.concat([one, one.loc[["bob"]], other, other]).assign(plan=range(7))  # a plan's number is no value
    imported = from_tables(DATA, several, ENCODING, model)
    assert imported.labels.tolist() == ["ann", "bob", "bob", "cid", "dot"]
    assert imported.counterfactuals.point[1:3, 0].tolist() == [70, 80]
    told = imported.problems[imported.problems["problem"] == "exact copy"]
    assert told["row"].tolist() == ["bob", "bob"]
    assert "exact copy: 2" in repr(imported)


def test_two_people_with_the_same_values_are_no_copies():
    same = pd.concat([points(bob=70.0).loc[["bob"]]] * 2).set_axis(["bob", "dot"])
    assert "exact copy" not in set(from_tables(DATA, same, ENCODING, model).problems["problem"])


def test_cells_that_hold_lists_are_told_and_not_compared():
    odd = pd.concat([points(), points().loc[["bob"]]]).astype({"income": object})
    odd["income"] = [[1], [2], [3], [4], [2]]
    imported = from_tables(DATA, odd, ENCODING, model)
    assert set(details(imported, "cannot be read")) == {"ann", "bob", "cid", "dot"}
    assert set(details(imported, "exact copy")) == {"bob"}


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_broken_rules_show_numbers_as_the_table_has_them(scaling):
    """In single precision and scaled, an age of -5 is -4.999999."""
    draw = np.random.default_rng(1)
    data = pd.DataFrame({"age": draw.integers(18, 90, 80), "income": draw.uniform(800, 9000, 80).round(2)})
    schema = Schema(
        (Feature("age", "integer", lower=18, upper=90, mutable=False), Feature("income", "real", lower=0, upper=9e3)),
        "risk",
        ("bad", "good"),
        relations=(Follows("age", "income", rate=0.1),),
    )
    encoding = Encoding.fit(data, schema, scaling, plausible=None)
    points = data.assign(age=-5, income=9123.45)
    imported = from_tables(data, points, encoding, linear(torch.ones(2), 0.0), space=encoding.space)
    told = details(imported, "violates the constraints")
    for row, text in told.items():
        age, income = data["age"][row], f"{data['income'][row]:.12g}"
        assert f"'age' from {age} to -5 (allowed from 18 to 90)" in text
        assert f"'income' from {income} to 9123.45 (allowed from 0 to 9000)" in text
        assert f"age goes from {age} to -5 and income from {income} to 9123.45" in text
    assert len(told) == 80


def test_a_method_that_found_nothing_is_no_error():
    for none in (points()[:0], pd.DataFrame(), points().assign(found=False)):
        imported = from_tables(DATA, none, ENCODING, model)
        assert repr(imported) == "ImportedCounterfactuals(0 of 4 rows found; no counterfactual: 4)"
        assert torch.equal(imported.counterfactuals.point, imported.counterfactuals.origin)


@pytest.mark.parametrize(
    ("column", "cell", "says"),
    [
        ("job", "pilot", "'job' holds 'pilot', not one of 'clerk', 'baker', 'none'"),
        ("income", "much", "'income' holds 'much', not a finite number"),
        ("income", np.nan, "'income' is empty"),
        ("income", np.inf, "'income' holds inf, not a finite number"),
        ("income", 1e300, "'income' holds too large a number"),
        ("income", True, "'income' holds True, not a finite number"),
        ("job", None, "'job' is empty"),
        ("job", ["clerk"], "'job' holds ['clerk'], not one of 'clerk', 'baker', 'none'"),
        ("found", "maybe", "'found' holds 'maybe', not one of False, True"),
    ],
)
def test_one_bad_cell_costs_one_row(column, cell, says):
    table = points(ann=55.0, bob=56.0).assign(found=True).astype({column: object})
    table.at["ann", column] = cell
    imported = from_tables(DATA, table, ENCODING, model, target="good")
    assert imported.counterfactuals.found.tolist() == [False, True, False, True]
    assert details(imported, "cannot be read") == {"ann": says}
    assert torch.equal(imported.counterfactuals.point[0], imported.counterfactuals.origin[0])


def test_an_empty_cell_is_no_level_called_nan():
    schema = Schema((Feature("a", "binary", levels=("nan", "b")), Feature("n", "integer")), "y", (0, 1))
    data = pd.DataFrame({"a": ["nan", "b"], "n": [1, 2]})
    table = pd.DataFrame({"a": ["nan", np.nan], "n": [1, 2]}, dtype=object)
    imported = from_tables(data, table, Encoding.fit(data, schema, "none"), linear(torch.ones(2), -1.5), target=1)
    assert details(imported, "cannot be read") == {1: "'a' is empty"}


def test_what_a_person_does_not_have_may_stay_missing():
    schema = Schema(
        (Feature("age", "integer", missing=True), Feature("job", "categorical", levels=("a", "b"), missing=True)),
        "y",
        (0, 1),
    )
    people = pd.DataFrame({"age": [30, None, 50, 60], "job": ["a", None, "b", "b"]})
    points = pd.DataFrame({"age": [40, None, None, 61], "job": ["a", "b", "b", None]})
    encoding = Encoding.fit(people, schema)
    imported = from_tables(
        people, points, encoding, lambda r: torch.stack([r[:, 0] * 0, r[:, 0] * 0 + 1], -1), target=1
    )
    unread = imported.problems[imported.problems["problem"] == "cannot be read"]
    assert unread["row"].tolist() == [2, 3]
    assert unread["detail"].tolist() == ["'age' is empty", "'job' is empty"]
    changes = imported.counterfactuals.changes(encoding)
    assert changes[["row", "feature", "after"]].values.tolist() == [[0, "age", 40], [1, "job", "b"]]


def test_all_that_is_wrong_with_a_row_is_said_once():
    table = points(ann=55.0).astype(object)
    table.loc["ann", ["job", "loan"]] = ["pilot", "few"]
    imported = from_tables(DATA, table, ENCODING, model)
    assert details(imported, "cannot be read") == {
        "ann": "'loan' holds 'few', not a finite number; 'job' holds 'pilot', not one of 'clerk', 'baker', 'none'"
    }
    assert imported.problems["row"].tolist().count("ann") == 1


def test_a_row_of_empty_cells_is_no_counterfactual():
    table = points(ann=55.0, bob=56.0)
    table.loc["ann", ["income", "loan", "job"]] = np.nan
    imported = from_tables(DATA, table, ENCODING, model)
    assert details(imported, "no counterfactual") == {"ann": "its cells are empty"}
    assert imported.counterfactuals.found.tolist() == [False, True, False, False]


def test_text_is_read_as_what_it_spells():
    """One bad cell makes a whole column of a file text; a file knows no difference between 1 and '1'."""
    schema = Schema(
        (
            Feature("n", "integer"),
            Feature("code", "categorical", levels=("1", "2")),
            Feature("level", "ordinal", levels=(0, 1, 2)),
            Feature("yes", "binary", levels=(False, True)),
        ),
        "y",
        (0, 1),
    )
    data = pd.DataFrame({"n": [1, 2, 3], "code": ["1", "2", "1"], "level": [0, 1, 2], "yes": [True, False, True]})
    encoding = Encoding.fit(data, schema, "none")
    table = pd.DataFrame(
        {"n": ["1", "2.0", "3"], "code": [1.0, 2, "1"], "level": ["0", "1.0", 2.0], "yes": ["True", "0", 1]}
    )
    imported = from_tables(data, table, encoding, linear(torch.ones(encoding.width), -2.5), target=1)
    assert "cannot be read" not in set(imported.problems["problem"])
    assert torch.equal(imported.counterfactuals.point, encoding.encode(data))


def test_missing_columns_are_an_error_unless_no_one_can_change_them():
    whole = from_tables(DATA, points(ann=55.0), ENCODING, model)
    without = from_tables(DATA, points(ann=55.0).drop(columns="age"), ENCODING, model)
    assert torch.equal(whole.counterfactuals.point, without.counterfactuals.point)
    with pytest.raises(ValueError, match="points lacks columns") as error:
        from_tables(DATA, points().rename(columns={"loan": "Loan"}), ENCODING, model)
    for part in (
        "lacks columns ['loan']",
        "expected 'income', 'loan'",
        "got 'income', 'Loan'",
        "points['loan'] = data",
    ):
        assert part in str(error.value)


def test_columns_that_are_no_features_are_reported_once():
    table = points(ann=55.0).assign(score=1.0, note="x", risk="good", found=True)
    imported = from_tables(DATA[:1], table[:1], ENCODING, model)
    assert imported.problems.to_dict("records") == [
        {
            "row": None,
            "problem": "unused columns",
            "detail": "columns 'score', 'note' are no features of the schema",
        }
    ]
    assert repr(imported) == "ImportedCounterfactuals(1 of 1 rows found; unused columns)"


def test_a_feature_called_found_is_a_feature():
    schema = Schema((Feature("found", "integer"),), "y", (0, 1))
    data = pd.DataFrame({"found": [0, 1]})
    encoding = Encoding.fit(data, schema, "none")
    imported = from_tables(data, pd.DataFrame({"found": [1, 0]}), encoding, linear(torch.ones(1), -0.5))
    assert imported.counterfactuals.found.all()


def test_points_are_judged_without_snapping():
    """Between two steps of the grid, out of bounds, backwards, an age moved: as they came, to the last bit."""
    table = DATA.assign(income=[120.5, 5.25, 51.0, 49.0], loan=[12.5, 20, 30, 40], age=[31, 40, 50, 60])
    imported = from_tables(DATA, table, ENCODING, model)
    assert imported.counterfactuals.point[:, 0].tolist() == [120.5, 5.25, 51, 49]
    assert imported.counterfactuals.point[0].tolist() == [120.5, 12.5, 31, 1, 0, 0]
    assert imported.counterfactuals.found.tolist() == [True, False, True, True]
    strict = from_tables(DATA, table, ENCODING, model, space=ENCODING.space)
    assert torch.equal(strict.counterfactuals.point, imported.counterfactuals.point)
    assert strict.counterfactuals.found.tolist() == [False, False, True, False]
    assert details(strict, "violates the constraints") == {
        "ann": "'income' from 10.1 to 120.5 (allowed from 0 to 100); 'loan' from 10 to 12.5 (goes in steps of "
        "10); 'age' from 30 to 31 (may not change)",
        "bob": "'income' from 20 to 5.25 (may only rise)",
        "dot": "'income' from 60.3 to 49 (may only rise)",
    }
    assert details(strict, "not valid for the model").keys() == {"bob"}
    assert "not valid for the model: 1, violates the constraints: 3" in repr(strict)


RELATED = Schema(
    (
        Feature("income", "real", lower=0, upper=100),
        Feature("loan", "integer", lower=0, upper=50),
        Feature("paid", "integer", lower=0, upper=50),
        Feature("owed", "integer", lower=0, upper=50),
        Feature("savings", "integer", lower=0, upper=50),
        Feature("age", "integer", mutable=False, lower=0, upper=99),
        Feature("degree", "ordinal", levels=("school", "bachelor", "master"), direction="rise"),
        Feature("years", "integer", lower=0, upper=30),
        Feature("job", "categorical", levels=("clerk", "baker")),
    ),
    "risk",
    ("bad", "good"),
    relations=(
        Sums("loan", ("paid", "owed")),
        Ordered(("paid", "loan")),
        Exclusive(("owed", "savings")),
        Determines(("degree",), "years", rows=(("school", 9), ("bachelor", 13), ("master", 15))),
        Implies({"degree": ("master",)}, {"job": ("clerk",)}),
        Follows("age", "degree", by={"school": 0, "bachelor": 4, "master": 6}),
    ),
)


def test_a_broken_relation_is_told_in_its_own_words():
    data = pd.DataFrame(
        {"income": 10.0, "loan": 30, "paid": 10, "owed": 20, "savings": 0, "age": 30, "degree": "school", "years": 9}
        | {"job": "baker"},
        index=["sum", "order", "both", "table", "if", "age", "older", "fine"],
    )
    points = data.assign(income=60.0)
    points.loc["sum", "owed"] = 15
    points.loc["order", ["paid", "owed"]] = [31, 0]
    points.loc["both", "savings"] = 5
    points.loc["table", ["degree", "age"]] = ["bachelor", 34]
    points.loc["if", ["degree", "years", "age"]] = ["master", 15, 36]
    points.loc["age", ["degree", "years"]] = ["bachelor", 13]
    points.loc["older", "age"] = 31
    points.loc["fine", ["degree", "years", "age"]] = ["bachelor", 13, 34]
    encoding = Encoding.fit(data, RELATED, "none")
    imported = from_tables(data, points, encoding, model, space=encoding.space)
    assert imported.counterfactuals.found.tolist() == [False] * 7 + [True]
    assert details(imported, "violates the constraints") == {
        "sum": "loan is 30, paid is 10 and owed is 15; loan = paid + owed",
        "order": "loan is 30, paid is 31 and owed is 0; loan = paid + owed; paid is 31 and loan is 30; paid <= loan",
        "both": "owed is 20 and savings is 5; at most one of owed and savings is above 0",
        "table": "degree is 'bachelor' and years is 9; degree fixes years to 13",
        "if": "degree is 'master' and job is 'baker'; if degree is master, then job is clerk",
        "age": "age goes from 30 to 30 and degree from school to bachelor; age rises with degree, so age must be 34",
        "older": "age goes from 30 to 31 and degree from school to school; age rises with degree, so age must be 30",
    }


def test_who_breaks_a_relation_already_may_go_on_and_a_feature_comes_before_a_relation():
    data = pd.DataFrame(
        {"income": 10.0, "loan": 30, "paid": 15, "owed": 20, "savings": 0, "age": 30, "degree": "master", "years": 15}
        | {"job": "clerk"},
        index=["before", "worse"],
    )
    points = data.assign(income=60.0)
    points.loc["worse", ["owed", "degree"]] = [25, "bachelor"]
    encoding = Encoding.fit(data, RELATED, "none")
    imported = from_tables(data, points, encoding, model, space=encoding.space)
    assert imported.counterfactuals.found.tolist() == [True, False]
    assert details(imported, "violates the constraints") == {
        "worse": "'degree' from 'master' to 'bachelor' (may only rise); "
        "loan is 30, paid is 15 and owed is 25; loan = paid + owed; "
        "degree is 'bachelor' and years is 15; degree fixes years to 13"
    }


def test_a_level_against_its_direction_is_not_one_that_nobody_is_moved_to():
    schema = replace(SCHEMA, features=(SCHEMA["income"], replace(SCHEMA["job"], direction="rise")))
    encoding = Encoding.fit(DATA, schema, "none")
    points = DATA.assign(income=60.3, job=["baker", "clerk", "none", "none"])
    imported = from_tables(DATA, points, encoding, model, space=encoding.space)
    assert details(imported, "violates the constraints") == {
        "bob": "'job' from 'baker' to 'clerk' (may only rise)",
        "dot": "'job' from 'clerk' to 'none' (not a level to move to)",
    }


def test_a_point_that_nobody_is_like_is_not_plausible():
    rng = np.random.default_rng(0)
    income, risk = rng.uniform(0, 100, 200).round(1), rng.permutation(["bad", "good"] * 100)
    known = pd.DataFrame({"income": income, "loan": (income / 2).round(), "risk": risk})
    schema = Schema(
        (Feature("income", "real", lower=0, upper=100), Feature("loan", "integer", lower=0, upper=50)),
        "risk",
        ("bad", "good"),
    )
    encoding = Encoding.fit(known, schema, "none")
    people = encoding.space.people
    data = pd.DataFrame({"income": [10.0, 10.0, 10.0], "loan": [5, 5, 40]}, index=["like", "unlike", "odd"])
    points = data.assign(income=60.0)
    points.loc[["like", "odd"], "loan"] = [30, 0]
    imported = from_tables(data, points, encoding, model, space=encoding.space)
    answer = imported.counterfactuals
    assert answer.found.tolist() == [True, False, False]
    now, there = (people.unlikeness(part, answer.target).tolist() for part in (answer.origin, answer.point))
    assert there[0] < 1 < min(there[1:])
    assert now[1] < 1 < now[2] < there[2]
    said = "nobody is like this: it is {:.3g} times as far from people of class 'good' as the limit"
    assert details(imported, "not plausible") == {
        "unlike": said.format(there[1]),
        "odd": f"{said.format(there[2])}, and the person themselves {now[2]:.3g} times",
    }
    assert "not plausible: 2" in repr(imported)
    assert from_tables(data, points, encoding, model).counterfactuals.found.all()
    assert from_tables(data, points, encoding, model, space=encoding.space.without_people()).counterfactuals.found.all()


def test_a_level_that_no_one_is_moved_to_violates_the_space():
    table = points(ann=55.0, bob=55.0, cid=55.0).assign(job=["none", "clerk", "none", "clerk"])
    imported = from_tables(DATA, table, ENCODING, model, space=ENCODING.space)
    assert imported.counterfactuals.found.tolist() == [False, True, True, False]
    assert details(imported, "violates the constraints") == {
        "ann": "'job' from 'clerk' to 'none' (not a level to move to)"
    }


def test_targets_are_named_counted_or_left_to_the_model():
    table = points(ann=55.0, bob=20.0)
    for good in ("good", ["good"] * 4, np.array(["good"] * 4), torch.ones(4, dtype=torch.long)):
        imported = from_tables(DATA, table, ENCODING, model, target=good)
        assert imported.counterfactuals.found.tolist() == [True, False, False, True]
    each = pd.Series({"dot": "bad", "cid": "bad", "bob": "bad", "ann": "good"})  # matched by label
    assert from_tables(DATA, table, ENCODING, model, target=each).counterfactuals.target.tolist() == [1, 0, 0, 0]
    for wrong in ("fine", ["good"] * 3, each.drop("dot")):
        with pytest.raises(ValueError, match=r"target names \d classes for 4 rows of data.*of 'bad', 'good'"):
            from_tables(DATA, table, ENCODING, model, target=wrong)
    for wrong in (torch.ones(3, dtype=torch.long), torch.ones(4), torch.full((4,), 2), torch.full((4,), -1)):
        with pytest.raises(ValueError, match=r"expected \(4,\), one class index from 0 to 1"):
            from_tables(DATA, table, ENCODING, model, target=wrong)


def test_of_more_classes_any_other_will_do():
    def three(x):  # below 25, below 50, above
        return torch.stack([25 - x[:, 0], 5 - (x[:, 0] - 37).abs(), x[:, 0] - 50], 1)

    assert three(ENCODING.encode(DATA)).argmax(1).tolist() == [0, 0, 1, 2]
    imported = from_tables(DATA, points(ann=37.0, bob=70.0), ENCODING, three)
    answer = imported.counterfactuals
    assert answer.classes == 3
    assert answer.found.tolist() == [True, True, False, False]
    assert answer.target[:2].tolist() == [1, 2]
    assert (answer.target != torch.tensor([0, 0, 1, 2])).all()
    assert details(imported, "not valid for the model")["cid"].startswith("the model gives it class 1, not ")
    with pytest.raises(ValueError, match="3 classes.*2"):
        from_tables(DATA, points(), ENCODING, three, target="good")
    joined = merged(three, ((0,), (1, 2)))
    assert from_tables(DATA, points(ann=37.0), ENCODING, joined, target="good").counterfactuals.found[0]


def test_models_that_cannot_judge():
    table = points(ann=55.0)
    nowhere = from_tables(DATA, table, ENCODING, lambda x: torch.full((len(x), 2), torch.nan), target="good")
    assert not nowhere.counterfactuals.found.any()
    assert set(details(nowhere, "not valid for the model").values()) == {"the model's answer is not finite"}

    def unsure_of_ann(x):
        return torch.where(x[:, :1] < 15, torch.nan, model(x))

    unsure = from_tables(DATA, table, ENCODING, unsure_of_ann)
    assert not unsure.counterfactuals.found[0]
    assert details(unsure, "not valid for the model")["ann"].endswith("for the person themselves is not finite")
    assert from_tables(DATA, table, ENCODING, unsure_of_ann, target="good").counterfactuals.found[0]
    with pytest.raises(ValueError, match="model.eval"):
        from_tables(DATA, table, ENCODING, lambda x: torch.randn(len(x), 2))
    with pytest.raises(ValueError, match="does not take rows of 6 columns"):
        from_tables(DATA, table, ENCODING, torch.nn.Linear(5, 2))
    with pytest.raises(ValueError, match=r"expected a tensor \(4, classes\)"):
        from_tables(DATA, table, ENCODING, lambda x: x[:, 0])
    with pytest.raises(TypeError, match="str"):
        from_tables(DATA, table, ENCODING, "model.pt")


def test_what_is_no_table_is_refused():
    with pytest.raises(TypeError, match="DataFrame.*list.*read_table"):
        from_tables(DATA, [[1]], ENCODING, model)
    with pytest.raises(TypeError, match="expected an Encoding, got Schema"):
        from_tables(DATA, points(), SCHEMA, model)
    with pytest.raises(ValueError, match="'age'.*more than once"):
        from_tables(DATA, pd.concat([points(), DATA[["age"]]], axis=1), ENCODING, model)
    with pytest.raises(ValueError, match="'job' has levels 'pilot'"):
        from_tables(DATA.assign(job="pilot"), points(), ENCODING, model)


def paired(**columns):
    table = DATA.add_suffix("_before").assign(income_after=[55.0, 49.0, 51.0, np.nan])
    return table.assign(**columns)


def test_one_table_with_both():
    imported = from_paired(paired(), ENCODING, model)
    answer = imported.counterfactuals
    assert answer.found.tolist() == [True, False, True, False]
    assert torch.equal(answer.origin, ENCODING.encode(DATA))
    assert torch.equal(answer.point[:, 1:], answer.origin[:, 1:])  # no column after: no change
    assert answer.point[:3, 0].tolist() == [55, 49, 51]
    assert details(imported, "no counterfactual") == {"dot": "its cells are empty"}
    assert imported.labels.tolist() == list(DATA.index)
    more = from_paired(paired(found=[False, True, True, True], score=1, risk="bad"), ENCODING, model)
    assert more.counterfactuals.found.tolist() == [False, False, True, False]
    assert details(more, "unused columns") == {None: "columns 'score' are no features of the schema"}
    prefixed = paired().rename(columns=lambda name: f"new_{name[:-6]}" if name.endswith("_after") else name[:-7])
    same = from_paired(prefixed, ENCODING, model, before="{}", after="new_{}")
    assert torch.equal(same.counterfactuals.point, answer.point)
    again = from_paired(paired().set_axis(["a", "a", "b", "b"]), ENCODING, model)
    assert again.labels.tolist() == ["a", "a", "b", "b"]
    assert torch.equal(again.counterfactuals.point, answer.point)


def test_pairs_whose_columns_are_not_there_are_refused():
    with pytest.raises(ValueError, match="income_vorher"):
        from_paired(paired(), ENCODING, model, before="{}_vorher")
    with pytest.raises(ValueError, match="income_new.*before="):
        from_paired(paired(), ENCODING, model, after="{}_new")
    with pytest.raises(
        ValueError, match=r"after is '_after'; write \{\} where the feature stands, such as '\{\}_after'"
    ):
        from_paired(paired(), ENCODING, model, after="_after")
    with pytest.raises(ValueError, match="before is"):
        from_paired(paired(), ENCODING, model, before="{}", after="{}")


def dice(*answers, data=DATA):
    """In the shape of DiCE's result; tests/peers/test_external_dice.py asks DiCE itself."""
    held = [
        SimpleNamespace(
            data_interface=SimpleNamespace(outcome_name="outcome"),
            test_instance_df=data.iloc[[place]].reset_index(drop=True).assign(outcome=0),
            final_cfs_df=answer,
            final_cfs_df_sparse=None if answer is None else answer.reset_index(drop=True).assign(outcome=1),
        )
        for place, answer in enumerate(answers)
    ]
    return SimpleNamespace(cf_examples_list=held)


def test_dice_may_answer_often_or_not_at_all():
    two = pd.concat([points(bob=70.0), points(bob=80.0)]).loc[["bob"]]
    result = dice(points(ann=np.float32(55.1)).loc[["ann"]], two, None, DATA.loc[["dot"]][:0])
    imported = from_dice(DATA, result, ENCODING, model)
    assert imported.labels.tolist() == ["ann", "bob", "bob", "cid", "dot"]
    assert imported.counterfactuals.found.tolist() == [True, True, True, False, False]
    assert imported.counterfactuals.point[1:3, 0].tolist() == [70, 80]
    assert details(imported, "no counterfactual").keys() == {"cid", "dot"}
    assert len(imported.problems) == 2
    nothing = from_dice(DATA, dice(None, None, None, None), ENCODING, model)
    assert repr(nothing) == "ImportedCounterfactuals(0 of 4 rows found; no counterfactual: 4)"


def test_the_answer_that_dice_shows_is_taken():
    result = dice(points(ann=55.0)[:1], data=DATA[:1])
    result.cf_examples_list[0].final_cfs_df = points(ann=99.0)[:1]
    assert from_dice(DATA[:1], result, ENCODING, model).counterfactuals.point[0, 0] == 55
    result.cf_examples_list[0].final_cfs_df_sparse = None
    assert from_dice(DATA[:1], result, ENCODING, model).counterfactuals.point[0, 0] == 99


def test_dices_single_precision_is_no_change():
    data = DATA.assign(income=[1e6 + 1 / 3, 1e6 + 2 / 3, 1e6 + 0.1, 1e6 + 0.7])  # a spread far below the numbers
    encoding = Encoding.fit(data, SCHEMA.revise("income", upper=None, lower=None))
    copies = data.assign(income=data["income"].astype(np.float32).astype(float), job="baker")
    assert not torch.equal(encoding.encode(copies)[:, 0], encoding.encode(data)[:, 0])
    result = dice(*(copies.iloc[[place]] for place in range(4)), data=data)
    answer = from_dice(data, result, encoding, linear(torch.ones(encoding.width), 0.0)).counterfactuals
    assert torch.equal(answer.origin, encoding.encode(data))
    assert torch.equal(answer.point, encoding.encode(data.assign(job="baker")))


def test_what_is_not_dices_answer_is_refused():
    with pytest.raises(TypeError, match="generate_counterfactuals.*DataFrame"):
        from_dice(DATA, DATA, ENCODING, model)
    with pytest.raises(ValueError, match="1 rows.*4"):
        from_dice(DATA, dice(None), ENCODING, model)
    with pytest.raises(ValueError, match="'bob'.*loan.*20.*30"):
        shuffled = DATA.assign(income=DATA["income"].iloc[0] + np.arange(4) / 1000)
        from_dice(shuffled, dice(*[None] * 4, data=shuffled.iloc[[0, 2, 1, 3]]), ENCODING, model)
    with pytest.raises(ValueError, match="'age'"):
        from_dice(DATA[:1], dice(points().drop(columns="age")[:1], data=DATA[:1]), ENCODING, model)
    with pytest.raises(ValueError, match="result.json.*read_text"):
        from_dice(DATA, "result.json", ENCODING, model)
    with pytest.raises(ValueError, match="'feature_names_including_target'.*'metadata'"):
        from_dice(DATA, '{"metadata": 1}', ENCODING, model)
    with pytest.raises(ValueError, match="DiCE.*list"):
        from_dice(DATA, "[]", ENCODING, model)


def alibi(row):
    return SimpleNamespace(cf=None if row is None else {"X": np.array([row], dtype=np.float32)})


def test_alibi_answers_in_encoded_rows():
    x = ENCODING.encode(DATA)
    far = [55.5, 12.5, 30, 0.25, 0.75, 0]
    broken = [np.nan, 20, 40, 0, 1, 0]
    explanations = [alibi(far), alibi(None), None, alibi(broken)]
    imported = from_alibi(DATA, explanations, ENCODING, model)
    assert imported.counterfactuals.found.tolist() == [True, False, False, False]
    assert imported.counterfactuals.point[0].tolist() == far  # a soft level stays soft
    assert torch.equal(imported.counterfactuals.point[1:], x[1:])
    assert details(imported, "no counterfactual").keys() == {"bob", "cid"}
    assert details(imported, "cannot be read") == {"dot": "'income' is not a finite number"}
    for rows in (x, x.numpy(), x.double().numpy()):
        same = from_alibi(rows, explanations, ENCODING, model)
        assert torch.equal(same.counterfactuals.point, imported.counterfactuals.point)
        assert same.labels.tolist() == [0, 1, 2, 3]
    strict = from_alibi(DATA, explanations, ENCODING, model, space=ENCODING.space)
    assert not strict.counterfactuals.found.any()
    assert details(strict, "violates the constraints").keys() == {"ann"}
    text = json.dumps({"meta": {}, "data": {"cf": {"X": [far]}}})
    assert from_alibi(DATA[:1], text, ENCODING, model).counterfactuals.point[0].tolist() == far
    assert from_alibi(DATA[:1], alibi(far), ENCODING, model).counterfactuals.found.all()


def test_what_is_not_alibis_answer_is_refused():
    with pytest.raises(TypeError, match="dict.*'cf'"):
        from_alibi(DATA[:1], [{}], ENCODING, model)
    with pytest.raises(ValueError, match="3 explanations.*4 rows"):
        from_alibi(DATA, [None] * 3, ENCODING, model)
    with pytest.raises(ValueError, match=r"shape \(1, 4\), expected \(1, 6\) .* ohe=True"):
        from_alibi(DATA[:1], [alibi([1, 2, 3, 4])], ENCODING, model)
    with pytest.raises(ValueError, match=r"6 columns.*\(2, 5\)"):
        from_alibi(torch.zeros(2, 5), [None] * 2, ENCODING, model)
    with pytest.raises(ValueError, match="'cf'"):
        from_alibi(DATA[:1], "{}", ENCODING, model)


def test_reading_a_table(tmp_path):
    file = tmp_path / "table.csv"
    table = pd.DataFrame({"id": ["a", "b"], "x": [0.1 + 0.2, 1e-300], "level": ["NA", "none"], "n": [1, 2]})
    table.to_csv(file, index=False)
    pd.testing.assert_frame_equal(read_table(file), table)
    assert read_table(str(file), index="id").index.tolist() == ["a", "b"]
    table.set_index("id").rename_axis(None).to_csv(file)
    assert read_table(file).index.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="'name'.*'x', 'level', 'n'"):
        read_table(file, index="name")
    file.write_text("x,y\n1,\n")
    assert read_table(file)["y"].isna().all()


@pytest.mark.parametrize(
    ("name", "content", "error", "says"),
    [
        ("gone.csv", None, FileNotFoundError, "there is no file"),
        ("empty.csv", b"", ValueError, "is empty; it needs a first line"),
        ("ragged.csv", b"a,b\n1,2,3\n4,5,6,7\n", ValueError, "line 3 has 4 cells, but the lines before it have 3"),
        ("latin.csv", b"a\n\xff\n", ValueError, "byte 0xff in line 2 is no character"),
        ("german.csv", b"a;b\n1;2\n", ValueError, "separated by semicolons; CSV here has commas"),
        ("table.xlsx", b"", ValueError, "end in '.xlsx' are not read; use .csv or .parquet"),
        ("table", b"", ValueError, "end in 'nothing' are not read"),
    ],
)
def test_files_that_cannot_be_read(name, content, error, says, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=re.escape(says)):
        read_table(tmp_path / name)


def test_parquet_is_read_or_what_it_needs_is_named(tmp_path):
    file = tmp_path / "table.parquet"
    file.write_bytes(b"no parquet")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="pyarrow"):
            read_table(file)
    else:
        with pytest.raises(ValueError, match="Parquet"):
            read_table(file)
        DATA.to_parquet(file)
        pd.testing.assert_frame_equal(read_table(file), DATA)


def test_schemas_without_whole_numbers_are_read_too():
    schema = EVERYTHING.revise("age", "debt", kind="real")
    table = everything()
    encoding = Encoding.fit(table, schema)
    imported = from_tables(table, table, encoding, linear(torch.ones(encoding.width), 0.0))
    assert torch.equal(imported.counterfactuals.point, encoding.encode(table))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "is not JSON text"),
        ("1" * 5000, "is not JSON text"),
        ('{"feature_names_including_target": 3, "test_data": 3, "cfs_list": 3, "data_interface": 3}', "not what DiCE"),
        (
            '{"feature_names_including_target": ["a"], "test_data": [[[1, 2]]], "cfs_list": [null], '
            '"data_interface": {"outcome_name": "y"}}',
            "tables do not fit its names",
        ),
        (
            '{"feature_names_including_target": ["a"], "test_data": [[[1]]], "cfs_list": [], '
            '"data_interface": {"outcome_name": "y"}}',
            "tables do not fit its names",
        ),
    ],
)
def test_json_that_dice_did_not_write_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        from_dice(DATA, text, ENCODING, model)


@pytest.mark.parametrize(
    ("cf", "says"),
    [
        ('{"data": [1]}', "it has no data with a 'cf'"),
        ('{"data": {"cf": 3}}', "should hold rows of numbers as 'X', got 3"),
        ('{"data": {"cf": {"Y": 3}}}', "should hold rows of numbers as 'X'"),
        ('{"data": {"cf": {"X": [[1], [1, 2]]}}}', "should hold rows of numbers as 'X'"),
        ('{"data": {"cf": {"X": "much"}}}', "should hold rows of numbers as 'X'"),
    ],
)
def test_json_that_alibi_did_not_write_is_refused(cf, says):
    with pytest.raises(ValueError, match=says):
        from_alibi(DATA[:1], cf, ENCODING, model)


def test_an_infinite_number_of_alibi_costs_one_row():
    text = json.dumps({"data": {"cf": {"X": [[1e300, 10, 30, 1, 0, 0]]}}})
    assert details(from_alibi(DATA[:1], text, ENCODING, model), "cannot be read") == {
        "ann": "'income' is not a finite number"
    }


def test_labels_that_a_spreadsheet_would_compute_stay_labels(tmp_path):
    """In rows.csv and problems.csv, which people open; read back, they are the labels again."""
    odd = {"ann": "=1+1", "bob": "+x", "cid": "-y", "dot": "@z"}
    imported = from_tables(DATA.rename(index=odd), points(ann=55.0).rename(index=odd), ENCODING, model)
    networks = Family.from_models([linear(torch.ones(ENCODING.width), -50.0)])
    FileAudit(imported, audit(imported.counterfactuals, networks)).save(tmp_path)
    lines = (tmp_path / "rows.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0] for line in lines] == ["'=1+1", "'+x", "'-y", "'@z"]
    assert read_table(tmp_path / "rows.csv", index="row").index.tolist() == list(odd.values())
    assert read_table(tmp_path / "problems.csv")["row"].tolist() == imported.problems["row"].tolist()


def test_a_person_with_too_large_a_number_is_named():
    table = DATA.assign(income=[1e300, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="'income', row 'ann'.*float32"):
        from_tables(table, points(), ENCODING, model)
