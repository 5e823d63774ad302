"""How somebody else's model is asked: what it is given, what it answers, and which class each answer is for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.deployed import LEAST_PROBABILITY, Takes
from holdfast.models.questions.inputs import as_fitted, in_categories
from holdfast.models.questions.one_hot import Source, one_hot, one_hot_table
from holdfast.tabular.encoding import Encoding
from holdfast.utils.messages import plain

Floats = NDArray[np.float64]
SURE = 1.0  # logit of the class that a model names, and less that of the others, where it gives labels and no more
TIE = 1e-9  # logits that differ by less are equal
SAME = 1e-6  # difference of two answers to one question that rounding explains


@dataclass(frozen=True)
class Feed:
    """What a model is given: some columns of the table in some order, or encoded rows."""

    encoding: Encoding
    takes: Takes
    columns: tuple[str, ...]  # of the table, or of the encoding
    as_array: bool
    categories: bool = False  # text becomes categories, which is all that some libraries take
    one_hot: bool = False  # the columns are the model's own: some of them say whether a feature has a level

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Where each of the model's own columns comes from."""
        found = one_hot(self.columns, self.encoding)
        assert found is not None
        return found

    def __call__(self, table: pd.DataFrame) -> Any:
        if self.one_hot:
            own = as_fitted(table, self.encoding)
            own = in_categories(own, self.encoding) if self.categories else own
            return one_hot_table(own, self.columns, self.sources)
        if self.takes == "table":
            own = as_fitted(table, self.encoding)[list(self.columns)]
            own = in_categories(own, self.encoding) if self.categories else own
            return own.to_numpy() if self.as_array else own
        rows = self.encoding.encode(table).numpy()
        return rows if self.as_array else pd.DataFrame(rows, columns=list(self.columns))

    def __str__(self) -> str:
        what = "an array" if self.as_array else "a table"
        if self.takes == "encoded":
            return f"{what} of {len(self.columns)} encoded columns"
        if self.one_hot:
            return f"{what} of {len(self.columns)} columns, one-hot by their names"
        count, known = len(self.columns), len(self.encoding.schema.names)
        return f"{what} of {count} columns" if count == known else f"{what} of {count} of the {known} columns"


def feed(
    encoding: Encoding, takes: Takes, as_array: bool, columns: Sequence[str] | None = None, categories: bool = False
) -> Feed:
    if takes == "numbers":
        raise ValueError("takes='numbers' is for networks; an estimator or a function takes the table or encoded rows")
    known = encoding.schema.names if takes == "table" else encoding.columns
    return Feed(encoding, takes, tuple(known if columns is None else columns), as_array, categories)


def one_hot_feed(encoding: Encoding, names: Sequence[str], categories: bool) -> Feed | None:
    """For a model of columns that were made one-hot, if their names say so."""
    if one_hot(names, encoding) is None:
        return None
    return Feed(encoding, "table", tuple(names), as_array=False, categories=categories, one_hot=True)


@dataclass(frozen=True)
class Classes:
    """Which of the schema's classes each of a model's outputs is for."""

    encoding: Encoding
    own: tuple[Any, ...]  # the model's classes, in the order of its outputs
    places: tuple[int, ...]  # the output of each of the schema's classes
    note: str = ""  # where they are not the schema's classes themselves, how they were matched

    def of(self, labels: Any, name: str) -> NDArray[np.int64]:
        """The schema's class of each label that the model gives: (n,)."""
        labels = np.asarray(labels)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = labels[:, 0]
        if labels.ndim != 1:
            raise ValueError(
                f"{name} gives labels of shape {labels.shape}; a model with one label for each row is needed"
            )
        output = {value: place for place, value in enumerate(self.own)}
        wanted = {place: number for number, place in enumerate(self.places)}
        found = [wanted.get(output.get(plain(label), -1), -1) for label in labels.tolist()]
        if -1 in found:
            odd = labels[found.index(-1)]
            raise ValueError(
                f"{name} gives the label {plain(odd)!r}, which is none of its classes {_shown(self.own)}; pass "
                "classes=, the class of each output in order"
            )
        return np.array(found, dtype=np.int64)

    def in_order(self, scores: Floats) -> Floats:
        return scores[:, list(self.places)]


