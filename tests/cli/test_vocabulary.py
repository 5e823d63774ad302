"""One word for one thing in every command; whose model is judged, and whose row is whose."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from typer.main import get_command

import holdfast as hf
from commands import HANG, TERMINAL, interrupted, invoke
from holdfast.cli.app import app
from holdfast.cli.inputs import RETRAIN_KINDS, changes_named, counts_named, recipe_of
from holdfast.families import changes

SHARED = {
    "--data", "--people", "--index", "--schema", "--label", "--model", "--retrained", "--retrain", "--want", "--train",
    "--scaling", "--hidden", "--epochs", "--batch", "--out", "--json", "--quiet",
}  # fmt: skip
COMMANDS = ("audit", "promise", "explain")
OWN = {"--out"}  # of which a command may have more to say


def options(command: str) -> dict[str, object]:
    return {name: option for option in get_command(app).commands[command].params for name in option.opts}


# ---- the words ----


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_the_same_words_and_says_the_same_of_them(command):
    own = options(command)
    assert set(own) >= SHARED
    for name in SHARED - OWN:
        assert own[name].help == options("audit")[name].help, name


# ---- --retrain ----


def test_every_kind_that_needs_a_count_alone_can_be_named():
    rows = 40
    for kind in RETRAIN_KINDS:
        make = getattr(changes, kind.replace("-", "_"))
        expected = make(5, rows) if kind == "leave-one-out" else make(5)
        assert changes_named([f"{kind}:5"], rows) == expected
    assert changes_named(["seeds:2", "bootstrap:3"], rows) == hf.seeds(2) + changes.bootstrap(3)


def test_retrainings_after_those_that_took_part_are_others():
    for kind in RETRAIN_KINDS:
        first, rest = changes_named([f"{kind}:4"], 40), changes_named([f"{kind}:6"], 40, after={kind: 4})
        assert first + rest == changes_named([f"{kind}:10"], 40)


def test_a_kind_without_a_count_gets_the_one_that_is_known():
    assert changes_named(["seeds"], 40, count=3) == hf.seeds(3)
    with pytest.raises(ValueError, match="--retrain seeds.*seeds:96"):
        changes_named(["seeds"], 40)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["seed:3"], r"'seed:3' names no kind of retraining; choose from seeds, bootstrap, leave-one-out"),
        (["96"], r"names no kind of retraining"),
        (["seeds:"], r"has no count from 1 to 100000 after its colon; .*such as seeds:96"),
        (["seeds:0"], r"has no count from 1"),
        (["seeds:-3"], r"has no count from 1"),
        (["seeds:many"], r"has no count from 1"),
        (["seeds:²"], r"has no count from 1"),
        (["seeds:" + "9" * 5000], r"has no count from 1"),
        (["seeds:3", "seeds:4"], r"names seeds twice"),
    ],
)
def test_what_is_no_retraining_is_told_with_what_is(texts, says, tmp_path):
    with pytest.raises(ValueError, match=says):
        counts_named(texts)
    given = [word for text in texts for word in ("--retrain", text)]
    done = invoke("audit", "--data", "german", "--counterfactuals", "x.csv", *given, cwd=tmp_path)
    assert done.returncode == 2
    assert "Invalid value for '--retrain'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_more_rows_cannot_be_left_out_than_there_are():
    with pytest.raises(ValueError, match="50.*leave-one-out:40"):
        changes_named(["leave-one-out:50"], 40)


def test_a_recipe_is_the_datasets_own_unless_something_else_is_given():
    own = hf.Recipe((9, 4), epochs=7, batch=5)
    assert recipe_of(None, None, None, own) == own
    assert recipe_of(None, 3, None, own) == hf.Recipe((9, 4), epochs=3, batch=5)
    assert recipe_of("8,2", None, 6, own) == hf.Recipe((8, 2), batch=6)
    assert recipe_of(None, None, None) == hf.Recipe()


# ---- tables with labels, and models of every source ----


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """train.csv of 90 people with labels that are no numbers of rows, points.csv of the last 12, and models of them."""
    skops = pytest.importorskip("skops.io")
    from sklearn.linear_model import LogisticRegression

    folder, draw = tmp_path_factory.mktemp("given"), np.random.default_rng(0)
    table = pd.DataFrame(draw.normal(size=(90, 3)).round(3), columns=["income", "debt", "age"])
    table["outcome"] = np.where(table["income"] - table["debt"] + draw.normal(0, 0.3, 90) > 0, "yes", "no")
    table.insert(0, "id", [8001 + 3 * place + place % 2 for place in range(90)])
    table.to_csv(folder / "train.csv", index=False)
    encoding = hf.Encoding.fit(table, hf.Schema.infer(table.drop(columns="id"), "outcome"))
    x, y = encoding.encode(table), encoding.labels(table)
    family = hf.train(x, y, hf.Recipe((8,), epochs=40), [hf.Retraining(), *hf.seeds(6)])
    asked = table[-12:]
    rows = encoding.encode(asked)
    found = hf.MinCost(norm=1)(family[0], rows, hf.other_class(family[0], rows), encoding.space)
    points = found.to_frame(encoding, asked).assign(id=asked["id"])
    points[::-1].to_csv(folder / "points.csv", index=False)  # in another order than the people
    hf.save_family(family, folder / "family")
    hf.save_model(family[0], folder / "model.safetensors")
    (folder / "retrained").mkdir()
    for place in range(1, 7):
        hf.save_model(family[place], folder / "retrained" / f"{place}.safetensors")
    own = LogisticRegression().fit(pd.DataFrame(x.numpy(), columns=list(encoding.columns)), y.numpy())
    skops.dump(own, folder / "model.skops")
    return folder, asked, found, family


@pytest.fixture(scope="module")
def tables(given):
    folder = given[0]
    return ("--data", folder / "train.csv", "--label", "outcome", "--counterfactuals", folder / "points.csv")


TRAIN = ("--train", "--hidden", 8, "--epochs", 2, "--retrain", "seeds:3")


def test_rows_are_matched_by_the_label_that_the_tables_share(given, tables, tmp_path):
    """Without --index, the twelve used to be judged as if they were the first twelve rows of the data."""
    folder, asked, found, family = given
    done = invoke("audit", *tables, "--retrained", folder / "family", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "data and counterfactuals are matched by column 'id', which both have" in done.stdout
    rows = pd.read_csv(tmp_path / "holdfast-audit" / "rows.csv")
    assert rows["row"].tolist() == asked["id"].tolist()
    saved = hf.load_audit(tmp_path / "holdfast-audit" / "audit")
    expected = hf.audit(found, family[1:])
    assert saved.counterfactuals.origin.shape[1] == 3  # `id` is no feature
    torch.testing.assert_close(saved.counterfactuals.origin, found.origin)
    assert saved.rate == expected.rate
    assert saved.success == expected.success


def test_labels_that_the_other_table_does_not_know_stop_the_audit(given, tables, tmp_path):
    folder = given[0]
    strange = pd.read_csv(folder / "points.csv").assign(id=range(1, 13))
    strange.to_csv(tmp_path / "strange.csv", index=False)
    done = invoke(
        "audit", *tables[:4], "--counterfactuals", "strange.csv", "--retrained", folder / "family", cwd=tmp_path
    )
    assert done.returncode == 1
    assert "--index" in done.stderr
    assert "'id'" in done.stderr
    assert not (tmp_path / "holdfast-audit").exists()


@pytest.mark.parametrize("words", [("--model", "family"), ("--model", "model.safetensors"), ()])
@pytest.mark.parametrize("retrained", ["family", "retrained"])
def test_models_are_files_or_folders(words, retrained, given, tables, tmp_path):
    folder, _, found, family = given
    named = [word if word.startswith("--") else folder / word for word in words]
    done = invoke("audit", *tables, *named, "--retrained", folder / retrained, cwd=tmp_path)
    if not words and retrained == "retrained":
        assert (done.returncode, "--model FILE" in done.stderr) == (1, True)
        return
    assert done.returncode == 0, done.stderr
    kind = "seeds" if retrained == "family" else "own"
    assert f"retrained models: read from '{folder / retrained}': 6 of kind '{kind}'" in done.stdout
    assert hf.load_audit(tmp_path / "holdfast-audit" / "audit").rate == hf.audit(found, family[1:]).rate


def test_an_estimator_is_refitted(given, tables, tmp_path):
    folder = given[0]
    words = ("--model", folder / "model.skops", "--retrain", "bootstrap:4", "--unconstrained", "--json")
    done = invoke("audit", *tables, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["model"] == str(folder / "model.skops")
    assert said["retrained"].startswith("fitted again by holdfast")
    assert [(row["change"], row["members"]) for row in said["changes"]] == [("bootstrap", 4)]


def test_a_network_that_holdfast_trained_is_called_so(given, tables, tmp_path):
    done = invoke("audit", *tables, *TRAIN, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "deployed model: a network that holdfast trained\n" in done.stdout
    assert "retrained models: networks trained by holdfast" in done.stdout
    written = json.loads((tmp_path / "holdfast-audit" / "summary.json").read_text())
    assert written["model"] == "a network that holdfast trained"
    again = invoke("audit", *tables, *TRAIN, "--json", cwd=tmp_path)
    said = json.loads(again.stdout)
    files = said.pop("files")
    assert said == written
    assert sorted(files) == sorted(
        f"holdfast-audit/{name}" for name in ("audit", "problems.csv", "rows.csv", "summary.json")
    )
    silent = invoke("audit", *tables, *TRAIN, "--quiet", cwd=tmp_path)
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "there is no model; name the file of the deployed model (--model FILE)"),
        (("--retrain", "seeds:3"), "there is no model; name the file of the deployed model (--model FILE)"),
        (
            ("--model", "{folder}/model.skops", "--hidden", 8),
            "--hidden says how holdfast is to train a network, which it does only when it is asked to",
        ),
        (("--model", "{folder}/model.skops"), "--retrain seeds:96 or --retrained FILE"),
        (
            ("--model", "{folder}/model.safetensors", "--retrain", "seeds:3"),
            "cannot be retrained (seeds:3)",
        ),
        (("--model", "{folder}/retrained", "--retrained", "{folder}/family"), "is a folder, and no saved family"),
        (("--model", "{folder}/none.ubj", "--retrained", "{folder}/family"), "there is no file"),
        (("--model", "{folder}/model.safetensors", "--retrained", "{empty}"), "holds no files of models"),
        (
            (*TRAIN, "--retrained", "{folder}/family"),
            "--retrain makes retrained models and --retrained names some that exist",
        ),
        (
            ("--model", "{folder}/model.safetensors", "--retrained", "{folder}/family", "--retrain", "seeds:3"),
            "--retrain makes retrained models and --retrained names some that exist",
        ),
        (("--want", "maybe", *TRAIN), "is called 'maybe'; the classes are 'no', 'yes'"),
        (("--index", "name", *TRAIN), "no column 'name' to take the labels from"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_told_and_leaves_nothing(words, says, given, tables, tmp_path):
    (tmp_path / "empty").mkdir()
    named = [str(word).format(folder=given[0], empty=tmp_path / "empty") for word in words]
    done = invoke("audit", *tables, *named, "--out", "new/results", cwd=tmp_path)
    assert done.returncode == 1
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_library_that_is_missing_is_told_in_a_sentence(given, tables, tmp_path, monkeypatch):
    xgboost = pytest.importorskip("xgboost")
    table = pd.read_csv(given[0] / "train.csv")
    own = xgboost.XGBClassifier(n_estimators=2).fit(table[["income", "debt", "age"]], table["outcome"] == "yes")
    own.save_model(tmp_path / "model.ubj")
    monkeypatch.setitem(sys.modules, "xgboost", None)
    words = ("--model", "model.ubj", "--retrained", given[0] / "family")
    done = invoke("audit", *tables, *words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("holdfast: model.ubj needs xgboost: pip install")


def test_a_family_without_one_base_does_not_say_which_model_is_deployed(given, tables, tmp_path):
    folder, _, _, family = given
    hf.save_family(family[1:], tmp_path / "others")
    done = invoke("audit", *tables, "--model", "others", "--retrained", folder / "family", cwd=tmp_path)
    assert done.returncode == 1
    assert "others holds 0 members of kind 'base'" in done.stderr


# ---- folders and disks ----


def test_an_interrupt_leaves_no_folder(given, tables, tmp_path):
    words = ("audit", *tables, "--retrained", given[0] / "family", "--out", "new/results")
    done = interrupted(*words, at="holdfast.explaining.file_audit:audit", cwd=tmp_path)
    assert done.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_there_stays(given, tables, tmp_path):
    (tmp_path / "mine").mkdir()
    done = invoke("audit", *tables, "--out", "mine", cwd=tmp_path)
    assert done.returncode == 1
    assert list((tmp_path / "mine").iterdir()) == []


def on_a_disk_with_room_for(size: int, *words, cwd) -> subprocess.CompletedProcess[str]:
    """Run a command that can write so many bytes into a file, which stands for a disk that is full."""
    return subprocess.run(
        [sys.executable, "-B", "-m", "holdfast", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=HANG,
        env=os.environ | TERMINAL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


@pytest.mark.skipif(os.name == "nt", reason="limits of a POSIX process")
def test_a_full_disk_is_told_before_the_work(given, tables, tmp_path):
    words = ("audit", *tables, "--retrained", given[0] / "family", "--out", "new")
    done = on_a_disk_with_room_for(1000, *words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("holdfast: --out new cannot be written to (")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="limits of a POSIX process")
def test_a_disk_that_fills_up_later_leaves_nothing_half_written(given, tables, tmp_path):
    words = ("audit", *tables, "--retrained", given[0] / "family", "--out", "new")
    done = on_a_disk_with_room_for(5000, *words, cwd=tmp_path)  # for the tables, but not for the audit
    assert done.returncode == 1
    assert "could not write" in done.stderr
    assert list(tmp_path.iterdir()) == []
