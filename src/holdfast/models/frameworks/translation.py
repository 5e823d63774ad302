"""Linear models and small networks of scikit-learn as torch functions of encoded rows, with gradients.

Whatever stands before the last step, a pipeline of scalers, one-hot encoders, selections or rotations, is taken for a
sum over features: a multiple of each number, and a vector for each level. That is measured, one feature at a time, and
what is put together is compared with the user's own object on many rows. Where it differs, there is no translation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapters.probing import rows_to_compare, says_the_same
from holdfast.models.adapters.seen import See, seen
from holdfast.models.model import Model
from holdfast.models.parts import Dense, LevelTable
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature

ROWS_TO_TRY = 400  # rows that show whether the rest is worth its time
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda z: z,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "logistic": torch.sigmoid,
}


def exact_of(adapter: Adapter) -> Model | None:
    """The model in torch; None where it is of no kind that is known here, or not the same on all rows tried."""
    encoding, output = adapter.encoding, adapter.output
    if output.decides or any(feature.missing for feature in encoding.schema.features):
        return None
    see, final = seen(adapter.model, adapter.rows)
    network = _network(final)
    if network is None:
        return None
    try:
        columns = _columns(encoding, see)
    except Exception:  # a step that takes no row but those it was made for: it is asked as it is
        return None
    if columns is None:
        return None
    table = rows_to_compare(encoding)
    for one_each in (False,) if len(output.places) == 2 else (False, True):
        found = Translation(columns, *network, one_each, output.places)
        chosen_rows = np.linspace(0, len(table) - 1, min(ROWS_TO_TRY, len(table))).astype(int)
        rows = (table.iloc[chosen_rows], table)
        if all(says_the_same(found, adapter, each, torch.float64) for each in rows):
            return found
    return None


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """What the last step of a pipeline sees of encoded rows: a sum over the features."""

    shift: Tensor  # (d,) raw number = encoded · scale + shift
    scale: Tensor  # (d,)
    slope: Tensor  # (d, m) of raw numbers, or of levels that are on
    start: Tensor  # (m,)
    ordered: tuple[tuple[int, Tensor], ...]  # columns that count levels, and what each level adds (l, m)

    def __call__(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, m). Between two levels in order it is a straight line."""
        number = x.double() * self.scale.to(x.device) + self.shift.to(x.device)
        found: Tensor = number @ self.slope.to(x.device) + self.start.to(x.device)
        for column, each in self.ordered:
            added = each.to(x.device)
            position = number[:, column].clamp(0, len(added) - 1)
            low = position.detach().floor().long().clamp_max(len(added) - 2)
            found = found + added[low] + (position - low)[:, None] * (added[low + 1] - added[low])
        return found


@dataclass(frozen=True, eq=False, repr=False)
class Translation:
    """A linear model or a network over the columns that its pipeline makes, in float64."""

    columns: Columns
    weights: tuple[Tensor, ...]  # (in, out) each
    biases: tuple[Tensor, ...]
    activation: str
    one_each: bool  # of several classes: probabilities of each against the rest, divided by their sum
    places: tuple[int, ...]  # the output of each of the schema's classes

    def __call__(self, x: Tensor) -> Tensor:
        """(n, d) -> (n, c) logits, in the order of the schema's classes."""
        values = self.columns(x)
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = values @ weight.to(x.device) + bias.to(x.device)
            if layer < len(self.weights) - 1:
                values = ACTIVATIONS[self.activation](values)
        if values.shape[1] == 1:  # the log-odds of the second of two classes
            values = torch.cat([-values, values], 1) / 2
        return (torch.nn.functional.logsigmoid(values) if self.one_each else values)[:, list(self.places)]

    @property
    def parts(self) -> tuple[Dense, ...]:
        """With what stands before the last step as part of the first layer."""
        columns, first = self.columns, self.weights[0]
        weights = ((columns.scale[:, None] * columns.slope) @ first, *self.weights[1:])
        biases = ((columns.shift @ columns.slope + columns.start) @ first + self.biases[0], *self.biases[1:])
        tables = {
            column: LevelTable(float(columns.shift[column]), float(columns.scale[column]), (rows @ first).numpy())
            for column, rows in columns.ordered
        }
        classes = [self.places.index(label_index) for label_index in range(len(self.places))]
        return (Dense.of(weights, biases, self.activation, classes, self.one_each, tables),)

    def __repr__(self) -> str:
        return f"Translation({len(self.weights)} layers)"


