"""Models of trees that are searched together: the cells of each are split by the thresholds of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.abilities import able
from holdfast.models.merged import Groups, Merged, merge_logits
from holdfast.models.model import Model
from holdfast.models.trees.ensemble import Ensemble, Floats
from holdfast.models.trees.masks import Masks

Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, eq=False)
class Committee:
    """The deployed model's ensemble, then those of the members, all over the same cells.

    As the members of a `LeastSure`, it answers for the members alone.
    """

    ensembles: tuple[Ensemble, ...]
    groups: tuple[Groups, ...]  # of the classes of each

    @classmethod
    def alone(cls, ensemble: Ensemble, model: Model) -> Committee:
        """One model by itself."""
        return cls((ensemble,), (_groups(model, ensemble),))

    @classmethod
    def of(cls, models: Sequence[Model]) -> Committee | None:
        """The deployed model and the members; None where one is not of trees, or was read with another encoding."""
        found = [model.ensemble for model in map(able, models) if model.ensemble is not None]
        if len(found) < len(models) or not all(one.encoding.reads_like(found[0].encoding) for one in found):
            return None
        groups = tuple(map(_groups, models, found))
        edges = tuple(np.unique(np.concatenate(own)) for own in zip(*(one.edges for one in found), strict=True))
        return cls(tuple(_over(one, edges) for one in found), groups)

    @cached_property
    def joint(self) -> Ensemble:
        """All trees one after another. Its ``base`` has the outputs of every model, as many for each as any has."""
        if len(self.ensembles) == 1:
            return self.ensembles[0]
        nodes = _starts([len(one.feature) for one in self.ensembles])
        sets = _starts([len(one.sets) for one in self.ensembles])
        width = max(one.sets.shape[1] for one in self.ensembles)
        outputs = max(len(one.base) for one in self.ensembles)
        levels = np.array([not feature.is_numeric for feature in self.ensembles[0].features])
        several = list(zip(self.ensembles, nodes, sets, strict=True))
        return replace(
            self.ensembles[0],
            feature=np.concatenate([one.feature for one in self.ensembles]),
            split=np.concatenate([np.where(levels[one.feature], one.split + at, one.split) for one, _, at in several]),
            missing_left=np.concatenate([one.missing_left for one in self.ensembles]),
            left=np.concatenate([one.left + start for one, start, _ in several]),
            right=np.concatenate([one.right + start for one, start, _ in several]),
            value=np.concatenate([_wide(one.value, outputs) for one in self.ensembles]),
            roots=np.concatenate([one.roots + start for one, start, _ in several]),
            sets=np.concatenate([_wide(one.sets, width) for one in self.ensembles]),
            base=np.concatenate([_wide(one.base[None], outputs)[0] for one in self.ensembles]),
        )

    # ---- as the members of a `LeastSure` ----

    def __len__(self) -> int:
        return len(self.ensembles) - 1

    def logits(self, x: Tensor) -> Tensor:
        """What every member says of every row: (k, n, c)."""
        first = self.ensembles[0]
        cells = first.cells_of(first.encoding.raw(x))  # one look at the rows for all
        if self.masks is not None:
            base = np.stack([one.base for one in self.ensembles[1:]])[:, None]
            told = torch.from_numpy(first.logits(base + self.masks.sums(cells)))
            return merge_logits(told, self.groups[1]).to(x.device)
        several = zip(self.ensembles[1:], self.groups[1:], strict=True)
        each = [merge_logits(torch.from_numpy(one.logits(one.raw(cells))), groups) for one, groups in several]
        return torch.stack(each).to(x.device)

    @cached_property
    def masks(self) -> Masks | None:
        """The trees of all members at once; None where members differ in kind, or a tree has too many leaves."""
        kinds = {(one.link, len(one.base)) for one in self.ensembles}
        if len(kinds) > 1 or len(set(self.groups)) > 1 or not len(self):
            return None
        members = Committee(self.ensembles[1:], self.groups[1:])
        return Masks.of(members.joint, [len(one.roots) for one in members.ensembles])

    def logits_of(self, x: Tensor, members: Tensor) -> Tensor:
        return self.logits(x)[members, torch.arange(len(x), device=x.device)]


@lru_cache(maxsize=2)
def committee_of(models: tuple[Model, ...]) -> Committee | None:
    """The same as `Committee.of`, made once: a knob is turned, and the models stay."""
    return Committee.of(models)


def _groups(model: Model, ensemble: Ensemble) -> Groups:
    if isinstance(model, Merged):
        return model.groups
    return tuple((label,) for label in range(len(ensemble.encoding.schema.classes)))


def _over(ensemble: Ensemble, edges: tuple[Floats, ...]) -> Ensemble:
    """The same trees over finer cells."""
    split = ensemble.split.copy()
    for place, (own, finer) in enumerate(zip(ensemble.edges, edges, strict=True)):
        if not ensemble.features[place].is_numeric:
            continue
        # −1 sends every number to the right, and a split behind the last edge every number to the left.
        moved = np.concatenate([np.searchsorted(finer, own), [len(finer), -1]]).astype(np.int32)
        nodes = np.flatnonzero(ensemble.feature == place)
        split[nodes] = moved[np.minimum(split[nodes], len(own))]
    return replace(ensemble, edges=edges, split=split)


def _starts(lengths: list[int]) -> list[int]:
    """Where each begins, one after another."""
    return list(accumulate(lengths[:-1], initial=0))


def _wide(rows: NDArray[Number], width: int) -> NDArray[Number]:
    """(n, w) -> (n, width), with zeros."""
    return np.pad(rows, ((0, 0), (0, width - rows.shape[1])))
