"""What a member is trained on: its rows and its labels, drawn from what its Retraining says."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from holdfast.families.perceptron import State
from holdfast.families.recipe import Retraining
from holdfast.utils.draws import normal, uniform

ROW_STREAM, LABEL_STREAM, WEIGHT_STREAM = range(3)  # of random numbers: what a seed draws has one each


@dataclass(frozen=True)
class Pool:
    """All rows there are: those the deployed network was trained on, then the new ones."""

    x: Tensor  # (old + new, d)
    y: Tensor  # (old + new,)
    old: int
    classes: int

    @property
    def new(self) -> int:
        return len(self.x) - self.old

    def without_new(self) -> Pool:
        return replace(self, x=self.x[: self.old], y=self.y[: self.old])


def needs_more(retraining: Retraining) -> bool:
    """Whether a member depends on more than the old rows: on new ones, on the base, or on how many there are in all."""
    return bool(retraining.appended or retraining.continued or retraining.label_noise)


def rows_of(retraining: Retraining, pool: Pool) -> Tensor:
    """Which rows of the pool a member sees, in order and with repetitions: (m,)."""
    draw = _draw(retraining, ROW_STREAM)
    rows = torch.arange(*((0, 0) if retraining.continued else retraining.window or (0, pool.old)))
    if retraining.left_out is not None:
        rows = rows[rows != retraining.left_out]
    if retraining.left_out_share:
        kept = len(rows) - round(retraining.left_out_share * len(rows))
        rows = rows[torch.randperm(len(rows), generator=draw)[:kept].sort().values]
    if retraining.tilt is not None:
        column, strength = retraining.tilt
        weight = torch.softmax(strength * pool.x[rows, column].double().cpu(), 0)
        rows = rows[torch.multinomial(weight, len(rows), replacement=True, generator=draw).sort().values]
    elif retraining.redrawn:
        rows = rows[torch.randint(len(rows), (len(rows),), generator=draw).sort().values]
    if retraining.appended:
        chosen = torch.randperm(pool.new, generator=draw)[: round(retraining.appended * pool.new)]
        rows = torch.cat([rows, pool.old + chosen.sort().values])
    return rows


def labels_of(retraining: Retraining, pool: Pool) -> Tensor:
    """The label of every row of the pool as a member sees it: (old + new,)."""
    if not retraining.label_noise:
        return pool.y
    draw = _draw(retraining, LABEL_STREAM)
    wrong = uniform((len(pool.y),), draw) < retraining.label_noise
    other = torch.randint(1, pool.classes, pool.y.shape, generator=draw)
    return torch.where(wrong.to(pool.y.device), (pool.y + other.to(pool.y.device)) % pool.classes, pool.y)


def disturbed(state: State, retraining: Retraining) -> State:
    """One trained network with its weight noise added; biases, and what else is a single row of numbers, stay."""
    if not retraining.weight_noise:
        return state
    draw = _draw(retraining, WEIGHT_STREAM)
    return {
        name: tensor + retraining.weight_noise * tensor.std() * normal(tensor.shape, draw).to(tensor)
        if tensor.ndim > 1 and tensor.is_floating_point()
        else tensor
        for name, tensor in state.items()
    }


def check_material(retraining: Retraining, pool: Pool) -> int:
    """How many rows a member sees. Raise where it asks for what the pool does not have."""
    if retraining.left_out is not None and not 0 <= retraining.left_out < pool.old:
        raise ValueError(f"{retraining} leaves out a row that is not there; there are {pool.old}")
    if retraining.window is not None and not 0 <= retraining.window[0] < retraining.window[1] <= pool.old:
        raise ValueError(f"{retraining} asks for a window that is not inside the {pool.old} rows")
    if retraining.tilt is not None and not 0 <= retraining.tilt[0] < pool.x.shape[1]:
        raise ValueError(f"{retraining} tilts a column that is not there; there are {pool.x.shape[1]}")
    if retraining.appended and not pool.new:
        raise ValueError(f"{retraining} appends new rows but there are none; pass train(..., new=(x_new, y_new))")
    rows = len(rows_of(retraining, pool))
    if not rows:
        raise ValueError(f"{retraining} leaves no row to train on")
    return rows


def _draw(retraining: Retraining, stream: int) -> torch.Generator:
    return torch.Generator().manual_seed(3 * retraining.data_seed + stream)