def classes_of(own: Sequence[Any], encoding: Encoding, name: str, given: bool = False) -> Classes:
    """The model's classes beside the schema's: the same values, the same text, or numbers 0, 1, ... by position."""
    theirs, ours = tuple(plain(value) for value in own), encoding.schema.classes
    if len(theirs) != len(ours):
        raise ValueError(_mismatch(theirs, ours, name))
    if set(theirs) == set(ours):
        note = "classes as given" if given and theirs != ours else ""
        return Classes(encoding, theirs, tuple(theirs.index(label) for label in ours), note)
    texts = [str(label) for label in theirs]
    if sorted(texts) == sorted(map(str, ours)) and len(set(texts)) == len(texts):
        places = tuple(texts.index(str(label)) for label in ours)
        return Classes(encoding, theirs, places, "classes matched by their text")
    if _is_count(theirs):
        places = tuple(theirs.index(number) for number in range(len(ours)))
        told = ", ".join(f"{number} is {label!r}" for number, label in enumerate(ours))
        return Classes(encoding, theirs, places, f"classes by position: {told}")
    raise ValueError(_mismatch(theirs, ours, name))


def by_position(encoding: Encoding) -> Classes:
    """The outputs in the order of the schema's classes."""
    ours = encoding.schema.classes
    return Classes(encoding, ours, tuple(range(len(ours))), "outputs in the order of the schema's classes")


def _is_count(values: tuple[Any, ...]) -> bool:
    numbers = all(isinstance(value, (int, float)) for value in values)
    return numbers and sorted(values) == list(range(len(values)))


def _mismatch(theirs: Sequence[Any], ours: Sequence[Any], name: str) -> str:
    return (
        f"{name} has the classes {_shown(theirs)}, but the schema has {_shown(ours)}; pass classes=, the schema's "
        "class of each output in order, or fit the model to the schema's label"
    )


def _shown(values: Sequence[Any]) -> str:
    return ", ".join(map(repr, values))


# ---- what it answers ----


def numbers_from(answer: Any, rows: int, name: str, what: str) -> Floats:
    """What a model said as numbers (n, k), if it is that, of as many rows, and none is NaN."""
    array = as_array(answer)
    try:
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} gives {array.dtype} where numbers are expected as {what}") from error
    if array.ndim not in (1, 2) or len(array) != rows:
        raise ValueError(
            f"{name} gives {what} of shape {array.shape} for {rows} rows; expected ({rows}, classes) or ({rows},)"
        )
    wrong = np.flatnonzero(np.isnan(array.reshape(rows, -1)).any(axis=1))
    if len(wrong):
        raise ValueError(
            f"{name} answers NaN for {len(wrong)} of {rows} rows, the first of them row {wrong[0]}; it must have an "
            "answer for every row that the schema allows"
        )
    return array


def as_array(answer: Any) -> NDArray[Any]:
    return answer.detach().cpu().numpy() if isinstance(answer, Tensor) else np.asarray(answer)


def from_probabilities(share: Floats, classes: Classes, name: str) -> Floats:
    """Of each class, or of the second of two: (n, c) logits."""
    own = _widened(share, classes, name, lambda p: np.stack([1 - p, p], axis=1))
    if ((own < -SAME) | (own > 1 + SAME)).any():
        raise ValueError(
            f"{name} gives numbers from {own.min():.3g} to {own.max():.3g} as probabilities; pass outputs='logits' if "
            "that is what they are"
        )
    logits: Floats = np.log(np.clip(own, LEAST_PROBABILITY, 1))
    return classes.in_order(logits)


def from_scores(scores: Floats, classes: Classes, name: str) -> Floats:
    """A score of each class, of the second of two, or of each pair of classes: (n, c) logits."""
    count = len(classes.own)
    if scores.ndim == 2 and count > 3 and scores.shape[1] == count * (count - 1) // 2:
        scores = from_pairs(scores, count)
    own = _widened(scores, classes, name, lambda z: np.stack([-z, z], axis=1) / 2)
    return classes.in_order(np.nan_to_num(own))


