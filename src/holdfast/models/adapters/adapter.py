"""Somebody else's model as a value: what goes in, the call, what comes out.

There is one such value for each model, whatever framework it comes from, and for each member of a family. All of it but
the model itself can be written down (`written`), so that a model that was saved is asked as it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from holdfast.models.adapters.input_spec import InputSpec, Takes, some_rows_of
from holdfast.models.adapters.output_spec import SAME, Floats, Outputs, OutputSpec
from holdfast.tabular.encoding import Encoding

Ask = Callable[[pd.DataFrame], Floats]  # a table in the user's units -> (n, c) logits
Call = Callable[[Any], Any]  # rows as the model takes them -> what it gives
NETWORKS = ("torch", "keras", "onnx")  # ways whose NaN is an answer: a member that gives it agrees with nothing
BOOSTERS = ("margins", "raw scores")  # of XGBoost, of LightGBM


@dataclass(frozen=True)
class How:
    """How a model is asked, as far as the user has said; None is found out."""

    takes: Takes | None = None
    outputs: Outputs | None = None
    classes: tuple[Any, ...] | None = None


@dataclass(frozen=True, eq=False)
class Adapter:
    """How a model is asked about tables in the user's units."""

    model: Any  # the user's object
    encoding: Encoding
    name: str  # of the object, for people
    way: str  # which of the object's methods is called, or what kind of object it is
    call: Call  # the same as a function
    input: InputSpec
    output: OutputSpec

    def __call__(self, table: pd.DataFrame) -> Floats:
        """(n, c) logits of a table, in the order of the schema's classes."""
        return self.logits(self.rows(table))

    def rows(self, table: pd.DataFrame) -> Any:
        """The table as the model takes it."""
        return self.input.rows(table, self.encoding)

    def logits(self, given: Any) -> Floats:
        """Of rows as the model takes them; `predict` settles the class where it has a say."""
        return self.output.settled(self.scored(given), lambda rows: self.predicted(some_rows_of(given, rows)))

    def scores(self, table: pd.DataFrame) -> Floats:
        """Of a table, without a look at `predict`."""
        return self.scored(self.rows(table))

    def scored(self, given: Any) -> Floats:
        answer = self.answered(self.call, given, self.way)
        return self.output.logits(answer, len(given), self.name, check=self.way not in NETWORKS)

    def predicted(self, given: Any) -> NDArray[np.int64]:
        """The class that `predict` gives each row: (n,)."""
        return self.output.labels(self.answered(self.model.predict, given, "predict"), len(given), self.name)

    def answered(self, call: Call, given: Any, way: str) -> Any:
        """What somebody else's code answers; an error of theirs says who raised it, and of what it was asked."""
        try:
            return call(given)
        except Exception as error:
            about = f"about {self._given}" if way in (*NETWORKS, "function") else f"for {way} of {self._given}"
            raise ValueError(f"{self.name} raised {type(error).__name__} when it was asked {about}: {error}") from error

    @cached_property
    def _given(self) -> str:
        return self.input.in_words(self.encoding)

    def like(self, model: Any, call: Call) -> Adapter:
        """Another model, asked in the same way. A threshold is this model's; `predict` of the other knows its own."""
        return replace(self, model=model, call=call, output=replace(self.output, shift=0.0))

    @property
    def how(self) -> How:
        """How the model is asked, whether the user has said so or it was found out."""
        ours = self.encoding.schema.classes
        names = None if self.output.kind == "labels" else tuple(ours[index] for index in self.output.in_order)
        return How(self.input.takes, None if self.way in BOOSTERS else self.output.kind, names)

    @property
    def written(self) -> dict[str, Any]:
        """All but the model and the encoding, as JSON has it. `read_adapter` reads it."""
        return {"name": self.name, "way": self.way, "input": asdict(self.input), "output": asdict(self.output)}

    def __str__(self) -> str:
        output, given = self.output, self._given
        if self.way in NETWORKS:
            given = "the table" if self.input.form == "frame" else given
            return f"given {given}, gives {self._outputs}"
        if self.way in BOOSTERS:
            return f"asked for {self.way}"
        what = output.kind if self.way == "function" else self.way
        decides = "`predict` decides the class" if output.decides else ""
        return "; ".join(part for part in (f"asked for {what} of {given}", output.note, decides) if part)

    @property
    def _outputs(self) -> str:
        """What a network gives, in words."""
        ours = self.encoding.schema.classes
        names = [ours[index] for index in self.output.in_order]
        if self.output.kind == "labels":
            return f"labels: {', '.join(map(repr, names))}"
        what = "logit" if self.output.kind == "logits" else "probability"
        single = self.output.single
        return f"one {what}, of {names[1]!r}" if single else f"one {what} per class: {', '.join(map(repr, names))}"


def check_repeatable(adapter: Adapter, table: pd.DataFrame, logits: Floats) -> None:
    """Raise where a model answers the same rows differently, by itself or beside other rows."""
    half = np.arange(len(table))[::-2][:200]
    again = adapter(table.iloc[half].reset_index(drop=True))
    differs = np.abs(again - logits[half]) > SAME * (1 + np.abs(logits[half]))
    if differs.any():
        raise ValueError(
            f"{adapter.name} answers the same rows differently when it is asked again, or among other rows "
            f"({int(differs.any(axis=1).sum())} of {len(half)} rows); a model must give a row the same answer always: "
            "fix its random state, and let no row depend on the others"
        )
