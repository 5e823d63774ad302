"""`holdfast promise`, which is `holdfast explain --promise`, and `holdfast audit` of what it wrote."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from commands import invoke
from holdfast import read_table

TRAIN = ("--train", "--hidden", 16, "--epochs", 120)
SMALL = ("--rate", 0.2, "--rehearsal", 4, "--selection", 20, "--audit", 10, *TRAIN)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """A folder with train.csv of 80 people and asked.csv of 6 others."""
    folder, draw = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    table = pd.DataFrame(draw.normal(size=(86, 3)), columns=["income", "debt", "age"])
    table["outcome"] = np.where(table["income"] - table["debt"] + draw.normal(0, 0.3, 86) > 0, "yes", "no")
    table[:80].to_csv(folder / "train.csv")
    table[80:].to_csv(folder / "asked.csv")
    return folder


@pytest.fixture(scope="module")
def asked(tables):
    return ("--data", tables / "train.csv", "--label", "outcome", "--people", tables / "asked.csv")


@pytest.fixture(scope="module")
def done(asked, tmp_path_factory):
    """A promise that was made, and the folder that it was made in."""
    folder = tmp_path_factory.mktemp("promise")
    return folder / "holdfast-advice", invoke("promise", *asked, *SMALL, cwd=folder)


def summary(folder):
    return json.loads((folder / "summary.json").read_text())


def test_a_promise_is_printed_and_written(tables, done):
    folder, ran = done
    assert ran.returncode == 0, ran.stderr
    said, about = " ".join(ran.stdout.split()), summary(folder)
    promise = about["promise"]
    assert " ".join(promise["statement"].split()) in said
    assert (promise["rate"], promise["promised"]) == (0.2, True)
    assert [len(promise["members"][role]) for role in ("rehearsal", "selection", "audit")] == [4, 20, 10]
    assert len(promise["curve"]) >= 1
    plans, people = read_table(folder / "advice.csv", "id"), read_table(tables / "asked.csv")
    assert sorted(plans.index) == sorted(people.index)
    assert plans["found"].sum() == promise["promised_rows"] == about["with_a_plan"] > 0


def test_everybody_wants_the_other_class_where_none_is_named(tables, done):
    """The deployed network gives those who have a plan the class that it did not give them before."""
    plans = read_table(done[0] / "advice.csv", "id")
    assert set(plans["status"]) <= {"plan", "nothing found"}  # nobody has "the class already"


def test_a_promise_is_what_explain_promises(asked, done, tmp_path):
    words = [word if word != "--rate" else "--promise" for word in SMALL]
    ran = invoke("explain", *asked, *words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for name in ("advice.csv", "changes.csv", "not_durable.csv"):
        assert (tmp_path / "holdfast-advice" / name).read_bytes() == (done[0] / name).read_bytes()
    assert summary(tmp_path / "holdfast-advice")["promise"] == summary(done[0])["promise"]


def test_an_audit_says_what_was_promised_beside_what_is_realised(asked, done, tmp_path):
    folder, _ = done
    for given in (folder, folder / "advice.csv"):
        ran = invoke("audit", *asked, "--counterfactuals", given, *TRAIN, "--retrain", "seeds:12", cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert "seeds: promised at most 20.0% on average; realised " in ran.stdout
        assert "columns" not in ran.stdout  # none of those beside the features is taken for a feature
    rows = read_table(tmp_path / "holdfast-audit" / "rows.csv", "row")
    assert set(rows["promised_rate"]) == {0.2}
    members = summary(folder)["promise"]["members"]
    audited = hf.load_audit(tmp_path / "holdfast-audit" / "audit")
    assert {*members["rehearsal"], *members["selection"]} <= audited.counterfactuals.seen
    assert audited.kinds == ("seeds",) * 12


def test_plans_that_were_changed_are_no_longer_promised(asked, done, tmp_path):
    written = tmp_path / "advice"
    written.mkdir()
    for path in done[0].iterdir():
        if path.is_file():
            (written / path.name).write_bytes(path.read_bytes())
    with (written / "advice.csv").open("a") as file:
        file.write("1000,1,True,0\n")
    ran = invoke("audit", *asked, "--counterfactuals", written, "--train", "--hidden", 8, cwd=tmp_path)
    assert ran.returncode == 1
    assert "it was changed later" in " ".join(ran.stderr.split())


def test_a_refusal_has_an_exit_code_and_leaves_nothing_promised(asked, tmp_path):
    few = ("--rate", 0.05, "--rehearsal", 0, "--selection", 19, "--audit", 2, "--train", "--hidden", 8, "--epochs", 3)
    ran = invoke("promise", *asked, *few, cwd=tmp_path)
    assert ran.returncode == 3, ran.stderr
    assert "Nothing is promised." in ran.stdout
    promise = summary(tmp_path / "holdfast-advice")["promise"]
    assert promise["promised"] is False
    assert promise["refusal"]
    plans = read_table(tmp_path / "holdfast-advice" / "advice.csv", "id")
    assert len(plans) == 6
    assert not plans["found"].any()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--rate", 0.01, "--selection", 20, "--train"), ("99 selection models", "--selection 99")),
        (("--rate", 2, "--train"), ("promise must lie between 0 and 1",)),
        (("--retrain", "seeds"), ("there is no model", "--model FILE", "--train")),
        (("--train", "--want", "maybe"), ("no class", "maybe", "'no', 'yes'")),
        (("--train", "--retrain", "seeds:7", "--selection", 5, "--audit", 4), ("7 retrained models", "seeds")),
    ],
    ids=str,
)
def test_what_cannot_be_promised_is_told_before_anything_is_trained(words, said, asked, tmp_path):
    store = tmp_path / "families"
    ran = invoke("promise", *asked, *words, cwd=tmp_path, HOLDFAST_FAMILIES=str(store))
    assert ran.returncode == 1
    assert all(fact in " ".join(ran.stderr.split()) for fact in said), ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_plans_and_both_kinds_and_a_class_that_everybody_wants(asked, tmp_path):
    kinds = ("--retrain", "seeds", "--retrain", "leave-one-out")
    small = ("--rehearsal", 1, "--selection", 8, "--audit", 4, *TRAIN)
    ran = invoke("promise", *asked, "--plans", 2, *kinds, "--want", "yes", "--rate", 0.6, *small, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    about = summary(tmp_path / "holdfast-advice")
    assert about["promise"]["selected_by"] == {"seeds": 8, "leave-one-out": 8}
    assert about["excluded_from_audit"]["taken"] == {"seeds": 9, "leave-one-out": 9}
    assert about["promise"]["plans"] == 2
    assert about["promise"]["rows"] + about["have_the_class"] == 6
