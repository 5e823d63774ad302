import itertools

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import Space
from holdfast.tabular.personal import Personal
from holdfast.tabular.space import Group

D = 9
GROUPS = (Group((3, 4, 5)), Group((6, 7), optional=True))


def spaces(seed: int, dtype=torch.float64) -> tuple[Space, torch.Tensor]:
    """A random space with every kind of constraint, and people in it: some outside their own bounds."""
    draw = torch.Generator().manual_seed(seed)
    lower = torch.rand(D, generator=draw, dtype=dtype) - 1.5
    upper = lower + 0.3 + 2 * torch.rand(D, generator=draw, dtype=dtype)
    step = torch.tensor([0, 0.25, 0, 0, 0, 0, 0, 0, 0.1], dtype=dtype)
    pick = torch.randint(3, (D,), generator=draw)
    direction = torch.where(torch.arange(D) < 3, pick - 1, 0).to(dtype)
    direction[8] = pick[8] - 1
    mutable = torch.rand(D, generator=draw) > 0.2
    for group in GROUPS:
        mutable[list(group.columns)] = mutable[group.columns[0]].item()
    avoid = (Group((3, 4, 5), avoid=(4,)), Group((6, 7), optional=True, avoid_none=bool(pick[3] > 0)))
    space = Space(lower, upper, mutable, direction, step, -lower, 1 + torch.rand(D, generator=draw, dtype=dtype), avoid)
    origin = lower + (upper - lower) * (1.4 * torch.rand(20, D, generator=draw, dtype=dtype) - 0.2)
    for group in GROUPS:
        columns = list(group.columns)
        on = torch.randint(len(columns) + group.optional, (20,), generator=draw)
        hot = torch.eye(len(columns) + 1, dtype=torch.bool)[on][:, : len(columns)]
        origin[:, columns] = torch.where(hot, upper[columns], lower[columns])
    return space, origin


def near(origin: torch.Tensor, seed: int, size: float) -> torch.Tensor:
    return origin + size * torch.randn(origin.shape, generator=torch.Generator().manual_seed(seed + 1)).to(origin)


cases = given(seed=st.integers(0, 10_000), size=st.sampled_from([0.1, 1.0, 5.0]))
however_slow = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@cases
@however_slow
def test_projecting_twice_equals_projecting_once(seed, size):
    space, origin = spaces(seed)
    once = space.project(near(origin, seed, size), origin)
    torch.testing.assert_close(space.project(once, origin), once)


@cases
@however_slow
def test_projection_is_the_nearest_point_of_the_hull(seed, size):
    """For a convex set p is the projection of x iff (x − p)·(v − p) ≤ 0 for all of its points v."""
    space, origin = spaces(seed)
    x = near(origin, seed, size)
    p = space.project(x, origin)
    for other in (7, 8, 9):
        # Valid points span the hull, but one on the grid may lie beyond a bound by what rounding does to either.
        v = space.project(space.snap(near(origin, seed + other, 2 * size), origin), origin)
        assert (((x - p) * (v - p)).sum(1) <= 1e-9 * (1 + x.norm(dim=1) ** 2)).all()
    assert (((x - p) * (origin - p)).sum(1) <= 1e-9 * (1 + x.norm(dim=1) ** 2)).all()


@cases
@however_slow
def test_the_hull_holds_what_is_valid(seed, size):
    space, origin = spaces(seed)
    valid = space.snap(near(origin, seed, size), origin)
    torch.testing.assert_close(space.project(valid, origin), valid)
    torch.testing.assert_close(space.project(origin, origin), origin)


@cases
@however_slow
def test_snapping_gives_valid_points_and_leaves_them_alone(seed, size):
    for dtype in (torch.float32, torch.float64):
        space, origin = spaces(seed, dtype)
        snapped = space.snap(near(origin, seed, size), origin)
        assert not space.violations(snapped, origin).any()
        torch.testing.assert_close(space.snap(snapped, origin), snapped)


