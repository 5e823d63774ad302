import logging

import numpy as np
import pandas as pd
import pytest
from conftest import everything

from holdfast import Determines, Encoding, Feature, Schema, inspect

EDUCATION = {"none": 1, "school": 5, "college": 9, "master": 13}


def census(rows=3000, seed=0):
    """A table as a statistical office makes them, with every trap that such a table has."""
    draw = np.random.default_rng(seed)
    education = draw.choice(list(EDUCATION), rows, p=[0.1, 0.5, 0.3, 0.1])
    married = draw.random(rows) < 0.5
    man = draw.random(rows) < 0.6
    gain = np.where(draw.random(rows) < 0.15, draw.lognormal(8.3, 0.6, rows).round().clip(100, 40_000), 0)
    gain = np.where(draw.random(rows) < 0.02, 99_999, gain)
    loss = np.where((draw.random(rows) < 0.1) & (gain == 0), draw.integers(200, 4000, rows), 0)
    score = np.array([EDUCATION[level] for level in education]) + (gain > 0) * 5 + draw.normal(0, 4, rows)
    rich = score > 9
    return pd.DataFrame(
        {
            "person_id": draw.permutation(rows) * 7 + 1000,
            "age": draw.integers(17, 91, rows),
            "work": draw.choice(["private", "state", "?"], rows, p=[0.7, 0.2, 0.1]),
            "fnlwgt": draw.integers(20_000, 900_000, rows),
            "education": education,
            "education_num": [EDUCATION[level] for level in education],
            "marital": np.where(married, "married", draw.choice(["single", "widowed"], rows)),
            "relation": np.where(married, np.where(man, "husband", "wife"), draw.choice(["own", "child"], rows)),
            "sex": np.where(man, "man", "woman"),
            "gain": gain.astype(int),
            "loss": loss,
            "hours": np.where(draw.random(rows) < 0.5, 40, draw.integers(1, 99, rows)),
            "region_code": draw.integers(1, 6, rows),
            "country": "here",
            "seen": pd.date_range("2020-01-01", periods=rows, freq="h").strftime("%Y-%m-%d"),
            "tax": np.where(draw.random(rows) < 0.3, np.nan, draw.normal(20, 5, rows).round(1)),
            "tax_class": np.where(rich, "high", "low"),
            "income": np.where(rich, "rich", "poor"),
        }
    )


@pytest.fixture(scope="module")
def seen():
    return inspect(census(), "income")


def kinds(inspection, name):
    return {finding.kind for finding in inspection.about(name)}


def sentence(inspection, name, kind):
    (found,) = (finding for finding in inspection.about(name) if finding.kind == kind)
    return found.sentence


def test_an_inferred_schema_is_that_of_the_inspection(seen):
    assert Schema.infer(census(), "income") == seen.schema
    encoding = Encoding.fit(census(), seen.schema)
    assert encoding.encode(census()).isfinite().all()


def test_what_names_a_row_or_a_day_is_no_feature(seen):
    assert not {"person_id", "seen"} & set(seen.schema.names)
    assert "3,000 different values in 3,000 rows" in sentence(seen, "person_id", "key")
    assert "2020-01-01" in sentence(seen, "seen", "date")


def test_what_gives_the_label_away_stays(seen):
    assert [feature.name for feature in seen.schema.features if not feature.mutable] == ["tax_class"]
    assert [finding.columns for finding in seen.fixed] == [("tax_class",)]
    assert "alone gives the label in 100.0% of the rows" in sentence(seen, "tax_class", "leak")


def test_unknown_is_no_level_to_move_to_and_missing_may_stay(seen):
    assert seen.schema["work"].avoid == ("?",)
    assert "no one is advised to move there" in sentence(seen, "work", "unknown")
    assert seen.schema["tax"].missing
    assert "is missing in 9" in sentence(seen, "tax", "missing")  # some 900 rows
    assert not any(feature.missing for feature in seen.schema.features if feature.name != "tax")


