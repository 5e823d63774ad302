"""A promised rate for people from a file or a dataset, and for models from files or trained. For `holdfast promise`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from torch import Tensor

from holdfast.auditing.audit_files import Data
from holdfast.auditing.model_files import Models
from holdfast.auditing.promised import write_promise
from holdfast.families.family import Family
from holdfast.families.recipe import Retraining
from holdfast.guarantees.calibration import fewest_models
from holdfast.guarantees.promises import Promise, promise
from holdfast.models.model import Model, predict
from holdfast.search.counterfactuals import Method, other_class
from holdfast.search.methods.margin import Margin
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.methods.rehearsed import Rehearsed
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Level
from holdfast.utils.files import all_or_none
from holdfast.utils.settings import check_share, check_whole
from holdfast.utils.spreadsheets import as_csv


@dataclass(frozen=True)
class Sizes:
    """How many models of each kind rehearse, calibrate and audit, in this order; rehearsals are shared by the kinds."""

    rehearsals: int = 32
    calibration: int = 100
    members: int = 100

    def __post_init__(self) -> None:
        check_whole("rehearsals", self.rehearsals, least=0)
        check_whole("calibration", self.calibration, least=1)
        check_whole("members", self.members, least=0)

    def of(self, kinds: int) -> tuple[int, int, int]:
        """The same for one of so many kinds."""
        return -(-self.rehearsals // kinds), self.calibration, self.members


@dataclass(frozen=True, eq=False)
class FilePromise:
    """A promise, and whom it is for in their table's own units."""

    promise: Promise
    people: pd.DataFrame
    encoding: Encoding
    taken: dict[str, int]  # kind of change -> trained members that rehearsed or calibrated
    model: str = ""  # where the deployed model comes from
    retrained: str = ""  # and the retrained ones
    labelled: str = ""  # where the labels of people come from

    def table(self) -> pd.DataFrame:
        """Everybody, with their counterfactuals, by their labels; without a promise, as they are."""
        if not self.promise.promised:
            names = list(self.encoding.schema.names)
            frame = self.people[names].copy()
            for place, name in enumerate(("found", "promised")):
                frame.insert(place, name, False)
            return frame
        frame = self.promise.to_frame(self.encoding, self.people)
        if self.promise.plans is not None:
            frame = frame.set_index(frame.columns[0])
            frame.index.name = self.people.index.name
        return frame

    @property
    def left(self) -> pd.Index:
        """The labels of those whom nothing is promised."""
        return self.people.index[~self.promise.promised_rows.cpu().numpy()]

    def summary(self) -> dict[str, Any]:
        """What is promised, and of which models, as JSON has it."""
        sources = {"model": self.model, "retrained": self.retrained, "labelled": self.labelled}
        return {**sources, **self.promise.summary(), "taken": self.taken}

    def save(self, folder: str | Path) -> list[Path]:
        """counterfactuals.csv, and promise.json, which names it by its checksum and is written last: both, or none."""
        folder = Path(folder)
        with all_or_none(folder) as parts:
            names = [path.name for path in write_promise(parts, as_csv(self.table()), self.summary())]
        return [folder / name for name in names]


