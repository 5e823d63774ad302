"""Real people as a yardstick: how many people who were not among the training rows pass for people of their class.

Every number must lie in the ranges that were learned from the training rows, and the row must be near enough to the
training rows of its class (`holdfast.tabular.people`): alone, and together, which is set to 95 %. Bounds that a schema
declares exclude nobody here: they say what may be advised, and HELOC has codes beyond them for what is unknown. Beside
is how many points that nobody is are rejected: test rows with one number drawn evenly between its ends, and rows whose
columns are each taken from another person. Means over random splits into 75 % and 25 %; the interval is that of one
split (Clopper-Pearson).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast import Encoding, Schema
from holdfast.auditing.intervals import clopper_pearson
from holdfast.tabular.people import People, in_ranges, learned_ranges, people_ranges


@dataclass(frozen=True, eq=False)
class Learned:
    """What a table's training rows say about its people."""

    encoding: Encoding
    people: People  # with a threshold that leaves room for those whom the ranges lose
    apart: Tensor  # (classes,) thresholds that pass the share by themselves

    @classmethod
    def fit(cls, table: pd.DataFrame, schema: Schema) -> Learned:
        encoding = Encoding.fit(table, schema)
        x, y = encoding.encode(table, torch.float64), encoding.labels(table)
        rows = (x, y, encoding.places, encoding.shift, encoding.scale, len(schema.classes))
        columns = [(feature, numbers(table, feature.name)) for feature in schema.features if feature.is_numeric]
        people = People.fit(*rows, inside_folds=learned_ranges(columns))
        return cls(encoding, people, People.fit(*rows).thresholds)

    def verdicts(self, table: pd.DataFrame, y: Tensor) -> dict[str, NDArray[np.bool_]]:
        """Which rows pass for people of their class."""
        features = self.encoding.schema.features
        inside = np.ones(len(table), dtype=bool)
        for feature, ranges in zip(features, self.encoding.ranges, strict=True):
            if feature.is_numeric:
                inside &= in_ranges(numbers(table, feature.name), people_ranges(feature, ranges))
        distance = self.people.distance(self.encoding.encode(table, torch.float64), y)
        return {
            "ranges": inside,
            "distance": (distance <= self.apart[y]).numpy(),
            "together": inside & (distance <= self.people.thresholds[y]).numpy(),
        }


def numbers(table: pd.DataFrame, name: str) -> NDArray[np.float64]:
    return table[name].to_numpy(dtype=np.float64)


def one_number(table: pd.DataFrame, train: pd.DataFrame, schema: Schema, draw: np.random.Generator) -> pd.DataFrame:
    """The rows with one number each drawn evenly between the least and the largest of the training rows."""
    own = [feature for feature in schema.features if feature.is_numeric]
    which, drawn = draw.integers(len(own), size=len(table)), {}
    for place, feature in enumerate(own):
        column = numbers(train, feature.name)
        values = draw.uniform(np.nanmin(column), np.nanmax(column), len(table))
        if feature.grid:
            values = np.round(values / feature.grid) * feature.grid
        changed = np.where(which == place, values, numbers(table, feature.name))
        drawn[feature.name] = changed.astype(np.int64) if feature.kind == "integer" else changed
    return table.assign(**drawn)


def strangers(table: pd.DataFrame, train: pd.DataFrame, schema: Schema, draw: np.random.Generator) -> pd.DataFrame:
    """Rows that take every column from another person."""
    taken = {name: train[name].iloc[draw.integers(len(train), size=len(table))].to_numpy() for name in schema.names}
    return table.assign(**taken)


def tried(name: str, table: pd.DataFrame, schema: Schema, splits: int) -> list[dict[str, Any]]:
    """For every class, and for all of them: which share of real rows passes, and of others is rejected."""
    counts: dict[str, list[dict[str, tuple[int, float]]]] = {}
    for seed in range(splits):
        # RandomState's stream is frozen for ever.
        order = np.random.RandomState(seed).permutation(len(table))
        train, test = np.split(order, [int(0.75 * len(table))])
        for label, found in one_split(table.iloc[train], table.iloc[test], schema, seed).items():
            counts.setdefault(label, []).append(found)
    return [summed(name, label, found) for label, found in counts.items()]


def one_split(train: pd.DataFrame, test: pd.DataFrame, schema: Schema, seed: int) -> dict[str, Any]:
    learned, draw = Learned.fit(train, schema), np.random.default_rng(seed)
    y = learned.encoding.labels(test)
    verdicts = learned.verdicts(test, y)
    for what, changed in {"number": one_number, "strangers": strangers}.items():
        verdicts[what] = ~learned.verdicts(changed(test, train, schema, draw), y)["together"]
    of_class = {str(label): (y == place).numpy() for place, label in enumerate(schema.classes)}
    return {
        label: {what: (int(rows.sum()), float(passed[rows].mean())) for what, passed in verdicts.items()}
        for label, rows in {**of_class, "all": np.ones(len(y), dtype=bool)}.items()
        if rows.any()
    }


def summed(name: str, label: str, found: list[dict[str, tuple[int, float]]]) -> dict[str, Any]:
    mean = {what: float(np.mean([split[what][1] for split in found])) for what in found[0]}
    rows = round(float(np.mean([split["together"][0] for split in found])))
    low, high = clopper_pearson(round(mean["together"] * rows), rows)
    return {
        "dataset": name,
        "class": label,
        "rows": rows,
        "ranges": mean["ranges"],
        "distance": mean["distance"],
        "together": mean["together"],
        "low": float(low),
        "high": float(high),
        "one_number_rejected": mean["number"],
        "strangers_rejected": mean["strangers"],
    }
