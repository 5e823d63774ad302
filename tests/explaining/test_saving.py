"""An explainer on disk: the same advice after it was loaded, and no other table or model in its place."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pandas as pd
import pytest

import holdfast as hf
from holdfast.explaining.saving import EXPLAINER
from holdfast.utils.sealing import sealed
from killing import forks, killed_before, posix
from loans import FEATURES, applicants, estimator, model, schema, train_rows


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept") / "recourse"
    own = hf.Explainer(
        model(), train_rows(), want="yes", schema=schema(), retrain=hf.changes.bootstrap(9), workers=1,
        sizes=hf.Sizes(rehearsal=2, selection=3, audit=4),
    )  # fmt: skip
    assert own.save(folder) == folder
    return own, folder


def test_what_is_loaded_gives_the_same_advice(kept):
    own, folder = kept
    loaded = hf.Explainer.load(folder, model=model(), table=train_rows(), workers=1)
    assert loaded.want == "yes"
    assert loaded.roles.counts() == own.roles.counts()
    assert loaded.family.fingerprints == own.family.fingerprints
    first, second = (each.explain(applicants(4), hold=0.6).wide() for each in (own, loaded))
    pd.testing.assert_frame_equal(first, second)


def test_a_table_that_was_read_from_a_file_is_the_same_table(kept, tmp_path):
    own, folder = kept
    train_rows().to_csv(tmp_path / "train.csv", index=False)
    again = pd.read_csv(tmp_path / "train.csv")[["approved", "housing", *FEATURES[:-1]]]  # in another order
    loaded = hf.Explainer.load(folder, model=model(), table=again, workers=1)
    assert loaded.family.fingerprints == own.family.fingerprints


def test_another_table_is_refused(kept):
    _, folder = kept
    other = train_rows()
    other.loc[0, "income"] += 1
    with pytest.raises(ValueError, match="not the table"):
        hf.Explainer.load(folder, model=model(), table=other)
    with pytest.raises(ValueError, match="299 rows, and there were 300"):
        hf.Explainer.load(folder, model=model(), table=train_rows().iloc[1:])


def test_another_model_is_refused(kept):
    _, folder = kept
    table = train_rows().iloc[:200]
    other = estimator().fit(table[FEATURES], table["approved"])
    with pytest.raises(ValueError, match="not the model"):
        hf.Explainer.load(folder, model=other, table=train_rows())


@pytest.fixture
def copied(kept, tmp_path):
    """A folder of one's own, to do something to."""
    return shutil.copytree(kept[1], tmp_path / "recourse")


def load(folder):
    return hf.Explainer.load(folder, model=model(), table=train_rows(), workers=1)


def test_a_description_that_was_edited_is_refused(copied):
    about = json.loads((copied / "explainer.json").read_text())
    (copied / "explainer.json").write_text(json.dumps({**about, "want": "no"}))
    with pytest.raises(ValueError, match="checksum"):
        load(copied)


def test_the_schema_of_another_folder_is_refused(copied):
    schema().revise("age", mutable=True).save(copied / "schema.toml")
    with pytest.raises(ValueError, match="recourse.*schema.toml was changed"):
        load(copied)


def test_models_of_another_folder_are_refused(copied, tmp_path):
    other = hf.Explainer(
        model(), train_rows(), want="yes", schema=schema(), retrain=hf.changes.bootstrap(3), workers=1
    ).save(tmp_path / "other")
    shutil.rmtree(copied / "models")
    shutil.copytree(other / "models", copied / "models")
    with pytest.raises(
        ValueError, match=r"family-\w+\.safetensors is missing; models/manifest.json was changed; .*added"
    ):
        load(copied)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: (folder / "schema.toml").unlink(), "schema.toml is missing"),
        (lambda folder: shutil.rmtree(folder / "models"), "models/manifest.json is missing"),
        (lambda folder: (folder / "models" / "more.json").write_text(""), "models/more.json was added"),
    ],
)
def test_a_folder_that_is_not_whole_is_refused(copied, change, says):
    change(copied)
    with pytest.raises(ValueError, match=says):
        load(copied)


