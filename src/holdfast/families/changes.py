"""The kinds of change that retraining brings, each a list of Retrainings; ``+`` joins them."""

from __future__ import annotations

import torch

from holdfast.families.recipe import Retraining


def seeds(n: int, start: int = 1) -> list[Retraining]:
    """Trained again with other initial weights and another batch order (the paper's RS).

    Seeds run from ``start``. The deployed model has seed 0, so it is never one of these; families that must
    not share a member (to search, to calibrate, to audit) take ranges that do not overlap.
    """
    _check_count(n)
    if start < 0:
        raise ValueError(f"start must be 0 or more, got {start}")
    return [Retraining(init_seed=seed, order_seed=seed, kind="seeds") for seed in range(start, start + n)]


def leave_one_out(n: int, rows: int, seed: int = 0, base: Retraining | None = None) -> list[Retraining]:
    """Trained again with the base's seeds and one of its ``rows`` training rows missing (the paper's LOO).

    The n rows are drawn without replacement. The base's seeds draw the batches anew over the rows - 1 that are left.
    """
    _check_count(n)
    if n > rows:
        raise ValueError(f"cannot leave out {n} different rows of {rows}; ask for {rows} or fewer")
    base = base or Retraining()
    chosen = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))[:n].tolist()
    return [
        Retraining(init_seed=base.init_seed, order_seed=base.order_seed, left_out=row, kind="leave-one-out")
        for row in chosen
    ]


def _check_count(n: int) -> None:
    if n < 1:
        raise ValueError(f"a family needs one member or more, got {n}")
