"""Several ways to the same end: counterfactuals of one person that change different features, the cheapest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.model import Model
from holdfast.search.counterfactuals import (
    Counterfactuals,
    Method,
    as_labels,
    assess,
    check_answer,
    check_space,
    one_after_another,
)
from holdfast.search.task import Task
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.space import Space
from holdfast.utils.settings import check_whole

WAYS = 4  # to look for another plan: none of the features that are changed already, then with some of them


@dataclass(frozen=True, eq=False)
class Plans:
    """Up to so many counterfactuals for each person: ``answers[0]`` is everybody's cheapest, ``answers[1]`` the next.

    No plan of a person changes all the features that another plan of theirs changes. Where a person has fewer plans,
    the later answers are not found. Each answer can be audited, shown and moved by a stabiliser like any other.

    Attributes:
        answers: The plans, one `Counterfactuals` for each rank.
        cost: What each plan costs, by which they are ordered: (n, k); NaN where there is no such plan.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> found = hf.plans(hf.MinCost(norm=1), model, x, target, space, count=2)
        >>> found.count
        tensor([2])
        >>> found.answers[1]
        Counterfactuals(1 of 1 found)

    Paper: several at once are asked for since [Mothilal et al. 2020](https://arxiv.org/abs/1905.07697).
    """

    answers: tuple[Counterfactuals, ...]
    cost: Tensor  # (n, k)

    def __post_init__(self) -> None:
        for answer in self.answers:
            check_answer(answer)
        if not self.answers or {len(answer) for answer in self.answers} != {len(self.cost)}:
            raise ValueError("answers must be one or more Counterfactuals of the same people; plans(...) makes them")

    def __len__(self) -> int:
        return len(self.cost)

    def labelled(self, labels: Iterable[Any]) -> Plans:
        """The same, with who the rows are, as `Counterfactuals.labelled`."""
        index = as_labels(labels)
        return replace(self, answers=tuple(answer.labelled(index) for answer in self.answers))

    @property
    def count(self) -> Tensor:
        """How many plans each person has: (n,)."""
        return torch.stack([answer.found for answer in self.answers]).sum(0)

    def to_frame(self, encoding: Encoding, table: pd.DataFrame | None = None) -> pd.DataFrame:
        """One row for every person and plan: row, plan, found, the table's columns, cost, cost_l1 and cost_l2.

        ``row`` is the person's label in the table's index, or in the answers, or their number. Whoever has no
        plan has one row, with their own values. A name that the table has already gets an underscore.
        """
        frames = []
        for rank, answer in enumerate(self.answers):
            frame = answer.to_frame(encoding, table)
            labels, names = frame.index, ["row", "plan", "cost", "cost_l1", "cost_l2"]
            row, plan, *costs = [_free(name, frame.columns) for name in names]
            frame.insert(0, row, labels)
            frame.insert(1, plan, rank + 1)
            for name, cost in zip(costs, (self.cost[:, rank], answer.cost(1), answer.cost(2)), strict=True):
                frame[name] = cost.cpu().numpy()
            frame.index = pd.RangeIndex(len(frame))
            frames.append(frame if rank == 0 else frame[answer.found.cpu().numpy()])
        return pd.concat(frames).sort_index(kind="stable").reset_index(drop=True)

    def changes(self, encoding: Encoding) -> pd.DataFrame:
        """What each person would change by each of their plans: row, plan, feature, before, after."""
        frames = [replace(answer, labels=None).changes(encoding) for answer in self.answers]
        for rank, frame in enumerate(frames):
            frame.insert(1, "plan", rank + 1)
        changed = pd.concat([frame for frame in frames if len(frame)] or frames[:1])
        changed = changed.sort_values(["row", "plan"], kind="stable").reset_index(drop=True)
        return changed.assign(row=self.answers[0].called(changed["row"].to_numpy(dtype=np.int64)))

    def __repr__(self) -> str:
        counts = [f"{int(answer.found.sum())} with {rank}" for rank, answer in enumerate(self.answers, start=1)]
        return f"Plans({len(self)} people: {', '.join(counts)} or more)"


def plans(
    method: Method,
    model: Model,
    x: Tensor,
    target: Tensor,
    space: Space,
    count: int = 3,
    first: Counterfactuals | None = None,
) -> Plans:
    """Find up to ``count`` counterfactuals for each row that change different features, all by the same method.

    The first is what the method finds. For the next, a person keeps every feature that an earlier plan of theirs
    changes, so that the plans have no feature in common. Where nothing is found so, they keep the dearest half of each
    earlier plan's changed features instead, then the dearest one alone, then the second. Two plans differ when
    neither's changed features contain the other's; what only follows from other features does not count. Plans are
    ordered by the method's own norm if it has one, by l1 otherwise, with the weights of the space.

    Args:
        method: The search for every plan.
        model: The deployed model.
        x: The rows, in encoded units: (n, d).
        target: The class that each wants: (n,).
        space: What is allowed.
        count: How many plans each row gets, at most.
        first: The method's own answer, where it is known already.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> found = hf.plans(hf.MinCost(norm=1), model, x, target, space, count=2)
        >>> # 5 / 4 by the second column alone, 5 / 3 by the first alone.
        >>> [f"{cost:.2f}" for cost in found.cost[0].tolist()]
        ['1.25', '1.67']

    Paper: several at once are asked for since [Mothilal et al. 2020](https://arxiv.org/abs/1905.07697).
    """
    check_whole("count", count, least=1)
    if not callable(method):
        raise TypeError(f"expected a method, such as MinCost(norm=1) or make_method('pgd+sns'), got {method!r}")
    first = method(model, x, target, space) if first is None else first
    check_answer(first)
    check_space(space, first.origin)
    search = _Search(method, model, space.to(first.origin), first, norm_of(method))
    found = search.start(count)
    for _ in range(count if count > 1 else 0):  # one round more than plans are wanted, for those who lack some
        search.look(found)
    return search.ordered(found)


def one_below_another(
    answers: Sequence[Counterfactuals],
) -> tuple[Counterfactuals, NDArray[np.int64], NDArray[np.int64]]:
    """All plans that were found, those of a person together; whose each is, and which of theirs, from 1 on: (m,)."""
    row, rank = torch.nonzero(torch.stack([answer.found for answer in answers], dim=1).cpu()).unbind(1)
    by_rank = [answer[row[rank == number]] for number, answer in enumerate(answers)]
    order = torch.cat([torch.nonzero(rank == number).flatten() for number in range(len(answers))]).argsort()
    return one_after_another(by_rank)[order], row.numpy(), (rank + 1).numpy()


@dataclass
class _Found:
    """The plans found so far, in the order in which they were found; room for those that are wanted."""

    point: Tensor  # (n, k, d)
    spent: Tensor  # (n, k, f) what each feature costs, 0 where it is not changed
    have: Tensor  # (n,) how many plans are there
    disjoint: Tensor  # (n,) bool; whether another plan may be found that has no feature in common with them
    done: Tensor  # (n,) bool; nothing is to be tried any more

    def different(self, rows: Tensor, changed: Tensor) -> Tensor:
        """Which sets of features (m, f) neither contain nor lie within those of a plan of these rows: (m,)."""
        others = self.spent[rows] > 0  # (m, k, f)
        real = torch.arange(others.shape[1], device=rows.device) < self.have[rows, None]
        contains = (changed[:, None] | ~others).all(2)
        within = (~changed[:, None] | others).all(2)
        return ~((contains | within) & real).any(1)

    def add(self, rows: Tensor, point: Tensor, spent: Tensor) -> None:
        self.point[rows, self.have[rows]], self.spent[rows, self.have[rows]] = point, spent
        self.have[rows] += 1
        self.done[rows] = self.have[rows] == self.point.shape[1]


@dataclass(frozen=True)
class _Search:
    """What stays the same from plan to plan."""

    method: Method
    model: Model
    space: Space
    first: Counterfactuals
    norm: int

    def start(self, count: int) -> _Found:
        """The method's own answer; whoever needs to change nothing has one plan at most."""
        answer = self.first
        spent = self._spent(answer.point, torch.arange(len(answer), device=answer.found.device))
        room = (len(answer), count)
        found = _Found(
            answer.origin[:, None].repeat(1, count, 1),
            spent.new_zeros(*room, spent.shape[1]),
            torch.zeros_like(answer.target),
            torch.ones_like(answer.found),
            torch.zeros_like(answer.found),
        )
        rows = torch.nonzero(answer.found).flatten()
        found.add(rows, answer.point[rows], spent[rows])
        found.done |= ~answer.found | ~(spent > 0).any(1)
        return found

    def look(self, found: _Found) -> None:
        """Search once for everybody who lacks plans, in all the ways that are left to them at a time."""
        kept = torch.stack([_kept(found.spent, way) for way in range(WAYS)], dim=1)  # (n, w, f)
        ways = torch.arange(WAYS, device=kept.device)
        tried = ~found.done[:, None] & ((ways == 0) == found.disjoint[:, None]) & ~_repeats(kept)
        people, way = torch.nonzero(tried).unbind(1)
        if not len(people):
            return
        answer = self._keeping(people, kept[people, way])
        spent = self._spent(answer.point, people)
        before = found.have.clone()
        for number in ways:
            hits = torch.nonzero(answer.found & (way == number)).flatten()
            hits = hits[~found.done[people[hits]]]
            hits = hits[found.different(people[hits], spent[hits] > 0)]
            found.add(people[hits], answer.point[hits], spent[hits])
        none = (found.have == before) & tried.any(1)
        found.done |= none & ~found.disjoint
        found.disjoint &= ~none

    def _keeping(self, people: Tensor, kept: Tensor) -> Counterfactuals:
        """The method's answer for some people, as often as they are named, who keep some features (m, f)."""
        columns = (kept.to(self.first.origin) @ self.space.features.to(self.first.origin)) > 0
        space = self.space.of(people)
        x, target = self.first.origin[people], self.first.target[people]
        answer = self.method(self.model, x, target, space.keeping(columns))
        return assess(self.model, x, answer.point, target, space, also=answer.found)

    def _spent(self, point: Tensor, people: Tensor) -> Tensor:
        """What each feature of the points costs, more than 0 where it is changed: (m, f)."""
        origin, space = self.first.origin[people], self.space.of(people)
        costs = Task(self.model, origin, self.first.target[people], space, self.norm).costs(point[:, None])[:, 0]
        changed = space.per_feature((point != origin).to(point)) > 0
        return torch.where(changed, costs.clamp_min(torch.finfo(point.dtype).tiny), 0)

    def ordered(self, found: _Found) -> Plans:
        """The plans, the cheapest of each person first."""
        task = Task(self.model, self.first.origin, self.first.target, self.space, self.norm)
        there = torch.arange(found.point.shape[1], device=found.have.device) < found.have[:, None]  # (n, k)
        spent = task.cost(found.point) ** (1 / self.norm)
        cost, order = torch.where(there, spent, torch.inf).sort(dim=1, stable=True)
        rows = torch.arange(len(there), device=there.device)
        answers = []
        for nth in order.unbind(1):
            judged = assess(
                self.model, task.origin, found.point[rows, nth], task.target, self.space, also=there[rows, nth]
            )
            answers.append(replace(judged, seen=judged.seen | self.first.seen, labels=self.first.labels))
        return Plans(tuple(answers), torch.where(cost.isinf(), torch.nan, cost))


def _kept(spent: Tensor, way: int) -> Tensor:
    """Which features to keep, so that none of the plans (n, k, f) can come again: (n, f)."""
    changed = spent > 0
    if way == 0:
        return changed.any(1)
    rank = spent.argsort(dim=2, descending=True, stable=True).argsort(dim=2)  # 0 is the dearest
    count = changed.sum(2, keepdim=True)
    if way == 1:
        return (rank < (count + 1) // 2).any(1)
    return (rank == torch.minimum(count - 1, torch.full_like(count, way - 2))).any(1)


def _repeats(kept: Tensor) -> Tensor:
    """Which of the sets (n, w, f) have come before among those of the same person: (n, w)."""
    same = (kept[:, :, None] == kept[:, None]).all(3)  # (n, w, w)
    return same.tril(-1).any(2)


def norm_of(method: Any) -> int:
    """The norm that a method makes small, or the one that its first step does; 1 where it has none."""
    norm = getattr(method, "norm", None)
    if norm in (1, 2):
        return int(norm)
    first_step = getattr(method, "method", getattr(method, "search", None))
    return 1 if first_step is None else norm_of(first_step)


def _free(name: str, taken: Iterable[str]) -> str:
    names = set(taken)
    while name in names:
        name += "_"
    return name