@cases
@however_slow
def test_nobody_is_moved_who_does_not_move(seed, size):
    space, origin = spaces(seed)
    assert torch.equal(space.snap(origin, origin), origin)
    assert not space.violations(origin, origin).any()
    snapped = space.snap(near(origin, seed, size), origin)
    assert torch.equal(snapped[:, ~space.mutable], origin[:, ~space.mutable])


def test_snap_is_the_nearest_valid_point_by_exhaustion():
    """A space small enough to try every point: one grid column and one group with a level to avoid."""
    lower, upper = torch.tensor([0.0, -1.0, -0.5, -2.0]), torch.tensor([3.0, 2.0, 0.7, 1.0])
    zero = torch.zeros(4)
    step = torch.tensor([1.0, 0, 0, 0])
    space = Space(
        lower, upper, torch.ones(4, dtype=torch.bool), zero, step, zero, zero + 1, (Group((1, 2, 3), avoid=(2,)),)
    )
    origin = torch.tensor([[5.5, 2.0, -0.5, -2.0]]).expand(300, 4)
    x = 4 * torch.randn(300, 4, generator=torch.Generator().manual_seed(0))
    levels = [[2.0, -0.5, -2.0], [-1.0, -0.5, 1.0]]
    valid = torch.tensor([[v, *level] for v, level in itertools.product([0.0, 1, 2, 3, 5.5], levels)])
    nearest = torch.cdist(x, valid).argmin(1)
    torch.testing.assert_close(space.snap(x, origin), valid[nearest])


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        (0, 1.2, "above the box"),
        (1, 0.2, "falls though it may only rise"),
        (2, 0.55, "between two steps"),
        (3, 0.9, "immutable"),
        (4, 0.5, "half on"),
        (5, 1.0, "two levels on"),
        (6, 1.0, "moved to a level to avoid"),
        (0, float("nan"), "not a number"),
    ],
)
def test_violations_names_the_column(column, value, why):
    one = torch.ones(7)
    space = Space(
        0 * one, one, torch.tensor([1, 1, 1, 0, 1, 1, 1]).bool(), torch.tensor([0.0, 1, 0, 0, 0, 0, 0]),
        torch.tensor([0.0, 0, 0.1, 0, 0, 0, 0]), 0 * one, one, (Group((4, 5, 6), avoid=(6,)),),
    )  # fmt: skip
    origin = torch.tensor([[0.5, 0.5, 0.5, 0.5, 1.0, 0.0, 0.0]])
    point = origin.clone()
    if column == 6:
        point[0, 4] = 0
    point[0, column] = value
    assert not space.violations(origin, origin).any()
    broken = space.violations(point, origin)[0]
    assert broken[column], why
    assert not broken[[c for c in range(4) if c != column]].any()


def test_free_is_one_box_for_every_column():
    x = torch.tensor([[0.0, 5.0], [-2.0, 1.0]])
    space = Space.free(x)
    assert space.lower.tolist() == [-2, -2]
    assert space.upper.tolist() == [5, 5]
    assert not space.discrete
    inside = torch.tensor([[4.9, -1.9]])
    assert torch.equal(space.snap(inside, x[:1]), inside)
    assert torch.equal(space.project(inside, x[:1]), inside)
    assert space.project(torch.tensor([[9.0, -9.0]]), x[:1]).tolist() == [[5, -2]]


def test_bounds_widen_to_hold_a_person_outside_them():
    space = Space.box(torch.tensor([0.0]), torch.tensor([1.0]))
    origin = torch.tensor([[-9.0]])
    assert space.project(torch.tensor([[-5.0]]), origin).item() == -5  # on the way in
    assert space.snap(torch.tensor([[-5.0]]), origin).item() == -9  # but nobody may stop there
    assert space.snap(torch.tensor([[-4.0]]), origin).item() == 0
    assert not space.violations(origin, origin).any()
    assert space.violations(torch.tensor([[-5.0]]), origin).all()


