"""The parameters of a training that are known of a model, and how."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isclose
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Parameters of an estimator by their names, and where each of them comes from."""

    values: dict[str, Any]
    known: tuple[str, ...] = ()  # the model holds them
    usual: tuple[str, ...] = ()  # so too, and they are the library's defaults
    worked_out: tuple[str, ...] = ()  # its trees show them
    assumed: tuple[str, ...] = ()  # nothing shows them; the library's default where they have no value here
    remarks: tuple[str, ...] = ()
    seed_known: bool = False
    draws: bool = True  # whether the training draws anything, so that its seed matters
    others: tuple[dict[str, Any], ...] = field(default=(), repr=False)  # values that could be in the place of assumed

    def with_values(self, other: dict[str, Any]) -> Settings:
        """Found to be right, so no longer assumed."""
        kept = tuple(name for name in self.assumed if name not in other)
        return replace(
            self,
            values=self.values | other,
            worked_out=tuple(dict.fromkeys((*self.worked_out, *other))),
            assumed=kept,
        )

    def __str__(self) -> str:
        others = " (all others too: they are the defaults)" if self.usual else ""
        parts = [
            self._said("held by the booster", self.known) + others,
            self._said("worked out from its trees", self.worked_out),
            self._said("assumed", self.assumed),
            *self.remarks,
        ]
        return "; ".join(part for part in parts if part)

    def _said(self, how: str, names: tuple[str, ...]) -> str:
        said = [f"{name} {self.values[name]}" if name in self.values else f"{name} by default" for name in names]
        return f"{how}: {', '.join(said)}" if said else ""


def rounded(value: float) -> float:
    """The number that somebody wrote: of few digits, where one is as near as float32 can tell."""
    for digits in (2, 3, 4):
        short = float(f"{value:.{digits}g}")
        if isclose(short, value, rel_tol=2e-4, abs_tol=1e-5):
            return short
    return float(f"{value:.6g}") if abs(value) > 1e-5 else 0.0