def test_numbers_lie_where_people_are(seen):
    gain = census()["gain"]
    top = int(gain[gain < 99_999].max())
    assert seen.schema["gain"].ranges[-1] == (99_999, 99_999)
    assert seen.schema["gain"].ranges[0][0] == 0
    assert seen.schema["gain"].ranges[0][1] <= top
    assert "'gain' has 99999 far from all other numbers" in sentence(seen, "gain", "code")
    assert f"say upper = {seen.schema['gain'].ranges[0][1]} and" in sentence(seen, "gain", "code")
    assert [finding.columns for finding in seen.asked] == [("gain",), ("region_code",)]
    assert (seen.schema["age"].lower, seen.schema["age"].upper, seen.schema["age"].ranges) == (17, 90, ())


def test_columns_that_determine_one_another_are_related(seen):
    assert seen.schema.relations == (Determines(("education",), "education_num"),)
    assert "and the other way round" in sentence(seen, "education_num", "determines")


def test_whole_numbers_that_may_be_codes_are_told_of(seen):
    assert "code" in kinds(seen, "region_code")
    assert seen.schema["region_code"].kind == "integer"
    assert seen.schema["region_code"].mutable


def test_the_file_has_the_findings_as_comments(seen, tmp_path):
    text = seen.to_toml()
    (tmp_path / "schema.toml").write_text(text, encoding="utf-8")
    assert Schema.load(tmp_path / "schema.toml") == seen.schema
    before, _ = text.split('[[features]]\nname = "gain"\n')
    assert "far from all other numbers" in before.rsplit("\n\n", 1)[1].replace("\n# ", " ")
    assert "'person_id' is left out" in text.split("\nlabel = ")[0]
    assert max(map(len, text.splitlines())) <= 200
    joined = text.replace("\n# ", " ")
    assert all(" ".join(finding.sentence.split()) in joined for finding in seen.findings)


def test_names_that_would_break_a_file_do_not(tmp_path):
    draw = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            'a\n"b" = 3': draw.choice(["x\ny", "# z", "unknown\n[[features]]"], 300),
            "a.b": draw.choice(["x", "\x1b[31m'"], 300),
            "[c]": draw.integers(0, 9, 300),
            "y": draw.choice(["n\no", "yes"], 300),
        }
    )
    table["[c]"] = np.where(draw.random(300) < 0.3, 99_999, table["[c]"])
    found = inspect(table.assign(**{"t\n": "same\nvalue"}), "y")
    (tmp_path / "schema.toml").write_text(found.to_toml(), encoding="utf-8")
    assert Schema.load(tmp_path / "schema.toml") == found.schema


# ---- one trap at a time ----


def with_columns(rows=200, **columns):
    return everything(rows).assign(**columns)


def found_in(name, rows=200, **columns):
    return kinds(inspect(with_columns(rows, **columns), "outcome"), name)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", lambda draw: np.arange(200) + 17),
        ("Unnamed: 0", lambda draw: draw.permutation(200)),
        ("LoanID", lambda draw: draw.permutation(10**6)[:200]),
        ("account_no", lambda draw: draw.permutation(10**6)[:200]),
        ("name", lambda draw: [f"p{number}" for number in range(200)]),
        ("customer_id", lambda draw: draw.integers(0, 10**6, 200)),
    ],
)
def test_keys_are_left_out(name, values, caplog):
    table = with_columns(**{name: values(np.random.default_rng(0))})
    with caplog.at_level(logging.WARNING):
        found = inspect(table, "outcome")
    assert name not in found.schema.names
    assert kinds(found, name) == {"key"}
    assert f"'{name}' is left out" in caplog.text


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("amount_paid", lambda draw: draw.permutation(10**6)[:200]),
        ("children_no", lambda draw: draw.integers(0, 5, 200)),
        ("wealth", lambda draw: draw.normal(0, 1, 200)),
        ("weight", lambda draw: draw.normal(70, 10, 200).round(1)),
        ("weight_kg", lambda draw: draw.normal(70, 10, 200)),
        ("cpu_type_count", lambda draw: draw.permutation(10**6)[:200]),
    ],
)
def test_what_only_looks_like_a_key_is_a_feature(name, values):
    found = inspect(with_columns(**{name: values(np.random.default_rng(0))}), "outcome")
    assert found.schema[name].mutable
    assert not kinds(found, name)


