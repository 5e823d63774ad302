"""Relations in compiled code give what relations in torch give, move by move."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from census import CENSUS, census
from conftest import few_or_many, load_once

from holdfast import Encoding
from holdfast.datasets.prepared import prepare
from holdfast.search.engine.compiled import entry
from holdfast.search.engine.references import reference
from holdfast.search.engine.rules import compiled_rules, complete, workspace
from holdfast.tabular.rules import Limits


@entry
def complete_all(rules, work, values, home, kept, lower, upper, movable, fits):
    known, desk = reference(rules), reference(work)
    for row in range(len(values)):
        fits[row] = complete(known, values[row], home[row], kept[row], lower[row], upper[row], movable[row], desk)


@cache
def people(name):
    if name == "census":
        table, encoding = census(300, seed=3), Encoding.fit(census(), CENSUS)
    else:
        load_once(name)  # skipped, or failed, where there is no such file
        data = prepare(name)
        table, encoding = data.test, data.encoding
    x = encoding.encode(table, torch.float64)
    return x, encoding.space.to(x)


def moves(space, x, count, seed):
    """Rows in which one to three features have the values of somebody else, or others, and must keep them."""
    draw = np.random.default_rng(seed)
    related = space.related
    home = space.values(x)[draw.integers(len(x), size=count)]
    others = space.values(x)[draw.integers(len(x), size=count)]
    numbers = torch.from_numpy(draw.normal(size=home.shape)).round() * torch.where(related.step > 0, related.step, 1)
    own = torch.from_numpy(draw.random(home.shape) < draw.uniform(0.05, 0.5))
    is_number = torch.zeros(home.shape[1], dtype=torch.bool)
    for rule in related.rules:
        for feature, place in zip(rule.features, rule.places, strict=True):
            is_number[place] = feature.is_numeric
    nudged = is_number & torch.from_numpy(draw.random(home.shape) < 0.3)
    moved = torch.where(nudged, home + numbers, others)
    return home, torch.where(own, moved, home), own


@few_or_many("count", 20_000, 1_000_000)
@pytest.mark.parametrize("name", ["census", "german", "heloc", "ctg"])
def test_a_move_is_completed_as_in_torch(name, count):
    x, space = people(name)
    if space.related is None:
        pytest.skip("no relations")
    home, values, kept = moves(space, x, count, seed=1)
    rows = torch.arange(count) % len(x)
    low, high = space.limits(x[rows])
    movable = space.changeable.expand(count, space.width)
    limits: Limits = space.related.limits(*(bound.expand(count, space.width) for bound in (low, high)), movable)
    broken = space.related.broken(values, home)
    expected, fits = values.clone(), torch.ones(count, dtype=torch.bool)
    some = torch.nonzero(broken.any(1)).flatten()
    own = Limits(limits.lower[some], limits.upper[some], limits.movable[some], limits.step, limits.slack)
    expected[some], fits[some] = space.related.completed(broken[some], values[some], home[some], kept[some], own)
    rules = compiled_rules(space.related)
    after, said = values.numpy().copy(), np.zeros(count, dtype=np.bool_)
    parts = (np.ascontiguousarray(part.numpy()) for part in (home, kept, limits.lower, limits.upper, limits.movable))
    complete_all(rules, workspace(rules), after, *parts, said)
    assert np.array_equal(said, fits.numpy())
    np.testing.assert_array_equal(after[said], expected.numpy()[said])
    assert 0 < len(some) < count
    assert said[some.numpy()].any()
