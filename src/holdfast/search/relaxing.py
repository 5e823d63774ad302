"""Constraints taken away one by one: which of them stand between a person and a counterfactual.

A relaxation is one constraint less. Each is tried by searching again without it. What a single feature may do differs
from row to row of one search, so that many relaxations are tried at once; relations, plausibility and the like are of
the whole space, and rows that differ in them are searched apart.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from holdfast.models.model import Model
from holdfast.search.counterfactuals import Method, assess
from holdfast.search.task import Task
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature
from holdfast.tabular.personal import Personal
from holdfast.tabular.relations import Relation
from holdfast.tabular.space import Group, Space

Kind = Literal["fixed", "lower", "upper", "direction", "kept", "wished", "gaps", "avoid", "order", "relation", "people"]
OF_ONE_FEATURE: tuple[Kind, ...] = ("fixed", "lower", "upper", "direction", "kept", "wished")
WAYS_NAMED = 5  # ways out that a sentence names at most


@dataclass(frozen=True)
class Relaxation:
    """One constraint less, and the words that say so: 'housing' may change."""

    says: str
    kind: Kind
    columns: tuple[int, ...] = ()
    relation: Relation | None = None


def relaxations(space: Space, encoding: Encoding, unnamed: Collection[str] = ()) -> tuple[Relaxation, ...]:
    """Every constraint of the space that can be taken away, but those of features that must not be named."""
    named = [(feature, span) for feature, span in encoding.places if feature.name not in unnamed]
    found = [each for feature, span in named for each in _of_feature(space, feature, span)]
    if space.related is not None:
        found += [Relaxation(f"'{each}' need not hold", "relation", (), each) for each in space.related.relations]
    if space.people is not None:
        found.append(Relaxation("the result need not resemble anybody known", "people"))
    return tuple(found)


def _of_feature(space: Space, feature: Feature, span: slice) -> Iterator[Relaxation]:
    name, column, columns = f"'{feature.name}'", span.start, tuple(range(span.start, span.stop))
    wishes = space.personal
    if wishes is not None and bool((~wishes.mutable[:, columns]).any()):
        yield Relaxation(f"the wish to keep {name} is dropped", "kept", columns)
    if wishes is not None and bool((wishes.lower[:, columns].isfinite() | wishes.upper[:, columns].isfinite()).any()):
        yield Relaxation(f"the wish for the range of {name} is dropped", "wished", columns)
    if not bool(space.mutable[column]):
        if not bool(space.follows[column]):
            yield Relaxation(f"{name} may change", "fixed", columns)
        return
    if feature.is_numeric:
        low, high = (_in_units(space, column, end) for end in (space.lower, space.upper))
        yield Relaxation(f"{name} may fall below {low:.6g}", "lower", columns)
        yield Relaxation(f"{name} may rise above {high:.6g}", "upper", columns)
    if feature.direction != "any":
        kind: Kind = "order" if feature.kind == "categorical" else "direction"
        yield Relaxation(f"{name} may {'fall' if feature.direction == 'rise' else 'rise'}", kind, columns)
    if any(gap[0] == column for gap in space.gaps):
        yield Relaxation(f"{name} may have values that nobody has", "gaps", columns)
    if feature.avoid:
        yield Relaxation(f"{name} may become {' or '.join(map(repr, feature.avoid))}", "avoid", columns)


def _in_units(space: Space, column: int, end: Tensor) -> float:
    """A limit in the table's units. The limits are kept in single precision: 0 may come back as 5e-09."""
    scale, shift = float(space.scale[column]), float(space.shift[column])
    value = float(end[column]) * scale + shift
    noise = 1e-6 * max(abs(scale), abs(shift))
    return round(value, -math.floor(math.log10(noise))) + 0.0 if noise > 0 and math.isfinite(value) else value


