"""A user's own function, or a user's own list, may give models of any framework: each is asked as the deployed one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from conftest import EVERYTHING, everything
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

from holdfast import (
    Encoding,
    Family,
    MinCost,
    Recipe,
    Retraining,
    as_model,
    audit,
    changes,
    other_class,
    predict,
    read_model,
    refit,
    save_model,
    seeds,
    train,
)
from holdfast.families.own_training import gather_models, train_by

TABLE, NEW = everything(240), everything(80, seed=1)
ENCODING = Encoding.fit(TABLE, EVERYTHING)
NAMES, LABEL = list(EVERYTHING.names), EVERYTHING.label
NUMBERS, LEVELS = ["income", "age", "debt"], ["owner", "grade", "job", "delay"]
X, Y = ENCODING.encode(TABLE), ENCODING.labels(TABLE)
LABELS = TABLE[LABEL].to_numpy()


def pipeline(rows, seed):
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), LEVELS), (StandardScaler(), NUMBERS))
    own = make_pipeline(columns, RandomForestClassifier(8, random_state=seed))
    return own.fit(TABLE[NAMES].iloc[rows], LABELS[rows])


def classifier(rows, seed):
    xgboost = pytest.importorskip("xgboost")
    own = xgboost.XGBClassifier(n_estimators=10, max_depth=3, subsample=0.7, random_state=seed)
    return own.fit(X.numpy()[rows], Y.numpy()[rows])


def booster(rows, seed):
    return classifier(rows, seed).get_booster()


def module(rows, seed):
    """Takes encoded rows and gives one probability, of "yes"."""
    torch.manual_seed(seed)
    own = nn.Sequential(nn.Linear(X.shape[1], 6), nn.ReLU(), nn.Linear(6, 1), nn.Sigmoid())
    adam = torch.optim.Adam(own.parameters(), lr=0.05)
    for _ in range(60):
        adam.zero_grad()
        nn.functional.binary_cross_entropy(own(X[rows])[:, 0], Y[rows].float()).backward()
        adam.step()
    return own


def function(rows, seed):
    own = pipeline(rows, seed)
    return lambda table: own.predict_proba(table)


EVERYONE = np.arange(len(TABLE))
MAKERS = [pipeline, classifier, booster, module, function]


@pytest.mark.parametrize("make", MAKERS)
def test_a_function_returns_models_of_any_framework(make):
    deployed = as_model(make(EVERYONE, 0), ENCODING)
    members = seeds(3) + changes.bootstrap(3)
    family = train_by(make, members, ENCODING, deployed, TABLE, workers=1, held_out=NEW)
    assert family.kinds == ("seeds",) * 3 + ("bootstrap",) * 3
    assert family.surrogates == ""
    assert len(family.accuracy) == 6
    by_hand = as_model(make(EVERYONE, 2), ENCODING)
    torch.testing.assert_close(family.logits(X)[1], by_hand(X), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(family[1](X), by_hand(X), rtol=1e-6, atol=1e-6)
    if make in (classifier, booster):  # searched by its trees, as the deployed model is
        assert all(model.ensemble is not None for model in family.foreign)
    found = MinCost(norm=1, steps=20)(deployed, X[:16], other_class(deployed, X[:16]), ENCODING.space.without_people())
    assert len(audit(found, family).kinds) == 6


@pytest.mark.slow
def test_workers_give_the_same_members():
    deployed = as_model(booster(EVERYONE, 0), ENCODING)
    here, there = (
        train_by(booster, changes.bootstrap(3), ENCODING, deployed, TABLE, workers=count) for count in (1, 2)
    )
    assert torch.equal(here.logits(X), there.logits(X))


def test_a_function_may_write_files_and_return_their_names(tmp_path):
    def write(rows, seed):
        path = tmp_path / f"{seed}.ubj"
        booster(rows, seed).save_model(path)
        return str(path)

    deployed = read_model(write(EVERYONE, 0), ENCODING)
    family = train_by(write, seeds(3), ENCODING, deployed, TABLE, workers=1)
    direct = train_by(booster, seeds(3), ENCODING, deployed, TABLE, workers=1)
    assert torch.equal(family.logits(X), direct.logits(X))
    again = gather_models([tmp_path / f"{seed}.ubj" for seed in (1, 2, 3)], ENCODING, deployed)
    assert torch.equal(again.logits(X), direct.logits(X))
    assert again.kinds == ("own",) * 3


class Stubborn(nn.Module):
    """Cannot be handed to another process, as some models cannot."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)

    def __reduce__(self):
        raise TypeError("this model stays here")


