"""A user's module of torch is retrained by a recipe, and judged beside the deployed one."""

from __future__ import annotations

import pytest
import torch
from conftest import EVERYTHING, everything
from torch import nn

from holdfast import Encoding, Recipe, Retraining, as_model, changes, seeds, train
from holdfast.families.own_training import retrained_network

TABLE, NEW = everything(240), everything(80, seed=1)
ENCODING = Encoding.fit(TABLE, EVERYTHING)
X, Y = ENCODING.encode(TABLE), ENCODING.labels(TABLE)


def build():
    return nn.Sequential(nn.Linear(X.shape[1], 6), nn.Tanh(), nn.Linear(6, 2))


RECIPE = Recipe(network=build, epochs=15, batch=32, learning_rate=0.02)


def test_members_are_those_of_train_and_resemble_the_deployed_module():
    own = train(X, Y, RECIPE, [Retraining()])[0]
    deployed = as_model(own, ENCODING)
    members = seeds(3) + changes.bootstrap(3) + changes.fine_tune(1, epochs=1)
    family = retrained_network(deployed, RECIPE, ENCODING, TABLE, members, new=NEW, held_out=NEW)
    new = ENCODING.encode(NEW), ENCODING.labels(NEW)
    plain = train(X, Y, RECIPE, members, new=new, base=own)
    assert torch.equal(family.logits(X), plain.logits(X))
    assert family.surrogates == ""
    assert len(family.accuracy) == 7


def test_a_recipe_that_did_not_make_the_deployed_module_is_said():
    deployed = as_model(train(X, Y, RECIPE, [Retraining()])[0], ENCODING)
    short = Recipe(network=build, epochs=1, batch=240, learning_rate=1e-4)
    with pytest.warns(UserWarning, match="the members are surrogates"):
        family = retrained_network(deployed, short, ENCODING, TABLE, seeds(3))
    assert family.surrogates


@pytest.mark.filterwarnings("ignore")
def test_a_module_that_is_asked_otherwise_needs_a_function():
    single = nn.Sequential(nn.Linear(X.shape[1], 1), nn.Sigmoid())
    with pytest.raises(ValueError, match=r"one logit per class, .* a function of your own that takes \(rows, seed\)"):
        retrained_network(as_model(single, ENCODING), RECIPE, ENCODING, TABLE, seeds(2))
    turned = as_model(build(), ENCODING, classes=("yes", "no"))
    with pytest.raises(ValueError, match="in the order of the schema"):
        retrained_network(turned, RECIPE, ENCODING, TABLE, seeds(2))
