r"""Would such a person exist? How far a point lies from the real people of a class, all columns together.

The distance between two rows is Euclidean, so that many are one matrix product:

    distance² = Σ over numbers (difference of their normal scores)² + how many features of levels differ

A number counts by its normal score: Φ⁻¹ of the share of training rows below it (half of those that equal it), with
straight lines between. It is how many standard deviations from the middle the value would lie if the column were
normal. A bell-shaped column keeps its standardised values. A column with a spike and a heavy tail, such as capital
gain, is spread out: the few huge values no longer make all ordinary people look alike, as they do when differences are
divided by the standard deviation. An ordinal feature counts as the number of its level. A changed binary or categorical
feature counts 1. Columns that nobody can change count as well: what is plausible depends on who one is.

The distance of a point to a class is the mean distance to its ``nearest`` people, 5 by default.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.tabular.feature import Feature
from holdfast.tabular.ranges import Ranges, ranges_of

LOG = logging.getLogger(__name__)
Rows = NDArray[np.int64]
Inside = Callable[[Rows, Rows], NDArray[np.bool_]]  # training rows, held-out rows -> which of these lie in the ranges

FEWEST_PEOPLE = 20  # people of a class from whom a threshold can be learned
KNOTS = 129  # values of a number whose normal score is kept; between them it is a straight line
DISTANCES_AT_ONCE = 1 << 20  # distances that are held at a time: they stay in the cache
ROUNDING = 1e-5  # of a distance, and in itself
SPARE = 3  # more candidates than needed: which are nearest is decided by their exact distances


@dataclass(frozen=True, eq=False)
class Metric:
    """From encoded rows to coordinates in which the distance of two people is Euclidean.

    The coordinates are those of all encoded columns, then one for each feature that may be written as all zeros.
    """

    factor: Tensor  # (d,) of columns of levels: coordinate = factor · encoded + offset
    offset: Tensor  # (d,)
    numbers: Tensor  # (q,) which columns are numbers
    edges: Tensor  # (q, s − 1) encoded values where one line ends and the next begins
    starts: Tensor  # (q, s) where the line begins: coordinate = height + slope · (encoded − start)
    heights: Tensor  # (q, s)
    slopes: Tensor  # (q, s)
    zero_levels: Tensor  # (g, d) 1 for the columns of a feature that may be all off
    center: Tensor  # (p,) what is subtracted, so that products of coordinates lose no digits

    @classmethod
    def fit(
        cls, x: Tensor, places: Sequence[tuple[Feature, slice]], shift: NDArray[np.float64], scale: NDArray[np.float64]
    ) -> Metric:
        """x (n, d): the encoded training rows of all classes."""
        x = x.double()
        weight = torch.zeros(x.shape[1], dtype=torch.float64)
        for feature, columns in places:
            if not _is_line(feature):
                weight[columns] = 0.5**0.5 if feature.kind == "categorical" else 1.0
        lines = [columns.start for feature, columns in places if _is_line(feature)]
        knots = [_normal_scores(x[:, column]) for column in lines]
        edges, starts, heights, slopes = _segments(knots)
        optional = [columns for feature, columns in places if _may_be_off(feature)]
        zero_levels = torch.zeros(len(optional), x.shape[1], dtype=torch.float64)
        for row, columns in enumerate(optional):
            zero_levels[row, columns] = 1
        metric = cls(
            factor=weight * torch.as_tensor(scale, dtype=torch.float64),
            offset=weight * torch.as_tensor(shift, dtype=torch.float64),
            numbers=torch.tensor(lines, dtype=torch.long),
            edges=edges,
            starts=starts,
            heights=heights,
            slopes=slopes,
            zero_levels=zero_levels,
            center=torch.zeros(x.shape[1] + len(optional), dtype=torch.float64),
        )
        return replace(metric, center=metric.coordinates(x).mean(0))

    def coordinates(self, x: Tensor) -> Tensor:
        """(n, d) encoded -> (n, p)."""
        x = x.detach()
        found = x * self.factor + self.offset
        if len(self.numbers):
            values = x[:, self.numbers].T.contiguous()
            # A value that people have is where a line starts, so that rounding does not count there.
            line = torch.searchsorted(self.edges, values, right=True)
            height, slope, start = (part.gather(1, line) for part in (self.heights, self.slopes, self.starts))
            found[:, self.numbers] = (height + slope * (values - start)).T
        if len(self.zero_levels):
            # The columns of levels hold on/√2, so those of a person with no level on lack 1/√2.
            found = torch.cat([found, 0.5**0.5 - found @ self.zero_levels.T], 1)
        return found - self.center

    def to(self, like: Tensor) -> Metric:
        moved = {field.name: getattr(self, field.name).to(like) for field in fields(self) if field.name != "numbers"}
        return replace(self, numbers=self.numbers.to(like.device), **moved)


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """The training rows by class, and how far from them a point may lie to pass for one of them.

    A point is plausible for a class when its distance to the class is at most the class's threshold, or at most the
    distance of the person it is advice for: someone unusual need not become usual. The threshold is set so that
    ``share`` of real people who were not among the training rows pass it, and lie in the learned ranges of all numbers.

    Of a class with more than ``most`` rows, so many are drawn and kept; the threshold is learned at that density.
    A class of fewer than 20 rows has no threshold: every point passes.
    """

    metric: Metric
    points: tuple[Tensor, ...]  # (m, p) of each class: coordinates
    encoded: tuple[Tensor, ...]  # (m, d) of each class: the same people as encoded rows
    thresholds: Tensor  # (c,)
    share: float = 0.95
    nearest: int = 5
    groups: tuple[tuple[int, ...], ...] | None = None  # classes that count as one; see `merged`

    @classmethod
    def fit(
        cls,
        x: Tensor,
        y: Tensor,
        places: Sequence[tuple[Feature, slice]],
        shift: NDArray[np.float64],
        scale: NDArray[np.float64],
        classes: int,
        *,
        inside_folds: Inside | None = None,
        share: float = 0.95,
        nearest: int = 5,
        most: int = 4000,
        folds: int = 10,
        seed: int = 0,
    ) -> People:
        """From encoded training rows x (n, d) and their classes y (n,), 0 to ``classes`` − 1.

        inside_folds(train, test) learns the ranges of numbers on some rows and says which of others lie inside them:
        it is asked for every fold. A held-out row that is outside does not pass, however near it is.
        """
        metric = Metric.fit(x, places, shift, scale)
        draw = torch.Generator().manual_seed(seed)
        kept = [_some(torch.nonzero(y.cpu() == label).flatten(), most, draw) for label in range(classes)]
        inside = _inside(len(x), torch.cat(kept), inside_folds, folds, draw)
        points = tuple(metric.coordinates(x[rows].double()) for rows in kept)
        thresholds = [
            _threshold(label, people, inside[rows], nearest, share)
            for label, (people, rows) in enumerate(zip(points, kept, strict=True))
        ]
        encoded = tuple(x[rows].double() for rows in kept)
        return cls(metric, points, encoded, torch.tensor(thresholds, dtype=torch.float64), share, nearest)

    @property
    def classes(self) -> int:
        return len(self.points if self.groups is None else self.groups)

    @cached_property
    def _made(self) -> dict[object, People]:
        """The same people as they were wanted before: what is laid out for a search is then laid out once."""
        return {}

    def merged(self, groups: tuple[tuple[int, ...], ...]) -> People:
        """The same people for a model whose classes are groups of theirs: to pass for one class of a group will do."""
        if groups not in self._made:
            self._made[groups] = replace(self, groups=groups)
        return self._made[groups]

    def __repr__(self) -> str:
        sizes = " + ".join(str(len(people)) for people in self.points)
        return f"People({sizes}, thresholds {[round(value, 3) for value in self.thresholds.tolist()]})"

    def to(self, like: Tensor) -> People:
        """The same people with the dtype and on the device of another tensor."""
        if (self.thresholds.dtype, self.thresholds.device) == (like.dtype, like.device):
            return self
        key = like.dtype, like.device
        if key not in self._made:
            points, encoded = (tuple(part.to(like) for part in parts) for parts in (self.points, self.encoded))
            thresholds = self.thresholds.to(like)
            self._made[key] = replace(
                self, metric=self.metric.to(like), points=points, encoded=encoded, thresholds=thresholds
            )
        return self._made[key]

    def members(self, target: int) -> tuple[int, ...]:
        """The classes of a group, or the class itself."""
        return (target,) if self.groups is None else self.groups[target]

    def coordinates(self, x: Tensor) -> Tensor:
        """(n, d) encoded -> (n, p): points whose Euclidean distance is the distance of the people."""
        return self.to(x).metric.coordinates(x)

    def distance(self, x: Tensor, target: Tensor | int) -> Tensor:
        """The mean distance to the nearest people of the class: (n,); 0 where the class has no people."""
        people, found = self.to(x), torch.zeros_like(x[:, 0])
        points = people.metric.coordinates(x)
        for label, chosen in _by_class(target, len(x), x.device):
            if len(people.points[label]):
                found[chosen] = _nearest(points[chosen], people.points[label], self.nearest)[0].mean(1)
        return found

    def unlikeness(self, x: Tensor, target: Tensor) -> Tensor:
        """The distance to the class in units of its threshold, so that 1 is the limit: (n,)."""
        people, found = self.to(x), torch.full_like(x[:, 0], torch.inf)
        for label, chosen in _by_class(target, len(x), x.device):
            for member in self.members(label):
                threshold = people.thresholds[member].clamp_min(torch.finfo(x.dtype).tiny)
                found[chosen] = torch.minimum(found[chosen], self.distance(x[chosen], member) / threshold)
        return found

    def limits(self, origin: Tensor, target: Tensor) -> Tensor:
        """How unlike the class a plausible point for a person at origin may be: (n,)."""
        return self.unlikeness(origin, target).clamp_min(1)

    def like(self, x: Tensor, target: Tensor, limit: Tensor) -> Tensor:
        """Which points are no more unlike their class than ``limit`` (n,), up to rounding: (n,) bool."""
        people, found = self.to(x), torch.zeros(len(x), dtype=torch.bool, device=x.device)
        for label, chosen in _by_class(target, len(x), x.device):
            for member in self.members(label):
                threshold = people.thresholds[member]
                if not bool(threshold.isfinite()):
                    found[chosen] = True
                    continue
                undecided = chosen[~found[chosen]]
                found[undecided] = self.within(x[undecided], member, limit[undecided] * threshold)
        return found

    def within(self, x: Tensor, target: Tensor | int, limit: Tensor) -> Tensor:
        """Which points are at most ``limit`` (n,) from their class, up to rounding: (n,) bool."""
        return self.distance(x, target) <= limit.to(x) * (1 + ROUNDING) + ROUNDING

    def plausible(self, x: Tensor, target: Tensor, origin: Tensor) -> Tensor:
        """Which points could be people of the class, or are no less plausible than the origin is: (n,) bool."""
        return self.like(x, target, self.limits(origin, target))


def _is_line(feature: Feature) -> bool:
    """Whether it counts as a number."""
    return feature.is_numeric or feature.kind == "ordinal"


def _may_be_off(feature: Feature) -> bool:
    """Whether a person may have no level of it on."""
    return feature.zero_level is not None or (feature.kind == "categorical" and feature.missing)


# ---- ranges of numbers ----


def learned_ranges(columns: Sequence[tuple[Feature, NDArray[np.float64]]]) -> Inside:
    """How `People.fit` is told which held-out rows lie in the ranges of all numbers.

    columns   every number and its raw values, in the order of the rows; NaN where one is missing, which is allowed

    What the schema declares excludes nobody here: it says what may be advised, not who there is. A column may well have
    codes, such as -9 for "unknown", beyond the bounds that are declared for it.
    """

    def inside(train: Rows, test: Rows) -> NDArray[np.bool_]:
        kept = np.ones(len(test), dtype=bool)
        for feature, values in columns:
            kept &= in_ranges(values[test], people_ranges(feature, _learned(feature, values[train])))
        return kept

    return inside


def _learned(feature: Feature, values: NDArray[np.float64]) -> Ranges:
    low = -np.inf if feature.lower is None else feature.lower
    high = np.inf if feature.upper is None else feature.upper
    if feature.ranges or not ((values >= low) & (values <= high)).any():  # declared, or these rows show nothing
        return ((low, high),)
    return ranges_of(values, feature.grid, feature.lower, feature.upper)


def people_ranges(feature: Feature, ranges: Ranges) -> Ranges:
    """The learned ranges, and all that lies beyond ends that the schema declares; everything, if it declares all."""
    if feature.ranges:
        return ((-np.inf, np.inf),)
    below: Ranges = () if feature.lower is None else ((-np.inf, feature.lower),)
    above: Ranges = () if feature.upper is None else ((feature.upper, np.inf),)
    return (*below, *ranges, *above)


def in_ranges(values: NDArray[np.float64], ranges: Ranges) -> NDArray[np.bool_]:
    """Which values lie in one of the ranges, or are missing."""
    inside = np.isnan(values)
    for first, last in ranges:
        inside |= (values >= first) & (values <= last)
    return inside


# ---- numbers as normal scores ----


def _normal_scores(values: Tensor) -> tuple[Tensor, Tensor]:
    """Some values of a column, in order, and their normal scores; beyond both ends the line goes on."""
    ordered = values.sort().values
    rows = len(ordered)
    value = _distinct(ordered)
    if len(value) > KNOTS:  # those at equal steps of the score, both ends among them
        far = torch.special.ndtri(torch.tensor(0.5 / rows, dtype=torch.float64)).abs()
        rank = torch.special.ndtr(torch.linspace(-1, 1, KNOTS, dtype=torch.float64) * far) * rows
        value = _distinct(ordered[rank.long().clamp(0, rows - 1)])
    below, up_to = torch.searchsorted(ordered, value), torch.searchsorted(ordered, value, right=True)
    score = torch.special.ndtri((below + up_to).double() / (2 * rows))
    if len(value) == 1:
        return torch.cat([value - 1, value, value + 1]), torch.cat([score - 1, score, score + 1])
    # Beyond the ends no slower than from end to end: a value that nobody has is not next to one that somebody has.
    width, rise = value[-1] - value[0], score[-1] - score[0]
    slopes = (score.diff() / value.diff())[[0, -1]].clamp_min(rise / width)
    value = torch.cat([value[:1] - width, value, value[-1:] + width])
    return value, torch.cat([score[:1] - slopes[:1] * width, score, score[-1:] + slopes[1:] * width])


def _distinct(ordered: Tensor) -> Tensor:
    return ordered[torch.cat([torch.ones_like(ordered[:1], dtype=torch.bool), ordered.diff() > 0])]


def _segments(knots: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The lines between the knots of every column: where they meet, where they begin, heights and slopes."""
    most = max((len(value) - 1 for value, _ in knots), default=1)
    starts, heights, slopes = (torch.zeros(len(knots), most, dtype=torch.float64) for _ in range(3))
    edges = torch.full((len(knots), most - 1), torch.inf, dtype=torch.float64)
    for row, (value, score) in enumerate(knots):
        lines = len(value) - 1
        starts[row, :lines], heights[row, :lines] = value[:-1], score[:-1]
        slopes[row, :lines] = score.diff() / value.diff()
        edges[row, : lines - 1] = value[1:-1]
    return edges, starts, heights, slopes


