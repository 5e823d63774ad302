"""What the paper's Figures 1 and 2 show, as values: two inputs that a page can hold, and lines through many.

    disagreement   two networks of different seeds, and two counterfactuals of one cost with different fates (Figure 1)
    regions        where a small network is linear, its boundary, and gradients beside it                    (Figure 2a)
    paths          the target's probability on the way from zero to counterfactuals, before and after SNS    (Figure 2b)

Nothing here draws; `holdfast.paper.figures` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt, map_coordinates
from torch import Tensor

from holdfast.auditing.audit import audit
from holdfast.datasets.prepared import prepare
from holdfast.families.changes import seeds
from holdfast.families.family import Family
from holdfast.families.perceptron import Network
from holdfast.families.recipe import PAPER_RECIPES, Recipe, Retraining
from holdfast.families.training import train
from holdfast.paper.declared import pgd, sns
from holdfast.paper.study import FIRST
from holdfast.search.counterfactuals import Counterfactuals, other_class
from holdfast.tabular.space import Space
from holdfast.theory.layers import Layers
from holdfast.theory.paths import line
from holdfast.theory.regions import boundary_piece, polytope
from holdfast.utils.draws import normal

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LIMIT = 2.5  # the plane is shown from −LIMIT to LIMIT in both directions
COSTS = tuple(np.linspace(0.6, 2.0, 15))  # to look for counterfactuals at
TOLERANCE = 0.03  # by which two margins that count as equal may differ
DEEP = Recipe((64, 64, 16), epochs=300, batch=32, learning_rate=5e-3)
LINEAR = replace(DEEP, hidden=())
SMALL = Recipe((6, 5), epochs=300, batch=32, learning_rate=5e-3)


def cloud(rows: int = 200, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two classes on the plane that overlap, each normal around its own centre: (rows, 2), (rows,)."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(rows) % 2
    centre = (2.0 * y - 1)[:, None] * torch.tensor([0.7, 0.7], dtype=torch.float32)
    return centre + normal((rows, 2), generator), y


# ------------------------------------------------------------------------------------------------ Figure 1


@dataclass(frozen=True, eq=False)
class Twins:
    """Two networks that differ in their seeds, and two counterfactuals that the first gives one person.

    Both cost the same, and lie equally far from the first network's boundary, up to the grid they were looked for on.
    """

    score: Floats  # (2, g, g) of each network, above 0 where it accepts; the first axis is y
    point: Floats  # (2, 2) one counterfactual a row
    cost: Floats  # (2,) distance from the person
    holds: Bools  # (2,) whether the second network agrees
    apart: float  # share of the plane shown in which the two networks differ


@dataclass(frozen=True, eq=False)
class Disagreement:
    x: Floats  # (n, 2)
    y: NDArray[np.int64]  # (n,) 1 is accepted
    axis: Floats  # (g,) where the plane was looked at, in both directions
    person: Floats  # (2,) turned down by all four networks
    deep: Twins
    linear: Twins


def disagreement(pair: tuple[int, int] = (0, 2), members: int = 8, places: int = 241) -> Disagreement:
    """Networks with the seeds ``pair`` of 0, ..., members − 1, deep ones and linear ones, on the same rows.

    The person is the one for whom the deep pair shows it best. The linear pair's counterfactuals are of the same
    person, cost and margin, and chosen by the same rule, which takes two of different fates wherever there are such.
    """
    x, y = cloud()
    axis = np.linspace(-LIMIT, LIMIT, places)
    deep, linear = (
        _Seen.of(train(x, y, recipe, seeds(members, start=0), workers=1), axis) for recipe in (DEEP, LINEAR)
    )
    rows = x.double().numpy()
    down = np.concatenate([deep.depth(rows, pair), linear.depth(rows, pair)]).max(0) < 0
    person, cost, margin = _clearest(deep, linear, pair, rows[down & (y.numpy() == 0)])
    twins = [_twins(seen, pair, person, cost, margin) for seen in (deep, linear)]
    return Disagreement(rows, y.numpy(), axis, person, *twins)


@dataclass(frozen=True, eq=False)
class _Seen:
    """A family looked at on a grid."""

    family: Family
    axis: Floats
    score: Floats  # (k, g, g) above 0 where a member accepts
    fields: Floats  # (k, g, g) distance to each member's boundary, below 0 where it turns down

    @classmethod
    def of(cls, family: Family, axis: Floats) -> _Seen:
        across, up = np.meshgrid(axis, axis)
        logits = family.logits(torch.from_numpy(np.stack([across.ravel(), up.ravel()], 1)).float())  # (k, g · g, 2)
        score = (logits[..., 1] - logits[..., 0]).double().numpy().reshape(-1, len(axis), len(axis))
        step = float(axis[1] - axis[0])
        return cls(family, axis, score, np.stack([_signed_distance(scores > 0) * step for scores in score]))

    def depth(self, points: Floats, members: tuple[int, int]) -> Floats:
        """How far inside their accepting class two members have points (n, 2), as far as the grid can tell: (2, n)."""
        places = (points[:, ::-1].T - self.axis[0]) / (self.axis[1] - self.axis[0])
        return np.stack([map_coordinates(self.fields[member], places, order=1, mode="nearest") for member in members])


def _signed_distance(inside: Bools) -> Floats:
    """In steps of the grid. The boundary runs half a step before the first place of the other side."""
    if inside.all() or not inside.any():
        raise ValueError("a network gives all of the plane one class; there is no boundary to look at")
    within, beyond = np.asarray(distance_transform_edt(inside)), np.asarray(distance_transform_edt(~inside))
    return np.where(inside, within - 0.5, 0.5 - beyond)


def _clearest(deep: _Seen, linear: _Seen, pair: tuple[int, int], people: Floats) -> tuple[Floats, float, float]:
    """The person, cost and margin at which one counterfactual is clearly invalidated and another clearly held."""
    best, chosen = 0.0, None
    for person in people:
        for cost in COSTS:
            circle = _circle(person, cost)
            first, second = deep.depth(circle, pair)
            clear = np.minimum(first, -second)  # of the two boundaries, where the second network invalidates
            margin = float(first[clear.argmax()])
            held = np.abs(first - margin) <= TOLERANCE * margin
            reachable = linear.depth(circle, pair)[0].max() > margin and np.abs(circle).max() < LIMIT
            worth = min(float(clear.max()), float(np.where(held, second, -np.inf).max()))
            if reachable and worth > best:
                best, chosen = worth, (person, cost, margin)
    if chosen is None:
        raise ValueError(f"no counterfactual of the networks with the seeds {pair} is invalidated; take another pair")
    return chosen


def _twins(seen: _Seen, pair: tuple[int, int], person: Floats, cost: float, margin: float) -> Twins:
    second = _network(seen.family, pair[1])
    circle = _circle(person, cost)
    first_depth, second_depth = seen.depth(circle, pair)
    point = circle[_two(circle, first_depth, second_depth, margin)]
    accepts = seen.score > 0
    return Twins(
        score=seen.score[list(pair)],
        point=point,
        cost=np.linalg.norm(point - person, axis=1),
        holds=(second(torch.from_numpy(point).float()).argmax(1) == 1).numpy(),
        apart=float((accepts[pair[0]] != accepts[pair[1]]).mean()),
    )


def _two(circle: Floats, first_depth: Floats, second_depth: Floats, margin: float) -> list[int]:
    """Two places on a circle at that margin: the clearest held and invalidated ones, or else the two most apart."""
    near = np.flatnonzero(np.abs(first_depth - margin) <= TOLERANCE * margin)
    clearest = [near[second_depth[near].argmax()], near[second_depth[near].argmin()]]
    if second_depth[clearest[1]] < 0 < second_depth[clearest[0]]:
        return [int(index) for index in clearest]
    between = np.linalg.norm(circle[near, None] - circle[near], axis=2)
    return [int(near[index]) for index in np.unravel_index(between.argmax(), between.shape)]


def _circle(person: Floats, cost: float) -> Floats:
    angle = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    return person + cost * np.stack([np.cos(angle), np.sin(angle)], 1)


def _network(family: Family, member: int) -> Network:
    network = family[member]
    assert isinstance(network, Network)  # a recipe without a module makes perceptrons
    return network


# ------------------------------------------------------------------------------------------------ Figure 2(a)


@dataclass(frozen=True, eq=False)
class Cell:
    """One activation region, as much of it as is shown. Inside it the network is linear."""

    corners: Floats  # (m, 2) of a convex polygon, in order
    gradient: Floats  # (2,) of the accepting logit less the other
    boundary: Floats | None  # (2, 2) the ends of the decision boundary in it; None where it has none
    offset: float  # the boundary is where gradient·x = offset

    @property
    def slope(self) -> float:
        return float(np.linalg.norm(self.gradient))

    @property
    def length(self) -> float:
        """Of the boundary in it."""
        return 0.0 if self.boundary is None else float(np.linalg.norm(self.boundary[1] - self.boundary[0]))

    @property
    def accepted(self) -> Floats:
        """The corners of the part that is accepted: (m, 2), empty where none is."""
        return _below(self.corners, self.offset - self.corners @ self.gradient)

    @property
    def centre(self) -> Floats:
        return _centre(self.corners)

    @property
    def area(self) -> float:
        across, up = self.corners.T
        return float(abs(across @ np.roll(up, -1) - up @ np.roll(across, -1)) / 2)


@dataclass(frozen=True, eq=False)
class Normal:
    """A point, and the foot of the perpendicular from there onto the boundary of its region's linear map."""

    cell: int
    point: Floats  # (2,)
    foot: Floats  # (2,)
    crossed: bool  # the foot is a point of the boundary itself; else the region has none, only its map beyond it has

    @property
    def length(self) -> float:
        return float(np.linalg.norm(self.point - self.foot))