@pytest.mark.slow
def test_models_that_cannot_leave_their_process_are_trained_here():
    deployed = as_model(module(EVERYONE, 0), ENCODING)

    def stubborn(rows, seed):
        return Stubborn(module(rows, seed))

    family = train_by(stubborn, seeds(3), ENCODING, deployed, TABLE, workers=2)
    direct = train_by(module, seeds(3), ENCODING, deployed, TABLE, workers=1)
    torch.testing.assert_close(family.logits(X), direct.logits(X))


def test_a_function_that_cannot_be_handed_over_runs_here():
    import threading

    lock = threading.Lock()

    def locked(rows, seed):
        with lock:
            return pipeline(rows, seed)

    deployed = as_model(pipeline(EVERYONE, 0), ENCODING)
    assert len(train_by(locked, seeds(2), ENCODING, deployed, TABLE, workers=2)) == 2


def test_what_raises_or_cannot_be_asked_is_left_out_and_reported():
    deployed = as_model(pipeline(EVERYONE, 0), ENCODING)

    def shaky(rows, seed):
        if seed == 2:
            raise RuntimeError("no luck with two")
        return {3: None, 4: {"weights": 1}}.get(seed, 0) if seed > 2 else pipeline(rows, seed)

    with pytest.warns(UserWarning, match=r"3 of 4 trainings failed .* no luck with two; see .failures"):
        family = train_by(shaky, seeds(4), ENCODING, deployed, TABLE, workers=1)
    assert len(family) == 1
    assert "no luck with two" in family.failures[0].details
    assert "returned nothing; it must return the model, or the name of its file" in family.failures[1].error
    assert "dict cannot be asked" in family.failures[2].error
    with pytest.raises(RuntimeError, match=r"(?s)none of 1 trainings gave a model.*no luck with two"):
        train_by(shaky, seeds(1, start=2), ENCODING, deployed, TABLE, workers=1)


def test_a_function_that_returns_the_deployed_model_or_ignores_its_arguments_is_caught():
    own = pipeline(EVERYONE, 0)
    deployed = as_model(own, ENCODING)
    with pytest.raises(RuntimeError, match="the training returned the deployed model itself"):
        train_by(lambda rows, seed: own, seeds(2), ENCODING, deployed, TABLE, workers=1)
    with pytest.warns(UserWarning, match="all 2 refits of kind 'seeds' are one model: this training does not notice"):
        train_by(lambda rows, seed: pipeline(EVERYONE, 5), seeds(2), ENCODING, deployed, TABLE, workers=1)


