"""Searches among valid points never leave them, never get worse, and end where no single move helps."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from holdfast import Sparse, assess, other_class, predict
from holdfast.models.scores import log_odds, margin
from holdfast.search.gradients import LEAST_SCORE, Ball
from holdfast.search.moves import Task, climb, prune, reach, reduce, repair, settle


@pytest.fixture(scope="module")
def task(family, rows, encoding):
    model, x = family[0], rows[0]
    return Task(model, x, other_class(model, x), encoding.space, norm=1)


def test_features_are_the_columns_that_change_together(encoding):
    features = encoding.space.features
    assert (features.sum(0) == encoding.space.mutable).all()  # each mutable column in one feature
    for group in encoding.space.groups:
        assert any(set(torch.nonzero(mask).flatten().tolist()) == set(group.columns) for mask in features)


def test_levels_are_valid_and_every_reachable_one_is_there(rows, encoding):
    x, space = rows[0], encoding.space
    points = space.levels(x, x)
    for point in points:
        assert not space.violations(point, x).any()
    for group in space.groups:
        columns = list(group.columns)
        seen = torch.stack([point[:, columns].argmax(1) for point in points], 1)
        allowed = [level for level in range(len(columns)) if columns[level] not in group.avoid]
        for level in allowed:
            assert (seen == level).any(1).all()


def test_reach_ends_in_the_class_and_stays_valid(task):
    point = reach(task, task.origin)
    assert not task.space.violations(point, task.origin).any()
    assert (predict(task.model, point) == task.target).float().mean() > 0.95


def test_reduce_lowers_the_cost_and_keeps_the_class(task):
    start = reach(task, task.origin)
    there = task.enough(start)
    end = reduce(task, start)
    assert (task.cost(end) <= task.cost(start) + 1e-6).all()
    assert task.enough(end)[there].all()
    assert not task.space.violations(end, task.origin).any()
    again = reduce(task, end)
    assert (task.cost(again) <= task.cost(end) + 1e-6).all()


def test_prune_leaves_no_change_that_could_be_taken_back(task):
    start = reach(task, task.origin)
    there = task.enough(start)
    end = prune(task, start)
    assert task.enough(end)[there].all()
    for mask in task.space.features:
        back = torch.where(mask, task.origin, end)
        needed = (back == end).all(1) | (margin(task.model, back, task.target) <= LEAST_SCORE + 1e-5)
        assert needed[there].all()


def test_sparse_changes_fewer_features_and_can_guard_an_objective(task, family):
    start = assess(task.model, task.origin, reach(task, task.origin), task.target, task.space)
    fewer = Sparse()(task.model, start, task.space)
    assert torch.equal(fewer.found, start.found)
    found = start.found
    assert (fewer.cost(1) <= start.cost(1) + 1e-6)[found].all()
    assert fewer.sparsity[found].sum() <= start.sparsity[found].sum()
    guarded = Sparse(objective=log_odds, tolerance=0.0)(task.model, start, task.space)
    before, after = (log_odds(task.model, c.point, c.target)[found] for c in (start, guarded))
    assert (after >= before - 1e-5).all()


def test_climb_raises_its_aim_and_keeps_class_and_ball(task):
    start = settle(task, task.origin)
    found = task.enough(start)
    within = Task(task.model, task.origin[found], task.target[found], task.space,
                  ball=Ball(start[found], torch.full((int(found.sum()),), 3.0)))  # fmt: skip
    end = climb(within, log_odds, start[found])
    before, after = (within.tried(log_odds, point[:, None])[:, 0] for point in (start[found], end))
    assert (after >= before).all()
    assert (after > before + 0.1).any()
    assert within.enough(end).all()
    assert within.near(end[:, None]).all()
    assert not task.space.violations(end, within.origin).any()


def test_repair_keeps_what_needs_none_and_stays_in_its_ball(task):
    good = settle(task, task.origin)
    there = task.enough(good)
    assert torch.equal(repair(task, good)[there], good[there])
    small = Task(task.model, task.origin, task.target, task.space,
                 ball=Ball(task.origin, torch.full((len(task.origin),), 1.5)))  # fmt: skip
    assert small.near(repair(small, good)[:, None]).all()


def test_settled_points_cost_less_than_rounded_ones(task):
    """Against plain snapping of a point well inside the class."""
    far = task.origin + 3 * (task.origin[task.target.argmax()] - task.origin)
    snapped, settled = task.space.snap(far, task.origin), settle(task, far)
    both = task.enough(snapped) & task.enough(settled)
    assert both.any()
    assert task.enough(settled).float().mean() >= task.enough(snapped).float().mean()
    assert (task.cost(settled) <= task.cost(snapped) + 1e-5)[both].all()


def test_nothing_moves_where_nothing_may(task):
    fixed = replace(task.space, mutable=torch.zeros_like(task.space.mutable))
    stuck = Task(task.model, task.origin, task.target, fixed)
    assert torch.equal(settle(stuck, task.origin + 1), task.origin)
