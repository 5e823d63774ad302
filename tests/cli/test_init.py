"""`holdfast init`: a schema's file that loads, and a summary that says what to do next."""

from __future__ import annotations

import json
import os
import shlex

import numpy as np
import pandas as pd
import pytest

from commands import invoke
from holdfast import Schema, inspect, read_table

ROWS = 300


def people(**more):
    draw = np.random.default_rng(0)
    approved = draw.choice(["no", "yes"], ROWS)
    return pd.DataFrame(
        {
            "customer_id": draw.permutation(10**6)[:ROWS],
            "age": draw.integers(18, 80, ROWS),
            "sex": draw.choice(["man", "woman"], ROWS),
            "income": draw.normal(3000, 500, ROWS).round(2),
            "region_code": draw.integers(1, 6, ROWS),
            "told": np.where(approved == "yes", "welcome", "sorry"),
            "opened": pd.date_range("2020-01-01", periods=ROWS).strftime("%Y-%m-%d"),
            "approved": approved,
            **more,
        }
    )


@pytest.fixture
def folder(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


def failed(*words, cwd):
    before = {path: path.read_bytes() for path in cwd.rglob("*") if path.is_file()}
    done = invoke("init", *words, cwd=cwd)
    assert done.returncode == 1
    assert done.stdout == ""
    assert {path: path.read_bytes() for path in cwd.rglob("*") if path.is_file()} == before, "something was written"
    return " ".join(done.stderr.split())


def test_the_file_is_the_schema_of_the_table_with_comments(folder):
    done = invoke("init", "people.csv", "--label", "approved", cwd=folder)
    assert done.returncode == 0
    assert done.stderr == ""
    seen = inspect(read_table(folder / "people.csv"), "approved")
    assert Schema.load(folder / "schema.toml") == seen.schema
    text = (folder / "schema.toml").read_text(encoding="utf-8")
    head = text.split("\nlabel = ")[0]
    for setting in ("mutable", "direction", "lower", "upper", "step", "levels", "[[relations]]", "age, sex"):
        assert setting in head
    assert "'customer_id' is left out" in head


def test_the_summary_says_what_there_is_what_was_left_out_and_what_comes_next(folder):
    done = invoke("init", "people.csv", "--label", "approved", cwd=folder)
    counts = people()["approved"].value_counts()
    assert "people.csv: 300 rows, 8 columns" in done.stdout
    assert f"label 'approved': 'no' ({counts['no']} rows), 'yes' ({counts['yes']} rows)" in done.stdout
    assert "5 features, of which 1 start as not changeable" in done.stdout
    left, fixed = done.stdout.split("Not changeable:")
    assert "'customer_id' is left out" in left
    assert "'opened' holds times" in left
    fixed, asked = fixed.split("For you to decide:")
    assert "'told' alone gives the label" in fixed
    assert "'region_code' has 5 different whole numbers" in asked
    assert "Wrote schema.toml. Look it over" in asked
    words = shlex.split(done.stdout.splitlines()[-1])
    assert words[:6] == ["holdfast", "explain", "--data", "people.csv", "--schema", "schema.toml"]
    assert words[words.index("--want") + 1] == "yes"


def test_the_summary_as_json(folder):
    done = invoke("init", "people.csv", "--label", "approved", "--json", cwd=folder)
    found = json.loads(done.stdout)
    assert (found["rows"], found["columns"], found["label"]) == (300, 8, "approved")
    assert [one["class"] for one in found["classes"]] == ["no", "yes"]
    assert sum(one["rows"] for one in found["classes"]) == 300
    assert found["features"] == ["age", "sex", "income", "region_code", "told"]
    assert [one["column"] for one in found["left_out"]] == ["customer_id", "opened"]
    assert [one["feature"] for one in found["fixed"]] == ["told"]
    assert [one["feature"] for one in found["asked"]] == ["region_code"]


def test_quiet_prints_nothing(folder):
    done = invoke("init", "people.csv", "--label", "approved", "--quiet", cwd=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert Schema.load(folder / "schema.toml").label == "approved"


def test_a_file_that_is_there_is_kept_unless_forced(folder):
    (folder / "schema.toml").write_text("mine")
    said = failed("people.csv", "--label", "approved", cwd=folder)
    assert "schema.toml is there already and was not changed; name another file with --out, or pass --force" in said
    assert invoke("init", "people.csv", "--label", "approved", "--force", cwd=folder).returncode == 0
    assert Schema.load(folder / "schema.toml").label == "approved"


def test_the_column_of_labels_is_no_feature(folder):
    people(code=np.random.default_rng(2).integers(0, 200, ROWS)).to_csv(folder / "people.csv", index=False)
    done = invoke("init", "people.csv", "--label", "approved", "--index", "code", "--out", "new/s.toml", cwd=folder)
    assert "code" not in Schema.load(folder / "new" / "s.toml").names
    assert "--index code" in done.stdout
    said = failed("people.csv", "--label", "approved", "--index", "cod", cwd=folder)
    for fact in ("people.csv: no column 'cod'", "did you mean 'code'?", "it has 'customer_id'"):
        assert fact in said


@pytest.mark.parametrize(
    ("content", "words", "says"),
    [
        ("x,y\n1,a\n2,a\n", ["--label", "y"], "label 'y': a schema needs two or more different classes, got ['a']"),
        ("x,y\n1,a\n2,b\n", ["--label", "yy"], "lacks columns ['yy'] (did you mean 'y'?); it has 'x', 'y'"),
        ("x,y\n", ["--label", "y"], "the table is empty (0 rows, 2 columns)"),
        ("", ["--label", "y"], "odd.csv is empty; it needs a first line"),
        ("y\na\nb\n", ["--label", "y"], "a schema needs at least one feature beside its label 'y'"),
        ("x;y\n1;a\n2;b\n", ["--label", "y"], "its columns are separated by semicolons"),
        ("x,y\n1,a\n2,b\n", ["--label", "y", "--out", "s.json"], "give it a name that ends in .toml"),
        ("x,y\n1,a\n2,b\n", ["--label", "y", "--out", "d.toml"], "--out d.toml is a folder; name a file in it"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(tmp_path, content, words, says):
    (tmp_path / "odd.csv").write_text(content)
    (tmp_path / "d.toml").mkdir()
    said = failed("odd.csv", *words, cwd=tmp_path)
    assert says in said
    assert "odd.csv" in said or "--out" in said


def test_the_help_names_the_command(tmp_path):
    assert " init " in invoke("--help", cwd=tmp_path).stdout


def test_a_file_that_is_not_there(tmp_path):
    assert "there is no file gone.csv" in failed("gone.csv", "--label", "y", cwd=tmp_path)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a folder that may not be written to")
def test_a_folder_that_cannot_be_written_to(folder):
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    assert "closed" in failed("people.csv", "--label", "approved", "--out", "closed/s.toml", cwd=folder)


@pytest.mark.parametrize(
    "name",
    ['a "quoted" age', "sex\nand [[features]]", "# birth", "Geschlecht 日本 é", "it's", "a\\b", "\x1b[31msex", "="],
)
def test_odd_names_load(tmp_path, name):
    draw = np.random.default_rng(3)
    table = people(**{name: draw.choice(["x\ny", "# z", '"', "'''"], ROWS)}).rename(columns={"approved": f"{name}?"})
    table.to_csv(tmp_path / "odd.csv", index=False)
    done = invoke("init", "odd.csv", "--label", f"{name}?", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["label"] == f"{name}?"
    schema = Schema.load(tmp_path / "schema.toml")
    assert schema.label == f"{name}?"
    assert set(schema[name].levels) == {"x\ny", "# z", '"', "'''"}


@pytest.mark.parametrize("classes", [[False, True], [0, 1], [0.5, 1.5], ["1", "x"]])
def test_classes_of_every_kind_are_counted(tmp_path, classes):
    people(approved=np.array(classes, dtype=object)[np.arange(ROWS) % 3 // 2]).to_csv(tmp_path / "t.csv", index=False)
    done = invoke("init", "t.csv", "--label", "approved", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)["classes"]
    assert [(one["class"], one["rows"]) for one in told] == list(zip(classes, (200, 100), strict=True))