def promise_files(
    data: Data,
    models: Models,
    people: pd.DataFrame | None = None,
    *,
    rows: int | None = None,
    changes: Sequence[Retraining] = (),
    want: Level | None = None,
    rate: float = 0.05,
    sizes: Sizes | None = None,
    norm: Literal[1, 2] = 1,
    least_found: float = 0.5,
    plans: int = 1,
    told: str = "",
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> FilePromise:
    """Promise a rate for ``people``, by default the rows of our own datasets that no model was trained on; for so many
    ``rows`` of them.

    ``models`` are those of `find_models`; where the retrained ones are not there yet, there is one for each of the
    ``changes``, kept in the ``store``. Of each kind the first rehearse, the next calibrate and the rest audit. Without
    rehearsals the search is `Margin`, with some it is `Rehearsed`.
    """
    sizes = sizes or Sizes()
    check_share("rate", rate)
    _check_enough(sizes, rate)
    if models.family is None:
        _check_changes(changes, sizes)
    asked = _asked(data, people).iloc[:rows]
    asked, x, wanted = _question(data.encoding, models.deployed, asked, want)
    family = models.retrained(changes, store=store, workers=workers, progress=progress)
    rehearsed, calibrating, auditing = _shared(family, sizes)
    search = MinCost(norm=norm)
    method: Method = Margin(search=search) if rehearsed is None else Rehearsed(rehearsed, search=search)
    result = promise(
        method,
        models.deployed,
        x,
        wanted,
        data.encoding.space,
        calibrating,
        rate=rate,
        audit=auditing,
        least_found=least_found,
        plans=plans,
        progress=progress,
    )
    kinds = (*(() if rehearsed is None else rehearsed.kinds), *calibrating.kinds)
    taken = dict(Counter(kinds)) if models.family is None else {}
    return FilePromise(result, asked, data.encoding, taken, models.name, models.family_name, told)


def _check_enough(sizes: Sizes, rate: float) -> None:
    """Raise where no answer of the models could keep the rate: before they are trained."""
    if sizes.calibration < fewest_models(rate):
        raise ValueError(
            f"a rate of {rate:g} needs {fewest_models(rate)} calibration models or more (1 / rate - 1), got "
            f"{sizes.calibration}: give --calibration {fewest_models(rate)}, or a larger --rate"
        )


def _check_changes(changes: Sequence[Retraining], sizes: Sizes) -> None:
    """Raise where there will be too few models of a kind: before they are trained."""
    counts = Counter(change.kind for change in changes)
    first, second, third = sizes.of(max(1, len(counts)))
    for kind, count in counts.items():
        if count < first + second:
            raise ValueError(
                f"--retrain {kind}:{count} gives fewer models than the {first} that rehearse and the {second} that "
                f"calibrate; give {kind}:{first + second + third}, or fewer --rehearsals or --calibration"
            )


def _asked(data: Data, people: pd.DataFrame | None) -> pd.DataFrame:
    if people is None:
        people = data.test
    if people is None:
        raise ValueError("a table of your own does not say whom counterfactuals are for; name them: --people FILE")
    if not len(people):
        raise ValueError("there is nobody to find counterfactuals for: the table of people is empty")
    return people


def _question(
    encoding: Encoding, model: Model, people: pd.DataFrame, target: Level | None
) -> tuple[pd.DataFrame, Tensor, Tensor]:
    """Whoever does not have the class they want: their rows, and the classes wanted."""
    x = encoding.encode(people)
    if target is None:
        if len(encoding.schema.classes) != 2:
            raise ValueError(
                f"there are {len(encoding.schema.classes)} classes; say which one everybody wants: --want "
                f"{encoding.schema.classes[0]}"
            )
        return people, x, other_class(model, x)
    wanted = encoding.schema.classes.index(target)
    lacking = predict(model, x) != wanted
    if not lacking.any():
        raise ValueError(f"the deployed model gives everybody the class '{target}' already")
    return people[lacking.cpu().numpy()], x[lacking], torch.full((int(lacking.sum()),), wanted)


def _shared(family: Family, sizes: Sizes) -> tuple[Family | None, Family, Family | None]:
    """Of each kind the first members rehearse, the next calibrate, and the next audit."""
    kinds = list(dict.fromkeys(family.kinds))
    first, second, third = sizes.of(max(1, len(kinds)))
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for kind in kinds:
        places = [place for place, own in enumerate(family.kinds) if own == kind]
        ends = (0, first, first + second, first + second + third)
        for part, start, end in zip(parts, ends, ends[1:], strict=False):
            part += places[start:end]
        if len(places) <= first:
            raise ValueError(
                f"{family} has {len(places)} members of kind '{kind}' and {first} of them rehearse, so none is left to "
                "calibrate with; give more models, or fewer --rehearsals"
            )
    rehearsed, calibrating, auditing = (family.chosen(part) if part else None for part in parts)
    if calibrating is None:
        raise ValueError(f"{family} has no members to calibrate with")
    return rehearsed, calibrating, auditing
