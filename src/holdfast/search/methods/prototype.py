"""Points on the way to a row that is known to have the class: counterfactuals guided by prototypes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.model import Model, predict
from holdfast.models.rows import check_rows
from holdfast.models.scores import margin
from holdfast.search.counterfactuals import Counterfactuals, assess, check_is_space, checked_question
from holdfast.search.engine.search import repaired
from holdfast.search.gradients import LEAST_SCORE, by_rows, least_constant, shrink, slope
from holdfast.search.methods.categories import CATEGORIES, Categories, lines
from holdfast.search.proximal import Step, accelerated, falling_rate
from holdfast.search.task import Task
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_settings
from holdfast.utils.threads import one_thread

Iterates = Iterator[tuple[Tensor, Tensor]]  # points, and which are inside the class, step by step
ROWS_IN_LEAF = 40  # rows in a leaf of a k-d tree


@dataclass(frozen=True)
class Prototype:
    """Counterfactuals guided by prototypes, with k-d trees (Van Looveren and Klaise 2019).

    The prototype p of a row is the ``nearest``-th nearest of the training rows that the model gives the row's target
    (the farthest of them where there are fewer). With δ = x' − x and m(x') the amount by which the target's logit
    exceeds every other, it minimises over the space

        c · max(−m(x'), 0) + beta · ‖δ‖₁ + ‖δ‖₂² + theta · ‖x' − p‖₂²

    by iterative shrinkage-thresholding with momentum; a binary search finds the least c that works, row by row. The
    iterate of the class with the least beta · ‖δ‖₁ + ‖δ‖₂² counts: p says which way to go, not how far. With a large
    theta that is about where the way to p enters the class, with theta = 0 it is the elastic-net optimum. Where points
    are discrete it is rounded and, if that loses the class, mended.

    It needs training rows: ``Prototype().fit(x, y, space)``. What the paper used, the arithmetic of alibi's CFProto, is
    `holdfast.paper.reference.alibi.AlibiPrototype`.

    Args:
        theta: How strongly the prototype pulls.
        beta: The weight of the l1 cost.
        nearest: Which of the nearest rows of the class is the prototype.
        learning_rate: The rate of the first step; it falls to zero.
        steps: How many gradient steps for each c.
        constants: How many c are tried.
        first: The first c.
        categories: How far the levels of a category are apart. ``"abdm"``: by the other columns of the rows that have
            them. ``"mvdm"``: by the classes that the model gives these rows. ``"one-hot"``: all alike.
        rows: The training rows: what `fit` sets.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> known = torch.tensor([[-2.0, -2.0], [2.5, 0.0], [3.0, 0.0]])  # training rows
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> method = hf.Prototype(nearest=1).fit(known, hf.predict(model, known), space)
        >>> found = method(model, x, target, space)
        >>> bool(found.point[0, 0] > found.point[0, 1])  # it goes towards (2.5, 0)
        True

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 and Appendix B.3 (Looveren et al.); the
    method is that of [Van Looveren and Klaise 2019](https://arxiv.org/abs/1907.02584).
    """

    source: ClassVar[str] = "Van Looveren and Klaise 2019"

    theta: float = 100.0
    beta: float = 0.1
    nearest: int = 20
    learning_rate: float = 0.01
    steps: int = 50
    constants: int = 4
    first: float = 10.0
    categories: Categories = "abdm"
    rows: Tensor | None = field(default=None, repr=False, compare=False)  # (r, d)

    def __post_init__(self) -> None:
        check_settings(self, numbers="theta beta", positive="learning_rate first", counts="nearest steps constants")
        if not (self.theta >= 0 and self.beta >= 0):
            raise ValueError(f"theta and beta must be 0 or more, got {self}")
        if self.categories not in CATEGORIES:
            raise ValueError(f"categories must be one of {', '.join(CATEGORIES)}, got '{self.categories}'")

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        """The same method with the rows (r, d) among which prototypes are looked for."""
        check_is_space(space)
        check_rows(x, width=space.width)
        return replace(self, rows=x.detach())

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """One counterfactual for each row of x (n, d) towards its target (n,), in the space; see `Counterfactuals`."""
        model, x, target = checked_question(model, x, target, space)
        if self.rows is None:
            raise ValueError("no training rows to find prototypes among; use Prototype().fit(x, y, space)")
        if self.rows.shape[1] != x.shape[1]:
            raise ValueError(f"fitted to rows of {self.rows.shape[1]} columns but asked about {x.shape[1]}; fit anew")
        with one_thread():
            scale = self._scale(model, space.to(x), self.rows.to(x))
            guide, known = prototypes(model, self.rows.to(x), x, target, self.nearest, scale)
            still = ~known | (predict(model, x) == target)
            point = by_rows(space.to(x), partial(self._search, model, scale), x, target, guide)
            return assess(model, x, torch.where(still[:, None], x, point), target, space)

    def _scale(self, model: Model, space: Space, rows: Tensor) -> Tensor | None:
        """The map under which a row is near its prototype; None is the identity."""
        if self.categories == "one-hot" or not space.groups or not len(rows):
            return None
        return lines(space, rows, predict(model, rows), self.categories)

    def _search(
        self, model: Model, scale: Tensor | None, space: Space, x: Tensor, target: Tensor, guide: Tensor
    ) -> Tensor:
        """The iterate of the class with the least elastic-net cost, made valid, or the row itself."""
        task, square = Task(model, x, target, space), None if scale is None else scale @ scale.T

        def cost(point: Tensor) -> Tensor:
            moved = point - x
            return self.beta * moved.abs().sum(1) + (moved**2).sum(1)

        iterates = partial(self._iterates, task, guide, square)
        # Mended, not made cheaper: that would take back the way to the prototype.
        return repaired(task, least_constant(iterates, cost, x, self.first, self.constants))

    def _iterates(self, task: Task, guide: Tensor, square: Tensor | None, constant: Tensor) -> Iterates:
        """Points of the hull, and which are inside the class, step by step."""
        x, space = task.origin, task.space
        curvature = 1 + self.theta * (1 if square is None else float(torch.linalg.matrix_norm(square, 2)))

        def step_from(ahead: Tensor, number: int) -> Step:
            score, gradient = slope(margin, task.model, ahead, task.target, x)
            push = torch.where(score[:, None] > 2 * LEAST_SCORE, 0, constant[:, None] * gradient)
            # Divided by the curvature of the squares (2 (1 + theta) without groups), a step is the same share of the
            # way for every theta; undivided, theta = 100 throws the first one to the far side of the prototype.
            rate = falling_rate(self.learning_rate, number, self.steps) / curvature
            away = ahead - x + rate * (push + pull(ahead, x, guide, square, self.theta))
            return Step(space.project(x + shrink(away, rate * self.beta), x), ahead, score > LEAST_SCORE)

        # Momentum is projected too, so that the iterate at which the gradient is taken can be an answer.
        return accelerated(x, self.steps, step_from, lambda point: space.project(point, x))


def pull(point: Tensor, x: Tensor, guide: Tensor, square: Tensor | None, theta: float) -> Tensor:
    """Down the slope of ‖x' − x‖₂² + theta · ‖x' − p‖₂², the latter under the scale of which this is the square."""
    beyond = point - guide if square is None else (point - guide) @ square
    return -2 * (point - x) - 2 * theta * beyond


def prototypes(
    model: Model, rows: Tensor, x: Tensor, target: Tensor, nearest: int, scale: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """For each of x (n, d) the ``nearest``-th nearest row of those predicted as its target, and if there is any: (n,).

    Where there are fewer, the farthest of them; where there are none, the row itself. ``scale`` (d, f) says how far
    columns are, as they are if left out.
    """
    from scipy.spatial import cKDTree  # half a second to load, and no other method needs it

    found, known = x.clone(), torch.zeros_like(target, dtype=torch.bool)
    predicted = predict(model, rows)
    for wanted in sorted(set(target.tolist())):
        candidates, asking = rows[predicted == wanted], target == wanted
        if len(candidates):
            tree = cKDTree(_scaled(candidates, scale), leafsize=ROWS_IN_LEAF)
            _, neighbour = tree.query(_scaled(x[asking], scale), k=[min(nearest, len(candidates))])
            found[asking] = candidates[torch.as_tensor(neighbour, device=candidates.device)[:, 0]]
            known |= asking
    return found, known


def _scaled(rows: Tensor, scale: Tensor | None) -> NDArray[np.float64]:
    return (rows if scale is None else rows @ scale).double().cpu().numpy()
