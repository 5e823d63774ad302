r"""Where a counterfactual may lie: the constraints that real people have, in encoded coordinates.

For a person at ``origin`` the valid values of one column are

    V_j = {origin_j} ∪ ([lower_j, upper_j] ∩ grid_j ∩ direction_j),      just {origin_j} if immutable,

and a one-hot group is valid when exactly one of its columns is on (or none, where the group allows it), and
that one is reachable or was on already. Staying where one is is always valid, also outside the box: nobody is
silently moved.

    project   the exact Euclidean projection onto the convex hull: what a gradient search walks in
    snap      the nearest valid point: what a person can really do
    violations  which columns of a point are not valid: written apart from snap, so that it can catch it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import index

import torch
from torch import Tensor

from holdfast.tabular.people import People
from holdfast.tabular.personal import Personal
from holdfast.tabular.related import Related
from holdfast.tabular.shares import PARTS, share_below
from holdfast.utils.messages import repeated

_COLUMNS = ("lower", "upper", "mutable", "direction", "step", "shift", "scale")  # what a space has for every column
TOLERANCE = 1e-5  # of a column's width; what rounding adds on top is `_noise`


@dataclass(frozen=True)
class Group:
    """The encoded columns of one categorical feature, of which exactly one is on.

    Each column is ``lower`` when off and ``upper`` when on.
    `Encoding.space` makes the groups of a schema.

    Args:
        columns: their numbers among the encoded columns
        optional: True if all of them may be off
        avoid: columns that no one is moved to, though some may be there already
        avoid_none: True if no one is moved to all off
        direction: 1 if a person may go from a column only to later ones, -1 only to earlier ones, 0 to any; columns to
            avoid have no place in that order

    Examples:
        >>> from dataclasses import replace
        >>> import holdfast as hf
        >>> import torch
        >>> from holdfast.tabular.space import Group
        >>> group = Group(columns=(0, 1, 2), avoid=(2,))
        >>> space = replace(hf.Space.box(torch.zeros(3), torch.ones(3)), groups=(group,))
        >>> origin = torch.tensor([[1.0, 0.0, 0.0]])
        >>> space.snap(torch.tensor([[0.2, 0.7, 0.9]]), origin)
        tensor([[0., 1., 0.]])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Appendix B.1, encodes categories one-hot; its
    counterfactuals need not be one-hot. Groups are projected as by
    [Duchi et al. 2008](https://doi.org/10.1145/1390156.1390191).
    """

    columns: tuple[int, ...]
    optional: bool = False
    avoid: tuple[int, ...] = ()
    avoid_none: bool = False
    direction: int = 0

    def __post_init__(self) -> None:
        for name in ("columns", "avoid"):
            object.__setattr__(self, name, _column_numbers(name, getattr(self, name)))
        if not self.columns:
            raise ValueError("a group needs the numbers of its columns, got none")
        for name in ("optional", "avoid_none"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(
                    f"group {list(self.columns)}: {name} is {getattr(self, name)!r}; it must be True or False"
                )
        for problem in self._problems():
            raise ValueError(f"group {list(self.columns)}: {problem}")

    def _problems(self) -> Iterator[str]:
        for name in ("columns", "avoid"):
            if repeated(getattr(self, name)):
                yield f"{name} has {repeated(getattr(self, name))} twice"
        if self.direction not in (-1, 0, 1):
            yield f"direction is {self.direction!r}; it is 1, -1 or 0 (any)"
        strange = sorted(set(self.avoid) - set(self.columns))
        if strange:
            yield f"avoid has columns {strange}, which are not of the group"


def _column_numbers(name: str, given: Iterable[int]) -> tuple[int, ...]:
    try:
        return tuple(index(column) for column in given)
    except TypeError as error:
        raise TypeError(f"{name} of a group is {given!r}; give column numbers, such as (3, 4, 5)") from error


@dataclass(frozen=True, eq=False)
class Space:
    """Where a counterfactual may lie: bounds, steps, directions and one-hot groups of encoded columns.

    `Encoding.space` makes one from a schema (the schema space: what a person can do), `Space.free` is the paper's (the
    free space: any real value), and `Space.box` has bounds and nothing else. What a person may do depends on where they
    are, so `project`, `snap` and `violations` take the origin too.

    Attributes:
        lower: (d,) the smallest encoded value
        upper: (d,) the largest
        mutable: (d,) bool
        direction: (d,) 1 may only rise, -1 may only fall, 0 any
        step: (d,) the grid of the raw number, 0 where every value is allowed
        shift: (d,) encoded = (number − shift) / scale
        scale: (d,)
        groups: the one-hot columns of categorical features
        gaps: a column and two ends each: nobody is moved to between them
        missing: a column and the number that says "missing" each: nobody is moved there
        related: columns that change together
        people: whom an answer must resemble; None if any valid point will do
        personal: what single people want, for as many people as there are rows
        weight: (d,) how hard a move of each column is; None where all are alike
        quantiles: (101, d) of people; a move costs the share of them that it passes, not its length

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> import torch
        >>> age = hf.Feature("age", "integer", mutable=False)
        >>> savings = hf.Feature("savings", "integer", lower=0, upper=900, step=100)
        >>> schema = hf.Schema((age, savings), label="approved", classes=("no", "yes"))
        >>> table = pd.DataFrame({"age": [30, 40], "savings": [200, 800]})
        >>> space = hf.Encoding.fit(table, schema, scaling="none").space
        >>> origin, point = torch.tensor([[30.0, 200.0]]), torch.tensor([[25.0, 460.0]])
        >>> space.violations(point, origin)  # age may not change, savings go in hundreds
        tensor([[True, True]])
        >>> space.snap(point, origin)  # the nearest point that a person can reach
        tensor([[ 30., 500.]])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 2, searches all of R^d; the released code
    ([zifanw/consistency](https://github.com/zifanw/consistency)) clips to the smallest and largest value of the
    training rows. That is `Space.free`.
    """

    lower: Tensor
    upper: Tensor
    mutable: Tensor
    direction: Tensor
    step: Tensor
    shift: Tensor
    scale: Tensor
    groups: tuple[Group, ...] = ()
    gaps: tuple[tuple[int, float, float], ...] = ()
    missing: tuple[tuple[int, float], ...] = ()
    related: Related | None = None
    people: People | None = None
    personal: Personal | None = None
    weight: Tensor | None = None
    quantiles: Tensor | None = None

    def __post_init__(self) -> None:
        self._check_tensors()
        for wrong, what in self._rules():
            if bool(wrong.any()):
                raise ValueError(f"{what} in columns {torch.nonzero(wrong).flatten().tolist()}")
        self._check_group_columns()
        self._check_group_widths()
        for column, low, high in self.gaps:
            if not 0 <= column < self.width or not low < high:
                raise ValueError(
                    f"gap ({column}, {low}, {high}) must be a column of {self.width}, and two ends in order"
                )
        if self.personal is not None:
            self._check_personal(self.personal)
        if self.quantiles is not None and tuple(self.quantiles.shape) != (PARTS + 1, self.width):
            raise ValueError(f"quantiles must have the shape {(PARTS + 1, self.width)}, or be None")
        if self.weight is not None:
            self._check_weight(self.weight)

    def _check_group_columns(self) -> None:
        for group in self.groups:
            if not 0 <= min(group.columns) <= max(group.columns) < self.width:
                raise ValueError(
                    f"group {list(group.columns)} has columns that are not among the {self.width} there are"
                )
        twice = repeated([column for group in self.groups for column in group.columns])
        if twice:
            raise ValueError(f"columns {twice} are in more than one group; a column belongs to one at most")

    def _check_personal(self, personal: Personal) -> None:
        """A person keeps the columns of a categorical feature together, or moves them together."""
        if personal.mutable.shape[1] != self.width:
            raise ValueError(
                f"personal has {personal.mutable.shape[1]} columns but the space has {self.width}; make both alike"
            )
        for group in self.groups:
            mutable = personal.mutable[:, list(group.columns)]
            if bool((mutable.any(1) & ~mutable.all(1)).any()):
                raise ValueError(
                    f"personal lets a person change some columns of the group {list(group.columns)} but not the "
                    "others; space.keeping(columns) keeps a group whole"
                )

    def _check_weight(self, weight: Tensor) -> None:
        if not isinstance(weight, Tensor) or weight.shape != self.lower.shape:
            raise ValueError(f"weight must be a tensor with a number for each of {self.width} columns, or None")
        if not bool(((weight > 0) & weight.isfinite()).all()):
            raise ValueError("weight must hold finite numbers above 0; set mutable to False where nothing may move")

    def _check_tensors(self) -> None:
        """A tensor each, of one length and on one device; what is in them comes next."""
        for name in _COLUMNS:
            values = getattr(self, name)
            if not isinstance(values, Tensor):
                raise TypeError(f"{name} is a {type(values).__name__}; expected a tensor with a number for each column")
            if values.ndim != 1 or len(values) != len(self.lower):
                raise ValueError(
                    f"{name} has shape {tuple(values.shape)}, lower has {tuple(self.lower.shape)}; each needs a number "
                    "for every column: (d,)"
                )
            if values.device != self.lower.device:
                raise ValueError(f"{name} is on {values.device}, lower on {self.lower.device}; move them to one device")
        if self.mutable.dtype != torch.bool:
            raise TypeError(f"mutable is {self.mutable.dtype}; expected torch.bool: True where a column may change")
        if not self.lower.is_floating_point() or self.lower.dtype != self.upper.dtype:
            raise TypeError(f"lower is {self.lower.dtype} and upper {self.upper.dtype}; expected one floating dtype")
        if not all(isinstance(group, Group) for group in self.groups):
            raise TypeError(f"groups is {self.groups!r}; expected a tuple of Group(columns)")

    def _rules(self) -> Iterator[tuple[Tensor, str]]:
        """What must not be, a column at a time: where it is (d,), and a sentence."""
        yield self.lower.isnan() | self.upper.isnan(), "bounds are NaN"
        yield self.lower > self.upper, "lower is above upper"
        yield (self.lower == torch.inf) | (self.upper == -torch.inf), "bounds leave no number"
        known = torch.tensor([-1, 0, 1], device=self.direction.device).to(self.direction)
        yield ~torch.isin(self.direction, known), "direction is neither 1 (rise), -1 (fall) nor 0 (any)"
        yield ~((self.step >= 0) & self.step.isfinite()), "step is not 0 (any value) or a finite number above 0"
        yield ~((self.scale > 0) & self.scale.isfinite()), "scale is not a finite number above 0"
        yield ~self.shift.isfinite(), "shift is not a finite number"

    def _check_group_widths(self) -> None:
        """Also where the dtype changes: what differs in float64 may be one number in another."""
        width = self.upper - self.lower
        for group in self.groups:
            if not bool(((width > 0) & width.isfinite())[list(group.columns)].all()):
                raise ValueError(
                    f"group {list(group.columns)}: on and off must differ, lower < upper in each of its columns, and "
                    "be finite"
                )

    @classmethod
    def box(cls, lower: Tensor, upper: Tensor) -> Space:
        """Bounds (d,) and nothing else."""
        for name, bound in {"lower": lower, "upper": upper}.items():
            if not isinstance(bound, Tensor):
                raise TypeError(f"{name} is a {type(bound).__name__}; expected a tensor with a number for each column")
        zeros, ones = torch.zeros_like(lower), torch.ones_like(lower)
        return cls(lower, upper, ones.bool(), zeros, zeros.double(), zeros.double(), ones.double())

    @classmethod
    def free(cls, x: Tensor) -> Space:
        """The paper's setting: one [min, max] of the whole matrix x (n, d) for every column, nothing snapped."""
        if not isinstance(x, Tensor):
            raise TypeError(f"x is a {type(x).__name__}; expected encoded rows: encoding.encode(table) makes them")
        if x.ndim != 2 or x.numel() == 0:
            raise ValueError(f"Space.free needs rows (n, d), at least one row and column, got shape {tuple(x.shape)}")
        ones = torch.ones_like(x[0])
        return cls.box(x.min() * ones, x.max() * ones)

    @property
    def width(self) -> int:
        """How many encoded columns there are, d."""
        return len(self.lower)

    @property
    def discrete(self) -> bool:
        """Whether snapping can move a point that lies inside the hull."""
        return bool(self.groups or self.gaps or self.related) or self._stepped

    def to(self, like: Tensor) -> Space:
        """The same space with the dtype and on the device of another tensor; the grid stays in float64.

        A search calls this once and then pays for no conversion.
        """
        if (self.lower.dtype, self.lower.device) == (like.dtype, like.device) and self.step.dtype == torch.float64:
            return self
        # Not with dataclasses.replace: what was checked once need not be checked before every search.
        moved = object.__new__(Space)
        for field in fields(self):
            part = getattr(self, field.name)
            if field.name in ("step", "shift", "scale"):
                part = part.to(like.device, torch.float64)
            elif field.name == "mutable":
                part = part.to(like.device)
            elif field.name not in ("groups", "gaps", "missing") and part is not None:
                part = part.to(like)
            moved.__dict__[field.name] = part
        moved._check_group_widths()
        return moved

    def of(self, rows: Tensor | slice) -> Space:
        """The space for some of its people: their numbers, as often as they are asked for."""
        return self if self.personal is None else self._with(personal=self.personal.of(rows))

    def without_people(self) -> Space:
        """The same space, in which any valid point will do, whether such people exist or not."""
        return self if self.people is None else self._with(people=None)

    def _with(self, **changes: object) -> Space:
        """The same with other people. What was checked once need not be checked before every search."""
        changed = object.__new__(Space)
        changed.__dict__.update(self.__dict__ | changes)
        return changed

    def keeping(self, kept: Tensor) -> Space:
        """The space of people who keep some columns too, those where ``kept`` (n, d) is True.

        A group is kept whole where one of its columns is. What people may do already is narrowed, never widened.
        """
        if not isinstance(kept, Tensor) or kept.dtype != torch.bool or kept.ndim != 2 or kept.shape[1] != self.width:
            what_came = f"{kept.dtype} of {tuple(kept.shape)}" if isinstance(kept, Tensor) else type(kept).__name__
            raise ValueError(f"expected True or False for every person and column, (n, {self.width}), got {what_came}")
        if self.personal is not None and len(self.personal) != len(kept):
            raise ValueError(f"this space is for {len(self.personal)} people, but kept has {len(kept)} rows")
        personal = Personal.none(*kept.shape).to(self.lower) if self.personal is None else self.personal
        whole = kept.to(self.lower.device, copy=True)
        for group in self.groups:
            columns = list(group.columns)
            whole[:, columns] = whole[:, columns].any(1, keepdim=True)
        return self._with(personal=replace(personal, mutable=personal.mutable & ~whole))

    @property
    def weights(self) -> Tensor | None:
        """What a move of each column counts: for everybody (d,), for each person (n, d), None where all count 1."""
        if self.personal is None:
            return self.weight
        return self.personal.weight if self.weight is None else self.weight * self.personal.weight

    def check_origin(self, origin: Tensor) -> None:
        """Numbers may lie outside their bounds (the bounds widen); a broken one-hot group may not."""
        if origin.shape[-1] != self.width:
            raise ValueError(
                f"rows have {origin.shape[-1]} columns but the space has {self.width}; encode both with one Encoding"
            )
        broken = self.to(origin)._broken_groups(origin)
        if bool(broken.any()):
            row = int(torch.nonzero(broken.any(1))[0])
            columns = torch.nonzero(broken[row]).flatten().tolist()
            raise ValueError(
                f"row {row}: columns {columns} are a one-hot group but hold {origin[row, columns].tolist()}; "
                "encode the table with the Encoding this space came from"
            )

    def _check_points(self, x: Tensor, origin: Tensor) -> None:
        """Their shapes alone: a search projects at every step."""
        for name, rows in {"x": x, "origin": origin}.items():
            if not isinstance(rows, Tensor):
                raise TypeError(f"{name} is a {type(rows).__name__}; expected rows as a tensor (n, {self.width})")
            if rows.ndim != 2 or rows.shape[1] != self.width:
                raise ValueError(f"expected {name} (n, {self.width}), got {tuple(rows.shape)}; encode both alike")
        if self.personal is not None and len(self.personal) != len(origin):
            raise ValueError(
                f"this space is for {len(self.personal)} people, but there are {len(origin)} rows; "
                "use space.of(rows) for some of them"
            )

    def project(self, x: Tensor, origin: Tensor) -> Tensor:
        """The point nearest to x (Euclidean norm) in the convex hull of what a person at origin can do: (n, d)."""
        self._check_points(x, origin)
        space = self.to(x)
        low, high = space.bounds(origin)
        point = torch.minimum(torch.maximum(x, low), high)
        if self.groups:
            point = space._onto_simplices(x, point, origin)
        return torch.where(space.changeable, point, origin)

    def snap(self, x: Tensor, origin: Tensor) -> Tensor:
        """The valid point nearest to x for a person at origin; where staying is as near as moving, staying: (n, d).

        Columns that relations join are completed then; where that cannot be, they stay as they are.
        """
        point = self.snap_apart(x, origin)
        return point if self.related is None else self.to(x)._joined(point, origin)

    def snap_apart(self, x: Tensor, origin: Tensor) -> Tensor:
        """The same for every column by itself, as if there were no relations."""
        self._check_points(x, origin)
        space = self.to(x)
        point = space._snap_numbers(x, origin)
        if self.groups:
            point = space._snap_groups(x, point, origin)
        return torch.where(space.changeable, point, origin)

    def violations(self, x: Tensor, origin: Tensor) -> Tensor:
        """Which columns of x are not valid for a person at origin: (n, d) bool."""
        by_themselves = self.violations_apart(x, origin)
        return by_themselves if self.related is None else by_themselves | self.to(x)._breaches(x, origin)

    def violations_apart(self, x: Tensor, origin: Tensor) -> Tensor:
        """The same for every column by itself, as if there were no relations."""
        self._check_points(x, origin)
        space = self.to(x)
        moved = x != origin
        slack = TOLERANCE * (space.upper - space.lower) + _noise(x)
        lower, upper = space._limits
        outside = (x < lower - slack) | (x > upper + slack) | space._in_gap(x, slack)
        backwards = (x - origin) * space._way(origin) < -slack
        grain = torch.where(space.step > 0, space.step, 1)
        places = space._number(x) / grain
        off_grid = (space.step > 0) & (
            (places - places.round()).abs() > 1e-3 + _noise(x).double() * space.scale / grain
        )
        illegal = outside | backwards | off_grid | space._lost(x) | ~(space.changeable | space.follows)
        return (moved & illegal) | space._broken_groups(x) | space._avoided(x, origin) | ~x.isfinite()

    # ---- relations: what changes with something else ----

    def completed(
        self, point: Tensor, origin: Tensor, kept: Tensor, home: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The points with what relations demand beside the columns that are kept (n, d), and which are valid then.

        Every point must be valid as if there were no relations. ``home`` are the `values` of the origin, if at hand.
        """
        valid = torch.ones(len(point), dtype=torch.bool, device=point.device)
        if self.related is None:
            return point, valid
        values, home = self.values(point), self.values(origin) if home is None else home
        broken = self.related.broken(values, home)
        rows = torch.nonzero(broken.any(1)).flatten()
        if not len(rows):
            return point, valid
        space, before, home_rows = self.of(rows), values[rows], origin[rows]
        limits = self.related.limits(*space.limits(home_rows), space.changeable.expand(len(rows), self.width))
        after, ok = self.related.completed(broken[rows], before, home[rows], self.related.kept(kept[rows]), limits)
        written = self.related.written(point[rows], before, after, self.lower, self.upper)
        point = point.clone()
        point[rows], valid[rows] = written, ok & ~space.violations_apart(written, home_rows).any(1)
        return point, valid

    def values(self, x: Tensor) -> Tensor:
        """What the rows say in the columns that relations join: (n, m)."""
        assert self.related is not None
        return self.related.values(x, (self.lower + self.upper) / 2)

    def _joined(self, point: Tensor, origin: Tensor) -> Tensor:
        """Points that are valid column by column, completed; the parts for which that cannot be as at the origin."""
        assert self.related is not None
        nothing = torch.zeros_like(point, dtype=torch.bool)
        whole, valid = self.completed(point, origin, nothing)
        invalid = torch.nonzero(~valid).flatten()
        if not len(invalid):
            return whole
        # One part after the other, so that what is wrong with one does not undo another.
        space, home, trial = (
            self.of(invalid),
            origin[invalid],
            torch.where(self.related.parts.any(0), origin, point)[invalid],
        )
        for part in self.related.parts:
            tried, fits = space.completed(torch.where(part, point[invalid], trial), home, nothing[invalid])
            trial = torch.where(fits[:, None], tried, trial)
        whole[invalid] = trial
        return whole

    def _breaches(self, x: Tensor, origin: Tensor) -> Tensor:
        """The columns of every relation that a point breaks and the person did not, or less: (n, d) bool."""
        assert self.related is not None
        return self.related.broken_columns(self.values(x), self.values(origin))

    @property
    def follows(self) -> Tensor:
        """Which columns may change with others, though not by themselves: (d,) bool."""
        return torch.zeros_like(self.mutable) if self.related is None else self.related.follows

    # ---- features: what can be changed apart from all else ----

    @cached_property
    def features(self) -> Tensor:
        """The columns of every feature that may change, one row each: (f, d) bool.

        Without relations, what is valid for one feature does not depend on another, so two valid points can be mixed
        feature by feature; with relations, a mixture must be `completed`.
        """
        columns_of_each = [[column] for column in range(self.width) if not self._in_group[column]]
        columns_of_each += [list(group.columns) for group in self.groups]
        masks = torch.zeros(len(columns_of_each), self.width, dtype=torch.bool, device=self.lower.device)
        for row, columns in enumerate(columns_of_each):
            masks[row, columns] = self.mutable[columns]
        return masks[masks.any(1)]

    def per_feature(self, values: Tensor) -> Tensor:
        """Values of columns (..., d) summed over those of each feature: (..., f)."""
        if self.groups or not bool(self.mutable.all()):
            return values @ self.features.to(values).T
        return values

    def moved(self, points: Tensor, origin: Tensor) -> Tensor:
        """How far each column of points (n, d) or (n, t, d) is from the origin (n, d), times what a move counts."""
        home, weights = origin if points.ndim == 2 else origin[:, None], self.weights
        away = (points - home).abs() if self.quantiles is None else self._passed(points, home)
        if weights is None:
            return away
        return away * (weights if points.ndim == weights.ndim or weights.ndim == 1 else weights[:, None])

    def _passed(self, points: Tensor, home: Tensor) -> Tensor:
        """The share of people whom each column passes; a changed level counts 1, shared out among its columns."""
        assert self.quantiles is not None
        passed = share_below(points, self.quantiles) - share_below(home, self.quantiles)
        if not self.groups:
            return passed.abs()
        # One level goes off and another on: each counts a half. Where all are off before or after, the one counts 1.
        features = self.features.to(points)
        each, net = (values @ features.T @ features for values in (passed.abs(), passed))
        return passed.abs() * torch.where(each > 0, (1 + net.abs() / torch.where(each > 0, each, 1)) / 2, 1)

    def bounds(self, origin: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest interval that holds what is allowed and the origin itself, of every column: (n, d), (n, d)."""
        low, high = self.limits(origin)
        return torch.minimum(low, origin), torch.maximum(high, origin)

    def limits(self, origin: Tensor) -> tuple[Tensor, Tensor]:
        """Between what a number may move, for a person at origin: (n, d) or (d,) each; low > high where it may not."""
        space = self.to(origin)
        lower, upper = space._limits
        way = space._way(origin)
        low = torch.where(way > 0, torch.maximum(lower, origin), lower)
        high = torch.where(way < 0, torch.minimum(upper, origin), upper)
        return low, high

    # ---- numbers ----

    def _way(self, origin: Tensor) -> Tensor:
        """The direction of every column (d,), or of each person (n, d): from a missing value there is none."""
        return torch.where(self._lost(origin), 0, self.direction) if self.missing else self.direction

    @property
    def _limits(self) -> tuple[Tensor, Tensor]:
        """The box: of everybody (d,), or of each person (n, d)."""
        if self.personal is None:
            return self.lower, self.upper
        return torch.maximum(self.lower, self.personal.lower), torch.minimum(self.upper, self.personal.upper)

    @property
    def changeable(self) -> Tensor:
        """Which columns may change: for everybody (d,), or for each person (n, d)."""
        return self.mutable if self.personal is None else self.mutable & self.personal.mutable

    def _snap_numbers(self, x: Tensor, origin: Tensor) -> Tensor:
        # As a table is encoded, in float64: a grid point comes out with the bits its raw number would have.
        low, high = self.limits(origin)
        if not self._stepped:
            inside = self._out_of_gaps(torch.minimum(torch.maximum(x, low), high), x, low, high)
            nearer = (inside - x).abs() < (origin - x).abs()
            return torch.where(self._there(inside, (low <= high) & nearer), inside, origin)
        stepped, grain = self.step > 0, torch.where(self.step > 0, self.step, 1)
        slack = 1e-4 * grain / self.scale + _noise(x).double()
        first = torch.ceil(self._number(low.double() - slack) / grain)
        last = torch.floor(self._number(high.double() + slack) / grain)
        nearest = torch.minimum(torch.maximum(torch.round(self._number(x) / grain), first), last)
        on_grid = ((nearest * grain - self.shift) / self.scale).to(x.dtype)
        candidate = torch.where(stepped, on_grid, torch.minimum(torch.maximum(x, low), high))
        candidate = self._out_of_gaps(candidate, x, low, high)
        possible = torch.where(stepped, first <= last, low <= high)
        nearer = (candidate - x).abs() + torch.where(stepped, slack, 0) < (origin - x).abs()
        return torch.where(self._there(candidate, possible & nearer), candidate, origin)

    def _there(self, x: Tensor, among: Tensor) -> Tensor:
        """Those among some numbers (n, d) that do not say that a value is missing."""
        return among & ~self._lost(x) if self.missing else among

    def _lost(self, x: Tensor) -> Tensor:
        """Which numbers say that a value is missing: (n, d) bool. Compared as decoding does, in float32 at most."""
        lost = torch.zeros_like(x, dtype=torch.bool)
        if self.missing:
            columns, numbers = self._missing_numbers
            dtype = x.dtype if x.dtype.itemsize < 4 else torch.float32
            lost[:, columns] = x[:, columns].to(dtype) == numbers.to(dtype)
        return lost

    @cached_property
    def _missing_numbers(self) -> tuple[Tensor, Tensor]:
        columns, numbers = zip(*self.missing, strict=True)
        device = self.lower.device
        return torch.tensor(columns, device=device), torch.tensor(numbers, dtype=torch.float64, device=device)

    # ---- gaps: parts of the line where nobody is, one of each column at a time ----

    @cached_property
    def _gap_layers(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Columns with a gap (k,) and its ends as encoded (k,), (k,); a column's second gap is in the next layer."""
        layers: list[list[tuple[int, float, float]]] = []
        for gap in sorted(self.gaps):
            free = next((layer for layer in layers if all(gap[0] != other[0] for other in layer)), None)
            layers.append([gap]) if free is None else free.append(gap)
        return [self._gap_layer(layer) for layer in layers]

    def _gap_layer(self, layer: list[tuple[int, float, float]]) -> tuple[Tensor, Tensor, Tensor]:
        columns = torch.tensor([gap[0] for gap in layer], device=self.lower.device)
        low, high = torch.tensor([gap[1:] for gap in layer], dtype=torch.float64, device=self.lower.device).unbind(1)
        step, shift, scale = self.step[columns], self.shift[columns], self.scale[columns]
        grain = torch.where(step > 0, step, 1)
        down = torch.floor((low * scale + shift) / grain + 1e-6) * grain
        up = torch.ceil((high * scale + shift) / grain - 1e-6) * grain
        ends = torch.where(step > 0, (down - shift) / scale, low), torch.where(step > 0, (up - shift) / scale, high)
        return columns, ends[0].to(self.lower), ends[1].to(self.lower)

    def _in_gap(self, x: Tensor, slack: Tensor) -> Tensor:
        """Which numbers lie between the ends of a gap: (n, d) bool."""
        inside = torch.zeros_like(x, dtype=torch.bool)
        for columns, low, high in self._gap_layers:
            value, room = x[:, columns], slack.expand_as(x)[:, columns]
            inside[:, columns] |= (value > low + room) & (value < high - room)
        return inside

    def _out_of_gaps(self, candidate: Tensor, x: Tensor, lowest: Tensor, highest: Tensor) -> Tensor:
        """Numbers inside a gap at the end of it that is nearer to x, or at the other where a person may not go there.

        Where they may go to neither, infinitely far, so that staying is nearer.
        """
        if not self.gaps:
            return candidate
        candidate = candidate.clone()
        for columns, low, high in self._gap_layers:
            value, wanted = candidate[:, columns], x[:, columns]
            least, most = lowest.expand_as(x)[:, columns], highest.expand_as(x)[:, columns]
            below = torch.where(low >= least - _noise(low), low, -torch.inf)
            above = torch.where(high <= most + _noise(high), high, torch.inf)
            end = torch.where((wanted - below).abs() <= (above - wanted).abs(), below, above)
            candidate[:, columns] = torch.where((value > low) & (value < high), end, value)
        return candidate

    @cached_property
    def _stepped(self) -> bool:
        return bool((self.step > 0).any())

    def _number(self, x: Tensor) -> Tensor:
        """The raw number behind an encoded one."""
        return x.double() * self.scale + self.shift

    # ---- one-hot groups, all of them at once: (n, g, m) with short groups padded ----

    @cached_property
    def _layout(self) -> tuple[Tensor, Tensor]:
        """Column of each slot, and which slots are real: (g, m) each."""
        most = max(len(group.columns) for group in self.groups)
        padded = [group.columns + (group.columns[0],) * (most - len(group.columns)) for group in self.groups]
        sizes = torch.tensor([len(group.columns) for group in self.groups], device=self.lower.device)
        columns = torch.tensor(padded, device=self.lower.device)
        return columns, torch.arange(most, device=self.lower.device) < sizes[:, None]

    def _grouped(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """How far each slot is from off (n, g, m), and how far on is from off (g, m)."""
        columns, _ = self._layout
        return x[:, columns] - self.lower[columns], (self.upper - self.lower)[columns]

    def _ungrouped(self, values: Tensor, point: Tensor) -> Tensor:
        """Write the values of all slots back into their columns."""
        columns, real = self._layout
        point = point.clone()
        point[:, columns[real]] = values[:, real]
        return point

    def _on(self, x: Tensor) -> Tensor:
        """Which slots are on: (n, g, m)."""
        z, s = self._grouped(x)
        return (z > s / 2) & self._layout[1]

    @cached_property
    def _advice(self) -> tuple[Tensor, Tensor, Tensor]:
        """Which columns no one is moved to (d,), which groups may be all off (g,), and which no one is moved to be."""
        avoided = torch.zeros_like(self.mutable)
        avoided[[column for group in self.groups for column in group.avoid]] = True
        optional = torch.tensor([group.optional for group in self.groups], device=self.lower.device)
        return avoided, optional, torch.tensor([group.avoid_none for group in self.groups], device=self.lower.device)

    def reachable(self, origin: Tensor) -> tuple[Tensor, Tensor]:
        """Which level of which group each person may have (n, g, m), and which groups may be all off (n, g)."""
        columns, real = self._layout
        avoided, optional, avoid_none = self._advice
        here = self._on(origin)
        reachable = real & (here | ~avoided[columns])
        if self._directed is not None:
            ordered = here & ~avoided[columns]
            current = torch.where(ordered.any(-1), ordered.to(torch.int8).argmax(-1), -1)[..., None]
            onward = (torch.arange(columns.shape[1], device=here.device) - current) * self._directed[:, None] >= 0
            reachable &= onward | (current < 0)
        return reachable, optional & (~here.any(-1) | ~avoid_none)

    @cached_property
    def _directed(self) -> Tensor | None:
        """The direction of every group (g,); None where none has one."""
        if not any(group.direction for group in self.groups):
            return None
        return torch.tensor([group.direction for group in self.groups], device=self.lower.device)

    def _onto_simplices(self, x: Tensor, point: Tensor, origin: Tensor) -> Tensor:
        r"""Project each group onto {off + s∘u : u ≥ 0, Σu = 1} (Σu ≤ 1 if it may be off), unreachable u_j = 0.

        Lagrange gives u_j = max(0, z_j s_j − τ) / s_j² with z = x − off, and τ from Σu = 1. The sum falls
        piecewise linearly in τ with kinks at z_j s_j, so τ follows from one sort, as for the plain simplex.
        """
        reachable, may_be_off = self.reachable(origin)
        z, s = self._grouped(x)
        kink, order = torch.where(reachable, z * s, -torch.inf).sort(dim=-1, descending=True)
        weight = torch.where(reachable, 1 / s**2, 0).gather(-1, order)
        reached = torch.where(weight > 0, weight * kink, 0).cumsum(-1) - 1
        tau_if = reached / weight.cumsum(-1)
        last = ((kink > tau_if) & (weight > 0)).sum(-1, keepdim=True).clamp_min(1) - 1
        tau = tau_if.gather(-1, last)
        # With Σu ≤ 1 the multiplier of the sum is never negative: τ = max(τ, 0).
        tau = torch.where(may_be_off[..., None], tau.clamp_min(0), tau)
        away = torch.where(reachable, (z - tau / s).clamp_min(0), 0)
        return self._ungrouped(self.lower[self._layout[0]] + away, point)

    def _snap_groups(self, x: Tensor, point: Tensor, origin: Tensor) -> Tensor:
        """The nearest corner: ‖x − corner_j‖² is least where 2 z_j s_j − s_j² is greatest (0 for "none")."""
        reachable, may_be_off = self.reachable(origin)
        z, s = self._grouped(x)
        score, level = torch.where(reachable, 2 * z * s - s**2, -torch.inf).max(-1)
        on = torch.nn.functional.one_hot(level, s.shape[1]).bool()
        on &= ~(may_be_off & (score < 0))[..., None]
        columns, _ = self._layout
        snapped = self._ungrouped(torch.where(on, self.upper[columns], self.lower[columns]), point)
        same = (snapped - origin).abs() <= TOLERANCE * (self.upper - self.lower) + _noise(x)
        return torch.where(same & self._in_group, origin, snapped)

    def _broken_groups(self, x: Tensor) -> Tensor:
        """Every column of each group that is not one-hot: (n, d) bool."""
        broken = torch.zeros_like(x, dtype=torch.bool)
        for group in self.groups:
            columns = list(group.columns)
            width = self.upper[columns] - self.lower[columns]
            slack = TOLERANCE * width + _noise(x[:, columns])
            on = (x[:, columns] - self.upper[columns]).abs() <= slack
            off = (x[:, columns] - self.lower[columns]).abs() <= slack
            count = on.sum(1)
            right = (on | off).all(1) & ((count == 1) | ((count == 0) & group.optional))
            broken[:, columns] = ~right[:, None]
        return broken

    def _avoided(self, x: Tensor, origin: Tensor) -> Tensor:
        """Every column of each group that was moved to where no one is to be moved: (n, d) bool."""
        avoided = torch.zeros_like(x, dtype=torch.bool)
        middle = (self.lower + self.upper) / 2
        for group in self.groups:
            columns, avoid = list(group.columns), list(group.avoid)
            arrived = ((x > middle) & (origin <= middle))[:, avoid].any(1)
            left = (origin > middle)[:, columns].any(1) & ~(x > middle)[:, columns].any(1)
            wrong = arrived | (left & group.avoid_none)
            if group.direction:
                wrong |= _backwards(group, x > middle, origin > middle)
            avoided[:, columns] = wrong[:, None]
        return avoided

    @cached_property
    def _in_group(self) -> Tensor:
        inside = torch.zeros_like(self.mutable)
        for group in self.groups:
            inside[list(group.columns)] = True
        return inside


def _backwards(group: Group, after: Tensor, before: Tensor) -> Tensor:
    """Which rows go from one level of an order to another against its direction: (n,) bool."""
    order = [column for column in group.columns if column not in group.avoid]
    position = torch.arange(len(order), device=after.device)
    start, end = ((on[:, order] * (position + 1)).amax(1) for on in (before, after))  # 0 for none of them
    return (start > 0) & (end > 0) & ((end - start) * group.direction < 0)


def _noise(x: Tensor) -> Tensor:
    """What a few roundings can do to a number of this size."""
    return 4 * torch.finfo(x.dtype).eps * x.abs()
