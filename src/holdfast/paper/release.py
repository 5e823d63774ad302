"""The arithmetic of the code that the paper's authors released, where it is not the text's: for the study alone.

None of this is advice. It is what was run, as far as the released code tells (github: zifanw/consistency, its commit
0c57aab, with foolbox 3 and ART of 2020), so that a reader can see which printed figures come from which line of it.
What each line does to the figures is told in docs/results.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import torch
from torch import Tensor

from holdfast.models.model import Model, predict
from holdfast.search.counterfactuals import Counterfactuals, assess, checked_question
from holdfast.search.gradients import Ball, slope
from holdfast.search.methods.latent import Autoencoder, Latent, forward, in_shell
from holdfast.search.stabilisers.ascent import with_found_moved
from holdfast.search.stabilisers.sns import SNS
from holdfast.tabular.space import Space
from holdfast.utils.draws import normal, uniform
from holdfast.utils.threads import one_thread

FOOLBOX_TINY = 1e-12  # shorter gradients than this are not scaled to length one,
KERAS_TINY = 1e-7  # and this is added to their length
ROWS_AT_ONCE = 64  # whose samples are decoded at a time


@dataclass(frozen=True)
class ReleasedPGD:
    """The ladder of balls with steps of 2ε²/steps: foolbox takes the 2ε/steps that it is handed for a share of ε.

    With ε below 1/2 the steps together are shorter than the ball's radius, so the random start, one per row and ball,
    stays in the answer. The network's probabilities are handed over for logits: where it is all but certain, no
    gradient is left to follow.
    """

    radius: float
    levels: int = 10
    steps: int = 300
    seed: int = 0

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return self

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        model, x, target = checked_question(model, x, target, space)
        generator = torch.Generator().manual_seed(self.seed)
        point, inside = x.clone(), space.to(x)
        todo = torch.nonzero(predict(model, x) != target).flatten()
        with one_thread():
            for level in range(1, self.levels + 1):
                radius = self.radius * level / self.levels
                start = x + radius * in_shell(len(x), x.shape[1], 0.0, 1.0, generator).to(x)
                if len(todo):
                    point[todo] = self._descend(model, x[todo], start[todo], target[todo], inside, radius)
                    todo = todo[predict(model, point[todo]) != target[todo]]
            return assess(model, x, point, target, space)

    def _descend(
        self, model: Model, origin: Tensor, point: Tensor, target: Tensor, space: Space, radius: float
    ) -> Tensor:
        ball, point = Ball(origin, torch.full_like(origin[:, 0], radius)), space.project(point, origin)
        for _ in range(self.steps):
            _, gradient = slope(_certainty, model, point, target, origin)
            length = torch.linalg.vector_norm(gradient, dim=1, keepdim=True).clamp_min(FOOLBOX_TINY)
            point = space.project(ball.into(point + 2 * radius**2 / self.steps * gradient / length), origin)
        return point


def _certainty(model: Model, point: Tensor, target: Tensor, origin: Tensor) -> Tensor:
    """log p of a softmax over probabilities."""
    probability = model(point).softmax(1)
    return probability.log_softmax(1).gather(1, target[:, None])[:, 0]


@dataclass(frozen=True)
class ReleasedSNS:
    """SNS from a start with a little noise; the last iterate of the class counts, not the best.

    Once fitted, each column is clipped to where the data have it, not all columns to one range. The clip comes last, so
    a start outside those ranges is brought in, if need be out of the ball.
    """

    radius: float
    steps: int = 300
    points: int = 10
    noise: float = 1e-3
    seed: int = 0
    low: Tensor | None = field(default=None, repr=False)  # of each column, from `fit`
    high: Tensor | None = field(default=None, repr=False)

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return replace(self, low=x.amin(0), high=x.amax(0))

    def __call__(self, model: Model, start: Counterfactuals, space: Space) -> Counterfactuals:
        return with_found_moved(model, start, space, partial(self._walk, model))

    def _walk(self, model: Model, space: Space, center: Tensor, origin: Tensor, target: Tensor) -> Tensor:
        aim, ball = SNS(points=self.points).value, Ball(center, torch.full_like(center[:, 0], self.radius))
        generator = torch.Generator().manual_seed(self.seed)
        # One draw for all rows: a row's answer does not depend on its neighbours.
        point = center + self.noise * normal((1, center.shape[1]), generator).to(center)
        last = center
        for _ in range(self.steps):
            _, gradient = slope(aim, model, point, target, origin)
            length = torch.linalg.vector_norm(gradient, dim=1, keepdim=True) + KERAS_TINY
            point = space.project(ball.into(point + 2 * self.radius / self.steps * gradient / length), origin)
            if self.low is not None:
                point = point.clamp(self.low, self.high)
            last = torch.where((predict(model, point) == target)[:, None], point, last)
        return last


@dataclass(frozen=True)
class ReleasedLatent:
    """Sampling in an autoencoder's code, with what happened to units and lengths on the way.

    - Rows are scaled to [0, 1] by the range of the rows explained. Where a row's reconstruction already has another
      class it is the answer, *left in [0, 1]* though the network knows other units.
    - Else ``rounds`` times ``samples`` codes nearby are drawn and decoded, and scaled back. Directions are divided by
      the length of all samples together, so that none is further away than about radius/√samples.
    - The nearest sample of the class counts, by how far it is, scaled back, from the row in [0, 1]; the first round
      with one ends it.
    - A row without one is given the first row's reconstruction, which is found if it has the class.
    """

    radius: float
    samples: int = 256
    rounds: int = 5
    seed: int = 2021
    latent: Latent = field(default=Latent(learning_rate=1e-4, batch=512, epochs=100, steps=1_000_000, unit_codes=False))

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return replace(self, latent=self.latent.fit(x, y, space, seed))

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        model, x, target = checked_question(model, x, target, space)
        if self.latent.autoencoder is None:
            raise ValueError("there is no autoencoder yet; fit the method to the data first: method.fit(x, y, space)")
        # Trained on rows scaled by their own range, used on rows scaled by theirs.
        autoencoder = replace(self.latent.autoencoder.to(x), low=x.amin(0), width=x.amax(0) - x.amin(0))
        with one_thread(), torch.no_grad():
            return assess(model, x, self._sought(model, autoencoder, x, target), target, space)

    def _sought(self, model: Model, autoencoder: Autoencoder, x: Tensor, target: Tensor) -> Tensor:
        scaled, center = autoencoder.scaled(x), autoencoder.encode(x)
        plain = forward(autoencoder.decoder, center).sigmoid()
        found = predict(model, plain) == target
        point, todo = torch.where(found[:, None], plain, plain[:1]), torch.nonzero(~found).flatten()
        for away in self._draws(center):
            if not len(todo):
                break
            unreached = []
            for rows in torch.split(todo, ROWS_AT_ONCE):
                reached, reachable = _nearest(model, autoencoder, scaled[rows], center[rows], target[rows], away)
                point[rows[reachable]] = reached[reachable]
                unreached.append(rows[~reachable])
            todo = torch.cat(unreached)
        return point

    def _draws(self, like: Tensor) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(self.seed)
        for _ in range(self.rounds):
            direction = normal((self.samples, like.shape[1]), generator)
            length = self.radius * uniform((self.samples, 1), generator)
            yield (direction / direction.norm() * length).to(like)


def _nearest(
    model: Model, autoencoder: Autoencoder, scaled: Tensor, center: Tensor, target: Tensor, moves: Tensor
) -> tuple[Tensor, Tensor]:
    """For each row the sample of the class nearest to the *scaled* row, and whether there is one: (n, d), (n,)."""
    tried = autoencoder.decode((center[:, None] + moves).flatten(0, 1))
    right = predict(model, tried) == target.repeat_interleave(len(moves))
    tried = tried.view(len(center), len(moves), -1)
    far = torch.linalg.vector_norm(tried - scaled[:, None], dim=-1)
    shortest, nearest = torch.where(right.view_as(far), far, torch.inf).min(1)
    return tried[torch.arange(len(nearest), device=nearest.device), nearest], shortest.isfinite()
