"""Members that are asked about tables: a user's own models, which see the same rows decoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.families.recipe import Retraining
from holdfast.families.stack import Members, Models, one_by_one
from holdfast.models.abilities import parts_of
from holdfast.models.adapters.adapter import Adapter, Ask
from holdfast.models.adapters.input_spec import InputSpec
from holdfast.models.adapters.seen import as_fitted
from holdfast.models.adapting import helped
from holdfast.models.deployed import Deployed
from holdfast.models.model import Model, checked_logits
from holdfast.models.parts import Part
from holdfast.tabular.encoding import Encoding
from holdfast.utils.digests import digest


@dataclass(frozen=True, eq=False)
class TableModels:
    """Models of one encoding, each asked about the table that the rows decode to."""

    models: tuple[Deployed, ...]
    encoding: Encoding
    refitted: bool = False  # by `refit`: known to be retrainings, and not copies of one another

    def __len__(self) -> int:
        return len(self.models)

    @property
    def name(self) -> str:
        kinds = dict.fromkeys(_last_name(model.own) for model in self.models)
        return ", ".join(kinds) or "own models"

    @property
    def features(self) -> int:
        return self.encoding.width

    @property
    def classes(self) -> int:
        return len(self.encoding.schema.classes)

    def asked_classes(self, x: Tensor) -> list[int]:
        return [self.classes] * len(self)

    def chosen(self, places: Sequence[int]) -> TableModels:
        return replace(self, models=tuple(self.models[place] for place in places))

    def model(self, place: int, retraining: Retraining, fingerprint: str | None) -> Model:
        """A member as `as_model` reads it: with whatever helps a search."""
        return _helped(self.models[place])

    @cached_property
    def helped(self) -> tuple[Model, ...]:
        """Read once: that takes long."""
        return tuple(map(_helped, self.models))

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        return parts_of(self.helped)

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        if not len(x):
            yield torch.zeros(len(self), 0, self.classes, dtype=torch.float64, device=x.device)
            return
        odd = ~x.isfinite().all(1)  # such a row is no table's: nobody has a class for it
        table = as_fitted(self.encoding.decode(x.masked_fill(odd[:, None], 0.0)), self.encoding)
        fed: dict[InputSpec, Any] = {}  # the table as members take it, made once for all that take it alike
        for model in self.models:
            logits = checked_logits(torch.from_numpy(_asked(model.ask, table, fed)), len(x)).to(x.device)
            yield logits.masked_fill(odd[:, None], torch.nan)[None]

    def logits_of(self, x: Tensor, places: Tensor) -> Tensor:
        return one_by_one(x, places, lambda place, rows: self.models[place](rows))


def _helped(member: Deployed) -> Deployed:
    return helped(member.ask) if member.lean and isinstance(member.ask, Adapter) else member


def _asked(ask: Ask, table: pd.DataFrame, fed: dict[InputSpec, Any]) -> NDArray[np.float64]:
    if not isinstance(ask, Adapter):
        return ask(table)
    if ask.input not in fed:
        fed[ask.input] = ask.rows(table)
    return ask.logits(fed[ask.input])


def together(models: Sequence[Model]) -> Members:
    """Models as members that are asked together: those that are asked about tables of one encoding decode it once."""
    tabular = [model for model in models if isinstance(model, Deployed)]
    if not tabular or len(tabular) < len(models) or len({encoding_digest(m.encoding) for m in tabular}) > 1:
        return Models(tuple(models))
    return TableModels(tuple(tabular), tabular[0].encoding)


def encoding_digest(encoding: Encoding) -> str:
    """The same for encodings that encode alike."""
    numbers = [np.asarray(part, dtype=np.float64).tobytes().hex() for part in _numbers(encoding)]
    levels = [[repr(value) for value in feature.values] for feature in encoding.schema.features]
    kinds = [feature.kind for feature in encoding.schema.features]
    return digest([encoding.columns, kinds, levels, [repr(label) for label in encoding.schema.classes], numbers])


def _numbers(encoding: Encoding) -> tuple[object, ...]:
    return encoding.shift, encoding.scale, encoding.fill


def _last_name(own: object) -> str:
    """What a model is: of a pipeline, its last step."""
    steps = getattr(own, "steps", None)
    return type(steps[-1][1] if isinstance(steps, list) and steps else own).__name__
