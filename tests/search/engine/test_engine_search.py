"""The compiled search: valid plans, the cheapest where that can be counted, and the same bits whoever is beside."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from census import CENSUS, census
from conftest import few_or_many
from people_checks import violations
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holdfast import (
    Encoding,
    Feature,
    MinCost,
    Recipe,
    Rehearsed,
    Retraining,
    Schema,
    as_model,
    other_class,
    predict,
    train,
)
from holdfast.models.merged import merged
from holdfast.models.scores import AtLeast, log_odds, margin, probability
from holdfast.search.engine.search import wanted_of
from holdfast.utils.threads import threads_at_most


@few_or_many("people", 60, 400)
@pytest.mark.parametrize("rehearsed", [False, True])
def test_plans_break_no_rule_and_the_models_agree(trained_census, people, rehearsed):
    table, encoding, family, x = trained_census
    x, model = x[:people], family[0]
    target = other_class(model, x)
    method = Rehearsed(family[1:]) if rehearsed else MinCost(norm=1)
    answer = method(model, x, target, encoding.space)
    assert answer.found.float().mean() > (0.3 if rehearsed else 0.5)
    assert (predict(model, answer.point[answer.found]) == target[answer.found]).all()
    if rehearsed:
        assert (family[1:].predict(answer.point[answer.found]) == target[answer.found]).all()
    kept = answer[answer.found]
    ranges = dict(zip(CENSUS.names, encoding.ranges, strict=True))
    before = table.iloc[:people][answer.found.numpy()]
    assert violations(encoding.schema, before, kept.to_frame(encoding, before), census(400, seed=1), ranges) == []
    assert encoding.space.people.to(x).plausible(kept.point, kept.target, kept.origin).all()


def test_the_same_bits_for_any_company_and_number_of_threads(trained_census):
    _, encoding, family, x = trained_census
    x, model, method = x[:40], family[0], Rehearsed(family[1:], temperature=0.2)
    target = other_class(model, x)
    with threads_at_most(1):
        alone = torch.cat(
            [method(model, x[row : row + 1], target[row : row + 1], encoding.space).point for row in range(40)]
        )
        together = method(model, x, target, encoding.space).point
    with threads_at_most(4):
        shared = method(model, x.flip(0), target.flip(0), encoding.space).point.flip(0)
    assert torch.equal(alone, together)
    assert torch.equal(alone, shared)


def small(weights, dtype=torch.float32):
    """Three numbers on small grids and a job, and a linear model over them."""
    features = (
        Feature("a", "integer", lower=0, upper=6),
        Feature("b", "integer", lower=0, upper=5, direction="rise"),
        Feature("c", "integer", lower=-2, upper=2),
        Feature("job", "categorical", levels=("cook", "nurse", "none")),
    )
    import pandas as pd

    rows = itertools.product(range(7), range(6), range(-2, 3), ("cook", "nurse", "none"))
    table = pd.DataFrame(list(rows), columns=["a", "b", "c", "job"])
    encoding = Encoding.fit(
        table.assign(label=np.where(table["a"] > 3, "yes", "no")),
        Schema(features, "label", ("no", "yes")),
        scaling="minmax",
    )
    every = encoding.encode(table, dtype)
    draw = torch.Generator().manual_seed(weights)
    weight = torch.randn(every.shape[1], generator=draw, dtype=torch.float64)
    score = every.double() @ weight
    return encoding, every, weight, score.median()


@few_or_many("seed", 0, 7)
@pytest.mark.parametrize("norm", [1, 2])
def test_among_all_points_of_a_small_world_the_cheapest_is_found(seed, norm):
    encoding, every, weight, middle = small(seed)
    table = encoding.decode(every)
    labels = np.where((every.double() @ weight > middle).numpy(), "yes", "no")
    model = as_model(LogisticRegression(C=1e4).fit(every.numpy(), labels), encoding)
    del table
    space = encoding.space.without_people()
    x = every[::17]
    target = other_class(model, x)
    answer = MinCost(norm=norm)(model, x, target, space)
    said = predict(model, every)
    costs = []
    for row, wanted in zip(x, target, strict=True):
        home = row.expand(len(every), -1)
        valid = ~space.violations(every, home).any(1) & (said == wanted)
        price = (space.moved(every, home) ** norm).sum(1)[valid]
        costs.append(float(price.min()) if len(price) else np.inf)
    best = torch.tensor(costs)
    assert torch.equal(answer.found, best.isfinite())
    own = (space.moved(answer.point, x) ** norm).sum(1)[answer.found]
    ratio = own / best[answer.found]
    assert (ratio > 1 - 1e-3).all()
    assert ratio.mean() < 1.02


def test_what_cannot_be_read_and_another_score_is_left_to_other_searches(trained_census):
    _, _, family, _ = trained_census
    assert wanted_of(family[0], margin) is not None
    assert wanted_of(family[0], log_odds) is not None
    assert wanted_of(family[0], AtLeast(margin, 0.1)) is not None
    assert wanted_of(family[0], probability) is None
    assert wanted_of(lambda x: x, margin) is None
    three = train(torch.randn(30, 3), torch.arange(30) % 3, Recipe((4,), epochs=1), [Retraining()])[0]
    assert wanted_of(three, log_odds) is None
    assert wanted_of(merged(three, ((0,), (1, 2))), margin) is not None


@pytest.mark.slow
def test_a_linear_model_behind_a_pipeline_is_searched_among_its_members(trained_census):
    table, encoding, family, x = trained_census
    labels = table[CENSUS.label]
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(x.numpy(), labels)
    model = as_model(fitted, encoding)
    x = x[:20]
    target = other_class(model, x)
    answer = Rehearsed(family, search=MinCost(norm=1))(model, x, target, encoding.space)
    rows = answer.found
    assert rows.any()
    assert (fitted.predict(answer.point[rows].numpy()) == np.array(encoding.schema.classes)[target[rows]]).all()
    assert (family.predict(answer.point[rows]) == target[rows]).all()


@pytest.mark.slow
def test_where_nothing_can_be_kept_the_search_compiles_all_the_same(tmp_path):
    closed = tmp_path / "closed"
    closed.write_text("a file where a folder would be")
    code = (
        "import torch, holdfast as hf\n"
        "from holdfast.search.engine.compiled import entry\n"
        "assert entry(lambda x: x + 1)(2) == 3\n"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(closed), "NUMBA_CACHE_DIR": str(closed)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
