"""How many threads work on a tensor.

Threads that share a small piece of work wait for one another at every step, and on a machine that is busy with
something else they wait twenty times as long as one thread would have taken. One thread also gives the same bits
whatever the number of cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

LARGE = 1 << 20  # numbers in a tensor from which several threads pay


@contextmanager
def one_thread(numbers: int = 0) -> Iterator[None]:
    """Work on one thread, unless there are so many numbers to work on that more of them pay."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if numbers >= LARGE else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
