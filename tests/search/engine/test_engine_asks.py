"""Models that are not compiled are asked: the same searches, many people's questions in one call."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from census import CENSUS
from people_checks import violations
from torch import nn

from holdfast import (
    MinCost,
    Rehearsed,
    Sparse,
    as_model,
    assess,
    other_class,
    predict,
)
from holdfast.models.scores import log_odds, margin
from holdfast.search.engine.search import cheapest, pruned, repaired, risen, wanted_of
from holdfast.search.gradients import LEAST_SCORE, Ball
from holdfast.search.task import Task


@pytest.fixture(scope="module")
def task(family, rows, encoding):
    model, x = family[0], rows[0]
    return Task(model, x, other_class(model, x), encoding.space, norm=1)


class Unreadable(nn.Module):
    """A network whose layers nobody can read."""

    def __init__(self, own):
        super().__init__()
        self.own = own

    def forward(self, x):
        return self.own(x)


# ---- the same search, compiled and asked ----


@pytest.mark.parametrize("people", [False, True])
@pytest.mark.parametrize("rehearsed", [False, True])
def test_a_network_gets_the_same_plans_from_both_drivers(trained_census, people, rehearsed):
    _, encoding, family, x = trained_census
    x, model = x[:40], family[0]
    space = encoding.space if people else encoding.space.without_people()
    target = other_class(model, x)
    hidden = Unreadable(model)
    assert wanted_of(model, margin) is not None
    assert wanted_of(hidden, margin) is None
    enough = MinCost(norm=1, calls=6000)  # so that no search ends because it may ask no more
    method, other = MinCost(norm=1), enough
    if rehearsed:
        unread = [Unreadable(own) for own in (family[place] for place in range(1, len(family)))]
        method, other = Rehearsed(family[1:]), Rehearsed(type(family).from_models(unread), search=enough)
    compiled, asked = method(model, x, target, space), other(hidden, x, target, space)
    both = compiled.found & asked.found
    assert (compiled.found == asked.found).float().mean() >= 0.95
    same = (compiled.point == asked.point).all(1)[both].float().mean()
    assert same >= 0.7  # asking, a scan has all answers; compiled, it stops at a bound
    assert abs(asked.cost(1)[both].mean() / compiled.cost(1)[both].mean() - 1) < 0.02


def test_what_is_asked_about_breaks_no_rule(trained_census):
    table, encoding, family, x = trained_census
    x, model = x[:40], Unreadable(family[0])
    target = other_class(model, x)
    answer = MinCost(norm=1)(model, x, target, encoding.space)
    assert answer.found.float().mean() > 0.5
    kept = answer[answer.found]
    ranges = dict(zip(CENSUS.names, encoding.ranges, strict=True))
    before = table.iloc[:40][answer.found.numpy()]
    assert violations(encoding.schema, before, kept.to_frame(encoding, before), table, ranges) == []
    assert encoding.space.people.to(x).plausible(kept.point, kept.target, kept.origin).all()


def test_a_persons_plan_depends_on_nobody_else(trained_census):
    _, encoding, _, x = trained_census
    weight = torch.linspace(-1, 1, x.shape[1])

    def model(x):
        score = (torch.tanh(x) * weight).sum(1)
        return torch.stack([-score, score], 1)

    x = x[:24]
    target = other_class(model, x)
    together = MinCost(norm=1)(model, x, target, encoding.space)
    for some in (slice(0, 1), slice(5, 9), slice(23, 24)):
        alone = MinCost(norm=1)(model, x[some], target[some], encoding.space)
        assert torch.equal(alone.point, together.point[some])


# ---- how often it is asked ----


class Counted:
    """A function that only answers, and counts the rows of each call."""

    def __init__(self, model):
        self.model, self.sizes = model, []

    def __call__(self, x):
        self.sizes.append(len(x))
        with torch.no_grad():
            return self.model(torch.as_tensor(np.asarray(x), dtype=torch.float32)).softmax(1).numpy()


def test_questions_of_many_people_go_out_together_and_none_asks_for_too_much(trained_census):
    _, encoding, family, x = trained_census
    x, own = x[:60], Counted(family[0])
    model = as_model(own, encoding, takes="encoded")
    target = other_class(model, x)
    own.sizes.clear()
    answer = MinCost(norm=1, calls=100)(model, x, target, encoding.space)
    assert answer.found.any()
    assert sum(own.sizes) == answer.calls
    assert sum(own.sizes) <= 100 * len(x) + len(model.learned[0])
    assert len(own.sizes) < sum(own.sizes) / 20


@pytest.mark.parametrize(
    ("error", "told"),
    [(OSError("the model's server is gone"), "server is gone"), (KeyboardInterrupt("Ctrl-C"), "Ctrl-C")],
)
def test_an_error_of_the_model_and_ctrl_c_end_all_searches(trained_census, error, told):
    _, encoding, family, x = trained_census
    x, own, search = x[:12], Counted(family[0]), MinCost(norm=1, calls=100)
    model = as_model(own, encoding, takes="encoded")
    target, before = other_class(model, x), threading.active_count()
    working, calls = own.model, []

    def fails(rows):
        calls.append(len(rows))
        if len(calls) > 3:
            raise error
        return working(rows)

    assert model.learned is not None
    own.model = fails
    with pytest.raises(ValueError if isinstance(error, OSError) else KeyboardInterrupt, match=told):
        search(model, x, target, encoding.space)
    deadline = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before
    own.model = working
    assert search(model, x, target, encoding.space).found.any()


# ---- other ends than the cheapest point ----


def test_what_is_found_is_no_dearer_than_a_point_deep_in_the_class(task):
    far = task.origin + 3 * (task.origin[task.target.argmax()] - task.origin)
    snapped, found = task.space.snap(far, task.origin), cheapest(task)
    both = task.enough(snapped) & task.enough(found)
    assert both.any()
    assert task.enough(found).float().mean() > 0.95
    assert (task.cost(found) <= task.cost(snapped) + 1e-5)[both].all()


def test_repaired_keeps_what_needs_no_repair_and_stays_in_its_ball(task):
    good = cheapest(task)
    there = task.enough(good) & task.guarded.plausible(good)
    assert torch.equal(repaired(task, good)[there], good[there])
    small = replace(task, ball=Ball(task.origin, torch.full((len(task.origin),), 1.5)))
    end = repaired(small, good)
    assert small.near(end[:, None])[task.enough(end)].all()
    assert not task.space.violations(end, task.origin).any()


def test_risen_raises_its_aim_and_keeps_class_and_ball(task):
    start = cheapest(task)
    found = task.enough(start)
    ball = Ball(start[found], torch.full((int(found.sum()),), 3.0))
    within = replace(task.of(torch.nonzero(found).flatten()), ball=ball)
    end = risen(within, start[found], log_odds)
    before, after = (within.tried(log_odds, point[:, None])[:, 0] for point in (start[found], end))
    assert (after >= before).all()
    assert (after > before + 0.1).any()
    assert within.enough(end).all()
    assert within.near(end[:, None]).all()
    assert not task.space.violations(end, within.origin).any()


def test_pruned_leaves_no_change_that_could_be_taken_back(task):
    task = replace(task, space=task.space.without_people())
    start = task.space.snap(task.origin[task.target.argmax()].expand_as(task.origin), task.origin)
    there = task.enough(start)
    assert there.any()
    end = pruned(task.of(torch.nonzero(there).flatten()), start[there])
    own = task.of(torch.nonzero(there).flatten())
    assert own.enough(end).all()
    for mask in task.space.features:
        back = torch.where(mask, own.origin, end)
        needed = (back == end).all(1) | (margin(task.model, back, own.target) <= LEAST_SCORE + 1e-5)
        assert needed.all()


def test_sparse_changes_fewer_features_and_can_guard_an_objective(task):
    far = task.space.snap(task.origin[task.target.argmax()].expand_as(task.origin), task.origin)
    start = assess(task.model, task.origin, far, task.target, task.space)
    found = start.found
    assert found.any()
    fewer = Sparse()(task.model, start, task.space)
    assert torch.equal(fewer.found, found)
    assert (fewer.cost(1) <= start.cost(1) + 1e-6)[found].all()
    assert fewer.sparsity[found].sum() <= start.sparsity[found].sum()
    guarded = Sparse(objective=log_odds, tolerance=0.0)(task.model, start, task.space)
    before, after = (log_odds(task.model, own.point, own.target)[found] for own in (start, guarded))
    assert (after >= before - 1e-5).all()


def test_nothing_moves_where_nothing_may(task):
    fixed = replace(task.space, mutable=torch.zeros_like(task.space.mutable))
    stuck = Task(Unreadable(task.model), task.origin, task.target, fixed)
    assert torch.equal(cheapest(stuck), task.origin)
    assert torch.equal(repaired(stuck, task.origin + 1), task.origin)


def test_whoever_has_the_class_stays(trained_census):
    _, encoding, family, x = trained_census
    model = Unreadable(family[0])
    answer = MinCost(norm=1)(model, x[:10], predict(model, x[:10]), encoding.space)
    assert torch.equal(answer.point, x[:10])
