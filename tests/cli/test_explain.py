"""`holdfast explain`: from files to files, and `holdfast audit` of what it wrote."""

from __future__ import annotations

import json
import os
import shlex
from hashlib import sha256

import pandas as pd
import pytest

import holdfast as hf
from commands import interrupted, invoke
from holdfast.cli.options import command_again
from loans import FEATURES, applicants, model, schema, write_files

RETRAIN = ("--retrain", "bootstrap:12")
PEOPLE = 6


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = write_files(tmp_path_factory.mktemp("files"), people=PEOPLE)
    people = applicants(PEOPLE).assign(branch=["north", "south"] * (PEOPLE // 2))  # no feature: for groups alone
    people.to_csv(folder / "people.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def given(files):
    return (
        "--data", files / "train.csv", "--people", files / "people.csv", "--schema", files / "schema.toml",
        "--model", files / "model.skops", "--want", "yes",
    )  # fmt: skip


@pytest.fixture(scope="module")
def done(given, tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    words = ("--hold", 0.75, "--plans", 2, "--group", "housing", "--group", "branch", "--out", "advice")
    ran = invoke("explain", *given, *RETRAIN, *words, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return folder / "advice", ran


def test_the_files_hold_the_advice(done):
    folder, _ = done
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "advice.csv", "advice.parquet", "changes.csv", "changes.parquet", "not_durable.csv", "people.jsonl",
        "problems.csv", "report.html", "schema.toml", "summary.json",
    }  # fmt: skip
    advice = pd.read_csv(folder / "advice.csv")
    assert list(advice.columns[:7]) == ["id", "plan", "found", "cost", "hold", "low", "high"]
    assert set(FEATURES) <= set(advice.columns)
    assert set(advice["id"]) == set(applicants(PEOPLE)["id"])
    given = advice[advice["found"]]
    assert len(given)
    assert (model().predict(given[FEATURES]) == "yes").all()
    changes = pd.read_csv(folder / "changes.csv")
    assert list(changes.columns) == ["id", "plan", "feature", "now", "then"]
    assert set(changes["id"]) == set(given["id"])
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "advice.parquet")[FEATURES], advice[FEATURES])
    assert len(pd.read_parquet(folder / "changes.parquet")) == len(changes)


def test_the_summary_says_what_was_decided_and_why(done):
    folder, ran = done
    about = json.loads((folder / "summary.json").read_text())
    assert about["decided"]["method"].startswith("rehearsed")
    assert about["decided"]["hold"] == 0.75
    assert about["decided"]["model_is_ours"] is False
    assert about["decided"]["retrained"] == {role: {"bootstrap": 4} for role in ("rehearsal", "selection", "audit")}
    assert "'id' names the rows" in about["decided"]["rows"]
    assert about["with_a_plan"] + about["have_the_class"] + about["not_durable"] + about["nothing_found"] == PEOPLE
    assert f"Advice for {PEOPLE} people" in ran.stdout
    assert str(folder.name) in ran.stdout


def test_the_summary_has_the_checksum_of_every_file(done):
    folder, _ = done
    kept = json.loads((folder / "summary.json").read_text())["files"]
    there = {path.name: sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert kept == {name: value for name, value in there.items() if name != "summary.json"}


def test_the_report_is_about_this_advice_and_its_groups(done):
    folder, ran = done
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"Advice for {PEOPLE} people" in page
    assert all(str(label) in page for label in applicants(PEOPLE)["id"])
    assert all(name in page for name in ("housing", "branch"))
    assert "The report, for a browser: advice/report.html" in " ".join(ran.stdout.split())
    assert hf.Schema.load(folder / "schema.toml") == schema()


def test_the_command_that_is_kept_gives_the_same_files_again(done, tmp_path):
    folder, _ = done
    about = json.loads((folder / "summary.json").read_text())
    program, *words = shlex.split(about["decided"]["command"])
    assert program == "holdfast"
    assert "branch" in words
    again = invoke(*words, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    for name in ("advice.csv", "changes.csv", "not_durable.csv", "people.jsonl", "schema.toml", "problems.csv"):
        assert (tmp_path / "advice" / name).read_bytes() == (folder / name).read_bytes()


def test_the_files_that_were_read_are_known_by_their_contents(files, done):
    folder, _ = done
    kept = json.loads((folder / "summary.json").read_text())["decided"]["files"]
    names = ("train.csv", "people.csv", "schema.toml", "model.skops")
    assert kept == {str(files / name): sha256((files / name).read_bytes()).hexdigest() for name in names}


def test_words_of_a_command_are_no_more_than_words_to_a_shell():
    words = ["holdfast", "explain", "--data", "my rows.csv", "--want", "$(rm -rf ~)", "--group", "it's; `x`", ""]
    assert shlex.split(command_again(words)) == words
    odd = command_again(["holdfast", os.fsdecode(b"a\xffb")])
    assert odd.encode("utf-8")  # a name that is no UTF-8 can be written down all the same


@pytest.mark.parametrize("group", ["hosing", "approved"])
def test_a_group_that_is_no_column_is_told_before_any_long_work(given, tmp_path, group):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.explaining.explainer.retrained", lambda *_: pytest.fail("models were made"))
        ran = invoke("explain", *given, *RETRAIN, "--group", group, cwd=tmp_path)
    assert ran.returncode == 1
    assert f"the people have no column '{group}'" in " ".join(ran.stderr.split())
    assert not (tmp_path / "holdfast-advice").exists()


def test_json_is_all_that_is_printed(given, tmp_path):
    ran = invoke("explain", *given, "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    about = json.loads(ran.stdout)
    assert about["people"] == PEOPLE
    assert about["audited"] == []
    quiet = invoke("explain", *given, "--quiet", cwd=tmp_path)
    assert (quiet.returncode, quiet.stdout) == (0, "")


@pytest.mark.parametrize("columns", [80, 40])
def test_the_text_fits_the_terminal(given, tmp_path, columns):
    ran = invoke("explain", *given, *RETRAIN, "--rows", 3, "--hold", 0.75, cwd=tmp_path, COLUMNS=str(columns))
    assert ran.returncode == 0, ran.stderr
    shown = ran.stdout.split("holdfast-advice")[0]
    assert max(map(len, shown.splitlines())) <= columns
    assert "…" not in shown


def test_advice_is_audited_by_models_that_had_no_say_in_it(files, given, done, tmp_path):
    folder, _ = done
    about = json.loads((folder / "summary.json").read_text())
    ran = invoke("audit", "--counterfactuals", folder, *given, "--retrain", "bootstrap:4", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    # The first eight rehearsed and selected; those that come next are the ones that the advice's own columns are from.
    assert about["excluded_from_audit"]["taken"] == {"bootstrap": 8}
    assert said["changes"][0]["rate"] == pytest.approx(about["audited"][0]["invalidated"])
    assert said["valid"] == about["plans"]


def test_advice_that_was_edited_is_refused(given, done, tmp_path):
    folder, _ = done
    for name in ("advice.csv", "summary.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "advice.csv").write_text(
        (folder / "advice.csv").read_text().replace("yes", "no").replace("own", "rent")
    )
    ran = invoke("audit", "--counterfactuals", tmp_path, *given, "--retrain", "bootstrap:4", cwd=tmp_path)
    assert ran.returncode == 1
    assert "changed later" in ran.stderr


def test_the_model_may_be_trained_here_and_everything_says_so(given, tmp_path):
    without = [word for place, word in enumerate(given) if given[max(0, place - 1)] != "--model" and word != "--model"]
    own = ("--train", "--hidden", "8", "--epochs", 20, "--retrain", "seeds:6", "--hold", 0.5)
    ran = invoke("explain", *without, *own, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "a network that holdfast trained, not a model of yours" in " ".join(ran.stdout.split())
    about = json.loads((tmp_path / "holdfast-advice" / "summary.json").read_text())
    assert about["decided"]["model_is_ours"] is True
    assert about["decided"]["model"] == "a network that holdfast trained"
    ran = invoke("explain", *without, cwd=tmp_path)
    assert ran.returncode == 1
    assert "--model FILE" in ran.stderr
    assert "--train" in ran.stderr


def test_a_promise_of_nothing_has_an_exit_code_of_its_own(given, tmp_path):
    stuck = schema().revise("income", "savings", "duration", "housing", mutable=False)
    stuck.save(tmp_path / "stuck.toml")
    ran = invoke("explain", *given, "--schema", "stuck.toml", *RETRAIN, "--promise", 0.3, cwd=tmp_path)
    assert ran.returncode == 3, ran.stderr
    said = " ".join(ran.stdout.split())
    assert "Nothing is promised" in said
    assert "0 with a plan" in said
    assert "no retrained models" not in said  # there are some, and no plan that they could judge


def test_the_dataset_of_ours_needs_no_files(tmp_path):
    ran = invoke(
        "explain", "--data", "german", "--rows", 3, "--train", "--hidden", "8", "--epochs", 5, "--retrain", "seeds:6",
        "--hold", 0.5, "--want", "good", cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "holdfast-advice" / "advice.csv").is_file()


def test_several_classes_may_be_named(given, tmp_path):
    ran = invoke("explain", *given, "--want", "no", cwd=tmp_path)
    assert ran.returncode == 1
    assert "not all of them" in ran.stderr


def test_nothing_is_left_behind_by_ctrl_c(given, tmp_path):
    words = ("explain", *given, "--retrain", "bootstrap:3", "--rows", 2, "--hold", 0.75)
    ended = interrupted(*words, at="holdfast.explaining.searching:search_held", cwd=tmp_path)
    assert ended.returncode == 130
    assert "interrupted" in ended.stderr
    assert not (tmp_path / "holdfast-advice").exists()


def test_an_explainer_of_the_same_files_says_the_same(files, done):
    folder, _ = done
    own = hf.Explainer(
        files / "model.skops", pd.read_csv(files / "train.csv"), schema=files / "schema.toml", want="yes",
        retrain=hf.changes.bootstrap(12), workers=1,
    )  # fmt: skip
    advice = own.explain(pd.read_csv(files / "people.csv"), hold=0.75, plans=2)
    kept = pd.read_csv(folder / "advice.csv")
    pd.testing.assert_frame_equal(advice.wide()[FEATURES], kept[FEATURES])


def test_a_page_that_cannot_be_written_loses_no_advice(given, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("the page is broken")

    monkeypatch.setattr("holdfast.reporting.html.page.report_text", broken)
    ran = invoke("explain", *given, *RETRAIN, "--rows", 3, "--out", "advice", cwd=tmp_path)
    assert ran.returncode == 1
    assert "the page is broken" in ran.stderr
    assert "summary.json" in {path.name for path in (tmp_path / "advice").iterdir()}
    assert len(pd.read_csv(tmp_path / "advice" / "advice.csv")) == 3


def test_the_folder_of_an_audit_is_not_taken_for_advice(given, done, tmp_path):
    folder, _ = done
    ran = invoke(
        "audit", "--counterfactuals", folder, *given, "--retrain", "bootstrap:4", "--out", "audited", cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stderr
    for words in (["letter", "audited", "--person", "3"], ["audit", "--counterfactuals", "audited", *given, *RETRAIN]):
        ran = invoke(*words, cwd=tmp_path)
        assert ran.returncode == 1
        assert "is not a valid summary of advice" in " ".join(ran.stderr.split())
        assert "Traceback" not in ran.stderr
