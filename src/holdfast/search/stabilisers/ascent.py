"""Moving counterfactuals uphill inside a ball: what stabilisers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from holdfast.models.checked import checked_model
from holdfast.models.model import Model
from holdfast.models.rows import check_rows
from holdfast.models.scores import Score
from holdfast.search.counterfactuals import Counterfactuals, assess, check_answer, checked_question
from holdfast.search.engine.search import risen
from holdfast.search.gradients import Ball, by_rows, slope
from holdfast.search.task import Task
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_number, check_whole
from holdfast.utils.threads import one_thread


def check_ball(radius: float | Tensor, steps: int, norm: float) -> None:
    if not isinstance(radius, Tensor):
        check_number("radius", radius)
    check_whole("steps", steps)
    check_number("norm", norm)
    sizes = torch.as_tensor(radius, dtype=torch.float64)
    if not bool((sizes > 0).all() and sizes.isfinite().all()) or steps < 1:
        raise ValueError(f"radius must be above 0 and finite and steps 1 or more, got {radius} and {steps}")
    if norm not in (1, 2, torch.inf):
        raise ValueError(f"the norm of the ball must be 1, 2 or infinity (math.inf), got {norm}")


def ascend(
    model: Model,
    start: Counterfactuals,
    space: Space,
    score: Score,
    radius: float | Tensor,
    steps: int,
    norm: float,
) -> Counterfactuals:
    """The same rows with those that were found moved to where the score is highest in the ball, the class kept.

    ``radius`` is one for all rows or one per row.
    """
    check_answer(start)
    model, sizes = checked_model(model), torch.as_tensor(radius).to(start.origin)
    if sizes.ndim and tuple(sizes.shape) not in ((1,), (len(start),)):
        raise ValueError(
            f"radius is one for all rows or one for each of {len(start)}, (n,), got shape {tuple(sizes.shape)}"
        )

    def search(space: Space, center: Tensor, origin: Tensor, target: Tensor, sizes: Tensor) -> Tensor:
        ball = Ball(center, sizes, norm)
        task = Task(model, origin, target, space, ball=ball).guarded
        best = walk(task, ball, score, steps)
        return risen(task, best, score) if space.discrete else best

    return with_found_moved(model, start, space, search, sizes.expand(len(start)))


def with_found_moved(
    model: Model,
    start: Counterfactuals,
    space: Space,
    search: Callable[..., Tensor],
    *more: Tensor,
) -> Counterfactuals:
    """The same rows with those that were found where ``search(space, point, origin, target, *more)`` moves them."""
    check_answer(start)
    model, origin, target = checked_question(model, start.origin, start.target, space)
    check_rows(start.point, "point", width=origin.shape[1])
    rows, point = torch.nonzero(start.found).flatten(), start.point.detach().to(origin, copy=True)
    with one_thread():
        if len(rows):
            given = (point, origin, target, *more)
            point[rows] = by_rows(space.to(point).of(rows), search, *(tensor[rows] for tensor in given))
        moved = assess(model, origin, point, target, space, also=start.found)
    return replace(moved, seen=moved.seen | start.seen, labels=start.labels)


def walk(task: Task, ball: Ball, score: Score, steps: int, start: Tensor | None = None) -> Tensor:
    """Unit-gradient steps from the start, or else the centre, inside the ball.

    The best iterate counts, judged after snapping, so that nothing gets worse.
    """
    model, target, origin = task.model, task.target, task.origin
    point = best = ball.center if start is None else start
    highest = task.tried(score, best[:, None])[:, 0]
    for _ in range(steps):
        _, gradient = slope(score, model, point, target, origin)
        step = 2 * ball.radius[:, None] / steps * ball.steepest(gradient)
        # Ball first, space second: the centre lies in the space and projecting never increases an l2 distance to a
        # point of the space, so the result satisfies both. In other norms it may leave the ball where there are
        # one-hot groups; such an iterate does not count.
        point = task.space.project(ball.into(point + step), origin)
        snapped = task.space.snap(point, origin) if task.space.discrete else point
        value = task.tried(score, snapped[:, None])[:, 0]
        better = (value > highest) & task.near(snapped[:, None])[:, 0] & task.enough(snapped)
        if task.limit is not None:
            rows = torch.nonzero(better).flatten()
            better[rows] = task.of(rows).plausible(snapped[rows])
        best, highest = torch.where(better[:, None], snapped, best), torch.where(better, value, highest)
    return best