@dataclass(frozen=True, eq=False)
class Regions:
    limit: float
    cells: tuple[Cell, ...]
    normals: tuple[Normal, ...]


def small_network(seed: int = 7) -> Network:
    """Of few enough units that its regions can be seen."""
    return _network(train(*cloud(), SMALL, [Retraining(init_seed=seed, order_seed=seed)], workers=1), 0)


def regions(network: Layers, limit: float = LIMIT) -> Regions:
    """All activation regions of a network of two inputs in the square from −limit to limit, none of them missed.

    The square is cut by one unit after the other, layer after layer: in a polygon that all earlier layers leave whole,
    the next unit is linear. Every cell gets its gradient; a few that tell the story get a `Normal`.
    """
    polygons = [limit * np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])]
    for unit in range(sum(weight.shape[1] for weight in network.weights[:-1])):
        centres = torch.from_numpy(np.stack([_centre(polygon) for polygon in polygons]))
        sides, limits = (part[:, unit].numpy() for part in polytope(network, centres))
        polygons = [
            half
            for polygon, side, end in zip(polygons, sides, limits, strict=True)
            for half in _halves(polygon, polygon @ side - end)
        ]
    cells = tuple(_cell(network, polygon) for polygon in polygons)
    return Regions(limit, cells, _telling(cells, limit))


