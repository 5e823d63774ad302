"""`holdfast letter`: from the folder that `holdfast explain` wrote to the same letters as `hf.letter` writes."""

from __future__ import annotations

import json
import shutil
import unicodedata

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from commands import invoke
from holdfast.cli.letter import _file_names
from holdfast.reporting.letters.cases import AdviceFolder
from holdfast.reporting.letters.letter import letter_about
from loans import applicants, model, schema, train_rows, write_files

BANK = """
bank = "Example Bank"
decision = "We declined your application."
good_until = 2099-02-01
date = 2026-11-16
contact = "Credit desk"
authority = "Data Protection Authority"
applicant = "Alex Example"

[person.8300]
applicant = "Somebody Else"
reasons = ["Low income"]
"""


def worded() -> hf.Schema:
    phrase = {"en": "save {then} instead of {now}", "de": {"name": "Erspartes", "change": "{then} statt {now} sparen"}}
    return schema().revise("savings", phrase=phrase).revise("housing", phrase={"de": {"levels": {"own": "Eigentum"}}})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of advice, and the advice."""
    folder = tmp_path_factory.mktemp("letters")
    write_files(folder, people=12)
    worded().save(folder / "schema.toml")
    given = (
        "--data", "train.csv", "--people", "people.csv", "--schema", "schema.toml", "--model", "model.skops",
        "--want", "yes", "--retrain", "bootstrap:12", "--hold", 0.75, "--plans", 2, "--out", "advice",
    )  # fmt: skip
    done = invoke("explain", *given, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "bank.toml").write_text(BANK)
    return folder


@pytest.fixture(scope="module")
def status(made) -> dict[str, str]:
    table = pd.read_csv(made / "advice" / "advice.csv")
    known = {str(row.id): "plan" if row.found else "none" for row in table.itertuples()}
    already = table["why_not"].str.contains("already", na=False)
    return known | {str(label): "already" for label in table.loc[already, "id"]}


def write(made, *words):
    return invoke("letter", "advice", "--schema", "schema.toml", "--fields", "bank.toml", *words, cwd=made)


def one(status, kind="plan", beside=("8300",)):
    return next(label for label, own in status.items() if own == kind and label not in beside)


def test_the_folder_says_the_same_as_the_advice(made, status):
    explainer = hf.Explainer(
        model(),
        train_rows(),
        label="approved",
        want="yes",
        schema=worded(),
        retrain=hf.changes.bootstrap(12),
        workers=1,
    )
    advice = explainer.explain(applicants(8), hold=0.75, plans=2)
    advice.save(made / "own")
    folder = AdviceFolder.read(made / "own", made / "schema.toml")
    fields = {"bank": "B", "applicant": "A", "decision": "D", "good_until": "G", "contact": "C", "authority": "X"}
    assert len(folder.with_a_plan) == (advice.status == "plan").sum()
    for label in folder.with_a_plan:
        mine = folder.case(label)
        told = advice.of(int(label))
        assert mine.plans == told.plans
        for language in ("en", "de"):
            own = hf.letter(advice, int(label), fields=fields, language=language)
            assert letter_about(mine, language=language, fields=fields) == own


def test_a_letter_is_printed_or_written(made, status, tmp_path):
    person = one(status)
    printed = write(made, "--person", person)
    assert printed.returncode == 0, printed.stderr
    assert "Alex Example" in printed.stdout
    assert "trained again" in printed.stdout
    for name in ("letter.txt", "letter.html"):
        done = write(made, "--person", person, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert str(tmp_path / name) in done.stdout.replace("\n", "")
    assert (tmp_path / "letter.txt").read_text(encoding="utf-8") == printed.stdout.rstrip("\n") + "\n"
    assert "<h1>" in (tmp_path / "letter.html").read_text(encoding="utf-8")
    german = write(made, "--person", person, "--language", "de")
    assert "16. November 2026" in german.stdout


def test_fields_of_one_person_come_before_those_of_all(made):
    text = write(made, "--person", "8300").stdout
    assert "Somebody Else" in text
    assert "- Low income" in text
    assert "Alex Example" not in text


def test_everybody_with_a_plan_gets_a_file(made, status, tmp_path):
    done = write(made, "--all", "--out", tmp_path / "letters", "--json")
    assert done.returncode == 0, done.stderr
    people = [label for label, own in status.items() if own == "plan"]
    names = {f"letter-{label}.html" for label in people}
    assert {path.name for path in (tmp_path / "letters").iterdir()} == names
    said = json.loads(done.stdout)
    assert said["letters"] == len(people)
    assert set(said["people"]) == set(people)
    assert len(said["files"]) == len(people)
    two = write(made, "--person", people[0], "--person", people[1], "--out", tmp_path / "two", "--quiet")
    assert (two.returncode, two.stdout) == (0, "")
    assert len(list((tmp_path / "two").iterdir())) == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--person", "nobody"), "nobody in advice is labelled 'nobody'"),
        ((), "nobody is named; name people (--person LABEL)"),
        (("--person", "8300", "--all"), "both --person and --all were given"),
        (("--all",), "--all writes many letters; name a folder for them: --out FOLDER"),
        (("--person", "8300", "--template", "uk"), "uk is no template"),
        (("--person", "8300", "--language", "fr"), "has no language 'fr'"),
        (("--person", "8300", "--fields", "none.toml"), "there is no file none.toml of fields"),
        (("--person", "8300", "--schema", "none.toml"), "there is no file none.toml"),
        (("--person", "8300", "--out", "letter.pdf"), "a letter is written as .html or .txt"),
        (("--person", "8300", "--template", "us"), "the template 'us': unknown name 'contact'"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_told(words, says, made):
    before = sorted(path.name for path in made.iterdir())
    done = write(made, *words)
    assert done.returncode == 1
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in made.iterdir()) == before


def test_a_missing_field_names_the_person_and_what_to_write(made, status, tmp_path):
    (tmp_path / "bank.toml").write_text(BANK.replace('contact = "Credit desk"', "contact = 3"))
    person = one(status)
    done = write(made, "--person", person, "--fields", tmp_path / "bank.toml")
    assert done.returncode == 1
    assert f"the letter to {person}: field 'contact' is 3" in " ".join(done.stderr.split())
    done = invoke("letter", "advice", "--schema", "schema.toml", "--person", person, cwd=made)
    assert f"the letter to {person}: the template 'eu' needs the field 'bank'" in " ".join(done.stderr.split())


def test_who_has_the_class_gets_no_letter(made, status):
    done = write(made, "--person", one(status, "already"))
    assert done.returncode == 1
    assert "has the class that was wanted already" in " ".join(done.stderr.split())


def test_a_folder_that_was_changed_or_lacks_something_is_refused(made, tmp_path):
    for name, says in (
        ("people.jsonl", "is not the file that"),
        ("summary.json", "not a valid"),
    ):
        folder = tmp_path / name
        shutil.copytree(made / "advice", folder)
        (folder / name).write_text((folder / name).read_text().replace("7", "8"))
        done = invoke("letter", folder, "--schema", made / "schema.toml", "--person", "8300", cwd=made)
        assert done.returncode == 1
        assert says in " ".join(done.stderr.split())
    done = invoke("letter", tmp_path, "--person", "8300", cwd=made)
    assert "there is no summary.json" in " ".join(done.stderr.split())


def test_the_schema_of_the_folder_is_taken_where_none_is_named(made, tmp_path):
    words = ("--fields", "bank.toml", "--person", "8300")
    own, named = (invoke("letter", "advice", *words, *more, cwd=made) for more in ((), ("--schema", "schema.toml")))
    assert (own.returncode, own.stderr) == (0, "")
    assert own.stdout == named.stdout
    folder = shutil.copytree(made / "advice", tmp_path / "advice")
    (folder / "schema.toml").write_text((made / "schema.toml").read_text().replace("save", "keep"))
    edited = invoke("letter", folder, *words, cwd=made)
    assert edited.returncode == 1
    assert "or name a schema with other phrases: --schema FILE" in " ".join(edited.stderr.split())
    done = invoke("letter", folder, *words, "--schema", folder / "schema.toml", cwd=made)
    assert done.stdout == own.stdout.replace("Save ", "Keep ")
    (folder / "schema.toml").unlink()
    assert "(missing, or changed later)" in " ".join(invoke("letter", folder, *words, cwd=made).stderr.split())


def test_people_whose_plans_do_not_hold_are_told_of_none(made, tmp_path):
    given = (
        "--data", "train.csv", "--people", "people.csv", "--schema", "schema.toml", "--model", "model.skops", "--want",
        "yes", "--retrain", "bootstrap:12", "--hold", 1.0, "--method", "min-l1", "--out", tmp_path / "weak",
    )  # fmt: skip
    assert invoke("explain", *given, cwd=made).returncode == 0
    weak = pd.read_csv(tmp_path / "weak" / "not_durable.csv")
    assert len(weak)
    words = ("--schema", "schema.toml", "--fields", "bank.toml", "--person", weak["id"].iloc[0])
    done = invoke("letter", tmp_path / "weak", *words, cwd=made)
    assert done.returncode == 0, done.stderr
    assert "So we cannot tell you to make any change" in " ".join(done.stdout.split())
    assert "save " not in done.stdout


def test_labels_that_are_no_names_of_files_are_made_some():
    names = _file_names(["../a b", "..?a?b", "8"])
    assert len(set(names.values())) == 3
    assert all("/" not in name for name in names.values())


@pytest.mark.parametrize(
    "people",
    [
        ["x_y-3", "x y", "x_y"],
        ["x y", "x_y-2", "x_y"],
        ["Anna", "ANNA", "anna-2", "anna"],
        ["\u00e9", "e\u0301"],
        ["\u9280" * 80 + "a", "\u9280" * 80 + "b"],
    ],
)
def test_no_two_people_have_one_file(people, tmp_path):
    names = _file_names(people)
    assert list(names) == people
    assert len({as_one_file(name) for name in names.values()}) == len(people)
    for name in names.values():
        (tmp_path / name).write_text("")  # not too long for the disk
    assert len(list(tmp_path.iterdir())) == len(people)


def test_a_label_that_is_a_name_keeps_it_whoever_else_gets_a_letter():
    assert _file_names(["x y", "x_y"])["x_y"] == _file_names(["x_y"])["x_y"] == "letter-x_y.html"


@given(st.lists(st.text(max_size=300) | st.text("aAxX _-.23", max_size=4), unique=True, max_size=30))
@settings(deadline=None)
def test_names_of_files_are_different_and_short_whatever_the_labels(people):
    names = _file_names(people)
    assert list(names) == people
    assert len({as_one_file(name) for name in names.values()}) == len(people)
    assert all(len(name.encode()) <= 255 for name in names.values())


def as_one_file(name: str) -> str:
    """What a disk takes names for that minds neither case nor how a character is put together."""
    return unicodedata.normalize("NFC", name.casefold())
