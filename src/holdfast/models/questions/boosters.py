"""How a bare booster is asked: what it is given, and which of its outputs is for each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from holdfast.models.questions.asking import Feed, Floats, feed, one_hot_feed
from holdfast.models.questions.inputs import columns_of, is_of_encoded_rows, names_in_schema, width_of
from holdfast.tabular.encoding import Encoding
from holdfast.utils.messages import some


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
        hot = None if names is None else one_hot_feed(encoding, names, categories=True)
        if hot is None:
            _check_width(booster, names, encoding)
        return hot or feed(encoding, "table", as_array=True)
    return feed(encoding, "table", as_array=False, columns=order, categories=True)


def _check_width(booster: Any, names: Sequence[str] | None, encoding: Encoding) -> None:
    """Raise where a booster has more or fewer columns than the table: then none can be given by position."""
    width, features = width_of(booster), encoding.schema.names
    if width is None or width == len(features):
        return
    unknown = [name for name in names or () if name not in features]
    raise ValueError(
        f"the booster was trained on {width} columns, of which the schema does not have {some(unknown)}; the schema "
        f"has {len(features)} features, {some(features)}. Train it on the table's columns (text as categories), or on "
        "columns that are one-hot by name, such as pandas.get_dummies makes: 'housing_own'"
    )