@dataclass(frozen=True)
class Relaxing:
    """Searching some rows again, each with constraints of its own taken away."""

    method: Method
    model: Model
    space: Space
    encoding: Encoding
    origin: Tensor  # (n, d)
    target: Tensor  # (n,)
    choices: tuple[Relaxation, ...]

    def search(self, rows: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Points for some rows (m,), as often as they come, without what is taken away for each (m, r); their l1 cost.

        What was not found costs infinity.
        """
        point = self.origin[rows].clone()
        cost = torch.full_like(point[:, 0], torch.inf)
        for indices, space in self._spaces(rows, chosen):
            x, target = self.origin[rows[indices]], self.target[rows[indices]]
            answer = self.method(self.model, x, target, space)
            spent = Task(self.model, x, target, space, 1).cost(answer.point)
            point[indices], cost[indices] = answer.point, torch.where(answer.found, spent, torch.inf)
        return point, cost

    def needed(self, rows: Tensor, point: Tensor) -> Tensor:
        """Which of the constraints each point (m, d) breaks: (m, r). The point must do with all taken away."""
        count = len(self.choices)
        every = torch.arange(len(rows), device=rows.device).repeat_interleave(count)
        chosen = ~torch.eye(count, dtype=torch.bool, device=rows.device).repeat(len(rows), 1)
        kept = torch.zeros_like(every, dtype=torch.bool)
        for indices, space in self._spaces(rows[every], chosen):
            people = rows[every[indices]]
            judged = assess(self.model, self.origin[people], point[every[indices]], self.target[people], space)
            kept[indices] = judged.found & (judged.point == point[every[indices]]).all(1)
        return ~kept.view(len(rows), count)

    def _spaces(self, rows: Tensor, chosen: Tensor) -> Iterator[tuple[Tensor, Space]]:
        """The rows that can be searched together, and their space."""
        whole = [position for position, choice in enumerate(self.choices) if choice.kind not in OF_ONE_FEATURE]
        patterns, which = np.unique(chosen[:, whole].cpu().numpy(), axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            indices = torch.from_numpy(np.flatnonzero(which.ravel() == number)).to(rows.device)
            taken = [self.choices[whole[position]] for position in np.flatnonzero(pattern)]
            yield indices, self._for_each(self._without(taken), rows[indices], chosen[indices])

    def _without(self, taken: Sequence[Relaxation]) -> Space:
        """The space without some constraints that all its rows have in common."""
        free = {column for choice in taken if choice.kind == "gaps" for column in choice.columns}
        unavoided, unordered = ({each.columns for each in taken if each.kind == kind} for kind in ("avoid", "order"))
        related = self.space.related
        gone = [choice.relation for choice in taken if choice.kind == "relation"]
        if related is not None and gone:
            related = self.encoding.related_by(tuple(each for each in related.relations if each not in gone))
            related = None if related is None else related.to(self.origin)
        return replace(
            self.space,
            gaps=tuple(gap for gap in self.space.gaps if gap[0] not in free),
            groups=tuple(_opened(group, unavoided, unordered) for group in self.space.groups),
            people=None if any(choice.kind == "people" for choice in taken) else self.space.people,
            related=related,
        )

    def _for_each(self, space: Space, rows: Tensor, chosen: Tensor) -> Space:
        """The space that is wide enough for every row, and for each row (m,) as narrow as what it keeps says."""
        origin = self.origin[rows]
        people = Personal.none(len(rows), space.width).to(origin) if space.personal is None else space.personal.of(rows)
        taken = {kind: self._columns(kind, chosen) for kind in OF_ONE_FEATURE}
        wide = {kind: self._columns(kind, torch.ones_like(chosen[:1]))[0] for kind in OF_ONE_FEATURE}
        lowest, highest = self._ends()
        up, down = (space.direction > 0) & ~taken["direction"], (space.direction < 0) & ~taken["direction"]
        lower = torch.where(taken["lower"], lowest, space.lower)
        upper = torch.where(taken["upper"], highest, space.upper)
        lower = torch.maximum(lower, torch.where(taken["wished"], -torch.inf, people.lower))
        upper = torch.minimum(upper, torch.where(taken["wished"], torch.inf, people.upper))
        lower = torch.where(wide["direction"] & up, torch.maximum(lower, origin), lower)
        upper = torch.where(wide["direction"] & down, torch.minimum(upper, origin), upper)
        mutable = (space.mutable | taken["fixed"]) & (people.mutable | taken["kept"])
        empty = lower > upper  # where a person has nowhere to go, they stay
        lower, upper = lower.where(~empty, -torch.inf), upper.where(~empty, torch.inf)
        return replace(
            space,
            lower=torch.where(wide["lower"], lowest, space.lower),
            upper=torch.where(wide["upper"], highest, space.upper),
            mutable=space.mutable | wide["fixed"],
            direction=torch.where(wide["direction"], 0, space.direction),
            personal=Personal(mutable & ~empty, lower, upper, people.weight),
        )

    def _columns(self, kind: Kind, chosen: Tensor) -> Tensor:
        """In which columns a kind of constraint is taken away: (m, d) bool."""
        masks = torch.zeros(len(self.choices), self.space.width, device=chosen.device)
        for row, choice in enumerate(self.choices):
            if choice.kind == kind:
                masks[row, list(choice.columns)] = 1
        return (chosen.to(masks) @ masks) > 0

    def _ends(self) -> tuple[Tensor, Tensor]:
        """How far bounds are widened: to those of the data, where they are not that wide, and by the width of it."""
        lower, upper, encoding = self.space.lower, self.space.upper, self.encoding
        if encoding.percentiles is not None:
            data = torch.from_numpy((encoding.percentiles[[0, -1]] - encoding.shift) / encoding.scale).to(lower)
            lower, upper = torch.minimum(lower, data[0]), torch.maximum(upper, data[1])
        return lower - (upper - lower), upper + (upper - lower)


def _opened(group: Group, unavoided: set[tuple[int, ...]], unordered: set[tuple[int, ...]]) -> Group:
    """The group without levels to avoid, or without an order to keep, if its columns are among these."""
    if group.columns in unavoided:
        group = replace(group, avoid=(), avoid_none=False)
    return replace(group, direction=0) if group.columns in unordered else group


def ways_out(relaxing: Relaxing) -> list[str]:
    """A sentence for each row: which single constraint, or which of them together, stand in its way."""
    count, rows = len(relaxing.choices), len(relaxing.origin)
    device = relaxing.origin.device
    # With nothing taken away, with one, and with all of them: one search for every row.
    sets = torch.cat([torch.zeros(1, count), torch.eye(count), torch.ones(1, count)]).bool().to(device)
    people = torch.arange(rows, device=device).repeat_interleave(len(sets))
    point, cost = relaxing.search(people, sets.repeat(rows, 1))
    point, cost = point.view(rows, len(sets), -1), cost.view(rows, len(sets))
    together = _together(relaxing, point[:, -1], cost)
    sentences = []
    for row, spent in enumerate(cost.tolist()):
        singles = sorted((price, number) for number, price in enumerate(spent[1:-1]) if price < np.inf)
        sentences.append(_sentence(relaxing.choices, spent[0], [number for _, number in singles], together.get(row)))
    return sentences


def _together(relaxing: Relaxing, point: Tensor, cost: Tensor) -> dict[int, list[int]]:
    """For rows that no single relaxation helps but all together do: a set of which none can be left out."""
    rows = torch.nonzero(cost[:, :-1].isinf().all(1) & cost[:, -1].isfinite()).flatten()
    if not len(rows):
        return {}
    chosen = relaxing.needed(rows, point[rows])  # what the cheapest point makes use of
    order = chosen.to(torch.int8).argsort(dim=1, descending=True, stable=True)
    counts, every_row = chosen.sum(1), torch.arange(len(rows), device=rows.device)
    for turn in range(int(counts.max())):
        # Every row gets one of its constraints back; those that still have an answer keep it.
        without = chosen.clone()
        without[every_row, order[:, turn]] = False
        unfinished = torch.nonzero(counts > turn).flatten()
        _, spent = relaxing.search(rows[unfinished], without[unfinished])
        done = unfinished[spent.isfinite()]
        chosen[done] = without[done]
    return {int(row): torch.nonzero(needed).flatten().tolist() for row, needed in zip(rows, chosen, strict=True)}


def _sentence(choices: Sequence[Relaxation], as_it_is: float, singles: list[int], together: list[int] | None) -> str:
    if as_it_is < np.inf:
        return f"the constraints allow it: another search finds a counterfactual at distance {as_it_is:.3g} (l1)"
    if singles:
        return f"possible if {', or if '.join(choices[number].says for number in singles[:WAYS_NAMED])}"
    if together is not None:
        return f"possible if {' and '.join(choices[number].says for number in together)}"
    return "nothing was found even with every constraint taken away: the model may give the target class to nobody"
