"""Several models as one that is only as sure of a class as the least sure of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.model import Model, checked_logits

if TYPE_CHECKING:
    from holdfast.models.parts import Part

PAIRS_AT_ONCE = 1 << 20  # of a row and a member whose margins are held together, on a CPU
PAIRS_AT_ONCE_ON_DEVICE = 1 << 26
ROWS_AT_ONCE = 4096
LIGHT = 0.01  # a member that weighs less has no say in which way is up


class Members(Protocol):
    """Models that are asked together."""

    def __len__(self) -> int: ...
    def logits(self, x: Tensor) -> Tensor:
        """What every member says of every row: (k, n, c)."""
        ...

    def logits_of(self, x: Tensor, members: Tensor) -> Tensor:
        """What one member says of each row, member ``members[i]`` of row i: (n, c)."""
        ...


class Rehearsals(Members, Protocol):
    """Retrained models, known by their training runs; a `Family` is one."""

    @property
    def fingerprints(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, eq=False)
class WorstCaseEnsemble:
    r"""The deployed model and rehearsed ones, as one `Model` with one more class: undecided.

    With m_i(x, t) = f_t(x) − max over the other classes, of the model i, and the smallest of them left out if
    only a ``share`` of them must agree, let

        r_t(x) = min over i of m_i(x, t)                                    temperature 0
        r_t(x) = −τ log Σ_i exp(−m_i(x, t) / τ),  τ = temperature · their spread    otherwise

    The second is a soft minimum, below the first: several models that are hardly sure count for more than one. All of
    them agree on t where r_t > 0, each by r_t or more. The outputs are such that the margin of any class t is exactly
    r_t − ``margin``: a search among the points of class t searches where they agree by the margin. At most one class
    has r_t > 0, since the deployed model always counts.
    """

    deployed: Model
    members: Members  # `Rehearsals`, or what is asked in their place
    share: float = 1.0
    margin: float = 0.0
    temperature: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        """(n, c + 1): the classes, and undecided."""
        most = PAIRS_AT_ONCE if x.device.type == "cpu" else PAIRS_AT_ONCE_ON_DEVICE
        pieces = [self._least(rows) for rows in torch.split(x, max(1, most // len(self.members)))]
        return with_undecided(torch.cat(pieces), self.margin)

    def agreement(self, x: Tensor, target: Tensor) -> Tensor:
        """The share of the members that give each row its target, each by more than the margin: (n,)."""
        agreed = []
        with torch.no_grad():
            for rows, wanted in zip(torch.split(x, ROWS_AT_ONCE), torch.split(target, ROWS_AT_ONCE), strict=True):
                theirs = margins(self.members.logits(rows))  # (k, n, c)
                margins_of_target = theirs.gather(2, wanted[None, :, None].expand(len(theirs), -1, 1))[..., 0]
                agreed.append((margins_of_target > self.margin).double().mean(0))
        return torch.cat(agreed)

    @property
    def needed(self) -> int:
        """How many of the members must agree."""
        return max(1, math.ceil(self.share * len(self.members) - 1e-9))

    def _least(self, x: Tensor) -> Tensor:
        """r_t(x) for every class: (n, c)."""
        with torch.no_grad():
            counted = self._counted(x.detach())
            tau = self._tau(counted)
            least = soft_minimum(counted, tau).to(x.dtype)
        if not (x.requires_grad and torch.is_grad_enabled()):
            return least
        slopes = self._weighted(x, weights(counted, tau).to(x.dtype))
        return least + (slopes - slopes.detach())

    def _counted(self, x: Tensor) -> Tensor:
        """The margins of the deployed model and the members (1 + k, n, c), infinite for those that need not agree."""
        of_deployed = margins(checked_logits(self.deployed(x), len(x)))
        theirs = margins(self.heard.logits(x)).to(of_deployed)
        theirs = torch.where(theirs.isnan(), -torch.inf, theirs)  # a member that answers NaN agrees with nothing
        if self.needed < len(theirs):
            reached = theirs.kthvalue(len(theirs) - self.needed + 1, 0).values
            theirs = torch.where(theirs < reached, torch.inf, theirs)
        return torch.cat([of_deployed[None], theirs])

    def _tau(self, counted: Tensor) -> Tensor:
        """The temperature in logits, for every row and class: (n, c)."""
        if not self.temperature or not counted[0].numel():
            return torch.zeros_like(counted[0])
        finite = counted.isfinite()
        mean = torch.where(finite, counted, 0).sum(0) / finite.sum(0)
        square = torch.where(finite, (counted - mean) ** 2, 0).sum(0) / finite.sum(0)
        return self.temperature * square.sqrt()

    def _weighted(self, x: Tensor, weight: Tensor) -> Tensor:
        """Σ_i weight_i(x, t) · m_i(x, t) with gradients of the m_i, of those that weigh anything: (n, c)."""
        who, row, label = torch.nonzero(weight > LIGHT, as_tuple=True)
        first = torch.nonzero(who == 0).flatten()
        others = torch.nonzero(who > 0).flatten()
        logits = [checked_logits(self.deployed(x[row[first]]), len(first)).to(x.dtype)] if len(first) else []
        logits += [self.heard.logits_of(x[row[others]], who[others] - 1).to(x.dtype)] if len(others) else []
        if not logits:
            return x.sum() * torch.zeros_like(weight[0])
        order = torch.cat([first, others])
        each = margins(torch.cat(logits)).gather(1, label[order, None])[:, 0] * weight[who, row, label][order]
        return torch.zeros_like(weight[0]).index_put((row[order], label[order]), each, accumulate=True)

    # ---- `Abilities` ----

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The deployed model, and those of the members that need another search than networks do."""
        return (self.deployed, *getattr(self.members, "foreign", ()))

    @cached_property
    def has_gradient(self) -> bool:
        return all(able(model).has_gradient for model in self.models)

    @cached_property
    def heard(self) -> Members:
        """What is asked in the place of the members: the same up to rounding, and faster, where there is that.

        The deployed model decides, so its own object is asked; members only advise.
        """
        return cast("Members", getattr(self.members, "searched", self.members))

    @cached_property
    def searched(self) -> WorstCaseEnsemble:
        """The same, with the deployed model asked in such a way too."""
        deployed, members = able(self.deployed).searched, self.heard
        same = deployed is self.deployed and members is self.members
        return self if same else replace(self, deployed=deployed, members=members)

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        """Of the deployed model first, then of every member."""
        deployed_parts, members = able(self.deployed).parts, getattr(self.members, "parts", None)
        return None if deployed_parts is None or members is None else (*deployed_parts, *members)

    @property
    def ensemble(self) -> None:
        return None

    @cached_property
    def learned(self) -> tuple[Tensor, Tensor]:
        """Rows that every model is asked about once, and what all of them say together."""
        rows, _ = next(able(model) for model in self.models if not able(model).has_gradient).learned
        return rows, self.searched(rows)

    @cached_property
    def surrogate(self) -> Model | None:
        """What resembles the deployed model, as sure as it is of itself."""
        if self.has_gradient:
            return None
        leads = able(self.deployed).surrogate or able(self.deployed).searched
        return lambda x: with_undecided(margins(leads(x)), self.margin)


