"""What advice knows of its rows, its model and its retrained models: enough to tell them from others later."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import replace

import pytest
import sklearn
import torch

import holdfast as hf
from holdfast.explaining.saving import table_hash
from loans import FEATURES, applicants, estimator, model, schema, train_rows, write_files


def fitted(rows, seed=0):
    table = train_rows().iloc[rows]
    return estimator().fit(table[FEATURES], table["approved"])


def explained(own=None, **settings):
    return hf.Explainer(own or model(), train_rows(), want="yes", schema=schema(), workers=1, **settings)


def decided(own=None, **settings):
    return explained(own, **settings).explain(applicants(3)).decided


@pytest.fixture(scope="module")
def advice():
    return explained(retrain=hf.changes.bootstrap(6)).explain(applicants(6), hold=0.5)


def test_the_table_is_told_from_another_one(advice):
    explainer = explained()
    assert advice.decided["data"] == {
        "rows": 300,
        "features": 5,
        "label": "approved",
        "classes": ["no", "yes"],
        "sha256": table_hash(explainer.encoding, train_rows()),
    }
    other = train_rows()
    other.loc[other.index[0], "income"] += 1
    assert (
        replace(explainer, table=other).explain(applicants(3)).decided["data"]["sha256"]
        != (advice.decided["data"]["sha256"])
    )


def test_a_model_of_a_file_is_known_by_its_file(tmp_path):
    path = write_files(tmp_path, 3) / "model.skops"
    of_file = hashlib.sha256(path.read_bytes()).hexdigest()
    by_path, read = decided(path), decided(hf.read_model(path, explained().encoding))
    assert by_path["model_sha256"] == read["model_sha256"] == of_file
    assert by_path["model_sha256_of"] == read["model_sha256_of"] == "its file"


def test_a_network_of_a_file_is_known_by_its_file(tmp_path):
    network = explained(hf.Recipe(hidden=(4,), epochs=2)).deployed
    path = hf.save_model(network, tmp_path / "network.safetensors")
    assert decided(path)["model_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_model_in_memory_is_known_by_its_answers(advice):
    again, other = decided(fitted(range(300))), decided(fitted(range(200)))
    assert again["model_sha256"] == advice.decided["model_sha256"]
    assert other["model_sha256"] != advice.decided["model_sha256"]
    assert other["model_sha256_of"] == "its answers to 64 rows of the table, rounded to 2 decimals"


def own_training(rows, seed):
    return fitted(rows, seed)


SOURCES = {
    "refitted": (hf.changes.bootstrap(6), "fitted again by holdfast, with the settings of the deployed model: "
                 "6 of kind 'bootstrap'"),
    "two kinds": (hf.changes.bootstrap(3) + hf.changes.leave_one_out(3, 300),
                  "fitted again by holdfast, with the settings of the deployed model: 3 of kind 'bootstrap', "
                  "3 of kind 'leave-one-out'"),
    "function": ((own_training, hf.changes.bootstrap(4)),
                 "trained by the user's function 'own_training': 4 of kind 'bootstrap'"),
    "models": ([fitted(range(start, 300)) for start in (1, 2, 3)], "given by the user: 3 of kind 'own'"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_where_the_retrained_models_come_from_is_said(name):
    source, told = SOURCES[name]
    assert decided(retrain=source)["retrained_from"] == told


def test_families_and_folders_say_who_made_them(tmp_path):
    family = explained(retrain=hf.changes.bootstrap(3)).family
    assert decided(retrain=family)["retrained_from"] == "fitted again by holdfast beforehand: 3 of kind 'bootstrap'"
    hf.save_family(family, tmp_path / "family")
    told = decided(retrain=tmp_path / "family")["retrained_from"]
    assert told == f"read from '{tmp_path / 'family'}': 3 of kind 'bootstrap'"


def test_networks_say_whose_recipe_trained_them():
    recipe = hf.Recipe(hidden=(4,), epochs=2)
    told = decided(recipe, retrain=hf.seeds(3))["retrained_from"]
    assert told == "networks trained by holdfast, as it trained the deployed one: 3 of kind 'seeds'"


@pytest.mark.filterwarnings("ignore:the members are surrogates")
def test_surrogates_are_called_so(advice):
    worse = estimator().set_params(logisticregression__C=1e-6)
    told = decided(retrain=hf.changes.bootstrap(6), recipe=worse)["retrained_from"]
    assert told.startswith("fitted by holdfast, from a Pipeline that the user gave: 6 of kind 'bootstrap'; they are ")
    assert "surrogates" in told


def test_each_kind_of_change_is_said_in_a_sentence(advice):
    assert advice.decided["kinds_of_change"] == {
        "bootstrap": "Trained again on as many rows, drawn with replacement: another sample of the same people."
    }
    alone = decided()
    assert alone["retrained_from"] is None
    assert alone["kinds_of_change"] == {}


def test_accuracy_is_that_of_the_users_own_models(advice):
    explainer, table = explained(retrain=hf.changes.bootstrap(6)), train_rows()

    def right(own):
        return (own.predict(table[FEATURES]) == table["approved"]).mean()

    audit = [right(explainer.roles.audit[place].wrapped) for place in range(2)]
    assert advice.decided["accuracy"] == {
        "rows": 300,
        "of": "rows of the table that they were fitted on",
        "deployed": pytest.approx(right(model())),
        "audit": {"least": pytest.approx(min(audit)), "greatest": pytest.approx(max(audit))},
    }
    assert set(decided()["accuracy"]) == {"rows", "of", "deployed"}
    unlabelled = replace(explained(), table=table.drop(columns="approved"))
    assert unlabelled.explain(applicants(3)).decided["accuracy"] == {}


def test_versions_name_the_library_of_the_model_too(advice):
    assert advice.decided["versions"] == {
        "holdfast": hf.__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "sklearn": sklearn.__version__,
    }


def test_the_summary_has_all_of_it(advice, tmp_path):
    advice.save(tmp_path / "advice")
    kept = json.loads((tmp_path / "advice" / "summary.json").read_text(encoding="utf-8"))["decided"]
    for name in (
        "data",
        "model_sha256",
        "model_sha256_of",
        "retrained_from",
        "kinds_of_change",
        "accuracy",
        "versions",
    ):
        assert kept[name] == advice.decided[name]