# ---- the last step ----


def _network(final: Any) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], str] | None:
    """Weights, biases and activation of a linear model or a network; None where it is neither."""
    layers, activation = getattr(final, "coefs_", None), getattr(final, "activation", "identity")
    if isinstance(layers, list) and activation in ACTIVATIONS:
        return tuple(map(_tensor, layers)), tuple(map(_tensor, final.intercepts_)), activation
    try:
        coefficients, intercept = getattr(final, "coef_", None), getattr(final, "intercept_", 0.0)
    except Exception:  # that of a support vector machine says that it has none
        return None
    if coefficients is None or not hasattr(final, "classes_"):
        return None
    rows = np.atleast_2d(coefficients.toarray() if hasattr(coefficients, "toarray") else np.asarray(coefficients))
    if len(rows) != (1 if len(final.classes_) == 2 else len(final.classes_)):
        return None
    return (_tensor(rows.T),), (_tensor(np.broadcast_to(np.ravel(intercept), (len(rows),))),), "identity"


def _tensor(values: Any) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float64))


# ---- what it sees ----


def _columns(encoding: Encoding, see: See) -> Columns | None:
    """How much each feature adds, measured by changing one at a time; None where it is not finite."""
    home = rows_to_compare(encoding, 2).iloc[:1]
    tried = [_tried(encoding, feature, block.start) for feature, block in encoding.places]
    names = [feature.name for feature in encoding.schema.features]
    table = pd.concat([home, *(_changed(home, *each) for each in zip(names, tried, strict=True))], ignore_index=True)
    given = see(table)
    values = np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float64)
    if values.ndim != 2 or len(values) != len(table) or not np.isfinite(values).all():
        return None
    slope, start = np.zeros((encoding.width, values.shape[1])), values[0].copy()
    ordered: list[tuple[int, Tensor]] = []
    added = np.split(values[1:] - values[0], np.cumsum([len(each) for each in tried])[:-1])
    for (feature, block), numbers, contribution in zip(encoding.places, tried, added, strict=True):
        if feature.kind == "categorical":  # the level that is written as all off, if there is one, comes last
            off = contribution[-1] if feature.width < len(contribution) else np.zeros_like(start)  # others add to it
            slope[block], start = contribution[: feature.width] - off, start + off
        elif len(contribution) > 2:
            ordered.append((block.start, _tensor(contribution)))
        else:
            low, high = numbers if feature.is_numeric else (0, 1)
            slope[block] = (contribution[1] - contribution[0]) / (high - low)
            start = start + contribution[0] - slope[block][0] * low
    shift, scale = _tensor(encoding.shift), _tensor(encoding.scale)
    return Columns(shift, scale, _tensor(slope), _tensor(start), tuple(ordered))


def _tried(encoding: Encoding, feature: Feature, column: int) -> Sequence[Any]:
    """The values that a feature is given: both ends of a number, or every level."""
    if not feature.is_numeric:
        return feature.values
    low, high = encoding.lower[column], encoding.upper[column]
    ends = np.array([low, high if high > low else low + 1])
    return ends.astype(np.int64) if feature.kind == "integer" else ends  # type: ignore[return-value]


def _changed(home: pd.DataFrame, name: str, values: Sequence[Any]) -> pd.DataFrame:
    """One row for each value of a column."""
    rows = pd.concat([home] * len(values), ignore_index=True)
    return rows.assign(**{name: pd.Series(values, dtype=home[name].dtype)})
