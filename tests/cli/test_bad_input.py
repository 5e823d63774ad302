"""Bad input to the front door: a sentence that names the thing and the way out, and nothing half-written.

What can be read without doubt is no bad input: columns in another order, more columns, a byte order mark.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

import holdfast as hf
from commands import invoke
from loans import FEATURES, applicants, estimator, train_rows, write_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("files"), people=6)


def explain(files, cwd, **other):
    words = {
        "data": files / "train.csv", "people": files / "people.csv", "schema": files / "schema.toml",
        "model": files / "model.skops", "want": "yes", "out": "advice",
    } | other  # fmt: skip
    return invoke("explain", *[part for name, value in words.items() for part in (f"--{name}", value)], cwd=cwd)


def edited(frame: pd.DataFrame, **columns) -> str:
    return frame.assign(**columns).to_csv(index=False)


def first(frame: pd.DataFrame, column: str, value) -> pd.Series:
    changed = frame[column].astype(object)
    changed.iloc[0] = value
    return changed


PEOPLE = applicants(6)
TEXTS = {  # what is wrong with people.csv: its bytes, and pieces of what must be said
    "a column is missing": (edited(PEOPLE.drop(columns="income")), ["income"]),
    "a column is called otherwise": (edited(PEOPLE.rename(columns={"income": "incme"})), ["income", "incme"]),
    "a missing value": (edited(PEOPLE, income=first(PEOPLE, "income", None)), ["income"]),
    "an unseen level": (edited(PEOPLE, housing=first(PEOPLE, "housing", "castle")), ["housing", "castle"]),
    "text in a number": (edited(PEOPLE, income=first(PEOPLE, "income", "a lot")), ["income", "a lot"]),
    "an empty file": ("", ["people.csv", "empty"]),
    "only names of columns": (edited(PEOPLE[:0]), ["no rows"]),
    "semicolons": (PEOPLE.to_csv(index=False, sep=";"), ["people.csv", "comma"]),
    "tabs": (PEOPLE.to_csv(index=False, sep="\t"), ["people.csv", "comma"]),
    "decimal commas": (PEOPLE.assign(income=1.5).to_csv(index=False, sep=";", decimal=","), ["people.csv", "comma"]),
    "a label twice": (edited(pd.concat([PEOPLE, PEOPLE[:1]])), ["8300"]),
    "two columns of one name": ("id,income,income\n1,2,3\n", ["income"]),
    "not UTF-8": (edited(PEOPLE, housing="größe").encode("latin-1"), ["people.csv", "UTF-8"]),
    "UTF-16": (edited(PEOPLE).encode("utf-16"), ["people.csv", "UTF-8"]),
    "an infinite number": (edited(PEOPLE, income=first(PEOPLE, "income", np.inf)), ["income"]),
}


@pytest.mark.parametrize("what", TEXTS)
def test_a_table_of_people_that_cannot_be_used(files, tmp_path, what):
    contents, pieces = TEXTS[what]
    raw = contents if isinstance(contents, bytes) else contents.encode()
    (tmp_path / "people.csv").write_bytes(raw)
    ran = explain(files, tmp_path, people="people.csv")
    assert ran.returncode == 1, ran.stdout
    told = " ".join(ran.stderr.split())
    assert "Traceback" not in told
    assert all(piece in told for piece in pieces), told
    assert not (tmp_path / "advice").exists()


@pytest.mark.parametrize("what", ["other order", "more columns", "a byte order mark", "one row", "the label too"])
def test_a_table_of_people_that_can_be_read_without_doubt(files, tmp_path, what):
    expected = explain(files, tmp_path, out="expected")
    assert expected.returncode == 0, expected.stderr
    odd = {
        "other order": PEOPLE[["housing", "savings", "id", "age", "income", "duration"]],
        "more columns": PEOPLE.assign(note="x"),
        "a byte order mark": PEOPLE,
        "one row": PEOPLE[:1],
        "the label too": PEOPLE.assign(approved="no"),
    }[what]
    odd.to_csv(tmp_path / "people.csv", index=False, encoding="utf-8-sig" if "mark" in what else "utf-8")
    ran = explain(files, tmp_path, people="people.csv")
    assert ran.returncode == 0, ran.stderr
    plain, found = (
        pd.read_csv(tmp_path / name / "advice.csv").drop(columns="why_not") for name in ("expected", "advice")
    )
    pd.testing.assert_frame_equal(found, plain[: len(found)])


TRAIN = train_rows()
OTHERS = {  # an option, what it names, and what must be said
    "no file": ("people", "none.csv", ["none.csv"]),
    "no dataset": ("data", "germany", ["germany", "german"]),
    "a folder": ("data", ".", ["folder"]),
    "no class": ("want", "maybe", ["maybe", "no", "yes"]),
    "no column of labels": ("index", "name", ["name", "income"]),
    "another label": ("label", "income", ["income", "approved"]),
    "no model": ("model", "none.skops", ["none.skops"]),
    "a pickle": ("model", "model.pkl", ["model.pkl"]),
    "another kind of file": ("model", "model.doc", ["model.doc"]),
    "no method": ("method", "magic", ["magic", "min-l1"]),
    "hold above 1": ("hold", "95", ["hold"]),
    "no kind of retraining": ("retrain", "magic:96", ["magic", "seeds"]),
    "no count": ("retrain", "seeds:many", ["seeds:many"]),
    "hold and no models": ("hold", "0.9", ["--retrain", "--retrained"]),
    "nobody selects": ("selection", "0", ["0", "1"]),
}


@pytest.mark.parametrize("what", OTHERS)
def test_an_option_that_cannot_be_meant(files, tmp_path, what):
    option, value, pieces = OTHERS[what]
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04.")
    (tmp_path / "model.doc").write_bytes(b"x")
    ran = explain(files, tmp_path, **{option: value})
    assert ran.returncode in (1, 2)
    told = " ".join(ran.stderr.replace("│", " ").split())
    assert "Traceback" not in told
    assert all(piece in told for piece in pieces), told
    assert not (tmp_path / "advice").exists()


def models():
    narrow = LogisticRegression().fit(TRAIN[["income", "savings"]].to_numpy(), TRAIN["approved"])
    wide = LogisticRegression().fit(np.zeros((4, 9)) + np.arange(4)[:, None], ["no", "yes", "no", "yes"])
    other = estimator().fit(TRAIN[FEATURES], np.where(TRAIN["income"] > 50, "rich", "poor"))
    return {
        "fewer inputs": (narrow, ["2"]),
        "more inputs": (wide, ["9"]),
        "other classes": (other, ["rich", "yes"]),
    }


@pytest.mark.parametrize("what", ["fewer inputs", "more inputs", "other classes"])
def test_a_model_that_does_not_fit_the_table(files, tmp_path, what):
    own, pieces = models()[what]
    skops.io.dump(own, tmp_path / "model.skops")
    ran = explain(files, tmp_path, model="model.skops")
    assert ran.returncode == 1
    assert all(piece in ran.stderr for piece in pieces), ran.stderr
    assert not (tmp_path / "advice").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")  # what is tested is what the command says
def test_a_model_that_always_says_the_same_gives_reasons_and_no_plans(files, tmp_path):
    constant = DummyClassifier(strategy="constant", constant="no").fit(TRAIN[FEATURES], TRAIN["approved"])
    skops.io.dump(constant, tmp_path / "model.skops")
    ran = explain(files, tmp_path, model="model.skops")
    assert ran.returncode == 0, ran.stderr
    advice = pd.read_csv(tmp_path / "advice" / "advice.csv")
    assert not advice["found"].any()
    told = advice["why_not"].str
    assert (told.contains("even with every constraint taken away") | told.contains("the model answers the same")).all()


def test_one_class_is_told(files, tmp_path):
    edited_table = edited(TRAIN, approved="yes")
    (tmp_path / "train.csv").write_text(edited_table)
    ran = explain(files, tmp_path, data="train.csv")
    assert ran.returncode == 1
    assert "approved" in ran.stderr or "class" in ran.stderr
    ran = invoke("init", "train.csv", "--label", "approved", cwd=tmp_path)
    assert ran.returncode == 1
    assert not (tmp_path / "schema.toml").exists()


def test_constraints_that_contradict_each_other_are_told(files, tmp_path):
    text = Path(files / "schema.toml").read_text()
    contradicting = text.replace('name = "income"', 'name = "income"\nlower = 500\nupper = 100')
    (tmp_path / "schema.toml").write_text(contradicting)
    ran = explain(files, tmp_path, schema="schema.toml")
    assert ran.returncode == 1
    assert "income" in ran.stderr
    assert not (tmp_path / "advice").exists()


def test_one_training_row_and_one_person_are_told_or_work(files, tmp_path):
    TRAIN[:1].to_csv(tmp_path / "train.csv", index=False)
    ran = explain(files, tmp_path, data="train.csv")
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "advice").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_told_before_the_work(files, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    ran = explain(files, tmp_path, out="locked/advice")
    assert ran.returncode == 1
    assert "locked" in ran.stderr


def test_a_file_in_the_place_of_the_folder_is_told(files, tmp_path):
    (tmp_path / "advice").write_text("mine")
    ran = explain(files, tmp_path)
    assert ran.returncode == 1
    assert "is a file" in ran.stderr
    assert (tmp_path / "advice").read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is Linux's")
def test_a_full_disk_leaves_the_old_files_and_no_new_one(files, tmp_path, monkeypatch):
    assert explain(files, tmp_path).returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "advice").iterdir()}
    written = os.fsync
    calls = iter(range(10**6))

    def full(descriptor):
        if next(calls) == 3:
            raise OSError(28, "No space left on device")
        written(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    ran = explain(files, tmp_path, want="no")
    assert ran.returncode == 1
    assert "No space left on device" in ran.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "advice").iterdir()} == before


@pytest.mark.slow
def test_a_million_rows_and_five_thousand_columns(files, tmp_path):
    draw = np.random.default_rng(0)
    rows = 10**6
    big = pd.DataFrame(
        {"income": draw.integers(10, 90, rows), "savings": draw.integers(0, 60, rows) * 100,
         "duration": draw.integers(1, 12, rows) * 6, "age": draw.integers(19, 75, rows),
         "housing": draw.choice(["rent", "own", "free"], rows), "approved": draw.choice(["no", "yes"], rows)}
    )  # fmt: skip
    big.to_csv(tmp_path / "train.csv", index=False)
    ran = explain(files, tmp_path, data="train.csv")
    assert ran.returncode == 0, ran.stderr
    wide = pd.DataFrame(draw.normal(size=(60, 5000)), columns=[f"x{n}" for n in range(5000)])
    wide["label"] = np.where(wide["x0"] > 0, "yes", "no")
    wide.to_csv(tmp_path / "wide.csv", index=False)
    ran = invoke("init", "wide.csv", "--label", "label", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert len(hf.Schema.load(tmp_path / "schema.toml").names) == 5000
