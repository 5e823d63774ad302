"""What a network is fed: encoded rows, the numbers of the table, or the table itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.deployed import Takes
from holdfast.models.questions.probing import FEW, random_rows, real_rows
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature


@dataclass(frozen=True)
class Fed:
    """How rows are handed to a model. With ``encoded``, a gradient comes back the same way."""

    takes: Takes
    told: str  # in words
    table: Callable[[pd.DataFrame], Any]
    encoded: Callable[[Tensor], Tensor] | None = None


def fed(takes: Takes, encoding: Encoding, like: Tensor | None) -> Fed:
    """Rows as a model takes them, with the dtype and on the device of ``like``, which is one of its weights."""
    dtype, device = (torch.float32, None) if like is None else (like.dtype, like.device)
    if takes == "table":
        return Fed(takes, "the table", lambda table: table)
    if takes == "encoded":
        wide = dtype if dtype.itemsize >= 4 else torch.float32  # a table is not encoded in fewer bits
        return Fed(
            takes,
            f"encoded rows of {encoding.width} numbers",
            lambda table: encoding.encode(table, wide).to(device, dtype),
            lambda x: x.to(device, dtype),
        )
    _check_numbers(encoding)
    return Fed(
        takes,
        f"the {len(encoding.schema.features)} numbers of the table as they are",
        lambda table: torch.from_numpy(numbers_of(table, encoding)).to(device, dtype),
        lambda x: _decoded(x.double(), encoding).to(device, dtype),
    )


def numbers_of(table: pd.DataFrame, encoding: Encoding) -> NDArray[np.float64]:
    """A column for each feature, in the order of the schema: levels that are text are counted, from 0."""
    found = np.empty((len(table), len(encoding.schema.features)))
    for place, feature in enumerate(encoding.schema.features):
        column = table[feature.name]
        if not feature.is_numeric and not _has_numbers(feature):
            counted = {level: number for number, level in enumerate(feature.levels)}
            column = column.map(counted)
        found[:, place] = column.astype(np.float64)
    return found


def _decoded(x: Tensor, encoding: Encoding) -> Tensor:
    """The same of encoded rows (n, d), with a gradient: straight lines between neighbouring levels."""
    raw = x * torch.from_numpy(encoding.scale).to(x) + torch.from_numpy(encoding.shift).to(x)
    columns = []
    for feature, place in encoding.places:
        own = raw[:, place]
        if feature.is_numeric or not _has_numbers(feature):
            columns.append(own[:, 0])
        elif feature.kind == "categorical":
            zero = 0.0 if feature.zero_level is None else float(feature.zero_level)
            columns.append(zero + own @ (torch.tensor([float(level) for level in feature.levels]).to(own) - zero))
        else:
            columns.append(_between([float(level) for level in feature.levels], own[:, 0]))
    return torch.stack(columns, 1)


def _between(levels: list[float], place: Tensor) -> Tensor:
    """The level at a place; between two places, the straight line."""
    if len(levels) == 1:
        return place * 0 + levels[0]
    known = torch.tensor(levels).to(place)
    below = place.detach().floor().clamp(0, len(levels) - 2).long()
    return known[below] + (place - below) * (known[below + 1] - known[below])


def _has_numbers(feature: Feature) -> bool:
    return all(isinstance(level, Real) for level in feature.values)


def _check_numbers(encoding: Encoding) -> None:
    text = [one.name for one in encoding.schema.features if one.kind == "categorical" and not _has_numbers(one)]
    if text:
        raise ValueError(
            f"the levels of column '{text[0]}' are no numbers and have no order, so a model cannot take the table as "
            "numbers; give a model of encoded rows (takes='encoded'), or one that takes the table (takes='table')"
        )


def how_to_fit(encoding: Encoding) -> str:
    """What a network whose columns are others can do, in words."""
    levels = sum(not feature.is_numeric for feature in encoding.schema.features)
    return (
        f"encoded rows have {encoding.width} columns, those of encoding.columns: numbers standardised, and {levels} "
        "features of levels one-hot or counted. A network does not say what its columns mean: train it on "
        "Encoding.fit(table, schema).encode(table), or give a model that takes the table itself: a pipeline (.skops), "
        "or in Python a function from a table to probabilities"
    )


def sample(encoding: Encoding, most: int = FEW) -> tuple[pd.DataFrame, NDArray[np.int64] | None]:
    """Rows to try a model on and their classes: known ones, or, where there are none, any that the schema allows."""
    real = real_rows(encoding, most)
    return (encoding.decode(random_rows(encoding, FEW)), None) if real is None else real
