"""init, explain, audit: with models that other libraries trained and saved, and their word for what came out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import outsiders
from commands import holdfast, invoke
from outsiders import LABEL, features, table, train_rows

RETRAINED = 6  # two rehearse, two select, two audit
FIXED = ("status_and_sex", "foreign_worker")
WORDS = {"text": ("a_no", "b_yes"), "numbers": (0, 1), "truth": (False, True)}  # the label's values, the wanted last

CASES = [
    ("torch", "cancer", "numbers", None),
    pytest.param("torch", "german", "numbers", None, marks=pytest.mark.slow),
    pytest.param("sklearn", "cancer", "numbers", "bootstrap", marks=pytest.mark.slow),
    ("sklearn", "german", "numbers", "bootstrap"),
    pytest.param("keras", "cancer", "numbers", None, marks=pytest.mark.slow),
    pytest.param("keras", "german", "truth", None, marks=pytest.mark.slow),
    pytest.param("xgboost", "cancer", "truth", "seeds", marks=pytest.mark.slow),
    ("xgboost", "german", "text", "seeds"),
    pytest.param("xgboost_hot", "german", "numbers", "bootstrap", marks=pytest.mark.slow),
    pytest.param("lightgbm", "cancer", "text", "bootstrap", marks=pytest.mark.slow),
    pytest.param("lightgbm", "german", "truth", "bootstrap", marks=pytest.mark.slow),
]


def written(name, words, folder, says):
    """train.csv and people.csv, as the user has them."""
    called = dict(zip((0, 1), WORDS[words], strict=True))
    rows = train_rows(name)
    rows.assign(**{LABEL[name]: rows[LABEL[name]].map(called)}).to_csv(folder / "train.csv", index=False)
    asking = outsiders.people(name, says)
    asking.to_csv(folder / "people.csv", index=False)
    return asking.set_index("id")


def look_over(schema):
    """What the comments of the file ask for: nobody is told to change their sex, or to grow younger."""
    text = schema.read_text()
    for name in FIXED:
        text = text.replace(f'name = "{name}"\n', f'name = "{name}"\nmutable = false\n')
    schema.write_text(text.replace('name = "age"\n', 'name = "age"\ndirection = "rise"\n'))


def ran(*words, cwd):
    done = invoke(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.filterwarnings("ignore:the members are surrogates")
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras's own
@pytest.mark.parametrize(("library", "name", "words", "change"), CASES)
def test_from_a_table_and_a_file_to_advice_that_was_audited(library, name, words, change, tmp_path, monkeypatch):
    if library == "keras":
        pytest.importorskip("keras")
    monkeypatch.setenv("HOLDFAST_FAMILIES", str(tmp_path / "store"))
    says = getattr(outsiders, f"{library}_files")(name, tmp_path, RETRAINED)
    asking = written(name, words, tmp_path, says)
    (model,) = tmp_path.glob("model.*")
    ran("init", "train.csv", "--label", LABEL[name], cwd=tmp_path)
    look_over(tmp_path / "schema.toml")
    given = ("--data", "train.csv", "--people", "people.csv", "--schema", "schema.toml", "--model", model.name)
    wanted = ("--want", WORDS[words][1])
    if library.startswith("xgboost"):
        (tmp_path / "params.toml").write_text("max_depth = 3\nsubsample = 0.7\nrandom_state = 9\n")  # not in its file
        given = (*given, "--params", "params.toml")
    source = ("--retrained", "retrained") if change is None else ("--retrain", f"{change}:{RETRAINED}")
    ran("explain", *given, *wanted, *source, "--hold", 0.5, "--out", "advice", cwd=tmp_path)
    advice = pd.read_csv(tmp_path / "advice" / "advice.csv")
    assert set(advice["id"]) == set(asking.index)
    plans = advice[advice["found"]]
    assert len(plans) >= 2
    # By the user's own library, and the user's own reading of the file.
    assert (np.asarray(says(plans[features(name)])) == 1).all()
    own = asking.loc[plans["id"]]
    for column in FIXED:
        assert column not in own or (plans[column].to_numpy() == own[column].to_numpy()).all()
    if "age" in own:
        assert (plans["age"].to_numpy() >= own["age"].to_numpy()).all()
    if change is None:
        files = sorted((tmp_path / "retrained").iterdir())[-2:]  # the last third chose nothing
        each = [getattr(outsiders, f"{library}_file")(name, file)(plans[features(name)]) for file in files]
        np.testing.assert_allclose(plans["hold"], np.mean(each, axis=0))
    changes = pd.read_csv(tmp_path / "advice" / "changes.csv")
    assert set(changes["id"]) == set(plans["id"])
    assert (changes["now"].astype(str) != changes["then"].astype(str)).all()
    about = json.loads((tmp_path / "advice" / "summary.json").read_text())
    again = source if change is None else ("--retrain", f"{change}:2")
    said = json.loads(
        ran("audit", *given, *wanted, *again, "--counterfactuals", "advice", "--json", cwd=tmp_path).stdout
    )
    # Models that chose the plans are passed over, so those that judged the advice judge it again.
    assert said["valid"] == len(plans) == about["plans"]
    assert said["changes"][0]["rate"] == pytest.approx(about["audited"][0]["invalidated"])


def swapped(folder):
    """Labels whose alphabet is not the order of the model's classes: benign is 1, and comes first."""
    says = outsiders.xgboost_files("cancer", folder, 0)
    rows = train_rows("cancer")
    rows.assign(diagnosis=rows["diagnosis"].map({1: "benign", 0: "malignant"})).to_csv(
        folder / "train.csv", index=False
    )
    outsiders.people("cancer", says).to_csv(folder / "people.csv", index=False)
    return says


