"""An explainer on disk: the same advice after it was loaded, and no other table or model in its place."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import holdfast as hf
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
    first, second = (each.explain(applicants(10), hold=0.6).wide() for each in (own, loaded))
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


def test_a_description_that_was_edited_is_refused(kept, tmp_path):
    _, folder = kept
    for path in folder.rglob("*"):
        if path.is_file():
            place = tmp_path / path.relative_to(folder)
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(path.read_bytes())
    about = json.loads((tmp_path / "explainer.json").read_text())
    (tmp_path / "explainer.json").write_text(json.dumps({**about, "want": "no"}))
    with pytest.raises(ValueError, match="checksum"):
        hf.Explainer.load(tmp_path, model=model(), table=train_rows())


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
    pd.testing.assert_frame_equal(*(each.explain(applicants(6), hold=0.5).wide() for each in (own, loaded)))
