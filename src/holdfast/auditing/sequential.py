"""How many retrainings are enough: audit as they come, and stop when the interval is as narrow as asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from holdfast.auditing.audit import Audit, audit
from holdfast.auditing.intervals import running_interval
from holdfast.families.family import Family
from holdfast.search.counterfactuals import Counterfactuals, check_answer
from holdfast.utils.settings import check_number

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sequential:
    """An audit that looked at its interval after every batch of members, and may have stopped early.

    Stopping on ``low`` and ``high`` is allowed, because they hold for all k at once (`running_interval`). Stopping on
    `Audit.interval` is not: it is for a number of members that was chosen beforehand.

    Attributes:
        audit: The audit by all members that were asked.
        low: The lower limit after each member: (k,).
        high: The upper limit after each member: (k,).
        width: The width that was asked for.
        confidence: The share of such limits that must hold: 0.95 is 95 of 100.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.auditing.sequential import audit_until
        >>> x, found = torch.zeros(1, 1), torch.tensor([True])
        >>> answer = hf.Counterfactuals(x, x + 1, torch.tensor([1]), found)
        >>> # Retrained models that all agree, in families of ten.
        >>> agrees = lambda number: lambda x: torch.stack([-x[:, 0], x[:, 0]], dim=1)
        >>> parts = [[agrees(number) for number in range(10)] for part in range(9)]
        >>> families = (hf.Family.from_models(part) for part in parts)
        >>> result = audit_until(answer, families, width=0.25)
        >>> result.reached, result.members
        (True, 20)

    Paper: the limits are those of [Waudby-Smith and Ramdas 2024](https://arxiv.org/abs/2010.09686).
    """

    audit: Audit
    low: Floats  # (k,)
    high: Floats  # (k,)
    width: float
    confidence: float

    def __post_init__(self) -> None:
        if not isinstance(self.audit, Audit):
            raise TypeError(f"expected an Audit, got {type(self.audit).__name__}; audit_until makes a Sequential")
        members, low, high = len(self.audit.kinds), len(self.low), len(self.high)
        if low != members or high != members:
            raise ValueError(f"low and high must have one limit for each of {members} members, got {low} and {high}")

    @property
    def members(self) -> int:
        """How many members were asked."""
        return len(self.low)

    @property
    def reached(self) -> bool:
        """Whether the interval is as narrow as asked. Not so where its limits have crossed: then no rate is left."""
        return bool(0 <= self.high[-1] - self.low[-1] <= self.width)

    @property
    def interval(self) -> tuple[float, float]:
        """The limits after the last member."""
        return float(self.low[-1]), float(self.high[-1])

    def __repr__(self) -> str:
        low, high = self.interval
        headline = f"{self.audit.rate:.1%} invalidated, {self.confidence:.0%} interval {low:.1%} to {high:.1%}"
        end = "as narrow as asked" if self.reached else f"not yet as narrow as {self.width:.1%}"
        return f"Sequential({headline} after {self.members} members, {end})"


def audit_until(
    counterfactuals: Counterfactuals, families: Iterable[Family], width: float = 0.05, confidence: float = 0.95
) -> Sequential:
    """Audit with one family after another until the interval of the rate is narrow enough, or no family is left.

    Families may be made as they are asked for, so that no more is trained than is needed. All members must be retrained
    in one way, since the limits are those of one mean. `members_needed` with ``running=True`` says beforehand how many
    it may take.

    Args:
        counterfactuals: What a search found.
        families: The families, in a list or made one by one.
        width: Stop when the interval is at most so wide: 0.05 is five percentage points.
        confidence: The share of such intervals that must hold: 0.95 is 95 of 100.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.auditing.sequential import audit_until
        >>> x = torch.rand(200, 2, generator=torch.Generator().manual_seed(0))
        >>> y, recipe = (x.sum(1) > 1).long(), hf.Recipe(hidden=(8,), epochs=5)
        >>> deployed = hf.train(x, y, recipe, [hf.Retraining()])[0]
        >>> target = hf.other_class(deployed, x[:20])
        >>> found = hf.PGD()(deployed, x[:20], target, hf.Space.free(x))
        >>> changes = (hf.seeds(20, start=1000 + 20 * part) for part in range(10))
        >>> families = (hf.train(x, y, recipe, change) for change in changes)
        >>> result = audit_until(found, families, width=0.5)
        >>> result.reached, result.members % 20
        (True, 0)

    Paper: the limits are those of [Waudby-Smith and Ramdas 2024](https://arxiv.org/abs/2010.09686).
    """
    check_answer(counterfactuals)
    check_number("width", width)
    check_number("confidence", confidence)
    if isinstance(families, Family) or not isinstance(families, Iterable):
        raise TypeError(f"families must be several, [family, ...], got {type(families).__name__}")
    if not 0 < width < 1 or not 0 < confidence < 1:
        raise ValueError(
            f"width and confidence must lie between 0 and 1, got {width} and {confidence}; "
            "write 0.05 for five percentage points"
        )
    if not bool(counterfactuals.found.any()):
        raise ValueError("nothing was found, so there is no rate to estimate")
    parts: list[Audit] = []
    seen: set[str] = set()
    for family in families:
        if not isinstance(family, Family):
            raise TypeError(f"expected each of families to be a Family, got {type(family).__name__}")
        _check_new(family, seen, parts)
        seen |= set(family.fingerprints)
        parts.append(audit(counterfactuals, family))
        result = _joined(parts, width, confidence)
        if result.high[-1] - result.low[-1] <= width:  # crossed limits, which were warned of, never part again
            return result
    if not parts:
        raise ValueError("there were no families to audit with")
    return result


def _check_new(family: Family, seen: set[str], parts: list[Audit]) -> None:
    kinds = {kind for part in parts for kind in part.kinds} | set(family.kinds)
    if len(kinds) > 1:
        raise ValueError(
            f"members were retrained in several ways ({', '.join(sorted(kinds))}), which have no common rate; audit "
            "one kind of change at a time"
        )
    if seen & set(family.fingerprints):
        raise ValueError(f"{family} holds members of an earlier family; draw other seeds, such as seeds(20, start=...)")


def _joined(parts: list[Audit], width: float, confidence: float) -> Sequential:
    whole = Audit(
        torch.cat([part.predictions for part in parts]),
        parts[0].counterfactuals,
        tuple(kind for part in parts for kind in part.kinds),
        torch.cat([part.before for part in parts if part.before is not None]),
        "; ".join(dict.fromkeys(part.surrogates for part in parts if part.surrogates)),
        all(part.refitted for part in parts),
    )
    low, high = running_interval(whole.per_member, confidence)
    return Sequential(whole, low, high, width, confidence)
