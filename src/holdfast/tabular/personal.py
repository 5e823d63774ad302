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
        return Personal(*(change(getattr(self, field.name)) for field in fields(self)))
