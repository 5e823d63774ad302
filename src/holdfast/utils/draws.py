"""Random numbers that a generator's state alone decides.

torch draws in its default dtype, and other numbers where somebody has changed that. Ours are always float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor


def uniform(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Between 0 and 1."""
    return torch.rand(tuple(shape), generator=generator, dtype=torch.float32)


def normal(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    return torch.randn(tuple(shape), generator=generator, dtype=torch.float32)


@contextmanager
def usual_dtype() -> Iterator[None]:
    """torch as it is when nobody has changed its default, for code that is not ours."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
