"""Several models as one that is only as sure of a class as the least sure of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from holdfast.models.model import Model, checked_logits

if TYPE_CHECKING:
    from holdfast.models.trees.committee import Committee

PAIRS_AT_ONCE = 1 << 20  # of a row and a member whose margins are held together, on a CPU
PAIRS_AT_ONCE_ON_DEVICE = 1 << 26


class Rehearsals(Protocol):
    """Retrained models that are asked together; a `Family` is one."""

    def __len__(self) -> int: ...
    @property
    def fingerprints(self) -> tuple[str, ...]: ...
    def logits(self, x: Tensor) -> Tensor:
        """What every member says of every row: (k, n, c)."""
        ...

    def logits_of(self, x: Tensor, members: Tensor) -> Tensor:
        """What one member says of each row, member ``members[i]`` of row i: (n, c)."""
        ...


@dataclass(frozen=True, eq=False)
class LeastSure:
    r"""The deployed model and rehearsed ones, as one `Model` with one more class: undecided.

    With m_i(x, t) = f_t(x) − max over the other classes, of the model i, let

        r_t(x) = min(m_deployed(x, t), the largest number that a ``share`` of the members' m_i(x, t) reach)

    so that all of them agree on t where r_t > 0, each by r_t or more. The outputs are such that the margin of any
    class t is exactly r_t − ``margin``: a search among the points of class t searches where they agree by the margin.
    At most one class has r_t > 0, since the deployed model always counts.
    """

    deployed: Model
    members: Rehearsals
    share: float = 1.0
    margin: float = 0.0

    def __call__(self, x: Tensor) -> Tensor:
        """(n, c + 1): the classes, and undecided."""
        with torch.no_grad():
            least, who = self.least(x.detach())
        if x.requires_grad and torch.is_grad_enabled():
            least = torch.stack([self._by(x, who[:, label])[:, label] for label in range(who.shape[1])], dim=1)
        return with_undecided(least, self.margin)

    def least(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """r_t(x) for every class, and which member it is of, −1 for the deployed model: (n, c) both."""
        most = PAIRS_AT_ONCE if x.device.type == "cpu" else PAIRS_AT_ONCE_ON_DEVICE
        parts = [self._least_of(rows) for rows in torch.split(x, max(1, most // len(self.members)))]
        return torch.cat([least for least, _ in parts]), torch.cat([who for _, who in parts])

    def _least_of(self, x: Tensor) -> tuple[Tensor, Tensor]:
        own = margins(checked_logits(self.deployed(x), len(x)))
        theirs = margins(self.members.logits(x)).to(own)
        least, who = theirs.min(0) if self.needed == len(theirs) else theirs.kthvalue(len(theirs) - self.needed + 1, 0)
        return torch.minimum(own, least).to(x.dtype), torch.where(own <= least, -1, who)

    @property
    def needed(self) -> int:
        """How many of the members must agree."""
        return max(1, math.ceil(self.share * len(self.members) - 1e-9))

    def _by(self, x: Tensor, who: Tensor) -> Tensor:
        """The margins of every row by one model each, with gradients: (n, c)."""
        mine, theirs = torch.nonzero(who < 0).flatten(), torch.nonzero(who >= 0).flatten()
        order = torch.cat([mine, theirs]).argsort()
        logits = [checked_logits(self.deployed(x[mine]), len(mine)).to(x.dtype)] if len(mine) else []
        logits += [self.members.logits_of(x[theirs], who[theirs]).to(x.dtype)] if len(theirs) else []
        return margins(torch.cat(logits)[order]) if logits else x.new_zeros(0, 2)

    # ---- what helps a search, where models are not of torch: `models.deployed` asks for it ----

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The deployed model, and those of the members that need another search than networks do."""
        return (self.deployed, *getattr(self.members, "foreign", ()))

    @cached_property
    def searched(self) -> LeastSure:
        """The same, with everybody asked through what is faster and says the same, where there is that."""
        from holdfast.models.deployed import searched

        members: Any = self.committee or getattr(self.members, "searched", self.members)
        deployed = searched(self.deployed)
        same = deployed is self.deployed and members is self.members
        return self if same else replace(self, deployed=deployed, members=members)

    @cached_property
    def committee(self) -> Committee | None:
        """All of them as trees over the same cells; None where not all are of trees."""
        from holdfast.models.deployed import ensemble_of

        if ensemble_of(self.deployed) is None or len(self.models) <= len(self.members):
            return None
        from holdfast.models.trees.committee import Committee

        return Committee.of(self.models)

    @cached_property
    def learned(self) -> tuple[Tensor, Tensor]:
        """Rows that every model is asked about once, and what all of them say together."""
        from holdfast.models.deployed import has_gradient, learned_by

        rows, _ = learned_by(next(model for model in self.models if not has_gradient(model)))
        return rows, self.searched(rows)

    @cached_property
    def surrogate(self) -> Model:
        """What resembles the deployed model, as sure as it is of itself: to say which moves to try first."""
        from holdfast.models.deployed import searched, surrogate

        leads = surrogate(self.deployed) or searched(self.deployed)
        return lambda x: with_undecided(margins(leads(x)), self.margin)

    def agreement(self, x: Tensor, target: Tensor) -> Tensor:
        """The share of the members that give each row its target, each by more than the margin: (n,)."""
        with torch.no_grad():
            parts = []
            for rows, wanted in zip(torch.split(x, 4096), torch.split(target, 4096), strict=True):
                theirs = margins(self.members.logits(rows))  # (k, n, c)
                own = theirs.gather(2, wanted[None, :, None].expand(len(theirs), -1, 1))[..., 0]
                parts.append((own > self.margin).double().mean(0))
        return torch.cat(parts) if parts else target.new_zeros(0, dtype=torch.float64)


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
    best, place = logits.topk(2, dim=-1)
    is_best = torch.arange(logits.shape[-1], device=logits.device) == place[..., :1]
    return logits - torch.where(is_best, best[..., 1:], best[..., :1])
