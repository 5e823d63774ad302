"""Many retrained networks as one value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from operator import index, is_
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.families.collecting import AnyTraining, Failure, collect
from holdfast.families.members import Members, Models, Stack, one_by_one, ready
from holdfast.families.perceptron import Perceptron, layers
from holdfast.families.recipe import Recipe, Retraining, counted
from holdfast.families.resemblance import Resemblance, resemblance
from holdfast.models.abilities import able
from holdfast.models.identity import identity
from holdfast.models.merged import Groups, Merged, as_groups, merge_logits
from holdfast.models.model import Model, classes_of
from holdfast.models.parts import Part
from holdfast.models.rows import check_rows
from holdfast.utils.settings import check_whole
from holdfast.utils.threads import one_thread

ROWS_AT_ONCE = 4096  # asked about at a time, so that memory does not grow with their number


@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """Many retrained models as one value. Indexing gives a model, slicing a smaller Family.

    `train` and `refit` make one, `Family.from_models` and `Family.from_training` take models made elsewhere.

    Attributes:
        stacks: the members; networks of one shape stacked
        retrainings: what sets each member apart
        places: of each member among all stacks, one after another
        groups: classes merged, as `merged` does for one model
        fingerprints: one per member, where they are known
        accuracy: of each member on rows held out; `refit` without such: on its table
        recipe: how networks were trained
        data: fingerprint of the rows there were
        failures: members that are not there because their training raised
        surrogates: why members stand in for retrainings of the deployed model, where they do not resemble it
        told: how the parameters that they were trained with are known, where `refit` had to find them out

    Examples:
        >>> import holdfast as hf
        >>> table, schema = hf.load("german")
        >>> encoding = hf.Encoding.fit(table, schema)
        >>> x, y = encoding.encode(table), encoding.labels(table)
        >>> recipe = hf.Recipe(hidden=(8,), epochs=5)
        >>> family = hf.train(x, y, recipe, hf.seeds(4))
        >>> len(family), family[:2]
        (4, Family(61-8-2: 2 seeds))
        >>> family.predict(x).shape  # the class that every member gives every row
        torch.Size([4, 1000])
        >>> own = hf.Family.from_models([family[0], family[3]], kind="ours")
        >>> own.kinds
        ('ours', 'ours')

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2: a sample of the distribution Θ of
    Definition 2.
    """

    stacks: tuple[Members, ...]
    retrainings: tuple[Retraining, ...]
    places: tuple[int, ...]
    groups: Groups | None = None
    fingerprints: tuple[str, ...] = ()
    accuracy: tuple[float, ...] | None = None
    recipe: Recipe | None = None
    data: str | None = None
    failures: tuple[Failure, ...] = ()
    surrogates: str = ""
    told: str = ""

    @classmethod
    def from_models(
        cls, models: Sequence[Model | str | Path], kind: str | Sequence[str] = "own", like: nn.Module | None = None
    ) -> Family:
        """A family of models that exist already.

        Args:
            models: callables from rows to logits, torch modules, or safetensors files of weights for a module ``like``
                this
            kind: what an audit calls them: one word, or one for each model
            like: the module that the weights of files belong to
        """
        is_iterable = hasattr(models, "__iter__") or hasattr(models, "__getitem__")
        if isinstance(models, (str, Path)) or callable(models) or not is_iterable:
            raise TypeError(f"expected a list of models, got {type(models).__name__}; give Family.from_models([model])")
        if not isinstance(kind, (str, Sequence)):
            raise TypeError(f"kind must be a word, or one for each model, got {kind!r}")
        members = [ready(model, like) for model in models]
        kinds = [kind] * len(members) if isinstance(kind, str) else list(kind)
        if not members or len(kinds) != len(members):
            raise ValueError(
                f"expected one model or more and a kind for each, got {len(members)} models, {len(kinds)} kinds"
            )
        return family_of(members, numbered(kinds))

    @classmethod
    def from_training(
        cls,
        function: AnyTraining,
        changes: Sequence[Retraining],
        rows: int,
        workers: int | None = None,
        progress: bool = False,
    ) -> Family:
        """Retrain with one's own function: ``function(rows, seed)`` gets the numbers of the rows and returns a model.

        It runs in worker processes. A member whose training raises is reported in ``failures`` with its traceback; the
        others are kept. Only changes of rows and seeds can be handed to a function that reads the data itself.

        Args:
            function: trains one model
            changes: what sets each member apart, such as ``hf.seeds(20)``
            rows: how many training rows there are
            workers: processes; by default one per core
            progress: True shows a bar
        """
        check_whole("rows", rows, least=1)
        return family_of(*collect(function, changes, rows, ready, workers, progress))

    def __len__(self) -> int:
        return len(self.retrainings)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of change of every member."""
        return tuple(retraining.kind for retraining in self.retrainings)

    @property
    def classes(self) -> int | None:
        """How many classes the members have; None for models that will say when asked."""
        return self.stacks[0].classes if self.groups is None else len(self.groups)

    @property
    def features(self) -> int | None:
        """How many columns the members take; None for models that will say when asked."""
        return self.stacks[0].features

    @property
    def weights(self) -> tuple[Tensor, ...]:
        """The layers of perceptrons of one shape: (k, in, out) each."""
        return self._layers("weight")

    @property
    def biases(self) -> tuple[Tensor, ...]:
        """Their biases: (k, out) each."""
        return self._layers("bias")

    def _layers(self, part: str) -> tuple[Tensor, ...]:
        stack = self.stacks[0]
        if len(self.stacks) > 1 or not isinstance(stack, Stack) or not isinstance(stack.architecture, Perceptron):
            raise TypeError(f"{self} is not a stack of perceptrons of one shape; ask one member, family[0], or .stacks")
        return tuple(layer[list(self.places)] if self._shuffled else layer for layer in layers(stack.state, part))

    @overload
    def __getitem__(self, key: int) -> Model: ...
    @overload
    def __getitem__(self, key: slice) -> Family: ...
    def __getitem__(self, key: int | slice) -> Model | Family:
        if isinstance(key, slice):
            return self.chosen(range(len(self))[key])
        key = _checked_places([key], len(self), "a member is chosen by a whole number or a slice")[0]
        if self.groups is not None:
            raise TypeError("take a network from the family before merging its classes, then merge the network's")
        stack, number = self.found(self.places[key])
        fingerprint = self.fingerprints[key] if self.fingerprints else None
        return stack.model(number, self.retrainings[key], fingerprint)

    def found(self, place: int) -> tuple[Members, int]:
        """Which stack a place is in, and where."""
        return next((stack, place - span.start) for stack, span in self._ranges if place in span)

    @property
    def _ranges(self) -> list[tuple[Members, range]]:
        """The stacks, and the places that are in each."""
        starts = accumulate(map(len, self.stacks), initial=0)
        return [(stack, range(first, first + len(stack))) for stack, first in zip(self.stacks, starts, strict=False)]

    def chosen(self, members: Sequence[int]) -> Family:
        """The members at these places, in this order."""
        members = _checked_places(members, len(self), "members are chosen by whole numbers, chosen([0, 2])")
        kept = sorted(self.places[member] for member in members)
        inside = [(stack, [place - span.start for place in kept if place in span]) for stack, span in self._ranges]
        stacks = [stack.chosen(places) for stack, places in inside if places]
        where = {place: number for number, place in enumerate(kept)}
        return replace(
            self,
            stacks=tuple(stacks) or (self.stacks[0].chosen([]),),
            places=tuple(where[self.places[member]] for member in members),
            retrainings=tuple(self.retrainings[member] for member in members),
            fingerprints=tuple(self.fingerprints[member] for member in members) if self.fingerprints else (),
            accuracy=None if self.accuracy is None else tuple(self.accuracy[member] for member in members),
        )

    @property
    def suspects(self) -> tuple[int, ...]:
        """Members that did not learn: accuracy far below their siblings', by 0.1 and by six typical deviations."""
        if self.accuracy is None:
            return ()
        accuracy = torch.tensor(self.accuracy, dtype=torch.float64)
        below = accuracy.median() - accuracy
        return tuple(torch.nonzero(below > max(0.1, 6 * float(below.abs().median()))).flatten().tolist())

    def class_counts(self, x: Tensor) -> tuple[int, ...]:
        """How many classes each member has; models made elsewhere are asked about a row of x."""
        counts: list[int] = []
        for stack in self.stacks:
            known = stack.classes
            counts += [logits.shape[-1] for logits in stack.in_pieces(x[:1])] if known is None else [known] * len(stack)
        inner = [counts[place] for place in self.places]
        return tuple(inner if self.groups is None else [len(self.groups)] * len(inner))

    @property
    def external(self) -> tuple[int, ...]:
        """Members that were made elsewhere."""
        made = [isinstance(stack, Models) and not stack.refitted for stack in self.stacks for _ in range(len(stack))]
        return tuple(member for member, place in enumerate(self.places) if made[place])

    @property
    def refitted(self) -> bool:
        """Whether `refit` has made the members: retrainings of an estimator, which may well answer alike."""
        return all(isinstance(stack, Models) and stack.refitted for stack in self.stacks)

    # ---- for a search that asks all members at once ----

    @property
    def foreign(self) -> tuple[Model, ...]:
        """The members that are not stacked networks, each with whatever helps a search, their classes merged."""
        models = [model for stack in self.stacks for model in stack.helped]
        return tuple(models if self.groups is None else [Merged(model, self.groups) for model in models])

    @cached_property
    def parts(self) -> tuple[Part, ...] | None:
        """The layers or trees of every member, where each has some."""
        found: list[Part] = []
        for stack in self.stacks:
            if stack.parts is None:
                return None
            found += stack.parts
        in_order = [found[place] for place in self.places]
        return tuple(in_order if self.groups is None else [part.merged(self.groups) for part in in_order])

    @property
    def searched(self) -> Family:
        """The same members, asked through what is faster and says the same, where there is that."""
        stacks = tuple(map(_searched, self.stacks))
        return self if stacks == self.stacks else replace(self, stacks=stacks)

    def resemblance(self, deployed: Model, x: Tensor, y: Tensor | None = None) -> Resemblance:
        """Whether the deployed model could be one of the members, by what all of them say of rows x (and labels y)."""
        return resemblance(self, deployed, x, y)

    def merged(self, groups: Groups) -> Family:
        """The same networks with classes merged: what `merged` is to one model."""
        return replace(self, groups=as_groups(groups))

    def logits(self, x: Tensor) -> Tensor:
        """What every member says of every row: (k, n, c). Rows are taken in the dtype of the members' weights."""
        check_rows(x, width=self.features, finite=False)
        if not len(self):
            return x.new_zeros(0, len(x), self.classes or 0)
        return self._in_order(list(self._in_pieces(x)))

    def logits_of(self, x: Tensor, members: Tensor) -> Tensor:
        """What one member says of each row, member ``members[i]`` of row i: (n, c). For gradients of chosen members."""
        check_rows(x, width=self.features, finite=False)
        places = torch.tensor(self.places, device=x.device)[members]
        stacks = self._ranges
        which = torch.tensor([number for number, (stack, _) in enumerate(stacks) for _ in range(len(stack))])

        def ask(number: int, rows: Tensor) -> Tensor:
            stack, inside = stacks[number]
            return stack.logits_of(x[rows], places[rows] - inside.start)

        logits = one_by_one(which.to(x.device)[places], ask)
        return logits if self.groups is None else merge_logits(logits, self.groups)

    def predict(self, x: Tensor) -> Tensor:
        """The class every member gives every row, and −1 where its answer is NaN: (k, n).

        Rows are taken in the dtype of the members' weights: float64 rows are rounded for members in float32.
        """
        check_rows(x, width=self.features, finite=False)
        if not len(self):
            return torch.zeros(0, len(x), dtype=torch.int64, device=x.device)
        with torch.no_grad(), one_thread():
            parts = [
                self._in_order([classes_of(logits) for logits in self._in_pieces(rows)])
                for rows in torch.split(x, ROWS_AT_ONCE)
            ]
        return torch.cat(parts, dim=1)

    def _in_pieces(self, x: Tensor) -> Iterator[Tensor]:
        for stack in self.stacks:
            for logits in stack.in_pieces(x):
                yield logits if self.groups is None else merge_logits(logits, self.groups)

    def _in_order(self, pieces: list[Tensor]) -> Tensor:
        answers = torch.cat(pieces)
        return answers[list(self.places)] if self._shuffled else answers

    @property
    def _shuffled(self) -> bool:
        return self.places != tuple(range(len(self)))

    def __repr__(self) -> str:
        names = [stack.name for stack in self.stacks]
        shape = names[0] if len(names) == 1 else f"{len(names)} shapes from {names[0]} to {names[-1]}"
        failed = f"; {len(self.failures)} failed" if self.failures else ""
        stand_in = "; surrogates" if self.surrogates else ""
        return f"Family({shape}: {counted(self.kinds) or 'empty'}{failed}{stand_in})"


