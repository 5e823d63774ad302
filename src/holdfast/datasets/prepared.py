"""A dataset ready for use: its table, split, schema and encoding in one call."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
from torch import Tensor

from holdfast.datasets import card
from holdfast.datasets.cards import Card
from holdfast.tabular.encoding import Encoding, Scaling
from holdfast.tabular.schema import Schema


@dataclass(frozen=True, eq=False)
class Prepared:
    """One dataset as the paper uses it, or with another scaling or split."""

    card: Card
    table: pd.DataFrame  # all rows
    train: pd.DataFrame
    test: pd.DataFrame
    encoding: Encoding  # fitted to the training rows

    @property
    def schema(self) -> Schema:
        return self.encoding.schema

    @property
    def rows(self) -> tuple[Tensor, Tensor]:
        """The training rows and their classes: (n, d), (n,)."""
        return self.encoding.encode(self.train), self.encoding.labels(self.train)

    def question(self, rows: int | None = None) -> Tensor:
        """The first rows of the test split, or all of them: (n, d)."""
        return self.encoding.encode(self.test.iloc[:rows])


def prepare(name: str, scaling: Scaling | None = None, split: tuple[int, int] | None = None) -> Prepared:
    """A dataset by its name, with the paper's scaling and numbers of training and test rows where none are given."""
    dataset = card(name) if split is None else replace(card(name), split=split)
    table, schema = dataset.load()
    train, test = dataset.divide(table)
    return Prepared(dataset, table, train, test, Encoding.fit(train, schema, scaling or dataset.scaling))