def test_who_can_only_move_away_from_the_bounds_stays():
    """Above the upper bound and only allowed to rise: nothing is left but staying."""
    one = torch.ones(1)
    space = Space(0 * one, one, one.bool(), one, 0 * one, 0 * one, one)
    origin = torch.tensor([[1.5]])
    for wanted in (-3.0, 0.5, 1.2, 9.0):
        assert torch.equal(space.project(torch.tensor([[wanted]]), origin), origin)
        assert torch.equal(space.snap(torch.tensor([[wanted]]), origin), origin)
    assert space.violations(torch.tensor([[0.5], [2.0]]), origin).all()


def test_a_space_or_origin_that_makes_no_sense_is_refused(encoding):
    with pytest.raises(ValueError, match=r"lower is above upper in columns \[1\]"):
        Space.box(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0]))
    with pytest.raises(ValueError, match="on and off must differ"):
        zero = torch.zeros(2)
        Space(zero, zero, zero.bool(), zero, zero, zero, zero + 1, (Group((0, 1)),))
    with pytest.raises(ValueError, match=r"row 1: columns \[5, 6, 7, 8\] are a one-hot group but hold"):
        origin = encoding.space.lower.float().repeat(2, 1)
        origin[0, 5] = encoding.space.upper[5]
        encoding.space.check_origin(origin)
    with pytest.raises(ValueError, match="rows have 3 columns but the space has 12"):
        encoding.space.check_origin(torch.zeros(1, 3))
    with pytest.raises(ValueError, match="at least one row"):
        Space.free(torch.zeros(0, 3))