# ---- who passes ----


def _some(rows: Tensor, most: int, draw: torch.Generator) -> Tensor:
    """At most so many rows, drawn by chance, in their order."""
    if len(rows) <= most:
        return rows
    return rows[torch.randperm(len(rows), generator=draw)[:most]].sort().values


def _inside(rows: int, kept: Tensor, inside_folds: Inside | None, folds: int, draw: torch.Generator) -> Tensor:
    """Which of the kept rows lie in the ranges that are learned without their fold: (rows,) bool, others False."""
    inside = torch.zeros(rows, dtype=torch.bool)
    inside[kept] = True
    if inside_folds is None:
        return inside
    fold = torch.randperm(rows, generator=draw) % folds
    for part in range(min(folds, rows) if rows > 1 else 0):
        test = torch.nonzero(inside & (fold == part)).flatten()
        if len(test):
            train = torch.nonzero(fold != part).flatten()
            inside[test] = torch.as_tensor(np.asarray(inside_folds(train.numpy(), test.numpy()), dtype=bool))
    return inside


def _threshold(label: int, people: Tensor, inside: Tensor, nearest: int, share: float) -> float:
    """The distance that ``share`` of new people of the class would stay below, those outside the ranges counted too.

    Each person is measured against the others. Of n such distances and that of one more person, any is the k-th
    smallest with equal chance, so the k-th of n with k = ⌈share · (n + 1)⌉ is not exceeded with chance ≥ share.
    """
    if len(people) < FEWEST_PEOPLE:
        LOG.info("class %d has %d people, fewer than %d: every point passes for one", label, len(people), FEWEST_PEOPLE)
        return float("inf")
    distances, who = _nearest(people, people, nearest + 1)
    is_oneself = who == torch.arange(len(people), device=who.device)[:, None]
    alone = torch.where(is_oneself, torch.inf, distances).sort(1).values[:, :nearest].mean(1)
    reached = torch.where(inside.to(alone.device), alone, torch.inf).sort().values
    index = min(int(np.ceil(share * (len(people) + 1) - 1e-9)), len(people)) - 1
    if bool(reached[index].isfinite()):
        return float(reached[index])
    passing = float(inside.double().mean())
    LOG.warning("class %d: the ranges of numbers alone pass %.1f %% of held-out people", label, 100 * passing)
    return float(alone.max() if not bool(inside.any()) else reached[reached.isfinite()].max())