@pytest.mark.parametrize(
    "values",
    [
        pd.date_range("2020-01-01", periods=200),
        pd.date_range("2020-01-01", periods=200, tz="UTC"),
        pd.to_timedelta(np.arange(200), unit="D"),
        pd.date_range("2020-01-01", periods=200).strftime("%Y-%m-%d"),
        pd.date_range("2020-01-01", periods=200).strftime("%Y-%m-%dT%H:%M:%S"),
        pd.date_range("2020-01-01", periods=200).date,
    ],
)
def test_times_are_left_out(values, caplog):
    found = inspect(with_columns(when=values), "outcome")
    assert "when" not in found.schema.names
    assert kinds(found, "when") == {"date"}
    assert "'when' holds times" in caplog.text


def test_a_leak_may_be_a_number_and_an_honest_predictor_is_none():
    draw = np.random.default_rng(0)
    outcome = everything(400)["outcome"] == "yes"
    recovered = np.where(outcome, 0, draw.integers(1, 10**6, 400))
    assert "leak" in found_in("recovered", 400, recovered=recovered)
    score = outcome + draw.normal(0, 0.4, 400)
    assert "leak" not in found_in("score", 400, score=score)
    assert "leak" not in found_in("unique", 400, unique=draw.permutation(10**6)[:400])
    rare = pd.DataFrame({"x": draw.normal(size=400), "y": np.arange(400) < 3})
    assert not kinds(inspect(rare, "y"), "x")


def test_missing_values_are_read_past():
    table = with_columns().astype({"owner": object})
    for name in ("income", "age", "owner", "job"):
        table.loc[np.random.default_rng(0).random(200) < 0.1, name] = None
    table["grade"] = pd.Categorical(table["grade"], ["low", "middle", "high"], ordered=True)
    table.loc[3, "grade"] = None
    table["nothing"] = None
    found = inspect(table, "outcome")
    inferred = {feature.name: (feature.kind, feature.missing) for feature in found.schema.features}
    assert inferred == {
        "income": ("real", True), "age": ("integer", True), "debt": ("integer", False), "owner": ("categorical", True),
        "grade": ("ordinal", True), "job": ("categorical", True), "delay": ("integer", False),
    }  # fmt: skip
    assert kinds(found, "nothing") == {"empty"}
    assert found.schema["owner"].levels == (False, True)
    back = Encoding.fit(table, found.schema)
    assert (back.decode(back.encode(table)).isna() == table[list(found.schema.names)].isna()).all(axis=None)


def test_one_of_two_levels_may_be_unknown():
    found = inspect(with_columns(home=["?", "owned"] * 100), "outcome").schema["home"]
    assert found == Feature("home", "categorical", levels=("?", "owned"), avoid=("?",))
    words = ["unknown or none", "N/A", "Undocumented 4", " missing ", "none", "other", "missing a leg", "nan", "owned"]
    levels = np.random.default_rng(0).choice(words, 200)
    assert set(inspect(with_columns(home=levels), "outcome").schema["home"].avoid) == set(words[:4])


