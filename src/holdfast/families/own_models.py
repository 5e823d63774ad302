"""Members that are not networks of holdfast: models of any kind, asked one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.families.recipe import Retraining
from holdfast.families.stack import Stack, one_by_one
from holdfast.models.abilities import parts_of
from holdfast.models.adapters.adapter import Adapter
from holdfast.models.adapters.input_spec import InputSpec
from holdfast.models.adapters.seen import as_fitted
from holdfast.models.adapting import helped
from holdfast.models.deployed import Deployed
from holdfast.models.model import Model, checked_logits, dtype_of, logits_from
from holdfast.models.parts import Part
from holdfast.tabular.encoding import Encoding
from holdfast.utils.digests import digest


@dataclass(frozen=True, eq=False)
class Models:
    """Models that are asked one after another; those of one encoding are asked about one table, decoded once."""

    models: tuple[Any, ...]  # `Model`s; with an encoding, each is a `Deployed` of it
    encoding: Encoding | None = None
    refitted: bool = False  # by `refit`: known to be retrainings, and not copies of one another

    @classmethod
    def of(cls, models: Sequence[Model]) -> Models:
        """Those that are asked about tables of one encoding decode it once."""
        tabular = [model for model in models if isinstance(model, Deployed)]
        alike = len(tabular) == len(models) and len({encoding_digest(model.encoding) for model in tabular}) == 1
        return cls(tuple(models), tabular[0].encoding if alike else None)

    def __len__(self) -> int:
        return len(self.models)

    @property
    def name(self) -> str:
        kinds = () if self.encoding is None else dict.fromkeys(_last_name(model.own) for model in self.models)
        return ", ".join(kinds) or "own models"

    @property
    def features(self) -> int | None:
        """How many columns they take; None where they will say when asked."""
        return None if self.encoding is None else self.encoding.width

    @property
    def classes(self) -> int | None:
        return None if self.encoding is None else len(self.encoding.schema.classes)

    def chosen(self, places: Sequence[int]) -> Models:
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
        """The layers or trees of each member, if each has some."""
        return parts_of(self.helped)

    def in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        """Logits (1, n, c) of each member."""
        if self.encoding is None:
            for place in range(len(self)):
                yield self._logits(place, x)[None]
            return
        if not len(x):
            yield torch.zeros(len(self), 0, len(self.encoding.schema.classes), dtype=torch.float64, device=x.device)
            return
        odd = ~x.isfinite().all(1)  # such a row is no table's: nobody has a class for it
        table = as_fitted(self.encoding.decode(x.masked_fill(odd[:, None], 0.0)), self.encoding)
        fed: dict[InputSpec, Any] = {}  # the table as members take it, made once for all that take it alike
        for ask in (model.ask for model in self.models):
            if isinstance(ask, Adapter) and ask.input not in fed:
                fed[ask.input] = ask.rows(table)
            logits = ask.logits(fed[ask.input]) if isinstance(ask, Adapter) else ask(table)
            yield (
                checked_logits(torch.from_numpy(logits), len(x)).to(x.device).masked_fill(odd[:, None], torch.nan)[None]
            )

    def logits_of(self, x: Tensor, places: Tensor) -> Tensor:
        """What one member says of each row, member ``places[i]`` of row i: (n, c)."""
        return one_by_one(x, places, self._logits)

    def _logits(self, place: int, x: Tensor) -> Tensor:
        """Of rows in the dtype of the model's weights, where it shows some."""
        model = self.models[place]
        return logits_from(model, x.to(dtype_of(model) or x.dtype))


Members = Stack | Models


def _helped(member: Model) -> Model:
    lean = isinstance(member, Deployed) and member.lean and isinstance(member.ask, Adapter)
    return helped(member.ask) if lean else member  # type: ignore[attr-defined]


def encoding_digest(encoding: Encoding) -> str:
    """The same for encodings that encode alike."""
    fitted = (encoding.shift, encoding.scale, encoding.fill)
    numbers = [np.asarray(part, dtype=np.float64).tobytes().hex() for part in fitted]
    levels = [[repr(value) for value in feature.values] for feature in encoding.schema.features]
    kinds = [feature.kind for feature in encoding.schema.features]
    return digest([encoding.columns, kinds, levels, [repr(label) for label in encoding.schema.classes], numbers])


def _last_name(own: object) -> str:
    """What a model is: of a pipeline, its last step."""
    steps = getattr(own, "steps", None)
    return type(steps[-1][1] if isinstance(steps, list) and steps else own).__name__