# ---- the nearest people ----


def _by_class(target: Tensor | int, rows: int, device: torch.device) -> list[tuple[int, Tensor]]:
    """Every class that is asked for, and the rows that ask for it."""
    if not isinstance(target, Tensor):
        return [(int(target), torch.arange(rows, device=device))]
    target = target.to(device)
    return [(label, torch.nonzero(target == label).flatten()) for label in sorted(set(target.tolist()))]


def _nearest(points: Tensor, people: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Distances to the nearest people, in order, and who they are: (n, count) each, fewer where there are fewer."""
    count = min(count, len(people))
    distances = points.new_zeros(len(points), count)
    who = torch.zeros(len(points), count, dtype=torch.long, device=points.device)
    squares = people.square().sum(1)
    step = max(1, DISTANCES_AT_ONCE // max(1, len(people)))
    for start in range(0, len(points), step):
        rows = slice(start, start + step)
        # Less the points' own squares; which of the candidates are nearest is decided by their exact distances.
        rough = torch.addmm(squares, points[rows], people.T, alpha=-2)
        candidates = rough.topk(min(count + SPARE, len(people)), largest=False, sorted=False).indices
        exact, order = (points[rows][:, None] - people[candidates]).norm(dim=2).sort(dim=1)
        distances[rows], who[rows] = exact[:, :count], candidates.gather(1, order)[:, :count]
    return distances, who