def test_a_coarser_column_follows_from_a_finer_one_and_from_the_nearest():
    draw = np.random.default_rng(0)
    town = draw.choice(list("abcdefgh"), 800)
    county = np.array([{"a": "A", "b": "A", "c": "B", "d": "B"}.get(one, "C") for one in town])
    land = np.where(county == "C", "south", "north")
    table = pd.DataFrame({"land": land, "town": town, "county": county, "y": draw.integers(0, 2, 800)})
    assert set(inspect(table, "y").schema.relations) == {
        Determines(("town",), "county"), Determines(("county",), "land"),
    }  # fmt: skip
    renamed = table.assign(code=[ord(one) for one in town], again=[one.upper() * 2 for one in town])
    related = inspect(renamed, "y").schema.relations
    assert {relation.columns for relation in related} == {
        ("town", "county"), ("county", "land"), ("town", "code"), ("town", "again"),
    }  # fmt: skip
    rare = table.copy()
    rare.loc[:2, ["town", "county"]] = ["z", "A"]  # one town with too few rows to say so by itself
    found = inspect(rare, "y")
    assert Determines(("town",), "county") in found.schema.relations
    told = [finding.sentence for finding in found.findings if finding.columns == ("town", "county")]
    assert "each of its 9 values goes with one value, 1 of them in fewer than 5 rows" in told[0]
    for number in range(4):  # many of them
        rare.loc[2 * number : 2 * number + 1, ["town", "county"]] = [f"z{number}", "A"]
    assert ("town", "county") not in {relation.columns for relation in inspect(rare, "y").schema.relations}
    broken = table.copy()
    broken.loc[0, "county"] = "B" if table.loc[0, "county"] == "A" else "A"
    assert ("town", "county") not in {relation.columns for relation in inspect(broken, "y").schema.relations}


# ---- what chance shows is not found ----


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_found_where_nothing_is(seed):
    draw = np.random.default_rng(seed)
    rows = int(draw.choice([30, 60, 200, 1000]))
    table = pd.DataFrame(
        {f"level{n}": draw.choice(list("abcdef")[: n + 2], rows, p=draw.dirichlet(np.ones(n + 2))) for n in range(5)}
        | {f"count{n}": draw.poisson(0.5 + n, rows) for n in range(4)}
        | {f"real{n}": draw.lognormal(8, 1, rows) for n in range(3)}
        | {"y": draw.choice(["no", "yes"], rows)}
    )
    found = inspect(table, "y")
    assert found.schema.relations == ()
    assert found.findings == ()
    assert found.schema.names == tuple(table.columns[:-1])


def test_four_rows_show_nothing_but_what_is_called_id():
    table = pd.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "name": ["a", "b", "c", "d"],
            "flag": [0, 0, 1, 1],
            "gain": [0, 0, 5, 7],
            "loss": [1, 2, 0, 0],
            "same": [3, 3, 3, 3],
            "y": [0, 0, 1, 1],
        }
    )
    found = inspect(table, "y")
    assert [(finding.columns, finding.kind) for finding in found.findings] == [(("id",), "key")]
    assert found.schema == Schema(
        (
            Feature("name", "categorical", levels=("a", "b", "c", "d")),
            Feature("flag", "binary", levels=(0, 1)),
            Feature("gain", "integer"),
            Feature("loss", "integer"),
            Feature("same", "integer"),
        ),
        "y",
        (0, 1),
    )


def test_bounds_are_written_where_there_are_rows_enough():
    assert inspect(everything(49), "outcome").schema["age"].lower is None
    schema = inspect(everything(50), "outcome").schema
    assert (schema["age"].lower, schema["age"].upper) == (everything(50)["age"].min(), everything(50)["age"].max())
    assert isinstance(schema["age"].lower, int)
    wider = schema.revise("age", upper=120)
    assert Encoding.fit(everything(50), wider).upper[1] == 120


def test_an_inspection_prints_what_it_found():
    text = str(inspect(with_columns(nothing=None), "outcome"))
    assert text.startswith("label outcome: no, yes\n  income (real)")
    assert "\n- 'nothing' is left out" in text


def test_negative_codes_are_asked_about_also_where_there_are_several():
    draw = np.random.default_rng(0)
    inquiries = np.where(draw.random(600) < 0.1, draw.choice([-9, -8], 600), draw.integers(0, 12, 600))
    seen = inspect(pd.DataFrame({"inquiries": inquiries, "class": draw.choice(["bad", "good"], 600)}), "class")
    (asked,) = seen.asked
    assert "has -9 to -8 far from all other numbers" in asked.sentence
    assert "say lower = 0" in asked.sentence