def _halves(polygon: Floats, height: Floats) -> list[Floats]:
    """A convex polygon cut where the height of its corners is 0: two parts, or one where it lies on one side."""
    flat = 1e-9 * float(np.abs(height).max())  # what only touches is not cut
    if height.max() <= flat or height.min() >= -flat:
        return [polygon]
    return [_below(polygon, height), _below(polygon, -height)]


def _below(polygon: Floats, height: Floats) -> Floats:
    kept = []
    for here, there, height_here, height_there in _edges(polygon, height):
        if height_here <= 0:
            kept.append(here)
        if height_here * height_there < 0:
            kept.append(here + height_here / (height_here - height_there) * (there - here))
    return np.array(kept).reshape(-1, 2)


def _chord(polygon: Floats, height: Floats) -> Floats | None:
    """The two points of a convex polygon's border at which the height is 0: (2, 2); None where it does not cross."""
    ends = [
        here + (height_here / (height_here - height_there) if height_here else 0.0) * (there - here)
        for here, there, height_here, height_there in _edges(polygon, height)
        if height_here * height_there < 0 or height_here == 0
    ]
    return np.array(ends) if len(ends) == 2 else None


def _edges(polygon: Floats, height: Floats) -> Iterator[tuple[Floats, Floats, float, float]]:
    """The ends of every edge, and their heights."""
    return zip(polygon, np.roll(polygon, -1, 0), height.tolist(), np.roll(height, -1).tolist(), strict=True)


def _cell(network: Layers, corners: Floats) -> Cell:
    piece = boundary_piece(network, torch.from_numpy(_centre(corners)))
    gradient = piece.normal.numpy()
    return Cell(corners, gradient, _chord(corners, corners @ gradient - piece.offset), piece.offset)


def _centre(corners: Floats) -> Floats:
    return np.asarray(corners.mean(0))


