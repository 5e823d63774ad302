"""How often retrained networks undo a counterfactual."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from holdfast.counterfactuals import Counterfactuals
from holdfast.families import Family
from holdfast.intervals import clopper_pearson, mean_interval


@dataclass(frozen=True, eq=False)
class Audit:
    """What every member says of every counterfactual. Rows that were not found count for `success` alone.

    Invalidation (the paper's IV): the share of pairs of a found counterfactual and a retrained network
    in which the network's class is not the one the counterfactual was found for.
    """

    predictions: Tensor  # (k, n)
    counterfactuals: Counterfactuals
    kinds: tuple[str, ...]  # (k,)

    def __post_init__(self) -> None:
        expected = (len(self.kinds), len(self.counterfactuals))
        if tuple(self.predictions.shape) != expected or not self.kinds:
            raise ValueError(f"predictions have shape {tuple(self.predictions.shape)}, expected {expected}, not empty")

    @property
    def undone(self) -> NDArray[np.bool_]:
        """(k, found rows)."""
        pairs = self.predictions != self.counterfactuals.target
        return pairs[:, self.counterfactuals.found].cpu().numpy()

    @property
    def rate(self) -> float:
        """Invalidation over all pairs; NaN when nothing was found."""
        return _mean(self.undone)

    @property
    def per_member(self) -> NDArray[np.float64]:
        """Each member's rate: (k,)."""
        undone = self.undone
        return undone.mean(1) if undone.size else np.full(len(self.kinds), np.nan)

    @property
    def per_row(self) -> NDArray[np.float64]:
        """Each counterfactual's rate: (n,), NaN where nothing was found."""
        return self._spread(self.undone.mean(0))

    def per_row_interval(self, confidence: float = 0.95) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Clopper-Pearson limits of each counterfactual's rate: (n,), (n,)."""
        low, high = clopper_pearson(self.undone.sum(0), len(self.kinds), confidence)
        return self._spread(low), self._spread(high)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Limits of the rate of *these* counterfactuals over future retrainings like the ones audited.

        Each member's rate is one independent draw in [0, 1]; see `intervals.mean_interval`.
        """
        rates = self.per_member
        return (np.nan, np.nan) if np.isnan(rates).any() else mean_interval(rates, confidence)

    @property
    def success(self) -> float:
        return self.counterfactuals.success

    @property
    def end_to_end(self) -> float:
        """Share of all pairs in which a counterfactual was found and held: no method gains by failing."""
        return self.success * (1 - self.rate) if self.success else 0.0

    @property
    def by_kind(self) -> dict[str, Audit]:
        """One audit a kind of change, in order of appearance."""
        return {kind: self.of(kind) for kind in dict.fromkeys(self.kinds)}

    def of(self, kind: str) -> Audit:
        places = [place for place, member in enumerate(self.kinds) if member == kind]
        if not places:
            raise ValueError(f"no member of kind '{kind}'; there are {', '.join(dict.fromkeys(self.kinds))}")
        return Audit(self.predictions[places], self.counterfactuals, (kind,) * len(places))

    def rows(self, *, dataset: str, method: str, space: str, seconds: float) -> list[dict[str, Any]]:
        """One flat row a kind of change, with the keys that every study, table and benchmark uses."""
        return [
            {
                "dataset": dataset,
                "method": method,
                "space": space,
                "change": kind,
                "members": len(audit.kinds),
                "rows": len(self.counterfactuals),
                "found": int(self.counterfactuals.found.sum()),
                "rate": _or_none(audit.rate),
                "low": _or_none(audit.interval()[0]),
                "high": _or_none(audit.interval()[1]),
                "cost_l1": _or_none(self._mean_cost(1)),
                "cost_l2": _or_none(self._mean_cost(2)),
                "seconds": round(seconds, 3),
            }
            for kind, audit in self.by_kind.items()
        ]

    def _mean_cost(self, norm: float) -> float:
        cost = self.counterfactuals.cost(norm)[self.counterfactuals.found]
        return float(cost.double().mean())

    def _spread(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """From found rows to all rows."""
        spread = np.full(len(self.counterfactuals), np.nan)
        spread[self.counterfactuals.found.cpu().numpy()] = values
        return spread

    def __repr__(self) -> str:
        lines = [f"Audit of {self.counterfactuals}, {len(self.kinds)} retrained networks:"]
        if not self.success:
            return "\n".join([*lines, "  nothing was found, so nothing can be undone"])
        for kind, audit in self.by_kind.items():
            low, high = audit.interval()
            lines.append(f"  {kind}: {audit.rate:.1%} undone (95 % interval {low:.1%} to {high:.1%})")
        return "\n".join(lines)


def audit(counterfactuals: Counterfactuals, family: Family) -> Audit:
    """Ask every member of a family for the class of every counterfactual.

    Models of one's own become a family with `Family.from_models` or `Family.from_training`. The family must not hold
    a network that the search has seen: it would agree with itself.
    """
    _check_belong(counterfactuals, family)
    return Audit(family.predict(counterfactuals.point), counterfactuals, family.kinds)


def _check_belong(counterfactuals: Counterfactuals, family: Family) -> None:
    if not isinstance(counterfactuals, Counterfactuals) or not isinstance(family, Family):
        raise TypeError(
            f"expected Counterfactuals and a Family, got {type(counterfactuals).__name__} and {type(family).__name__}; "
            "for models of your own use Family.from_models([...])"
        )
    if not len(family) or family.features not in (None, counterfactuals.point.shape[1]):
        raise ValueError(
            f"{family} has {len(family)} members for {family.features} columns; the counterfactuals have "
            f"{counterfactuals.point.shape[1]} columns"
        )
    if None not in (counterfactuals.classes, family.classes) and counterfactuals.classes != family.classes:
        raise ValueError(
            f"the counterfactuals were found for {counterfactuals.classes} classes but {family} has {family.classes}; "
            "merge the family's classes as the model's were, family.merged(groups)"
        )
    if counterfactuals.seen & set(family.fingerprints):
        places = [place for place, member in enumerate(family.fingerprints) if member in counterfactuals.seen]
        raise ValueError(
            f"members {places} of {family} are networks that the search has seen; they would agree with themselves: "
            "audit with others, such as seeds(100, start=...)"
        )
    if len(set(family.fingerprints or family.retrainings)) < len(family):
        raise ValueError(f"{family} holds the same retraining more than once; members must be independent draws")
    if family.suspects:
        warnings.warn(
            f"members {list(family.suspects)} of {family} did not learn: their accuracy is far below their siblings'; "
            "what they undo says little",
            stacklevel=3,
        )


def _mean(values: NDArray[np.bool_]) -> float:
    return float(values.mean()) if values.size else float("nan")


def _or_none(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else round(float(value), 6)
