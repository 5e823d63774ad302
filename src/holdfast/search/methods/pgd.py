"""Min-ε projected gradient descent, the paper's strongest cheap baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals, assess, checked_question
from holdfast.search.engine.search import repaired
from holdfast.search.gradients import Ball, unit
from holdfast.search.task import Task
from holdfast.tabular.space import Space
from holdfast.utils.draws import normal, uniform
from holdfast.utils.settings import check_positive, check_settings
from holdfast.utils.threads import one_thread

USUAL_RADIUS = 3.0  # radius of the ladder where nothing else is said
WIDEST_RADIUS = 1000.0  # where the space has no bounds


@dataclass(frozen=True)
class PGD:
    """Projected gradient descent in the smallest of a ladder of l2 balls (Madry et al. 2018; Black et al. 2022).

    For ε = radius/levels, 2·radius/levels, ..., radius: start at random in the ball, take ``steps`` unit-gradient steps
    of 2ε/steps down the target's cross-entropy, and project to the ball and to the space. A row is done at the first ε
    whose *last* iterate has the target class: a confident point inside the smallest ball that works, not the point
    nearest to the boundary. Rows that no random start helped start once more in the largest ball, from where they are.

    Args:
        radius: The largest ball; it is never left. Where None, the space decides. In a box, such as the free space, it
            is 3. Where constraints hold, a step from one level to another may be longer than that: the ladder ends at 3
            first, and for rows that are not found it goes on to 6, 12, ... up to the diameter of the space.
        levels: How many radii are tried.
        steps: How many gradient steps in each ball.
        random_start: Whether to start at random in the ball, or at the row itself.
        seed: The seed of the random start.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> found = hf.PGD(radius=2.0)(model, x, target, space)
        >>> print(f"{found.cost(2).item():.1f}")  # of 0.2, 0.4, ..., the first beyond 1.0
        1.2

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 and Appendix B.3 (Min-ε PGD); the descent
    is that of [Madry et al. 2018](https://arxiv.org/abs/1706.06083).
    """

    source: ClassVar[str] = "Madry et al. 2018, in the ladder of Black et al. 2022"

    radius: float | None = None
    levels: int = 10
    steps: int = 100
    random_start: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, counts="levels steps", flags="random_start", seeds="seed")
        if self.radius is not None:
            check_positive("radius", self.radius)

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return self

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """One counterfactual for each row of x (n, d) towards its target (n,), in the space; see `Counterfactuals`."""
        model, x, target = checked_question(model, x, target, space)
        with one_thread():
            return self._search(model, x, target, space.to(x))

    def _search(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        begin, end = 0.0, self.radius or USUAL_RADIUS
        answer = self._climb_ladder(model, x, target, space, begin, end)
        widest = 0.0 if self.radius is not None or _is_box(space) else _diameter(space)
        while end < widest and not bool(answer.found.all()):
            begin, end = end, min(2 * end, widest)
            lost = torch.nonzero(~answer.found).flatten()
            wider = self._climb_ladder(model, x[lost], target[lost], space.of(lost), begin, end)
            # What is not found stays what the first ladder left: it is the nearest to a person's reach.
            point = answer.point.clone()
            point[lost[wider.found]] = wider.point[wider.found]
            answer = assess(model, x, point, target, space)
        return answer

    def _climb_ladder(
        self, model: Model, x: Tensor, target: Tensor, space: Space, begin: float, end: float
    ) -> Counterfactuals:
        answer = assess(model, x, x, target, space)
        point, todo = x.clone(), torch.nonzero(~answer.found).flatten()
        for radius, start in self._ladder(x, begin, end):
            if not len(todo):
                break
            space_of_rows = space.of(todo)
            reached = self._descend(model, x[todo], target[todo], space_of_rows, radius, start)
            if space.discrete:  # whom people are like comes at the end
                task = Task(model, x[todo], target[todo], space_of_rows.without_people(), ball=_ball(x[todo], radius))
                reached = repaired(task, reached)
            judged = assess(model, x[todo], reached, target[todo], space_of_rows)
            point[todo] = judged.point
            # A larger ball has no better chance to hold somebody whom people are like.
            todo = todo[~judged.found if judged.implausible is None else ~(judged.found | judged.implausible)]
        answer = assess(model, x, point, target, space)
        lost = torch.nonzero(~answer.found).flatten()
        if space.people is not None and len(lost):
            task = Task(model, x[lost], target[lost], space.of(lost), ball=_ball(x[lost], end))
            point[lost] = repaired(task, point[lost])
            answer = assess(model, x, point, target, space)
        return answer

    def _ladder(self, x: Tensor, begin: float, end: float) -> list[tuple[float, Tensor]]:
        """The radii to try, those above ``begin``, and where in the unit ball to start."""
        home = torch.zeros_like(x[:1])
        start = self._start(x) if self.random_start else home
        radii = [end * level / self.levels for level in range(1, self.levels + 1)]
        tries = [(radius, start) for radius in radii if radius > begin]
        return [*tries, (end, home)] if self.random_start else tries

    def _descend(
        self, model: Model, origin: Tensor, target: Tensor, space: Space, radius: float, start: Tensor
    ) -> Tensor:
        point, ball = space.project(origin + radius * start, origin), _ball(origin, radius)
        for _ in range(self.steps):
            step = 2 * radius / self.steps * unit(_descent(model, point, target))
            # Ball first, space second: the centre lies in the space and projecting never increases an l2 distance
            # to a point of the space, so the result satisfies both.
            point = space.project(ball.into(point + step), origin)
        return point

    def _start(self, origin: Tensor) -> Tensor:
        """One draw, uniform in the unit ball, for all rows: a row's answer does not depend on its neighbours."""
        generator = torch.Generator().manual_seed(self.seed)
        width = origin.shape[1]
        length = uniform((), generator) ** (1 / width)
        return (unit(normal((1, width), generator)) * length).to(origin)


def _is_box(space: Space) -> bool:
    """Whether every number of a box is allowed, as in the free space."""
    limited = not bool(space.mutable.all()) or bool((space.direction != 0).any())
    return not (space.discrete or limited or space.people is not None or space.personal is not None)


def _diameter(space: Space) -> float:
    """How far apart two points can be: in the columns that may change, of a group in two of its columns."""
    wide = torch.where(space.mutable, space.upper - space.lower, 0.0).double() ** 2
    grouped = [column for group in space.groups for column in group.columns]
    alone = torch.ones_like(wide, dtype=torch.bool)
    alone[grouped] = False
    squares = float(wide[alone].sum()) + sum(
        float(wide[list(group.columns)].topk(min(2, len(group.columns))).values.sum()) for group in space.groups
    )
    return min(math.sqrt(squares), WIDEST_RADIUS)


def _ball(origin: Tensor, radius: float) -> Ball:
    return Ball(origin, torch.full_like(origin[:, 0], radius))


def _descent(model: Model, point: Tensor, target: Tensor) -> Tensor:
    with torch.enable_grad():
        point = point.detach().requires_grad_()
        loss = torch.nn.functional.cross_entropy(model(point), target, reduction="sum")
        return -torch.autograd.grad(loss, point)[0]