TWO = torch.tensor([0.0, 1.0, 0.0, 0.0])
FOUR = {
    "lower": torch.zeros(4),
    "upper": torch.ones(4),
    "mutable": torch.ones(4, dtype=torch.bool),
    "direction": torch.zeros(4),
    "step": torch.zeros(4),
    "shift": torch.zeros(4),
    "scale": torch.ones(4),
}


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"step": -TWO}, ValueError, r"step is not 0 .any value. or a finite number above 0 in columns \[1\]"),
        ({"step": TWO * torch.nan}, ValueError, r"step is not .* in columns \[0, 1, 2, 3\]"),
        ({"step": TWO / 0 * 1}, ValueError, r"step is not .* in columns"),
        ({"scale": TWO}, ValueError, r"scale is not a finite number above 0 in columns \[0, 2, 3\]"),
        ({"scale": 1 - 2 * TWO}, ValueError, r"scale is not .* in columns \[1\]"),
        ({"scale": torch.tensor([1, torch.inf, 1, torch.nan])}, ValueError, r"scale is not .* in columns \[1, 3\]"),
        ({"shift": torch.tensor([1, torch.inf, 1, torch.nan])}, ValueError, r"shift is not a .* in columns \[1, 3\]"),
        ({"lower": torch.tensor([0, 0, torch.nan, 0])}, ValueError, r"bounds are NaN in columns \[2\]"),
        ({"upper": torch.tensor([1, 1, torch.nan, 1])}, ValueError, r"bounds are NaN in columns \[2\]"),
        (
            {"lower": torch.full((4,), torch.inf), "upper": torch.full((4,), torch.inf)},
            ValueError,
            r"bounds leave no number in columns \[0, 1, 2, 3\]",
        ),
        ({"direction": 2 * TWO}, ValueError, r"direction is neither 1 .* in columns \[1\]"),
        ({"direction": TWO * torch.nan}, ValueError, r"direction is neither 1"),
        ({"mutable": torch.ones(3, dtype=torch.bool)}, ValueError, r"mutable has shape \(3,\), lower has \(4,\)"),
        ({"shift": torch.zeros(1, 4)}, ValueError, r"shift has shape \(1, 4\), lower has \(4,\)"),
        ({"lower": torch.zeros(1, 4)}, ValueError, r"lower has shape \(1, 4\)"),
        ({"mutable": torch.ones(4)}, TypeError, r"mutable is torch\.float32; expected torch\.bool"),
        ({"lower": torch.zeros(4, dtype=torch.int64)}, TypeError, r"lower is torch\.int64 and upper torch\.float32"),
        ({"upper": torch.ones(4).double()}, TypeError, "expected one floating dtype"),
        ({"step": [0, 0, 0, 0]}, TypeError, "step is a list; expected a tensor"),
        ({"groups": (Group((2, 3)), Group((3,)))}, ValueError, r"columns \[3\] are in more than one group"),
        ({"groups": (Group((2, 4)),)}, ValueError, r"group \[2, 4\] has columns that are not among the 4 there are"),
        ({"groups": (Group((-1, 2)),)}, ValueError, r"group \[-1, 2\] has columns that are not among the 4"),
        ({"groups": ((2, 3),)}, TypeError, r"groups is \(\(2, 3\),\); expected a tuple of Group"),
        (
            {"upper": torch.full((4,), torch.inf), "groups": (Group((2, 3)),)},
            ValueError,
            r"group \[2, 3\]: on and off must differ, .* and be finite",
        ),
    ],
)
def test_a_space_is_made_of_sound_parts(changes, error, says):
    Space(**FOUR)
    with pytest.raises(error, match=says):
        Space(**{**FOUR, **changes})


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({"columns": (2, 3, 2)}, ValueError, r"group \[2, 3, 2\]: columns has \[2\] twice"),
        ({"columns": ()}, ValueError, "a group needs the numbers of its columns, got none"),
        ({"columns": 3}, TypeError, r"columns of a group is 3; give column numbers, such as \(3, 4, 5\)"),
        ({"columns": (1.5, 2)}, TypeError, r"columns of a group is \(1.5, 2\)"),
        ({"columns": "ab"}, TypeError, "columns of a group is 'ab'"),
        ({"columns": (2, 3), "avoid": (1,)}, ValueError, r"avoid has columns \[1\], which are not of the group"),
        ({"columns": (2, 3), "avoid": (3, 3)}, ValueError, r"avoid has \[3\] twice"),
        ({"columns": (2, 3), "optional": "no"}, TypeError, "optional is 'no'; it must be True or False"),
        ({"columns": (2, 3), "avoid_none": 1}, TypeError, "avoid_none is 1; it must be True or False"),
    ],
)
def test_a_group_is_made_of_columns(settings, error, says):
    with pytest.raises(error, match=says):
        Group(**settings)


def test_columns_of_a_group_may_come_as_a_list_or_a_tensor():
    assert Group([2, 3], avoid=torch.tensor([3])) == Group((2, 3), avoid=(3,))


def test_a_space_is_not_checked_again_before_every_search(monkeypatch):
    space = Space(**FOUR, groups=(Group((2, 3)),))
    monkeypatch.setattr(Space, "__post_init__", lambda self: pytest.fail("checked again"))
    moved = space.to(torch.zeros(1, dtype=torch.float64))
    assert {getattr(moved, name).dtype for name in FOUR if name != "mutable"} == {torch.float64}
    assert moved.groups == space.groups
    assert space.to(torch.zeros(1)).step.dtype == torch.float64


def test_levels_that_become_one_number_in_another_dtype_are_refused():
    one = torch.ones(4, dtype=torch.float64)
    near = {**FOUR, "lower": one, "upper": one + 1e-9}
    space = Space(**near, groups=(Group((2, 3)),))
    with pytest.raises(ValueError, match=r"group \[2, 3\]: on and off must differ"):
        space.to(torch.zeros(1))


# ---- gaps: parts of the line where nobody is ----


