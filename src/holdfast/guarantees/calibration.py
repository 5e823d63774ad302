r"""Which value of a parameter keeps a promised rate, by conformal risk control with models as the exchangeable units.

Model i of n loses Lᵢ(v), a share in [0, 1], at the value v of a parameter. A larger value need not lose less, so each
model is charged the most that it loses from v on, L̃ᵢ(v) = max over v' ≥ v of Lᵢ(v'), which does fall. The value chosen
is

    the smallest v with (Σᵢ L̃ᵢ(v) + 1) / (n + 1) ≤ rate,

and none where there is no such v. Whichever of n + 1 exchangeable models is the one that comes next, the value v* that
all n + 1 together would choose, with Σᵢ L̃ᵢ(v*) ≤ rate · (n + 1), is no larger than the value chosen, since the 1 is no
less than what the next one can lose. L̃ falls, so the next model loses no more at the value chosen than at v*, where one
of n + 1 drawn at random loses at most ``rate`` on average (Angelopoulos et al. 2024). No choice counts as a loss of 0.

Where the n models are all that there can be, their mean is exact: then mean L̃ᵢ(v) ≤ rate is all that is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the models of one kind of change say of every value of the parameter."""

    kind: str
    rate: float
    losses: Floats  # (grid, n): the share of the rows found at each value that each model invalidates
    exhaustive: bool = False  # the n models are all that this kind of change can give

    def __post_init__(self) -> None:
        object.__setattr__(self, "losses", checked_losses(self.losses))

    @property
    def members(self) -> int:
        return int(self.losses.shape[1])

    @property
    def loss(self) -> Floats:
        """The mean loss at each value: (grid,)."""
        mean: Floats = self.losses.mean(1)
        return mean

    @property
    def bound(self) -> Floats:
        """What each value could promise: (grid,), falling."""
        return bounds(self.losses, self.exhaustive)

    @property
    def choice(self) -> int | None:
        """The place of the smallest value that keeps the rate; None where none does."""
        return smallest(self.bound, self.rate)

    @property
    def wanted(self) -> int | None:
        """How many models would do if more of them lost what these lose at the largest value; None where none would."""
        lost = float(monotone(self.losses)[-1].mean())
        if self.exhaustive or not lost < self.rate - 1e-9:  # by less, a mean of shares is the rate, rounded
            return None
        return max(fewest_models(self.rate), math.ceil((1 - self.rate) / (self.rate - lost) - 1e-9))


def monotone(losses: ArrayLike) -> Floats:
    """The most that each model loses from each value on: the running maximum from the largest value, (grid, n)."""
    each = np.asarray(losses, dtype=np.float64)
    return np.maximum.accumulate(each[::-1], axis=0)[::-1]


def bounds(losses: ArrayLike, exhaustive: bool = False) -> Floats:
    """(Σ L̃ + 1) / (n + 1) at each value of the parameter, or the mean of L̃ where the models are all there can be."""
    charged = monotone(losses)
    total, n = charged.sum(1), charged.shape[1]
    bound: Floats = total / n if exhaustive else (total + 1) / (n + 1)
    return bound


def smallest(bound: Floats, rate: float) -> int | None:
    """The first place whose bound is at most the rate."""
    kept = np.flatnonzero(bound <= rate)
    return int(kept[0]) if len(kept) else None


def joint_choice(calibrations: Sequence[Calibration]) -> int | None:
    """The place that keeps the rate for every kind: the largest of theirs, since bounds fall; None where one has none.

    Kinds are not pooled: models of two kinds are not exchangeable, and many of an easy kind would hide a hard one.
    """
    choices = [calibration.choice for calibration in calibrations]
    made = [choice for choice in choices if choice is not None]
    return max(made) if made and len(made) == len(choices) else None


def fewest_models(rate: float) -> int:
    """The least number of models that can promise a rate, should none of them lose anything: 1 / rate − 1."""
    n = max(1, math.ceil(1 / rate - 1) - 1)  # one below, in case 1 / rate was rounded up
    while 1 / (n + 1) > rate:
        n += 1
    return n


def checked_losses(losses: ArrayLike) -> Floats:
    each = np.asarray(losses, dtype=np.float64)
    if each.ndim != 2 or not each.size:
        raise ValueError(f"losses must have shape (values of the parameter, models), not empty, got {each.shape}")
    if not ((each >= 0) & (each <= 1)).all():
        raise ValueError(f"losses must lie in [0, 1], got {each.min()} to {each.max()}")
    return each
