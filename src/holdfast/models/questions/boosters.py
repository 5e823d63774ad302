"""How a bare booster is asked: what it is given, and which of its outputs is for each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from holdfast.models.questions.asking import Feed, Floats, feed
from holdfast.models.questions.inputs import columns_of, is_of_encoded_rows, names_in_schema
from holdfast.tabular.encoding import Encoding


@dataclass(frozen=True)
class Margins:
    """A booster, asked for margins: (n, c) logits of a table, in the order of the schema's classes."""

    booster: Any
    feed: Feed
    places: tuple[int, ...]  # the output of each of the schema's classes
    tell: Callable[[Any, Any], Floats]  # the booster and rows as it takes them -> logits of its outputs

    @property
    def classes(self) -> tuple[Any, ...]:
        """The schema's class of each output."""
        known = self.feed.encoding.schema.classes
        return tuple(known[self.places.index(output)] for output in range(len(known)))

    def __call__(self, table: pd.DataFrame) -> Floats:
        return self.tell(self.booster, self.feed(table))[:, list(self.places)]


def booster_feed(booster: Any, encoding: Encoding, encoded: bool | None) -> Feed:
    """The columns that it was trained on, in their order; ``encoded`` says of which rows where they do not."""
    names = columns_of(booster)
    if encoded is None:
        encoded = is_of_encoded_rows(booster, names, encoding)
    if encoded:
        return feed(encoding, "encoded", as_array=names != list(encoding.columns))
    order = None if names is None else names_in_schema(names, encoding)
    if order is None:
        return feed(encoding, "table", as_array=True)
    return feed(encoding, "table", as_array=False, columns=order, categories=True)
