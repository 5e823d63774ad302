"""A model is known whatever wraps it, so that it never audits its own counterfactuals."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
import torch
from conftest import linear
from torch import nn

from holdfast import PGD, Family, Recipe, Retraining, Space, audit, other_class, predict, seeds, train
from holdfast.models.identity import identities, identity
from holdfast.models.merged import merged

X = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] + X[:, 1] > 0).long()
RECIPE = Recipe((8,), epochs=20, batch=8)


@pytest.fixture(scope="module")
def network():
    return train(X, Y, RECIPE, [Retraining()])[0]


def module_of(network) -> nn.Module:
    """The same layers as torch keeps them: (out, in)."""
    module = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
    for layer, weight, bias in zip((module[0], module[2]), network.weights, network.biases, strict=True):
        layer.weight.data, layer.bias.data = weight.T.clone(), bias.clone()
    return module.eval()


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def __call__(self, x):
        return self.inner(x)

    def answer(self, x):
        return self.inner(x) + 1


WRAPPED = {
    "itself": lambda network: network,
    "a function": lambda network: lambda x: network(x),
    "a default argument": lambda network: lambda x, own=network: own(x),
    "a partial": lambda network: functools.partial(lambda own, x: own(x), network),
    "an object": Wrapper,
    "a method": lambda network: Wrapper(network).answer,
    "an object in an object": lambda network: Wrapper(Wrapper(network)),
    "merged classes": lambda network: merged(network, ((0,), (1,))),
    "a module of the same weights": module_of,
    "a copy of that": lambda network: copy.deepcopy(module_of(network)),
    "in double precision": lambda network: module_of(network).double(),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_the_deployed_model_does_not_audit_itself(name, network):
    found = PGD(radius=6.0)(network, X, other_class(network, X), Space.free(X))
    assert identities(WRAPPED[name](network)) & identities(network)
    with pytest.raises(ValueError, match=r"members \[0\] .* that the search has seen"):
        audit(found, Family.from_models([WRAPPED[name](network)]))


def test_the_same_model_twice_is_refused(network):
    found = PGD(radius=6.0)(network, X, other_class(network, X), Space.free(X))
    other = train(X, Y, RECIPE, seeds(1))[0]
    with pytest.raises(ValueError, match="the same retraining more than once"):
        audit(found, Family.from_models([other, Wrapper(other)]))
    plain = linear(torch.ones(5), 0.0)
    with pytest.raises(ValueError, match="the same retraining more than once"):
        audit(found, Family.from_models([plain, plain]))


def test_models_that_differ_in_any_number_are_different(network):
    other = train(X, Y, RECIPE, seeds(1))[0]
    weight = torch.ones(5)
    models = [
        network,
        other,
        linear(weight, 0.0),
        linear(weight, 0.5),
        linear(weight + 1, 0.0),
        lambda x: x,
        lambda x: -x,
    ]
    assert len({identity(model) for model in models}) == len(models)


@pytest.mark.parametrize(
    "weights", [torch.ones(5, 2), torch.ones(5, 2).to_sparse(), torch.ones(5, 2).to(torch.complex64), np.ones((5, 2))]
)
def test_a_model_may_keep_its_weights_as_it_likes(weights):
    class Model:
        def __init__(self, weights):
            self.weights = self.biases = weights

        def __call__(self, x):
            return torch.stack([x[:, 0], -x[:, 0]], 1)

    model = Model(weights)
    assert identities(model) == identities(model)
    assert PGD(levels=1, steps=1)(model, X, other_class(model, X), Space.free(X)).seen == identities(model)


def test_an_object_keeps_its_name_while_it_lives():
    class Model:
        def __call__(self, x):
            return x[:, :2]

    one, other = Model(), Model()
    assert identity(one) == identity(one) != identity(other)


def test_members_of_other_classes_are_refused(network):
    found = PGD(radius=6.0)(network, X, other_class(network, X), Space.free(X))
    family = Family.from_models([nn.Linear(5, 3), nn.Linear(5, 5)])
    with pytest.raises(ValueError, match="found for 2 classes but members of .* have 3 and 5"):
        audit(found, family)


def test_a_member_that_answers_like_the_deployed_model_is_named(network):
    found = PGD(radius=6.0)(network, X, other_class(network, X), Space.free(X))
    scaled = module_of(network)
    scaled[2].weight.data *= 2  # the same classes, other numbers
    scaled[2].bias.data *= 2
    with pytest.warns(UserWarning, match=r"members \[0\] .* answer like the deployed model on every row"):
        assert audit(found, Family.from_models([scaled])).rate == 0


# ---- NaN ----


def silent(x):
    return torch.full((len(x), 2), torch.nan)


def test_a_model_that_answers_nan_has_no_class():
    with pytest.raises(ValueError, match=r"answers NaN for 40 of 40 rows, the first of them row 0"):
        predict(silent, X)
    with pytest.raises(ValueError, match="answers NaN"):
        other_class(silent, X)


@pytest.mark.parametrize("target", [0, 1])
def test_members_that_answer_nan_invalidate_whatever_the_target_is(target, network):
    wanted = torch.full((len(X),), target)
    found = PGD(radius=9.0)(network, X, wanted, Space.free(X))
    family = Family.from_models([lambda x, own=own: silent(x) + own for own in range(3)])
    assert (family.predict(X) == -1).all()
    with pytest.warns(UserWarning, match=r"members \[0, 1, 2\] .* answer NaN for some counterfactuals"):
        result = audit(found, family)
    assert result.rate == 1
    assert result.baseline_flips == 1
