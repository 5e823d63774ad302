"""What single people may do, within what the space allows to everybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Personal:
    """For each of n people: which columns may change, between which bounds, and how hard a change is for them."""

    mutable: Tensor  # (n, d) bool
    lower: Tensor  # (n, d) -inf where a person has no bound of their own
    upper: Tensor  # (n, d) inf likewise
    weight: Tensor  # (n, d) what a change counts, 1 where nothing was said

    def __post_init__(self) -> None:
        for field in fields(self):
            values = getattr(self, field.name)
            if not isinstance(values, Tensor):
                raise TypeError(f"{field.name} of people is a {type(values).__name__}; expected a tensor (n, d)")
            if values.ndim != 2 or values.shape != self.mutable.shape:
                raise ValueError(
                    f"{field.name} of people has shape {tuple(values.shape)}, mutable has {tuple(self.mutable.shape)}; "
                    "each needs a number for every person and column: (n, d)"
                )
        if self.mutable.dtype != torch.bool:
            raise TypeError(f"mutable of people is {self.mutable.dtype}; expected torch.bool")
        if not bool((self.lower <= self.upper).all()):
            row = int(torch.nonzero(~(self.lower <= self.upper))[0, 0])
            raise ValueError(f"person {row}: a lower bound is above an upper bound; swap them")
        if not bool(((self.weight > 0) & self.weight.isfinite()).all()):
            raise ValueError("weights of people must be finite numbers above 0")

    def __len__(self) -> int:
        return len(self.mutable)

    @classmethod
    def none(cls, rows: int, width: int) -> Personal:
        """So many people who ask for nothing of their own."""
        edge = torch.full((rows, width), torch.inf, dtype=torch.float64)
        return cls(torch.ones(rows, width, dtype=torch.bool), -edge, edge, torch.ones_like(edge))

    def of(self, rows: Tensor | slice) -> Personal:
        """The same for some of the people."""
        return self._each(lambda values: values[rows])

    def to(self, like: Tensor) -> Personal:
        return self._each(lambda values: values.to(like.device if values.dtype == torch.bool else like))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Personal:
        # Not through __init__: what was checked once need not be checked at every step of a search.
        changed = object.__new__(Personal)
        changed.__dict__.update({field.name: change(getattr(self, field.name)) for field in fields(self)})
        return changed
