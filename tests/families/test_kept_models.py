"""Models of every framework, kept and read again: each is asked as it was, and answers to the bit as it did."""

from __future__ import annotations

import json
import os
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import holdfast as hf
from holdfast.families.own_training import gather_models
from loans import FEATURES, NUMBERS, estimator, loans, model, schema, train_rows

ROWS = 300


@cache
def encoding():
    return hf.Encoding.fit(train_rows(), schema())


@cache
def encoded():
    return encoding().encode(loans())


def some(seed):
    """Rows of the table, drawn anew for every member."""
    return train_rows().sample(ROWS, replace=True, random_state=seed)


def on_frame(own, seed):
    table = some(seed)
    return own.fit(table[NUMBERS], table["approved"])


def on_encoded(own, seed):
    table = some(seed)
    return own.fit(encoding().encode(table).numpy(), table["approved"])


def numbered(own, seed):
    table = some(seed)
    return own.fit(encoding().encode(table).numpy(), (table["approved"] == "yes").astype(int))


def xgboost_booster(seed):
    xgboost = pytest.importorskip("xgboost")
    table = some(seed)
    rows = table[FEATURES].assign(housing=table["housing"].astype("category"))
    matrix = xgboost.DMatrix(rows, (table["approved"] == "yes").astype(int), enable_categorical=True)
    return xgboost.train({"objective": "binary:logistic", "max_depth": 3}, matrix, 5)


def lightgbm_booster(seed):
    lightgbm = pytest.importorskip("lightgbm")
    table = some(seed)
    rows = table[FEATURES].assign(housing=table["housing"].astype("category"))
    data = lightgbm.Dataset(rows, (table["approved"] == "yes").astype(int), free_raw_data=False)
    return lightgbm.train({"objective": "binary", "num_leaves": 5, "verbose": -1}, data, 5)


def onnx_graph(seed):
    skl2onnx = pytest.importorskip("skl2onnx")
    own = numbered(LogisticRegression(), seed)
    return skl2onnx.to_onnx(own, encoded()[:1].numpy())


def keras_network(seed):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(seed)
    layers = [keras.Input((encoding().width,)), keras.layers.Dense(4, "relu"), keras.layers.Dense(1, "sigmoid")]
    network = keras.Sequential(layers)
    network.compile("adam", "binary_crossentropy")
    table = some(seed)
    network.fit(encoding().encode(table).numpy(), (table["approved"] == "yes").to_numpy(float), epochs=8, verbose=0)
    return network


def xgboost_classifier(seed):
    xgboost = pytest.importorskip("xgboost")
    return numbered(xgboost.XGBClassifier(n_estimators=5, max_depth=3), seed)


def lightgbm_classifier(seed):
    lightgbm = pytest.importorskip("lightgbm")
    table = some(seed)
    rows = table[FEATURES].assign(housing=table["housing"].astype("category"))
    return lightgbm.LGBMClassifier(n_estimators=5, num_leaves=5, verbose=-1).fit(rows, table["approved"])


def pipeline(seed):
    table = some(seed)
    return estimator().fit(table[FEATURES], table["approved"])


KINDS = {
    "pipeline": pipeline,
    "linear, of a frame": lambda seed: on_frame(LogisticRegression(max_iter=1000), seed),
    "linear, of encoded rows": lambda seed: on_encoded(LogisticRegression(), seed),
    "linear, of numbers for classes": lambda seed: numbered(LogisticRegression(), seed),
    "without probabilities": lambda seed: on_frame(make_pipeline(StandardScaler(), LinearSVC()), seed),
    "predict decides": lambda seed: on_encoded(SVC(random_state=0), seed),
    "tree": lambda seed: on_encoded(DecisionTreeClassifier(max_depth=3), seed),
    "naive": lambda seed: on_frame(GaussianNB(), seed),
    "boosted": lambda seed: on_encoded(HistGradientBoostingClassifier(max_iter=5, random_state=0), seed),
    "XGBClassifier": xgboost_classifier,
    "LGBMClassifier": lightgbm_classifier,
    "xgboost.Booster": xgboost_booster,
    "lightgbm.Booster": lightgbm_booster,
    "ONNX": onnx_graph,
    "Keras": keras_network,
}