def _searched(stack: Members) -> Members:
    fast = tuple(able(model).searched for model in stack.helped)
    return stack if all(map(is_, fast, stack.helped)) else Models(fast)


def numbered(kinds: Iterable[str]) -> tuple[Retraining, ...]:
    """Of models that exist already, so that no two count as the same retraining."""
    return tuple(Retraining(data_seed=number, kind=kind) for number, kind in enumerate(kinds))


def family_of(
    models: Sequence[Model], retrainings: tuple[Retraining, ...], failures: tuple[Failure, ...] = ()
) -> Family:
    """Models of any kind, asked one after another."""
    names = tuple(map(identity, models))
    return Family((Models.of(models),), retrainings, tuple(range(len(models))), fingerprints=names, failures=failures)


def _checked_places(places: Any, count: int, how: str) -> Sequence[int]:
    """Places of members, if they are whole numbers and there are such members."""
    if isinstance(places, str) or not isinstance(places, (Sequence, Tensor, np.ndarray)):
        raise TypeError(f"{how}, got {places!r}")
    try:
        found = [index(member) for member in places]
    except TypeError as error:
        raise TypeError(f"{how}, got {places[0]!r}" if len(places) == 1 else f"{how}, got {places!r}") from error
    missing = [member for member in found if not -count <= member < count]
    if missing:
        raise IndexError(f"there is no member {missing[0]}; the family has {count} members, from 0 to {count - 1}")
    return found
