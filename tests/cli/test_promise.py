"""`holdfast promise`, and `holdfast audit` of what it wrote."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import holdfast as hf
from commands import invoke
from holdfast import read_table
from holdfast.datasets.prepared import prepare

SMALL = (
    "--rate", 0.2, "--rehearsals", 4, "--calibration", 20, "--members", 10, "--train", "--hidden", 8, "--epochs", 60,
    "--least-found", 0.8,
)  # fmt: skip


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
def done(tables, asked, tmp_path_factory):
    """A promise that was made, and the folder that it was made in."""
    folder = tmp_path_factory.mktemp("promise")
    return folder, invoke("promise", *asked, *SMALL, cwd=folder)


def test_a_promise_is_printed_and_written(tables, done):
    folder, ran = done
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stdout.split())
    assert "one more retrained model of kind 'seeds' invalidates at most 20% of them on average" in said
    assert "Not promised: anything for a single person" in said
    assert "Promised, and realised by models that chose nothing" in said
    assert "not promised, because nothing was found: " in said
    written = folder / "holdfast-promise"
    about = json.loads((written / "promise.json").read_text())
    assert about["rate"] == 0.2
    assert about["promised"] is True
    assert about["statement"].split(". ")[0] in said
    assert [len(about["members"][role]) for role in ("rehearsed", "calibrated", "audited")] == [4, 20, 10]
    assert len(about["curve"]) >= 1
    points, people = read_table(written / "counterfactuals.csv"), read_table(tables / "asked.csv")
    assert points.index.equals(people.index)
    assert list(points.columns) == ["found", "promised", "income", "debt", "age"]
    assert points["promised"].sum() == about["promised_rows"] > 0


@pytest.mark.slow
def test_networks_are_kept_for_the_next_run(asked, done, tmp_path):
    folder, _ = done
    again = invoke("promise", *asked, *SMALL, "--out", "again", cwd=tmp_path)
    assert again.returncode == 0
    first, second = (path / "promise.json" for path in (folder / "holdfast-promise", tmp_path / "again"))
    assert first.read_text() == second.read_text()


def test_an_audit_says_what_was_promised_beside_what_is_realised(asked, done, tmp_path):
    folder, _ = done
    train = ("--train", "--hidden", 8, "--epochs", 60, "--retrain", "seeds:12")
    for given in (folder / "holdfast-promise", folder / "holdfast-promise" / "counterfactuals.csv"):
        ran = invoke("audit", *asked, "--counterfactuals", given, *train, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
        assert "seeds: promised at most 20.0% on average; realised " in ran.stdout
        assert "columns" not in ran.stdout  # none of the promise's own is taken for a feature
    rows = read_table(tmp_path / "holdfast-audit" / "rows.csv", "row")
    assert set(rows["promised_rate"]) == {0.2}
    assert rows["invalidated"].mean() <= 1
    about = json.loads((folder / "holdfast-promise" / "promise.json").read_text())
    seen = set(about["members"]["rehearsed"]) | set(about["members"]["calibrated"])
    audited = hf.load_audit(tmp_path / "holdfast-audit" / "audit")
    assert seen <= audited.counterfactuals.seen
    assert len(audited.kinds) == 12
    assert set(audited.kinds) == {"seeds"}


def test_counterfactuals_that_were_changed_are_no_longer_promised(asked, done, tmp_path):
    written = tmp_path / "holdfast-promise"
    written.mkdir()
    for path in (done[0] / "holdfast-promise").iterdir():
        if path.is_file():
            (written / path.name).write_bytes(path.read_bytes())
    with (written / "counterfactuals.csv").open("a") as file:
        file.write("1000,True,True,0,0,0\n")
    ran = invoke("audit", *asked, "--counterfactuals", written, "--train", "--hidden", 8, cwd=tmp_path)
    assert ran.returncode == 1
    assert "it was changed later" in " ".join(ran.stderr.split())


def test_a_refusal_has_an_exit_code_and_leaves_nothing_promised(asked, tmp_path):
    few = (
        "--rate",
        0.05,
        "--rehearsals",
        0,
        "--calibration",
        19,
        "--members",
        0,
        "--train",
        "--hidden",
        8,
        "--epochs",
        3,
    )
    ran = invoke("promise", *asked, *few, "--least-found", 0.9, cwd=tmp_path)
    assert ran.returncode == 3
    assert "Nothing is promised." in ran.stdout
    about = json.loads((tmp_path / "holdfast-promise" / "promise.json").read_text())
    assert about["promised"] is False
    assert about["refusal"]
    points = read_table(tmp_path / "holdfast-promise" / "counterfactuals.csv")
    assert len(points) == 6
    assert not points["promised"].any()


def test_what_cannot_be_promised_is_told_before_anything_is_trained(asked, tables, tmp_path):
    wrong = {
        ("--rate", 0.01, "--train", "--hidden", 8): "needs 99 calibration models or more (1 / rate - 1), got 20",
        ("--rate", 2, "--train", "--hidden", 8): "rate must lie between 0 and 1",
        (): "there is no model: name the deployed one (--model FILE), or have holdfast train",
        ("--train", "--hidden", 8, "--want", "maybe"): "no class is called 'maybe'",
    }
    for words, said in wrong.items():
        ran = invoke("promise", *asked, "--calibration", 20, *words, cwd=tmp_path)
        assert ran.returncode == 1
        assert said in " ".join(ran.stderr.split())
    ran = invoke("promise", *asked[:4], "--train", "--hidden", 8, cwd=tmp_path)
    assert "name them: --people FILE" in " ".join(ran.stderr.split())
    assert not (tmp_path / "holdfast-promise").exists()


@pytest.mark.slow
def test_plans_and_both_kinds_and_a_class_that_everybody_wants(asked, tmp_path):
    more = (
        "--plans",
        2,
        "--retrain",
        "seeds",
        "--retrain",
        "leave-one-out",
        "--want",
        "yes",
        "--norm",
        2,
        "--rate",
        0.6,
        "--least-found",
        0.8,
    )
    small = ("--rehearsals", 2, "--calibration", 8, "--members", 4, "--train", "--hidden", 8, "--epochs", 60)
    ran = invoke("promise", *asked, *more, *small, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    about = json.loads((tmp_path / "holdfast-promise" / "promise.json").read_text())
    assert about["calibrated"] == {"seeds": 8, "leave-one-out": 8}
    assert about["taken"] == {"seeds": 9, "leave-one-out": 9}
    assert about["plans"] == 2
    assert about["rows"] < 6  # some have the class already
    points = read_table(tmp_path / "holdfast-promise" / "counterfactuals.csv")
    assert {"plan", "cost"} <= set(points.columns)
    assert points.index.isin(range(80, 86)).all()


@pytest.mark.slow
def test_models_of_a_file_rehearse_calibrate_and_audit_in_their_order(asked, tables, tmp_path):
    table = read_table(tables / "train.csv")
    encoding = hf.Encoding.fit(table, hf.Schema.infer(table, "outcome"))
    x, y = encoding.encode(table), encoding.labels(table)
    family = hf.train(x, y, hf.Recipe((8,), epochs=60), [hf.Retraining(), *hf.seeds(30)])
    hf.save_family(family, tmp_path / "family")
    sizes = ("--rehearsals", 3, "--calibration", 20, "--rate", 0.2, "--least-found", 0.8, "--rows", 3)
    ran = invoke("promise", *asked, "--retrained", tmp_path / "family", *sizes, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    members = json.loads((tmp_path / "holdfast-promise" / "promise.json").read_text())["members"]
    assert members["rehearsed"] == list(family.fingerprints[1:4])
    assert members["calibrated"] == list(family.fingerprints[4:24])
    assert members["audited"] == list(family.fingerprints[24:])


@pytest.mark.slow
def test_a_dataset_needs_no_more_than_its_name(tmp_path):
    """The test rows of German Credit, by networks that are smaller than its own."""
    small = (
        "--rows",
        4,
        "--rehearsals",
        0,
        "--calibration",
        9,
        "--members",
        2,
        "--train",
        "--hidden",
        8,
        "--epochs",
        3,
    )
    ran = invoke("promise", "--data", "german", "--rate", 0.1, *small, cwd=tmp_path)
    assert ran.returncode in (0, 3), ran.stderr
    about = json.loads((tmp_path / "holdfast-promise" / "promise.json").read_text())
    assert about["rows"] == 4
    points = read_table(tmp_path / "holdfast-promise" / "counterfactuals.csv")
    assert points.index.equals(prepare("german").test.index[:4])