def test_locks_parts_and_notes_beside_it_are_no_change(copied):
    for name in ("notes.txt", ".explainer.json.lock", "models/.manifest.json.lock", ".holdfast.0.part"):
        (copied / name).write_text("")
    assert len(load(copied).family) == 9


def test_a_folder_of_before_there_were_digests_is_refused(copied):
    about = json.loads((copied / "explainer.json").read_text())
    old = {name: about[name] for name in about if name not in ("holdfast", "format", "checksum", "files")}
    (copied / "explainer.json").write_text(json.dumps(sealed(replace(EXPLAINER, format=1), old)))
    with pytest.raises(ValueError, match="Explainer.save"):
        load(copied)


@pytest.mark.parametrize("retrain", [None, hf.changes.bootstrap(3)])
def test_an_explainer_is_saved_over_another(copied, retrain):
    given = {"want": "yes", "schema": schema(), "workers": 1}
    hf.Explainer(model(), train_rows(), retrain=retrain, **given).save(copied)
    assert len(list(copied.glob("models/*"))) == (0 if retrain is None else 2)
    loaded = load(copied)
    assert loaded.retrain is None if retrain is None else len(loaded.family) == 3


@pytest.mark.slow
@posix
@forks
def test_a_save_that_is_killed_leaves_the_old_explainer_or_none_that_is_loaded(tmp_path):
    given = {"want": "yes", "retrain": hf.seeds(3), "workers": 1}
    own = hf.Explainer(hf.Recipe((2,), epochs=1), train_rows(), schema=schema(), **given)
    other = replace(own, schema=schema().revise("age", mutable=True))
    before = own.save(tmp_path / "before")
    other.save(tmp_path / "elsewhere")  # here, so that the networks are trained once and not by every process
    moment, killed = 0, True
    while killed:
        folder = shutil.copytree(before, tmp_path / str(moment))
        killed = killed_before(moment, folder, other.save, folder)
        said, loaded = "", None
        try:
            loaded = hf.Explainer.load(folder, table=train_rows(), workers=1)
        except (FileNotFoundError, ValueError) as error:
            said = str(error)
        whole = loaded is not None and (killed or loaded.schema_given["age"].mutable)  # the old one, or the new one
        assert whole or "Explainer.save" in said
        moment += 1
    assert moment > 5


def test_files_of_others_are_neither_removed_nor_taken_for_models(kept, tmp_path):
    own, _ = kept
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "mine.pkl").write_text("mine")
    with pytest.raises(ValueError, match="models/mine.pkl"):
        own.save(tmp_path)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["mine.pkl"]


def test_models_that_cannot_be_kept_are_told_and_given_again(tmp_path):
    draws = [train_rows().sample(frac=1, replace=True, random_state=seed) for seed in range(3)]
    others = [estimator().fit(draw[FEATURES], draw["approved"]) for draw in draws]
    functions = [lambda table, one=one: one.predict_proba(table[FEATURES]) for one in others]

    def deployed(table):
        return model().predict_proba(table[FEATURES])

    given = {"want": "yes", "schema": schema(), "workers": 1, "takes": "table", "outputs": "probabilities"}
    own = hf.Explainer(deployed, train_rows(), retrain=functions, **given)
    with pytest.raises(ValueError, match="retrain="):
        own.save(tmp_path)
    assert not (tmp_path / "explainer.json").exists()
    hf.Explainer(deployed, train_rows(), **given).save(tmp_path)
    loaded = hf.Explainer.load(tmp_path, model=deployed, table=train_rows(), retrain=functions, workers=1)
    assert len(loaded.family) == 3


def test_a_network_of_ours_needs_no_model_to_be_loaded(tmp_path):
    recipe = hf.Recipe((8,), epochs=10)
    own = hf.Explainer(recipe, train_rows(), want="yes", schema=schema(), retrain=hf.seeds(3), workers=1)
    own.save(tmp_path)
    loaded = hf.Explainer.load(tmp_path, table=train_rows(), workers=1)
    assert loaded.ours
    pd.testing.assert_frame_equal(*(each.explain(applicants(3), hold=0.5).wide() for each in (own, loaded)))