def soft_minimum(values: Tensor, tau: Tensor) -> Tensor:
    """−τ log Σ exp(−values / τ) over the first axis; the minimum where τ is 0."""
    least = values.amin(0)
    safe = torch.where(tau > 0, tau, 1)
    soft = least - safe * torch.exp(-(values - least) / safe).sum(0).log()
    return torch.where((tau > 0) & least.isfinite(), soft, least)


def weights(values: Tensor, tau: Tensor) -> Tensor:
    """How much each of the values counts for their soft minimum, the gradient of it; all for the least where τ is 0."""
    least, least_member = values.min(0)
    only = torch.zeros_like(values).scatter(0, least_member[None], 1.0)
    soft = torch.exp(-(values - least) / torch.where(tau > 0, tau, 1))
    return torch.where(tau > 0, soft / soft.sum(0), only)


def with_undecided(least: Tensor, margin: float) -> Tensor:
    """Outputs by which the margin of any class is that class's column of (n, c), less ``margin``: (n, c + 1)."""
    over = (least - margin).clamp_min(0).amax(1, keepdim=True)  # above 0 where all agree on some class
    # The others are lifted by as much as that class is above the margin: then no margin depends on two classes.
    lifted = torch.where(least > margin, least, least + over)
    return torch.cat([lifted, torch.full_like(over, margin)], dim=1)


def margins(logits: Tensor) -> Tensor:
    """By how much each class exceeds every other: the shape of the logits (..., c)."""
    if logits.shape[-1] == 2:
        above = logits[..., 1] - logits[..., 0]
        return torch.stack([-above, above], dim=-1)
    best, best_classes = logits.topk(2, dim=-1)
    is_best = torch.arange(logits.shape[-1], device=logits.device) == best_classes[..., :1]
    return logits - torch.where(is_best, best[..., 1:], best[..., :1])