def line(**changes):
    """One whole number from 0 to 100, one real number from 0 to 100, nobody between 30 and 60 of either."""
    zero, one = torch.zeros(2).double(), torch.ones(2).double()
    settings = {
        "lower": zero,
        "upper": 100 * one,
        "mutable": one.bool(),
        "direction": zero,
        "step": torch.tensor([1.0, 0.0]).double(),
        "shift": zero,
        "scale": one,
        "gaps": ((0, 30.0, 60.0), (1, 30.0, 60.0)),
    }
    return Space(**settings | changes)


def test_nobody_is_moved_into_a_gap():
    wanted = torch.arange(0, 100.5, 0.5).double()[:, None].repeat(1, 2)
    origin = torch.full_like(wanted, 10)
    space = line()
    snapped = space.snap(wanted, origin)
    assert not ((snapped > 30) & (snapped < 60)).any()
    assert ((snapped - wanted).abs() <= 15).all()
    assert not space.violations(snapped, origin).any()
    assert torch.equal(space.snap(snapped, origin), snapped)
    inside = (wanted > 30) & (wanted < 60)
    assert torch.equal(space.violations(wanted, origin)[:, 1], inside[:, 1])


def test_who_is_in_a_gap_may_stay_there_or_leave_it():
    origin = torch.full((3, 2), 41.0).double()
    wanted = torch.tensor([[41.0, 41.0], [50, 50], [70, 70]]).double()
    snapped = line().snap(wanted, origin)
    assert snapped.tolist() == [[41, 41], [41, 41], [70, 70]]  # 50 is nearer to 41 than to 60
    assert not line().violations(snapped, origin).any()


def test_the_far_end_of_a_gap_is_taken_where_the_near_one_is_out_of_reach():
    space = line(direction=torch.ones(2).double())
    origin = torch.tensor([[41.0, 41.0]]).double()
    assert space.snap(torch.tensor([[49.0, 52.0]]).double(), origin).tolist() == [[41, 60]]
    assert (space.snap(torch.tensor([[59.0, 59.0]]).double(), origin) == 60).all()


def test_several_gaps_of_a_column():
    space = line(gaps=((0, 10.0, 20.0), (0, 40.0, 50.0), (1, 0.0, 99.0)))
    origin = torch.tensor([[0.0, 0.0]]).double()
    reached = [space.snap(torch.tensor([[float(v), float(v)]]).double(), origin)[0].tolist() for v in (12, 18, 44, 46)]
    assert reached == [[10, 0], [20, 0], [40, 0], [50, 0]]


@pytest.mark.parametrize("gap", [(2, 0.0, 1.0), (-1, 0.0, 1.0), (0, 1.0, 1.0), (0, 2.0, 1.0)])
def test_a_gap_that_is_none_is_refused(gap):
    with pytest.raises(ValueError, match="gap"):
        line(gaps=(gap,))


# ---- people who may do less than others ----


def test_what_one_person_keeps_others_may_change():
    personal = Personal.none(3, 2)
    personal.mutable[0, 0] = False
    personal.lower[1, 1], personal.upper[1, 1] = 5, 20
    space = line(gaps=(), personal=personal)
    origin = torch.full((3, 2), 10.0).double()
    wanted = torch.full((3, 2), 50.0).double()
    assert space.snap(wanted, origin).tolist() == [[10, 50], [50, 20], [50, 50]]
    assert space.project(wanted, origin).tolist() == [[10, 50], [50, 20], [50, 50]]
    assert space.violations(wanted, origin).tolist() == [[True, False], [False, True], [False, False]]
    some = space.of(torch.tensor([1, 1, 0]))
    assert some.snap(wanted, origin).tolist() == [[50, 20], [50, 20], [10, 50]]


def test_a_space_of_some_people_is_not_used_for_others():
    space = line(personal=Personal.none(3, 2))
    with pytest.raises(ValueError, match="for 3 people, but there are 2 rows"):
        space.snap(torch.zeros(2, 2).double(), torch.zeros(2, 2).double())
    with pytest.raises(ValueError, match="personal has 5 columns"):
        line(personal=Personal.none(3, 5))
