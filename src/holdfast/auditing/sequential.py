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

    ``low`` and ``high`` (k,) hold for all k at once (`intervals.running_interval`), so stopping on them is allowed;
    `audit.interval()`, which is for a number of members that was chosen beforehand, is not.
    """

    audit: Audit
    low: Floats
    high: Floats
    width: float  # asked for
    confidence: float

    def __post_init__(self) -> None:
        if not isinstance(self.audit, Audit):
            raise TypeError(f"expected an Audit, got {type(self.audit).__name__}; audit_until makes a Sequential")
        members, low, high = len(self.audit.kinds), len(self.low), len(self.high)
        if low != members or high != members:
            raise ValueError(f"low and high must have one limit for each of {members} members, got {low} and {high}")

    @property
    def members(self) -> int:
        return len(self.low)

    @property
    def reached(self) -> bool:
        """Not so where the limits have crossed: then no rate is left, whatever the width."""
        return bool(0 <= self.high[-1] - self.low[-1] <= self.width)

    @property
    def interval(self) -> tuple[float, float]:
        return float(self.low[-1]), float(self.high[-1])

    def __repr__(self) -> str:
        low, high = self.interval
        told = f"{self.audit.rate:.1%} invalidated, {self.confidence:.0%} interval {low:.1%} to {high:.1%}"
        end = "as narrow as asked" if self.reached else f"not yet as narrow as {self.width:.1%}"
        return f"Sequential({told} after {self.members} members, {end})"


def audit_until(
    counterfactuals: Counterfactuals, families: Iterable[Family], width: float = 0.05, confidence: float = 0.95
) -> Sequential:
    """Audit with one family after another until the interval of the rate is at most ``width`` wide, or none is left.

    ``families`` may be made as they are asked for, so that no more is trained than is needed:

        (train(x, y, recipe, seeds(20, start=1000 + 20 * part)) for part in range(50))

    All members must be retrained in one way, since the limits are those of one mean. `members_needed` with
    ``running=True`` says beforehand how many it may take.
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
