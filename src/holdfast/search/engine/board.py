"""What people can do, as arrays that kernels read: features with their values, prices, bounds, relations.

A feature is a number in one column or a one-hot group of columns. Its value is the encoded number, or the index of the
level that is on; a group with all columns off has as value how many columns it has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.search.engine.compiled import record
from holdfast.search.engine.rules import Rules, compiled_rules
from holdfast.tabular.shares import share_below
from holdfast.tabular.space import TOLERANCE, Space

FINE = 1 << 16  # values of a number without a grid, between its ends
UNBOUNDED = 10.0  # encoded units from home that a number without a bound may move

FEATURE = record(
    is_group=np.bool_,
    column=np.int64,  # of a number
    first=np.int64,  # of a group: its columns are columns_of_groups[first : first + size]
    size=np.int64,
    group=np.int64,  # which of the groups it is
    step=np.float64,  # of the raw number; 0 where it has no grid
    shift=np.float64,  # raw number = encoded · scale + shift
    scale=np.float64,
    slack=np.float64,  # by which a number may miss a bound
    first_gap=np.int64,
    end_gap=np.int64,
    first_code=np.int64,  # numbers that say "missing"
    end_code=np.int64,
    related=np.int64,  # its index among the values that relations join; -1 where none names it
    follows=np.bool_,  # may change with others, though not by itself
)
COLUMN = record(
    off=np.float64,
    on=np.float64,
    passed=np.float64,  # of the percentile cost: the share between off and on
)
RANGE = record(
    free=np.bool_,  # may change by itself
    home=np.float64,
    low=np.float64,  # a number: its ends as encoded
    high=np.float64,
    first=np.int64,  # and the first and the last of its values, counted on its grid
    last=np.int64,
)
GAP = record(low=np.float64, high=np.float64)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Records = NDArray[np.void]


class Board(NamedTuple):
    """What is the same for all people."""

    features: Records  # (f,) FEATURE
    columns: Records  # (d,) COLUMN
    columns_of_groups: Integers
    feature_of_related: Integers  # (m,)
    gaps: Records  # GAP
    codes: Floats
    quantiles: Floats  # (d, 101), or (d, 0) where a move costs its length
    norm: int
    single: bool  # whether points are in float32

    @property
    def dtype(self) -> type[np.floating[Any]]:
        """That of the points."""
        return np.float32 if self.single else np.float64


class Persons(NamedTuple):
    """What differs from person to person."""

    origin: Floats  # (n, d)
    ranges: Records  # (n, f) RANGE
    levels: Flags  # (n, g, l + 1) which levels a person may have; the last one is none
    weight: Floats  # (n, d)
    values: Floats  # (n, m) at home, as relations read them
    lower: Floats  # (n, m) where relations may move them
    upper: Floats
    movable: Flags  # (n, m)


def board_of(space: Space, norm: int) -> tuple[Board, Rules]:
    """Of a space with the dtype of the points."""
    numbers = [column for column in range(space.width) if not bool(space._in_group[column])]
    features = np.zeros(len(numbers) + len(space.groups), dtype=FEATURE)
    features["related"] = -1
    gaps = _numbers(space, numbers, features)
    codes: list[float] = []
    in_groups: list[int] = []
    for index, column in enumerate(numbers):
        features[index]["first_code"] = len(codes)
        codes += [float(np.float32(number)) for at, number in space.missing if at == column]
        features[index]["end_code"] = len(codes)
    for number, group in enumerate(space.groups):
        feature = features[len(numbers) + number]
        feature["is_group"], feature["group"], feature["column"] = True, number, group.columns[0]
        feature["first"], feature["size"] = len(in_groups), len(group.columns)
        in_groups += group.columns
    first_columns = {int(feature["column"]): index for index, feature in enumerate(features)}
    related = [] if space.related is None else [first_columns[group[0]] for group in space.related.columns]
    for number, index in enumerate(related):
        features[index]["related"] = number
        features[index]["follows"] = bool(space.follows[int(features[index]["column"])])
    columns = np.zeros(space.width, dtype=COLUMN)
    columns["off"], columns["on"] = floats(space.lower), floats(space.upper)
    quantiles = np.zeros((space.width, 0))
    if space.quantiles is not None:
        quantiles = np.ascontiguousarray(floats(space.quantiles).T)
        off, on = (share_below(end[None], space.quantiles)[0] for end in (space.lower, space.upper))
        columns["passed"] = floats((on - off).abs())
    board = Board(
        features,
        columns,
        np.array(in_groups, dtype=np.int64),
        np.array(related, dtype=np.int64),
        gaps,
        np.array(codes, dtype=np.float64),
        quantiles,
        norm,
        space.lower.dtype == torch.float32,
    )
    return board, compiled_rules(space.related)


def _numbers(space: Space, numbers: list[int], features: Records) -> Records:
    """Write down the grids of numbers; the gaps of all of them."""
    width = floats(space.upper - space.lower)
    layers = [
        (int(column), float(low), float(high))
        for columns, lows, highs in space._gap_layers
        for column, low, high in zip(columns.tolist(), lows.tolist(), highs.tolist(), strict=True)
    ]
    gaps: list[tuple[float, float]] = []
    for index, column in enumerate(numbers):
        feature = features[index]
        feature["column"] = column
        for name in ("step", "shift", "scale"):
            feature[name] = float(getattr(space, name)[column])
        feature["slack"] = TOLERANCE * width[column] if np.isfinite(width[column]) else TOLERANCE
        feature["first_gap"] = len(gaps)
        gaps += [(low, high) for at, low, high in layers if at == column]
        feature["end_gap"] = len(gaps)
    return np.array(gaps, dtype=GAP)


def persons_of(space: Space, origin: Tensor, board: Board) -> Persons:
    """Of the rows (n, d), which have the dtype of the space."""
    rows, features = len(origin), board.features
    ranges = np.zeros((rows, len(features)), dtype=RANGE)
    is_group = features["is_group"]
    columns = features["column"]
    changeable = space.changeable.expand(rows, space.width).numpy()
    ranges["free"] = changeable[:, columns]
    low, high = (floats(bound.expand(rows, space.width)) for bound in space.limits(origin))
    _number_ranges(ranges, features, ~is_group, low, high, floats(origin), board.dtype)
    levels = _levels(space, origin, ranges, np.flatnonzero(is_group))
    weights = space.weights
    weight = np.ones((1, space.width)) if weights is None else np.atleast_2d(floats(weights))
    values = lower = upper = np.zeros((rows, 0))
    movable = np.zeros((rows, 0), dtype=np.bool_)
    if space.related is not None:
        limits = space.related.limits(torch.from_numpy(low), torch.from_numpy(high), torch.from_numpy(changeable))
        values = floats(space.values(origin))
        lower, upper, movable = (
            np.ascontiguousarray(part.numpy()) for part in (limits.lower, limits.upper, limits.movable)
        )
    weight = np.broadcast_to(weight, (rows, space.width)).copy(order="C")
    return Persons(floats(origin), ranges, levels, weight, values, lower, upper, movable)


def _number_ranges(
    ranges: Records,
    features: Records,
    which: Flags,
    low: Floats,
    high: Floats,
    origin: Floats,
    dtype: type[np.floating[Any]],
) -> None:
    """Where each number may go, by its bounds and its grid, as `Space.snap` has it."""
    numbers = features[which]
    columns = numbers["column"]
    home, low, high = origin[:, columns], low[:, columns], high[:, columns]
    low = np.where(np.isfinite(low), low, np.minimum(home, high) - UNBOUNDED)
    high = np.where(np.isfinite(high), high, np.maximum(home, low) + UNBOUNDED)
    step, shift, scale = numbers["step"], numbers["shift"], numbers["scale"]
    stepped, grain = step > 0, np.where(step > 0, step, 1)
    eps = np.finfo(dtype).eps
    slack = 1e-4 * grain / scale
    first = np.ceil(((low - slack - 4 * eps * np.abs(low)) * scale + shift) / grain)
    last = np.floor(((high + slack + 4 * eps * np.abs(high)) * scale + shift) / grain)
    indices = np.flatnonzero(which)
    for name, values in {
        "home": home,
        "low": low,
        "high": high,
        "first": np.where(stepped, first, 0),
        "last": np.where(stepped, last, np.where(low <= high, FINE, -1)),
    }.items():
        ranges[name][:, indices] = values


def _levels(space: Space, origin: Tensor, ranges: Records, indices: Integers) -> Flags:
    """Which levels each person may have, by group; the value of each group at home goes to the ranges."""
    if not space.groups:
        return np.zeros((len(origin), 0, 1), dtype=np.bool_)
    reachable, may_be_off = space.reachable(origin)
    most = reachable.shape[2]
    levels = np.zeros((len(origin), len(space.groups), most + 1), dtype=np.bool_)
    levels[..., :most] = reachable.numpy()
    middle = (space.lower + space.upper) / 2
    for number, group in enumerate(space.groups):
        columns = list(group.columns)
        on = (origin[:, columns] > middle[columns]).numpy()
        home = np.where(on.any(1), on.argmax(1), len(columns))
        ranges["home"][:, indices[number]] = home
        levels[:, number, len(columns)] = may_be_off[:, number].numpy()
        levels[np.arange(len(home)), number, home] = True  # staying is always possible
    return levels


def floats(values: Tensor) -> Floats:
    """As kernels read them."""
    return np.ascontiguousarray(values.detach().cpu().double().numpy())
