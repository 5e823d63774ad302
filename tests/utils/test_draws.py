"""What torch's default dtype is changes no number of ours."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from holdfast import PGD, SNS, Latent, MinCost, Prototype, Recipe, Space, audit, changes, other_class, seeds, train
from holdfast.search.random_points import random_points

CHANGES = [*seeds(2), *changes.weight_noise(1, 0.1), *changes.label_noise(1, 0.1), *changes.bootstrap(1)]


@pytest.fixture
def another_default():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def rows():
    x = torch.randn(120, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    return x, (x[:, 0] + x[:, 1] ** 2 > 0.5).long()


def trained(workers=1):
    return train(*rows(), Recipe((10, 5), epochs=4), CHANGES, workers=workers)


def modules(workers=1):
    def build():
        return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.ReLU(), nn.Linear(8, 2))

    return train(*rows(), Recipe(network=build, epochs=2), seeds(2), workers=workers)


def found(method):
    x, _ = rows()
    model, space = trained()[0], Space.free(x)
    return SNS(steps=5)(model, method(model, x, other_class(model, x), space), space)


def methods():
    fitted_to = (*rows(), Space.free(rows()[0]))
    return {
        "pgd": PGD(random_start=True),
        "min-l1": MinCost(norm=1, steps=20),
        "prototype": Prototype(steps=20, constants=2).fit(*fitted_to),
        "latent": Latent(samples=50, steps=20).fit(*fitted_to),
    }


@pytest.fixture(scope="module")
def before():
    return {name: found(method) for name, method in methods().items()}


@pytest.fixture(scope="module")
def families():
    return trained(), modules()


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_training_gives_the_same_bits(workers, families, another_default):
    for first, again in zip(families, (trained(workers), modules(workers)), strict=True):
        assert first.fingerprints == again.fingerprints
        for one, other in zip(first.stacks, again.stacks, strict=True):
            assert all(torch.equal(one.state[name], other.state[name]) for name in one.state)


@pytest.mark.parametrize("name", ["pgd", "min-l1", "prototype", "latent"])
def test_fitting_searching_and_auditing_give_the_same_bits(name, before, families, another_default):
    first, again = before[name], found(methods()[name])
    assert torch.equal(first.point, again.point)
    assert torch.equal(first.found, again.found)
    assert repr(audit(first, families[0][1:])) == repr(audit(again, families[0][1:]))


def test_random_points_are_the_same(another_default):
    x, _ = rows()
    under_another_default = random_points(Space.free(x), x, 3)
    torch.set_default_dtype(torch.float32)
    assert torch.equal(under_another_default, random_points(Space.free(x), x, 3))