def _telling(cells: Sequence[Cell], limit: float) -> tuple[Normal, ...]:
    """Two normals onto the boundary where it is long, apart from each other, and one onto an extension of it."""
    crossed = [_normal(number, cell) for number, cell in enumerate(cells) if cell.boundary is not None]
    crossed.sort(key=lambda normal: min(normal.length, cells[normal.cell].length), reverse=True)
    far = [normal for normal in crossed if np.linalg.norm(normal.foot - crossed[0].foot) > 0.4 * limit]
    beyond = [_extension(number, cell) for number, cell in enumerate(cells) if not cell.accepted.size and cell.slope]
    seen = [normal for normal in beyond if np.abs(normal.foot).max() < 0.9 * limit and normal.length > 0.1 * limit]

    def worth(normal: Normal) -> float:  # a large cell, whose extension comes near a real piece
        gap = min((float(np.linalg.norm(normal.foot - other.foot)) for other in crossed), default=np.inf)
        return cells[normal.cell].area / (gap + 0.2 * limit)

    seen.sort(key=worth, reverse=True)
    return (*crossed[:1], *far[:1], *seen[:1])


def _normal(number: int, cell: Cell) -> Normal:
    """From inside the cell, where it is turned down, at a right angle to its boundary: the longest of five."""
    assert cell.boundary is not None
    first, last = cell.boundary
    normals = []
    for share in np.linspace(0.2, 0.8, 5):
        foot = first + share * (last - first)
        ends = _chord(cell.corners, (cell.corners - foot) @ (last - first))
        border = foot if ends is None else ends[(ends @ cell.gradient).argmin()]
        normals.append(Normal(number, foot + 0.7 * (border - foot), foot, crossed=True))
    return max(normals, key=lambda normal: normal.length)


def _extension(number: int, cell: Cell) -> Normal:
    """From the centre of a cell without boundary to where its linear map would have one."""
    away = (cell.offset - cell.centre @ cell.gradient) / cell.slope**2
    return Normal(number, cell.centre, cell.centre + away * cell.gradient, crossed=False)


# ------------------------------------------------------------------------------------------------ Figure 2(b)


@dataclass(frozen=True, eq=False)
class Paths:
    """The target's probability at t x', on the straight line from zero (t = 0) to counterfactuals x' (t = 1)."""

    t: Floats  # (p,)
    before: Floats  # (n, p) by the deployed network, to what the search found
    after: Floats  # (n, p) and to where SNS moved it
    retrained_before: Floats  # (k, p) by retrained networks, the mean over counterfactuals
    retrained_after: Floats  # (k, p)
    held_before: float  # share of pairs of a counterfactual and a retrained network in which it holds
    held_after: float


def paths(
    dataset: str = "german",
    rows: int = 40,
    members: int = 10,
    *,
    recipe: Recipe | None = None,
    points: int = 101,
    seed: int = 0,
    store: str | Path | None = None,
    workers: int | None = None,
) -> Paths:
    """PGD's counterfactuals with the paper's settings for the first ``rows`` test rows, and the same after SNS."""
    data = prepare(dataset)
    (x, y), question = data.rows, data.question(rows)
    recipe = recipe or PAPER_RECIPES[dataset]
    deployed = train(x, y, recipe, [Retraining(init_seed=seed, order_seed=seed)], store=store, workers=workers)
    retrained = train(x, y, recipe, seeds(members, start=FIRST), store=store, workers=workers)
    space = Space.free(x)
    found = pgd(dataset)(deployed[0], question, other_class(deployed[0], question), space)
    found = found[found.found]
    if not len(found):
        raise ValueError(f"PGD found no counterfactual for the first {rows} rows of {dataset}; ask for more rows")
    moved = sns(dataset)(deployed[0], found, space)
    return Paths(
        t=np.linspace(0, 1, points),
        before=_along(deployed, found, points)[0],
        after=_along(deployed, moved, points)[0],
        retrained_before=_along(retrained, found, points).mean(1),
        retrained_after=_along(retrained, moved, points).mean(1),
        held_before=1 - audit(found, retrained).rate,
        held_after=1 - audit(moved, retrained).rate,
    )


def _along(family: Family, found: Counterfactuals, points: int) -> Floats:
    """The probability of each row's target at equal steps from zero to its point, by every member: (k, n, p)."""
    lines, _ = line(torch.zeros_like(found.point), found.point, points, "trapezoid")  # (p, n, d)
    probability = family.logits(lines.flatten(0, 1)).softmax(-1).view(len(family), points, len(found), -1)
    wanted = probability.gather(-1, found.target.expand(len(family), points, -1)[..., None])[..., 0]  # (k, p, n)
    return np.asarray(wanted.transpose(1, 2).double().numpy())