@cache
def made(kind, seed):
    return KINDS[kind](seed)


def answers(family):
    return torch.cat([family.logits(encoded()), family.logits(encoded().double())])


def kept(members, folder):
    family = gather_models([made(*each) for each in members], encoding(), hf.as_model(model(), encoding()))
    hf.save_family(family, folder)
    return family, hf.load_family(folder, encoding=encoding())


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_answers_as_before_it_was_kept(kind, tmp_path):
    family, again = kept([(kind, 1), (kind, 2)], tmp_path)
    assert len({row.tobytes() for row in answers(family).numpy()}) > 1
    np.testing.assert_array_equal(answers(family), answers(again))
    np.testing.assert_array_equal(  # with whatever helps a search
        *(torch.stack([hf.predict(each[place], encoded()) for place in range(2)]) for each in (family, again))
    )


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.integers(1, 3)), min_size=2, max_size=6, unique=True))
def test_any_mixture_answers_as_before_it_was_kept(tmp_path_factory, members):
    family, again = kept(members, tmp_path_factory.mktemp("kept"))
    np.testing.assert_array_equal(answers(family), answers(again))
    assert again.kinds == family.kinds


def test_members_of_two_ways_in_one_explainer_answer_alike_after_load(tmp_path):
    """Half were fitted on frames and half on encoded rows, beside a deployed model of encoded rows."""
    deployed = made("linear, of encoded rows", 0)
    members = [made(kind, seed) for seed in (1, 2, 3) for kind in ("linear, of a frame", "linear, of encoded rows")]
    given = {"want": "yes", "schema": schema(), "workers": 1}
    own = hf.Explainer(deployed, train_rows(), retrain=members, **given)
    own.save(tmp_path / "recourse")
    again = hf.Explainer.load(tmp_path / "recourse", model=deployed, table=train_rows(), workers=1)
    np.testing.assert_array_equal(answers(own.family), answers(again.family))


def test_a_member_without_probabilities_beside_a_model_with_some():
    members = [made("without probabilities", seed) for seed in (1, 2)]
    family = gather_models(members, encoding(), hf.as_model(made("linear, of a frame", 0), encoding()))
    for place, own in enumerate(members):
        said = own.predict(loans()[NUMBERS]) == "yes"
        np.testing.assert_array_equal(family.predict(encoded())[place].bool(), said)


def test_models_that_no_manifest_says_how_to_ask_are_refused(tmp_path):
    from holdfast.families.entries import FAMILY
    from holdfast.utils.sealing import sealed

    kept([("tree", 1), ("tree", 2)], tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    old = {name: value for name, value in manifest.items() if name not in ("holdfast", "format", "checksum", "models")}
    (tmp_path / "manifest.json").write_text(json.dumps(sealed(FAMILY, old)))
    with pytest.raises(ValueError, match="save the family again"):
        hf.load_family(tmp_path, encoding=encoding())


@pytest.mark.parametrize("name", ["0./../../evil", "0.pkl", "0."])
def test_a_kept_file_of_another_kind_is_not_read(name, tmp_path):
    import hashlib

    from safetensors.torch import save

    from holdfast.families.entries import FAMILY, tensor_file
    from holdfast.utils.sealing import sealed

    folder = tmp_path / "inner" / "kept"
    folder.mkdir(parents=True)
    kept([("tree", 1)], folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    contents = save({f"0/{name}": torch.zeros(4, dtype=torch.uint8)})
    digest = hashlib.sha256(contents).hexdigest()
    about = {key: value for key, value in manifest.items() if key not in ("holdfast", "format", "checksum")}
    (folder / tensor_file(digest)).write_bytes(contents)
    (folder / "manifest.json").write_text(
        json.dumps(sealed(FAMILY, {**about, "sha256": digest, "file": tensor_file(digest)}))
    )
    with pytest.raises(ValueError, match="of the kind"):
        hf.load_family(folder, encoding=encoding())
    assert not (tmp_path / "evil").exists()
