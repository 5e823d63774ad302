"""A promised rate for people from a file or a dataset, and for models from files or trained. For `holdfast promise`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd
import torch
from torch import Tensor

from holdfast.auditing.audit_files import Data, checked_recipe, read_deployed, read_models
from holdfast.auditing.promised import write_promise
from holdfast.families.changes import leave_one_out, seeds
from holdfast.families.family import Family
from holdfast.families.recipe import Recipe, Retraining
from holdfast.families.training import train
from holdfast.guarantees.calibration import fewest_models
from holdfast.guarantees.promises import Promise, promise
from holdfast.models.model import Model, predict
from holdfast.search.counterfactuals import Method, other_class
from holdfast.search.methods.margin import Margin
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.methods.rehearsed import Rehearsed
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Level
from holdfast.utils.settings import check_share, check_whole
from holdfast.utils.spreadsheets import as_csv

Changes = Literal["seeds", "leave-one-out", "both"]
KINDS: dict[str, tuple[str, ...]] = {
    "seeds": ("seeds",),
    "leave-one-out": ("leave-one-out",),
    "both": ("seeds", "leave-one-out"),
}


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

    def save(self, folder: str | Path) -> list[Path]:
        """counterfactuals.csv, and promise.json, which names it by its checksum and is written last."""
        about = {**self.promise.summary(), "taken": self.taken}
        return write_promise(Path(folder), as_csv(self.table()), about)


def promise_files(
    data: Data,
    people: pd.DataFrame | None = None,
    *,
    rows: int | None = None,
    models: Sequence[str | Path] = (),
    deployed: str | Path | None = None,
    recipe: Recipe | None = None,
    target: Level | None = None,
    rate: float = 0.05,
    sizes: Sizes | None = None,
    changes: Changes = "seeds",
    norm: Literal[1, 2] = 1,
    least_found: float = 0.5,
    plans: int = 1,
    store: str | Path | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> FilePromise:
    """Promise a rate for ``people``, by default the rows of our own datasets that no model was trained on; for so many
    ``rows`` of them.

    ``models`` are read as `audit_files` reads them; of each kind the first rehearse, the next calibrate and the rest
    audit. Without any, networks are trained by the recipe and kept in the ``store``. Without rehearsals the search is
    `Margin`, with some it is `Rehearsed`.
    """
    sizes = sizes or Sizes()
    check_share("rate", rate)
    _check_enough(sizes, rate)
    asked = _asked(data, people).iloc[:rows]
    if models:
        base, family = read_models(models, deployed, data.encoding)
    else:
        base, family = read_deployed(data, checked_recipe(recipe or data.recipe), deployed, store), None
    asked, x, wanted = _question(data.encoding, base, asked, target)
    if family is None:  # now that all that was given has been read: training takes long
        family = _trained(data, checked_recipe(recipe or data.recipe), sizes, KINDS[changes], store, workers, progress)
    rehearsed, calibrating, auditing = _shared(family, sizes)
    search = MinCost(norm=norm)
    method: Method = Margin(search=search) if rehearsed is None else Rehearsed(rehearsed, search=search)
    result = promise(
        method,
        base,
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
    return FilePromise(result, asked, data.encoding, {} if models else dict(Counter(kinds)))


def _check_enough(sizes: Sizes, rate: float) -> None:
    """Raise where no answer of the models could keep the rate: before they are trained."""
    if sizes.calibration < fewest_models(rate):
        raise ValueError(
            f"a rate of {rate:g} needs {fewest_models(rate)} calibration models or more (1 / rate - 1), got "
            f"{sizes.calibration}: give --calibration {fewest_models(rate)}, or a larger --rate"
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
                f"there are {len(encoding.schema.classes)} classes; say which one everybody wants: --target "
                f"{encoding.schema.classes[0]}"
            )
        return people, x, other_class(model, x)
    wanted = encoding.schema.classes.index(target)
    lacking = predict(model, x) != wanted
    if not lacking.any():
        raise ValueError(f"the deployed model gives everybody the class '{target}' already")
    return people[lacking.cpu().numpy()], x[lacking], torch.full((int(lacking.sum()),), wanted)


def _trained(
    data: Data,
    recipe: Recipe,
    sizes: Sizes,
    kinds: tuple[str, ...],
    store: str | Path | None,
    workers: int | None,
    progress: bool,
) -> Family:
    x, y = data.encoding.encode(data.known), data.encoding.labels(data.known)
    count = sum(sizes.of(len(kinds)))
    made: list[Retraining] = seeds(count) if "seeds" in kinds else []
    if "leave-one-out" in kinds:
        if count > len(x):
            raise ValueError(
                f"{count} different rows cannot be left out of {len(x)}; give fewer --rehearsals, --calibration or "
                "--members"
            )
        made = made + leave_one_out(count, len(x))
    return train(x, y, recipe, made, store=store, workers=workers, progress=progress)


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
