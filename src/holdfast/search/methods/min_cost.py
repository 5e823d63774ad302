"""The cheapest point of the target class, by the elastic-net attack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import torch
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.checked import itself
from holdfast.models.model import Model
from holdfast.models.scores import AtLeast, Score, margin
from holdfast.search.boxes import bought
from holdfast.search.counterfactuals import Counterfactuals, assess, checked_question, counted
from holdfast.search.engine.search import CALLS
from holdfast.search.engine.search import cheapest as cheapest_points
from holdfast.search.gradients import LEAST_SCORE, by_rows, least_constant, shrink, slope
from holdfast.search.proximal import Step, accelerated, falling_rate
from holdfast.search.task import Task
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_settings
from holdfast.utils.threads import one_thread

JUDGING_CALLS = 4  # of the calls for each person that judge what was found
MARGINS = (0.001, 0.01, 0.1)  # by which a score must exceed 0 where the object itself did not confirm it
HALVINGS = 12  # of a way, to find where it enters the class


@dataclass(frozen=True)
class MinCost:
    """Minimum-cost counterfactuals (Wachter et al. 2017) by the elastic-net attack EAD (Chen et al. 2018).

    For each row, with δ = x' − x and m(x') the amount by which the target's logit exceeds every other, it minimises
    over the space

        c · max(−m(x'), 0) + ‖δ‖₁     with norm 1
        c · max(−m(x'), 0) + ‖δ‖₂²    with norm 2

    by iterative shrinkage-thresholding with momentum and a learning rate that falls to zero. Where the space has
    weights w, for how hard each feature is to change, w · δ stands for δ. A binary search finds the least c that works,
    row by row. The cheapest iterate of the class counts. It is then moved along the boundary to where no direction is
    cheaper. Columns that need not change keep their exact value.

    Where points are discrete, or the model has no gradient, valid points are searched instead, by moves of one feature
    from one to the next. Linear models, networks of dense layers and trees are compiled for that; any other model is
    asked. Of the settings, that search uses the norm and the calls alone.

    Args:
        norm: The cost that is minimised: 1 or 2.
        learning_rate: The rate of the first step; it falls to zero.
        steps: How many gradient steps for each c.
        constants: How many c are tried.
        first: The first c.
        calls: How many rows a model that is not compiled is asked about for each person, at most; 2,000 if not given.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> near = hf.MinCost(norm=2)(model, x, target, space)
        >>> print(f"{near.cost(2).item():.2f}")  # the distance to 3 x0 + 4 x1 = 5
        1.00
        >>> sparse = hf.MinCost(norm=1)(model, x, target, space)
        >>> print(f"{sparse.cost(1).item():.2f}")  # 5 / 4, by the second column alone
        1.25

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 and Appendix B.3 (Min-Cost l1/l2); the
    idea is from [Wachter et al. 2017](https://arxiv.org/abs/1711.00399), the search from [Chen et al.
    2018](https://arxiv.org/abs/1709.04114).
    """

    source: ClassVar[str] = "Wachter et al. 2017; Chen et al. 2018"

    norm: int = 2
    learning_rate: float = 0.01
    steps: int = 25
    constants: int = 5
    first: float = 1.0
    calls: int = CALLS

    def __post_init__(self) -> None:
        check_settings(self, numbers="norm", positive="learning_rate first", counts="steps constants calls")
        if self.norm not in (1, 2):
            raise ValueError(f"norm must be 1 or 2, got {self.norm}")

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return self

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """The cheapest point found for each row of x (n, d) towards its target (n,), in the space."""
        model, x, target = checked_question(model, x, target, space, gradient=False)
        with one_thread():
            point = self.cheapest(model, x, target, space.to(x), margin)
            return counted(model, assess(model, x, point, target, space))

    def cheapest(self, model: Model, x: Tensor, target: Tensor, space: Space, score: Score) -> Tensor:
        """The cheapest points found that score above 0; the row itself where there are none."""
        point = self._cheapest(model, x, target, space, score)
        for least in MARGINS if itself(model) is not able(itself(model)).searched else ():
            # What a search asks differs from the object in the last digits: a little more than enough will do.
            rows = torch.nonzero(_disputed(model, x, point, target, space, score)).flatten()
            if not len(rows):
                break
            point = point.clone()
            point[rows] = self._cheapest(model, x[rows], target[rows], space.of(rows), AtLeast(score, least))
        return point

    def _cheapest(self, model: Model, x: Tensor, target: Tensor, space: Space, score: Score) -> Tensor:
        task = Task(model, x, target, space, self.norm, score)
        has_gradient = able(itself(model)).has_gradient
        if space.discrete or space.people is not None or not has_gradient:
            start = partial(self._start, task) if has_gradient else None
            return cheapest_points(task, start, max(1, self.calls - JUDGING_CALLS))

        def search(space: Space, x: Tensor, target: Tensor) -> Tensor:
            task = Task(model, x, target, space, self.norm, score)
            return _refined(task, self._relaxed(task))

        return by_rows(space, search, x, target)

    def _start(self, task: Task, rows: Tensor) -> Tensor:
        """The valid points that are nearest to what a search of the hull finds for some rows (m,)."""
        task = task.of(rows)
        return task.space.snap(self._relaxed(task), task.origin)

    def _relaxed(self, task: Task) -> Tensor:
        return least_constant(partial(self._iterates, task), task.cost, task.origin, self.first, self.constants)

    def _iterates(self, task: Task, constant: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Points of the hull, and which score enough, step by step."""
        x, space = task.origin, task.space
        weight = 1 if space.weights is None else space.weights

        def step_from(ahead: Tensor, number: int) -> Step:
            rate = falling_rate(self.learning_rate, number, self.steps)
            score, gradient = slope(task.score, task.model, ahead, task.target, x)
            pull = torch.where(score[:, None] > 2 * LEAST_SCORE, 0, constant[:, None] * gradient)
            if self.norm == 2:
                pull = pull - 2 * weight**2 * (ahead - x)
            away = ahead + rate * pull - x
            if self.norm == 1:
                away = shrink(away, rate * weight)
            return Step(space.project(x + away, x), ahead, score > LEAST_SCORE)

        # Momentum is projected too, so that the iterate at which the gradient is taken can be an answer.
        return accelerated(x, self.steps, step_from, lambda point: space.project(point, x))


def _disputed(model: Model, x: Tensor, point: Tensor, target: Tensor, space: Space, score: Score) -> Tensor:
    """Which points that were found do not score enough by the object that decides: (n,)."""
    found = (point != x).any(1)
    rows = torch.nonzero(found).flatten()
    with torch.no_grad():
        snapped = space.of(rows).snap(point[rows], x[rows])
        enough = score(lambda x: itself(model)(x).to(x.dtype), snapped, target[rows], x[rows]) > 0
    return found.index_put((rows,), ~enough)


def _refined(task: Task, point: Tensor) -> Tensor:
    """In a space without gaps: back to where the class begins, and along its boundary to where nothing is cheaper."""
    if task.norm == 1:  # few columns change, so it pays to buy them one by one
        one_by_one = bought(task, point)
        costs = [torch.where(task.enough(each), task.cost(each), torch.inf) for each in (point, one_by_one)]
        return _entered(task, torch.where((costs[1] < costs[0])[:, None], one_by_one, point))
    point = _entered(task, point)
    for _ in range(HALVINGS):
        point = _along(task, point)
    return point


def _entered(task: Task, point: Tensor) -> Tensor:
    """The first point of the class on the straight way to each point of it, found by halving."""
    low, high = torch.zeros_like(point[:, :1]), torch.ones_like(point[:, :1])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        inside = task.enough(task.origin + middle * (point - task.origin))[:, None]
        low, high = torch.where(inside, low, middle), torch.where(inside, middle, high)
    return torch.where(high < 1, task.origin + high * (point - task.origin), point)


def _along(task: Task, point: Tensor) -> Tensor:
    """Towards the point of the boundary's tangent plane that is nearest to the row, if that is cheaper."""
    x, space = task.origin, task.space
    score, gradient = slope(task.score, task.model, point, task.target, x)
    gradient = torch.where(space.changeable, gradient, 0)
    short = 2 * LEAST_SCORE - score - ((x - point) * gradient).sum(1)
    buying = gradient if space.weights is None else gradient / space.weights**2  # most of the score for its cost
    square = (gradient * buying).sum(1).clamp_min(torch.finfo(x.dtype).tiny)
    nearest = x + buying * (short / square)[:, None]
    ways = [x + beyond * (point + share * (nearest - point) - x) for share in (1, 0.5, 0.2) for beyond in (1, 1.03)]
    tried = torch.stack([space.project(way, x) for way in ways], dim=1)  # (n, t, d)
    cost = torch.where(task.tried(task.score, tried) > LEAST_SCORE, task.cost(tried), torch.inf)
    least, cheapest = cost.min(1)
    better = tried[torch.arange(len(x), device=x.device), cheapest]
    return _entered(task, torch.where((least < task.cost(point))[:, None], better, point))