def from_pairs(scores: Floats, count: int) -> Floats:
    """Of every two classes, which one a model prefers -> the votes of each class, and how clear they are: (n, c).

    How clear they are adds less than a vote: it decides between classes that have as many.
    """
    votes, clear = np.zeros((len(scores), count)), np.zeros((len(scores), count))
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    for column, (one, other) in enumerate(pairs):
        votes[:, one] += scores[:, column] > 0
        votes[:, other] += scores[:, column] <= 0
        clear[:, one] += scores[:, column]
        clear[:, other] -= scores[:, column]
    found: Floats = votes + clear / (3 * (np.abs(clear) + 1))
    return found


def from_labels(found: NDArray[np.int64], count: int) -> Floats:
    """The classes that a model names (n,) as logits (n, c)."""
    logits = np.full((len(found), count), -SURE)
    logits[np.arange(len(found)), found] = SURE
    return logits


def _widened(values: Floats, classes: Classes, name: str, both: Callable[[Floats], Floats]) -> Floats:
    """One column for each of the model's classes."""
    count = len(classes.own)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 1 and count == 2:
        return both(values)
    if values.ndim == 2 and values.shape[1] == count:
        return values
    raise ValueError(
        f"{name} gives {1 if values.ndim == 1 else values.shape[1]} numbers for each row, but there are {count} "
        "classes; a model of one label with one output for each class is needed"
    )


def agreeing(logits: Floats, found: NDArray[np.int64], least: float) -> Floats:
    """The logits, and where another class than the one that the model names is largest, or as large, that one raised.

    By so little that a search still sees how near the model is to changing its mind.
    """
    rows, raised = np.arange(len(found)), logits.copy()
    raised[rows, found] = -math.inf
    others, own = raised.max(axis=1), logits[rows, found]
    raised[rows, found] = np.where(own > others + TIE, own, others + least)
    return raised


# ---- checking a model before it is used ----


def checked_call(ask: Callable[[Any], Any], given: Any, name: str, says: str) -> Any:
    """What somebody else's code answers; an error of theirs says who raised it, and of what it was asked."""
    try:
        return ask(given)
    except Exception as error:
        raise ValueError(f"{name} raised {type(error).__name__} when it was asked {says}: {error}") from error


def check_repeatable(ask: Callable[[pd.DataFrame], Floats], table: pd.DataFrame, logits: Floats, name: str) -> None:
    """Raise where a model answers the same rows differently, by itself or beside other rows."""
    half = np.arange(len(table))[::-2][:200]
    again = ask(table.iloc[half].reset_index(drop=True))
    apart = np.abs(again - logits[half]) > SAME * (1 + np.abs(logits[half]))
    if apart.any():
        raise ValueError(
            f"{name} answers the same rows differently when it is asked again, or among other rows "
            f"({int(apart.any(axis=1).sum())} of {len(half)} rows); a model must give a row the same answer always: "
            "fix its random state, and let no row depend on the others"
        )


def check_order(classes: Classes, found: NDArray[np.int64], labels: NDArray[np.int64] | None, name: str) -> None:
    """Raise where numbers were matched with classes by position and another order fits the known labels far better."""
    if labels is None or not classes.note.startswith("classes by position"):
        return
    ours = classes.encoding.schema.classes
    in_order = sorted(range(len(ours)), key=lambda place: str(ours[place]))
    right, other = float((found == labels).mean()), float((np.array(in_order)[found] == labels).mean())
    if other > right + 0.1 and other > 0.5:
        told = tuple(ours[place] for place in in_order)
        raise ValueError(
            f"{name} has the classes {_shown(classes.own)}: as {ours}, the schema's order, it is right for {right:.0%} "
            f"of the known rows, as {told} for {other:.0%}; pass classes={told} or classes={ours}"
        )


def described(parts: Sequence[str]) -> str:
    return "; ".join(part for part in parts if part)
