"""Rows to find out with how a model answers: real ones where the encoding knows some, else random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.adapters.adapter import Adapter
from holdfast.models.model import Model
from holdfast.tabular.encoding import Encoding
from holdfast.utils.draws import uniform

ROWS_TO_PROBE = 1000  # rows that are enough to see how a model answers
COMPARED_ROWS = 10_000  # rows on which a translation must say the same,
SAME_PROBABILITY = 1e-5  # up to so much of a probability


def known_rows(encoding: Encoding, most: int) -> pd.DataFrame | None:
    """Rows that the encoding knows, some of them if there are many; None where it knows none."""
    known = encoding.known
    if known is None or not len(known):
        return None
    if len(known) <= most:
        return known
    return known.iloc[np.sort(np.random.RandomState(0).permutation(len(known))[:most])]


def random_rows(encoding: Encoding, count: int, seed: int = 0) -> Tensor:
    """Encoded rows whose every feature is drawn evenly from its range or its levels: (count, d) in float64."""
    ends = [torch.from_numpy((end - encoding.shift) / encoding.scale) for end in (encoding.lower, encoding.upper)]
    drawn = ends[0] + uniform((count, encoding.width), torch.Generator().manual_seed(seed)).double() * (
        ends[1] - ends[0]
    )
    # Written as a table and read again, numbers lie on their grid and one level of each feature is on.
    return encoding.encode(encoding.decode(drawn), torch.float64)


def sample(encoding: Encoding, most: int = ROWS_TO_PROBE) -> tuple[pd.DataFrame, NDArray[np.int64] | None]:
    """Rows to try a model on and their classes: known ones, or, where there are none, any that the schema allows."""
    known = known_rows(encoding, most)
    if known is None:
        return encoding.decode(random_rows(encoding, most)), None
    return encoding.decode(encoding.encode(known, torch.float64)), encoding.labels(known).numpy()


def shuffled_apart(table: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """The same values of every column, in an order of its own: what a model says where features do not go together."""
    draw = np.random.RandomState(seed)
    columns: dict[Any, Any] = {
        name: table[name].iloc[draw.permutation(len(table))].reset_index(drop=True) for name in table.columns
    }
    return pd.DataFrame(columns)


def rows_to_compare(encoding: Encoding, most: int = COMPARED_ROWS) -> pd.DataFrame:
    """Rows to compare a translation with the model on: known ones and as many with their features shuffled apart."""
    real, _ = sample(encoding, most // 2)
    return pd.concat([real.reset_index(drop=True), shuffled_apart(real)], ignore_index=True)


def says_the_same(exact: Model, adapter: Adapter, rows: pd.DataFrame, dtype: torch.dtype = torch.float32) -> bool:
    """Whether a translation, given encoded rows of this dtype, agrees with the model about them."""
    theirs = torch.from_numpy(adapter.scores(rows)).softmax(1)
    try:
        with torch.no_grad():
            ours = exact(adapter.encoding.encode(rows, dtype)).double().cpu().softmax(1)
    except Exception:  # not the shapes or the steps it was taken for
        return False
    return bool(((theirs - ours).abs() <= SAME_PROBABILITY).all())