def test_models_of_another_training_are_surrogates():
    deployed = as_model(pipeline(EVERYONE, 0), ENCODING)

    def other(rows, seed):
        return LogisticRegression(C=1e-4).fit(X.numpy()[rows], LABELS[rows])

    with pytest.warns(UserWarning, match="the members are surrogates"):
        family = train_by(other, changes.bootstrap(4), ENCODING, deployed, TABLE, workers=1)
    assert family.surrogates


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"function": 3}, TypeError, "function"),
        ({"function": RandomForestClassifier}, TypeError, r"must take \(rows, seed\) and return a model"),
        ({"changes": "seeds"}, TypeError, "changes must be a list of Retrainings"),
        ({"changes": []}, ValueError, "changes is empty"),
        ({"changes": changes.label_noise(1, 0.1)}, ValueError, "changes more than rows and seeds"),
        ({"changes": [Retraining(left_out=900)]}, ValueError, "leaves out a row that is not there; there are 240"),
        ({"table": X}, TypeError, "table must be the one that the deployed model was trained on"),
        ({"workers": 0}, ValueError, "workers"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_any_work(arguments, kind, message):
    right = {"function": lambda rows, seed: pytest.fail("it ran"), "changes": seeds(2), "table": TABLE, "workers": 1}
    with pytest.raises(kind, match=message):
        train_by(**{**right, **arguments}, encoding=ENCODING, deployed=as_model(pipeline(EVERYONE, 0), ENCODING))


# ---- a list of models ----


@pytest.mark.parametrize("make", MAKERS)
def test_a_list_of_models_is_a_family(make):
    deployed = as_model(make(EVERYONE, 0), ENCODING)
    family = gather_models([make(EVERYONE, seed) for seed in (1, 2)], ENCODING, deployed)
    assert family.kinds == ("own", "own")
    torch.testing.assert_close(family.logits(X)[1], as_model(make(EVERYONE, 2), ENCODING)(X), rtol=1e-6, atol=1e-6)
    assert gather_models(family, ENCODING, deployed) is family


def test_members_are_asked_in_the_way_that_was_said_of_the_deployed_model():
    turned = ("yes", "no")  # the classes of outputs 0 and 1: their labels were turned round

    def make(rows, seed):
        xgboost = pytest.importorskip("xgboost")
        own = xgboost.XGBClassifier(n_estimators=10, max_depth=3, random_state=seed, subsample=0.7)
        return own.fit(X.numpy()[rows], 1 - Y.numpy()[rows]).get_booster()

    deployed = as_model(make(EVERYONE, 0), ENCODING, takes="encoded", classes=turned)
    family = gather_models([make(EVERYONE, 1)], ENCODING, deployed)
    assert (family.predict(X)[0] == Y).double().mean() > 0.75
    assert all(model.ensemble is not None for model in family.foreign)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = as_model(module(EVERYONE, 0), ENCODING, classes=turned)
    beside = gather_models([module(EVERYONE, 1)], ENCODING, network)
    assert (beside.predict(X)[0] == predict(network, X)).double().mean() > 0.75


def test_networks_from_files_stand_beside_a_network(tmp_path):
    networks = train(X, Y, Recipe((4,), epochs=2), [Retraining(), *seeds(2)])
    paths = [save_model(networks[place], tmp_path / f"{place}.safetensors") for place in (1, 2)]
    family = gather_models([tmp_path / "1.safetensors", tmp_path / "2.safetensors"], ENCODING, networks[0])
    assert len(paths) == 2
    torch.testing.assert_close(family.logits(X), networks[1:].logits(X))
    mixed = gather_models([networks[1], pipeline(EVERYONE, 1)], ENCODING, networks[0])
    assert mixed.logits(X).shape == (2, len(X), 2)
    with pytest.raises(ValueError, match=r"models\[0\], .*0.safetensors is the deployed model again; leave it out"):
        save_model(networks[0], tmp_path / "0.safetensors")
        gather_models([tmp_path / "0.safetensors"], ENCODING, networks[0])


def test_a_model_that_is_there_twice_is_named(tmp_path):
    own, other = pipeline(EVERYONE, 0), pipeline(EVERYONE, 1)
    deployed = as_model(own, ENCODING)
    with pytest.raises(ValueError, match=r"models\[1\], Pipeline is the deployed model again"):
        gather_models([other, own], ENCODING, deployed)
    with pytest.raises(ValueError, match=r"models\[2\], Pipeline is models\[0\], Pipeline again"):
        gather_models([other, pipeline(EVERYONE, 2), other], ENCODING, deployed)
    first, copy = tmp_path / "first.ubj", tmp_path / "copy.ubj"
    for path in (first, copy):
        booster(EVERYONE, 1).save_model(path)
    with pytest.raises(ValueError, match=r"models\[1\], .*copy.ubj is models\[0\], .*first.ubj again"):
        gather_models([first, copy], ENCODING, deployed)
    with pytest.raises(ValueError, match=r"models\[0\], .*copy.ubj is the deployed model again"):
        gather_models([str(copy)], ENCODING, read_model(first, ENCODING))


def test_what_is_no_list_of_models_is_refused(tmp_path):
    deployed = as_model(pipeline(EVERYONE, 0), ENCODING)
    with pytest.raises(TypeError, match=r"expected a list of models or of their files, got str; give \[model, ...\]"):
        gather_models("model.ubj", ENCODING, deployed)
    with pytest.raises(ValueError, match="there are no models in the list"):
        gather_models([], ENCODING, deployed)
    with pytest.raises(TypeError, match=r"models\[1\], dict: dict cannot be asked"):
        gather_models([pipeline(EVERYONE, 1), {}], ENCODING, deployed)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        gather_models([tmp_path / "none.ubj"], ENCODING, deployed)


def test_keras_models_are_read_like_the_deployed_one(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")

    def make(rows, seed):
        keras.utils.set_random_seed(seed)
        own = keras.Sequential([keras.Input((X.shape[1],)), keras.layers.Dense(4, "tanh"), keras.layers.Dense(2)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        own.compile(keras.optimizers.Adam(0.05), loss)
        own.fit(X.numpy()[rows], Y.numpy()[rows], epochs=60, batch_size=240, verbose=0)
        return own

    deployed = as_model(make(EVERYONE, 0), ENCODING)
    family = train_by(make, seeds(2), ENCODING, deployed, TABLE, workers=1)
    assert isinstance(family, Family)
    assert len(family) == 2
    assert family.failures == ()


def test_refits_and_a_function_that_does_the_same_agree():
    deployed = as_model(pipeline(EVERYONE, 0), ENCODING)
    ours = refit(deployed, TABLE, seeds(2), workers=1)
    theirs = train_by(pipeline, seeds(2), ENCODING, deployed, TABLE, workers=1)
    assert torch.equal(ours.logits(X), theirs.logits(X))