def test_a_booster_whose_file_does_not_hold_its_parameters_is_refitted_with_those_of_a_file(tmp_path):
    says = outsiders.xgboost_files("cancer", tmp_path, 0)
    train_rows("cancer").to_csv(tmp_path / "train.csv", index=False)
    outsiders.people("cancer", says).head(1).to_csv(tmp_path / "people.csv", index=False)
    ran("init", "train.csv", "--label", "diagnosis", cwd=tmp_path)
    given = ("--data", "train.csv", "--people", "people.csv", "--schema", "schema.toml", "--model", "model.ubj")
    given = (*given, "--want", "1", "--retrain", "bootstrap:6")
    for command in ("explain", "promise"):
        done = invoke(command, *given, cwd=tmp_path)
        assert done.returncode == 1
        assert "does not hold the parameters" in done.stderr
        assert "--params FILE" in done.stderr
    (tmp_path / "params.json").write_text('{"max_depth": 3, "subsample": 0.7}')
    ran("explain", *given, "--params", "params.json", "--out", "advice", cwd=tmp_path)
    decided = json.loads((tmp_path / "advice" / "summary.json").read_text())["decided"]
    assert "xgboost.Booster: given: max_depth 3, subsample 0.7; held by" in str(decided)
    assert "params.json" in decided["files"]
    (tmp_path / "params.toml").write_text("max_depth: 3")
    done = invoke("explain", *given, "--params", "params.toml", cwd=tmp_path)
    assert "params.toml cannot be read as .toml or .json" in done.stderr


def test_classes_in_another_order_than_the_schemas_are_told_before_any_advice(tmp_path):
    says = swapped(tmp_path)
    ran("init", "train.csv", "--label", "diagnosis", cwd=tmp_path)
    given = ("--data", "train.csv", "--people", "people.csv", "--schema", "schema.toml", "--model", "model.ubj")
    done = invoke("explain", *given, "--want", "benign", cwd=tmp_path)
    assert done.returncode == 1
    assert 'classes = ["malignant", "benign"]' in done.stderr
    assert not (tmp_path / "holdfast-advice").exists()
    schema = tmp_path / "schema.toml"
    schema.write_text(
        schema.read_text().replace('classes = ["benign", "malignant"]', 'classes = ["malignant", "benign"]')
    )
    ran("explain", *given, "--want", "benign", cwd=tmp_path)
    advice = pd.read_csv(tmp_path / "holdfast-advice" / "advice.csv")
    assert advice["found"].any()
    assert (says(advice[advice["found"]][features("cancer")]) == 1).all()


def test_a_network_of_other_columns_is_told_what_to_do(tmp_path):
    from safetensors.torch import save_file

    train_rows("german").to_csv(tmp_path / "train.csv", index=False)
    table("german").iloc[-5:].drop(columns="risk").to_csv(tmp_path / "people.csv", index=False)
    save_file(outsiders.torch_module("cancer").state_dict(), tmp_path / "model.safetensors")
    given = ("--data", "train.csv", "--people", "people.csv", "--label", "risk", "--model", "model.safetensors")
    done = invoke("explain", *given, cwd=tmp_path)
    assert done.returncode == 1
    assert "takes 8 columns" in done.stderr
    assert "Encoding.fit(table, schema).encode(table)" in done.stderr


def test_a_networks_file_that_is_to_be_retrained_is_told_the_ways(tmp_path):
    says = outsiders.torch_files("cancer", tmp_path, 0)
    written("cancer", "numbers", tmp_path, says)
    given = ("--data", "train.csv", "--people", "people.csv", "--label", "diagnosis", "--model", "model.safetensors")
    done = invoke("explain", *given, "--retrain", "seeds:6", cwd=tmp_path)
    assert done.returncode == 1
    for way in ("--retrained FILE", "--hidden", "a function that trains"):
        assert way in done.stderr


def test_models_that_all_chose_the_plans_audit_nothing(tmp_path):
    says = outsiders.torch_files("cancer", tmp_path, RETRAINED)
    written("cancer", "numbers", tmp_path, says)
    given = ("--data", "train.csv", "--people", "people.csv", "--label", "diagnosis", "--model", "model.safetensors")
    ran("explain", *given, "--want", 1, "--retrained", "retrained", "--hold", 0.5, "--out", "advice", cwd=tmp_path)
    chose = sorted((tmp_path / "retrained").iterdir())[0]
    done = invoke("audit", *given, "--counterfactuals", "advice", "--retrained", chose, cwd=tmp_path)
    assert done.returncode == 1
    assert "took part" in done.stderr


@pytest.mark.slow
def test_warnings_are_sentences_without_lines_of_our_code(tmp_path):
    says = outsiders.sklearn_files("cancer", tmp_path, 0)
    written("cancer", "numbers", tmp_path, says)
    given = ("--data", "train.csv", "--people", "people.csv", "--label", "diagnosis", "--model", "model.skops")
    done = holdfast("explain", *given, "--retrain", "seeds:6", "--hold", 0.5, "--rows", 2, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "holdfast: warning: all 6 refits of kind 'seeds' are one model" in done.stderr
    assert ".py" not in done.stderr
    assert "one model: the 2 retrained models of kind 'seeds'" in " ".join(done.stdout.split())
