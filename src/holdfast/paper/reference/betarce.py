"""BetaRCE: a counterfactual moved until enough of k retrained models agree, and what that says by Bayes' rule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from holdfast.models.checked import itself
from holdfast.models.model import Model, predict_or_none
from holdfast.models.worst_case import Rehearsals, WorstCaseEnsemble
from holdfast.search.counterfactuals import Counterfactuals, Method, assess
from holdfast.search.gradients import unit
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.methods.rehearsed import Rehearsed
from holdfast.search.people import people_for
from holdfast.tabular.space import Space
from holdfast.utils.draws import normal, uniform
from holdfast.utils.settings import check_settings, check_share
from holdfast.utils.threads import one_thread

PRIOR = 0.5  # both parameters of the Beta prior: Jeffreys', as in the authors' code
NUMBERS = 1 << 22  # of sampled points that are held together
MOST = 100_000  # models that an error message counts up to


@dataclass(frozen=True)
class BetaRCE:
    r"""BetaRCE (Stępka, Lango and Stefanowski, KDD 2025) in our own code: a baseline for `Rehearsed`.

    ``method`` finds a counterfactual, and the k members of ``family`` are retrainings that may come. Where s of them
    give a point its target, the probability that one more does has the posterior Beta(1/2 + s, 1/2 + k − s). The point
    is robust where the deployed model gives the target too and

        the lower end of the one-sided credible interval at ``confidence`` is ``delta`` or more

    A counterfactual that is not robust is moved by growing spheres: ``samples`` points between two spheres around it
    that are ``step`` apart, made valid in the space; the nearest robust one, or else the next two spheres. Radii are
    drawn evenly, as in the authors' code, and directions are the same for all rows.

    `statement` is that lower end at the point returned. The models that give it have also chosen the point, and they
    were asked about many points before they all agreed: it says less about a model that was not asked.
    """

    source: ClassVar[str] = "Stępka et al. 2025"

    family: Rehearsals = field(repr=False)
    delta: float = 0.9
    confidence: float = 0.95
    method: Method = field(default_factory=lambda: MinCost(norm=1))
    samples: int = 100  # with the two below as in the authors' experiments
    step: float = 0.1
    spheres: int = 100
    seed: int = 0
    members: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", Rehearsed(self.family, search=self.method).members)  # which checks both
        check_settings(self, numbers="step", whole="samples spheres", seeds="seed")
        check_share("delta", self.delta)
        check_share("confidence", self.confidence)
        if not 0 < self.step < math.inf or self.samples < 1 or self.spheres < 1:
            raise ValueError(f"step must be above 0 and finite, samples and spheres 1 or more, got {self}")
        if self.bounds[-1] < self.delta:
            raise ValueError(
                f"{self.members} models that all agree give a bound of {self.bounds[-1]:.3f} at a confidence of "
                f"{self.confidence}, below delta {self.delta}; use {_fewest(self.delta, self.confidence)} models or "
                "more, or a smaller delta"
            )

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        """The lower end where 0, 1, ... or all of the members agree: (k + 1,), rising."""
        return lower_bound(np.arange(self.members + 1), self.members, self.confidence)

    @property
    def needed(self) -> int:
        """How many of the members must agree."""
        return max(1, int(np.searchsorted(self.bounds, self.delta)))

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        return replace(self, method=self.method.fit(x, y, space, seed))

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        """A robust counterfactual near the one that ``method`` finds, for each row of x (n, d), in the space."""
        base = self.method(model, x, target, space)
        worst_case = self._rehearsed.worst_case(model)
        with one_thread(), torch.no_grad():
            point, tried = self._moved(worst_case, base, space.to(base.point))
            robust = base.found & (predict_or_none(worst_case, point) == base.target)
            judged = assess(itself(model), base.origin, point, base.target, space, also=robust)
        seen = judged.seen | base.seen | frozenset(self.family.fingerprints)
        return replace(judged, seen=seen, calls=None if base.calls is None else base.calls + tried)

    def statement(self, model: Model, answer: Counterfactuals) -> Tensor:
        """What is stated of each counterfactual, P(valid) ≥ this at ``confidence``: (n,); NaN where none was found."""
        agree = self._rehearsed.agreement(model, answer)
        count = torch.where(answer.found, agree * self.members, 0).round().long()
        stated = torch.from_numpy(self.bounds).to(agree.device)[count]
        return torch.where(answer.found, stated, torch.nan)

    @property
    def _rehearsed(self) -> Rehearsed:
        """The same condition on a point, without a search: the deployed model and so many members agree."""
        return Rehearsed(self.family, share=self.needed / self.members, search=self.method)

    def _moved(self, model: WorstCaseEnsemble, base: Counterfactuals, space: Space) -> tuple[Tensor, int]:
        """The nearest robust sample of the first spheres with one, else the base point; and how many were tried."""
        point, tried = base.point.clone(), len(base)
        todo = torch.nonzero(base.found & (predict_or_none(model, point) != base.target)).flatten()
        for away in self._draws(space):
            if not len(todo):
                break
            parts = torch.split(todo, max(1, NUMBERS // away.numel()))
            nearest = torch.cat([_nearest(model, base[rows], space.of(rows), away.to(point)) for rows in parts])
            robust = ~nearest.isnan().any(1)
            point[todo[robust]] = nearest[robust]
            tried, todo = tried + len(todo) * len(away), todo[~robust]
        return point, tried

    def _draws(self, space: Space) -> Iterator[Tensor]:
        """For each pair of spheres, where the samples lie as seen from their centre: (samples, d)."""
        generator = torch.Generator().manual_seed(self.seed)
        moves = (space.mutable | space.follows).cpu()
        for number in range(self.spheres):
            direction = unit(normal((self.samples, space.width), generator) * moves)
            yield direction * self.step * (number + uniform((self.samples, 1), generator))


def lower_bound(agreeing: ArrayLike, members: ArrayLike, confidence: float) -> NDArray[np.float64]:
    """The lower end of the one-sided credible interval of the share that agrees, with Jeffreys' prior."""
    from scipy.special import betaincinv  # loads slowly

    count, total = np.asarray(agreeing, dtype=np.float64), np.asarray(members, dtype=np.float64)
    return np.asarray(betaincinv(PRIOR + count, PRIOR + total - count, np.float64(1 - confidence)), dtype=np.float64)


def _fewest(delta: float, confidence: float) -> int | str:
    """The least number of models that state delta where they all agree."""
    members = np.arange(1, MOST)
    enough = lower_bound(members, members, confidence) >= delta
    return int(members[enough.argmax()]) if enough.any() else f"more than {MOST}"


def _nearest(model: WorstCaseEnsemble, base: Counterfactuals, space: Space, away: Tensor) -> Tensor:
    """Of the valid points at ``away`` (s, d) from each base point, the robust one nearest to it, or NaN: (n, d)."""
    count, people = len(away), people_for(model, space)
    person = torch.arange(len(base), device=away.device).repeat_interleave(count)
    origin, target = base.origin[person], base.target[person]
    tried = space.of(person).snap((base.point[:, None] + away).flatten(0, 1), origin)
    valid = torch.nonzero(predict_or_none(model.deployed, tried) == target).flatten()  # each asks fewer than the last
    valid = valid[model.agreement(tried[valid], target[valid]) >= model.share - 1e-9]
    if people is not None:
        limit = people.limits(base.origin, base.target)
        valid = valid[people.like(tried[valid], target[valid], limit[person[valid]])]
    far = torch.full_like(tried[:, 0], torch.inf)
    far[valid] = torch.linalg.vector_norm(tried[valid] - base.point[person[valid]], dim=1)
    least, chosen = far.view(-1, count).min(1)
    point = tried.view(-1, count, tried.shape[1])[torch.arange(len(base), device=away.device), chosen]
    return torch.where(least.isfinite()[:, None], point, torch.nan)
