"""Compiled relations against plain Python: small worlds in which every completion can be tried."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Determines, Exclusive, Feature, Follows, Implies, Ordered, Schema, Sums
from holdfast.tabular import rules as tabular_rules
from holdfast.tabular.rules import Limits, compiled

FEATURES = (
    Feature("a", "integer"),
    Feature("b", "integer"),
    Feature("c", "integer"),
    Feature("r", "real"),
    Feature("s", "real"),
    Feature("low", "ordinal", levels=("no", "some", "much")),
    Feature("high", "ordinal", levels=("no", "some", "much")),
    Feature("job", "categorical", levels=("cook", "nurse", "none"), zero_level="other", avoid=("none",)),
    Feature("own", "binary", levels=(False, True)),
    Feature("age", "integer", mutable=False),
)
NAMES = [feature.name for feature in FEATURES]
NUMBERS, LEVELS = NAMES[:5], NAMES[5:9]
BY_NAME = {feature.name: feature for feature in FEATURES}


def mended(rules, v, origin, kept, limits):
    broken = torch.stack([~rule.acceptable(v, origin) for rule in rules], dim=1)
    return tabular_rules.mended(rules, broken, v, origin, kept, limits)


def values_of(name: str) -> list:
    return list(BY_NAME[name].values) or [-1, 0, 1, 2, 3]


# ---- random relations, and what they mean ----


def some_relation(draw: random.Random, kind: str):
    if kind == "determines":
        by = draw.sample(NUMBERS[:3] + LEVELS, draw.choice([1, 2]))
        column = draw.choice([name for name in NUMBERS[:4] + LEVELS if name not in by])
        keys = [key for key in itertools.product(*map(values_of, by)) if draw.random() < 0.7]
        rows = [(*key, draw.choice(values_of(column))) for key in keys]
        return Determines(tuple(by), column, rows or ((*(values_of(name)[0] for name in by), values_of(column)[0]),))
    if kind == "implies":
        names = draw.sample(NUMBERS + LEVELS, draw.choice([2, 3]))
        sides = [{}, {}]
        for number, name in enumerate(names):
            if name in NUMBERS:
                allowed = tuple(sorted(draw.choices(values_of(name), k=2)))
            else:
                allowed = tuple(draw.sample(values_of(name), draw.randint(1, len(values_of(name)) - 1)))
            sides[number if number < 2 else draw.randrange(2)][name] = allowed
        return Implies(*sides)
    if kind == "exclusive":
        return Exclusive(draw.sample(NUMBERS, draw.choice([2, 3])))
    if kind == "ordered":
        return Ordered(draw.choice([draw.sample(NUMBERS, draw.choice([2, 3])), ["low", "high"]]))
    if kind == "sums":
        names = draw.sample(NUMBERS[:3], 3) if draw.random() < 0.6 else draw.sample(NUMBERS, 3)
        return Sums(names[0], names[1:], draw.choice([None, *names]))
    of = draw.choice(["a", "low", "job", "own"])
    if of == "a" or (of == "low" and draw.random() < 0.5):
        return Follows("age", of, rate=draw.choice([1, 2, -1, 0.5]))
    return Follows("age", of, by={level: draw.choice([0, 1, 2, 3]) for level in values_of(of)})


KINDS = ("determines", "implies", "exclusive", "ordered", "sums", "follows")


def breach(relation, person: dict) -> float:
    """How badly a person breaks a relation; 1 where it is a matter of yes or no."""
    if isinstance(relation, Determines):
        fixed = {row[:-1]: row[-1] for row in relation.rows}
        key = tuple(person[name] for name in relation.by)
        return float(key not in fixed or fixed[key] != person[relation.column])
    if isinstance(relation, Implies):

        def met(side):
            return all(
                allowed[0] <= person[name] <= allowed[1] if name in NUMBERS else person[name] in allowed
                for name, allowed in side.items()
            )

        return float(met(relation.when) and not met(relation.then))
    if isinstance(relation, Exclusive):
        return sum(sorted(max(0, person[name]) for name in relation.columns)[:-1])
    if isinstance(relation, Ordered):
        row = [values_of(name).index(person[name]) if name in LEVELS else person[name] for name in relation.columns]
        return max(0, *(row[i] - row[j] for i in range(len(row)) for j in range(i, len(row))))
    if isinstance(relation, Sums):
        return abs(person[relation.total] - sum(person[name] for name in relation.parts))
    return 0.0


def is_acceptable(relation, person: dict, origin: dict) -> bool:
    if isinstance(relation, Follows):
        if relation.by:
            gain = relation.by[person[relation.of]] - relation.by[origin[relation.of]]
        else:
            place = values_of(relation.of).index if relation.of in LEVELS else float
            gain = relation.rate * (place(person[relation.of]) - place(origin[relation.of]))
        return person["age"] == origin["age"] + round(max(0, gain) + origin["age"]) - origin["age"]
    now, before = breach(relation, person), breach(relation, origin)
    if isinstance(relation, (Determines, Implies)):
        return now == 0 or (before > 0 and all(person[name] == origin[name] for name in relation.columns))
    return now <= 1e-9 or (before > 1e-9 and now <= before + 1e-9)


# ---- worlds ----


@dataclass
class World:
    """A few persons: where they are, where a search has put them, and what they may do."""

    v: torch.Tensor
    origin: torch.Tensor
    kept: torch.Tensor
    limits: Limits

    def rows(self, rows: list[int]) -> World:
        place = torch.tensor(rows)
        return World(self.v[place], self.origin[place], self.kept[place], self.limits.of(place))

    def domain(self, row: int, column: int, follows: bool) -> list[float]:
        now = float(self.v[row, column])
        if self.kept[row, column] or not (self.limits.movable[row, column] or (follows and NAMES[column] == "age")):
            return [now]
        low, high = int(self.limits.lower[row, column]), int(self.limits.upper[row, column])
        feature = FEATURES[column]
        inside = [x for x in range(low, high + 1) if not feature.avoid or feature.values[x] not in feature.avoid]
        return sorted({*map(float, inside), float(self.origin[row, column])})


def some_world(draw: random.Random, rows: int = 4, odd_origins: bool = True) -> World:
    def number(feature):
        return draw.randrange(len(feature.values)) if feature.values else draw.randint(-1, 3)

    origin = [[number(feature) for feature in FEATURES] for _ in range(rows)]
    lower, upper = [], []
    for person in origin:
        ends = []
        for feature, here in zip(FEATURES, person, strict=True):
            most = len(feature.values) - 1 if feature.values else 3
            low, high = (
                (0 if feature.values else -1, most) if draw.random() < 0.6 else (here, here + draw.randint(0, 2))
            )
            if draw.random() < 0.2:
                low, high = draw.choice([(here, most), (here + 1, here - 1)])
            if not odd_origins and low <= high:
                low, high = min(low, here), max(high, here)
            ends.append((low, min(high, most)))
        lower.append([low for low, _ in ends])
        upper.append([high for _, high in ends])
    movable = [[feature.mutable and draw.random() < 0.85 for feature in FEATURES] for _ in range(rows)]
    kept = [[draw.random() < 0.35 for _ in FEATURES] for _ in range(rows)]
    real = torch.float64
    limits = Limits(
        torch.tensor(lower, dtype=real),
        torch.tensor(upper, dtype=real),
        torch.tensor(movable),
        torch.tensor([feature.grid or 0 for feature in FEATURES], dtype=real),
        torch.full((len(FEATURES),), 1e-6, dtype=real),
    )
    start = torch.tensor(origin, dtype=real)
    world = World(start, start, torch.zeros(rows, len(FEATURES), dtype=torch.bool), limits)
    v = [[draw.choice(world.domain(row, column, False)) for column in range(len(FEATURES))] for row in range(rows)]
    return World(torch.tensor(v, dtype=real), start, torch.tensor(kept), limits)


def raw(values: dict[str, float]) -> dict:
    return {name: BY_NAME[name].values[int(value)] if BY_NAME[name].values else value for name, value in values.items()}


def person(row: torch.Tensor) -> dict:
    return raw(dict(zip(NAMES, row.tolist(), strict=True)))


def settled(*relations):
    """The relations as a schema reads them."""
    return Schema(FEATURES, "y", (0, 1), relations).relations


def can_be_completed(world: World, row: int, relation) -> bool:
    columns = [NAMES.index(name) for name in relation.columns]
    domains = [world.domain(row, column, isinstance(relation, Follows)) for column in columns]
    origin = person(world.origin[row])
    return any(
        is_acceptable(relation, {**origin, **raw(dict(zip(relation.columns, values, strict=True)))}, origin)
        for values in itertools.product(*domains)
    )


RANDOM = st.integers(0, 2**32 - 1).map(random.Random)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(draw=RANDOM)
def test_what_can_be_completed_is_completed(kind, draw):
    (relation,) = settled(some_relation(draw, kind))
    world = some_world(draw, odd_origins=kind != "sums")
    rules = compiled((relation,), FEATURES)
    result, ok = mended(rules, world.v, world.origin, world.kept, world.limits)
    for row in range(len(world.v)):
        before, after, origin = (person(part[row]) for part in (world.v, result, world.origin))
        was = is_acceptable(relation, before, origin)
        assert bool(rules[0].acceptable(world.v, world.origin)[row]) == was
        if not isinstance(relation, Follows):
            assert bool(rules[0].holds(world.v)[row]) == (breach(relation, before) <= 1e-9)
        assert bool(ok[row]) == can_be_completed(world, row, relation), (before, origin)
        assert is_acceptable(relation, after, origin) == bool(ok[row])


@settings(max_examples=20, deadline=None)
@given(draw=RANDOM)
def test_several_rules_leave_what_is_kept_and_what_is_right(draw):
    chosen = list(dict.fromkeys(some_relation(draw, draw.choice(KINDS[:5])) for _ in range(3)))
    relations = settled(*chosen, some_relation(draw, "follows"))
    rules, world = compiled(relations, FEATURES), some_world(draw)
    result, ok = mended(rules, world.v, world.origin, world.kept, world.limits)
    changed = result != world.v
    assert not (changed & world.kept).any()
    assert not changed[~ok].any(), "what could not be mended comes back as it was"
    for row in range(len(world.v)):
        origin = person(world.origin[row])
        if all(is_acceptable(relation, person(world.v[row]), origin) for relation in relations):
            assert ok[row]
            assert not changed[row].any()
        if ok[row]:
            assert all(is_acceptable(relation, person(result[row]), origin) for relation in relations)
        for column in torch.nonzero(changed[row]).flatten().tolist():
            assert not FEATURES[column].is_numeric or FEATURES[column].grid is None or result[row, column] % 1 == 0
            domain = world.domain(row, column, True)
            in_hull = domain[0] <= result[row, column] <= domain[-1]
            assert in_hull if FEATURES[column].kind == "real" else float(result[row, column]) in domain
    again, still = mended(rules, result, world.origin, world.kept, world.limits)
    assert torch.equal(again, result)
    assert torch.equal(still, ok)
    for row in (0, 3):
        alone = world.rows([row])
        one, one_ok = mended(rules, alone.v, alone.origin, alone.kept, alone.limits)
        assert torch.equal(one[0], result[row])
        assert torch.equal(one_ok[0], ok[row])


# ---- single cases, known beforehand ----


def one(relation, now: dict, origin: dict, kept: tuple[str, ...], **edges: tuple[float, float]) -> dict | None:
    """Where one person goes, whose other columns are all 0; None if nowhere. Edges are -100 to 100 unless told."""
    relations = settled(*(relation if isinstance(relation, tuple) else (relation,)))

    def row(values):
        places = {
            name: BY_NAME[name].values.index(value) if BY_NAME[name].values else value for name, value in values.items()
        }
        return torch.tensor([[float(places.get(name, 0)) for name in NAMES]], dtype=torch.float64)

    ends = [
        edges.get(feature.name, (0, len(feature.values) - 1) if feature.values else (-100, 100)) for feature in FEATURES
    ]
    limits = Limits(
        torch.tensor([[float(low) for low, _ in ends]], dtype=torch.float64),
        torch.tensor([[float(high) for _, high in ends]], dtype=torch.float64),
        torch.tensor([[feature.mutable for feature in FEATURES]]),
        torch.tensor([feature.grid or 0 for feature in FEATURES], dtype=torch.float64),
        torch.full((len(FEATURES),), 1e-6, dtype=torch.float64),
    )
    fixed = torch.tensor([[name in kept for name in NAMES]])
    result, ok = mended(compiled(relations, FEATURES), row({**origin, **now}), row(origin), fixed, limits)
    touched = [name for relation in relations for name in relation.columns]
    return {name: person(result[0])[name] for name in touched} if ok else None


TABLE = Determines(("job",), "a", (("cook", 1), ("nurse", 2), ("none", 2), ("other", 3)))
SPLIT = Sums("a", ("b", "c"))
EARLY, WORKS = {"a": 5, "b": 2, "c": 3}, {"job": "cook", "a": 1}
MARRIED = Implies({"own": (True,)}, {"job": ("nurse", "none"), "a": (2, 4)})

CASES = {
    "the column is fixed by the others": (TABLE, {"job": "other"}, WORKS, ("job",), {"job": "other", "a": 3}),
    "a kept column asks for its row": (TABLE, {"a": 3}, WORKS, ("a",), {"job": "other", "a": 3}),
    "and not for a level to avoid": (TABLE, {"a": 2}, WORKS, ("a",), {"job": "nurse", "a": 2}),
    "no row has it": (TABLE, {"a": 7}, WORKS, ("a",), None),
    "the conclusion is made true": (
        MARRIED, {"own": True}, {"own": False, "job": "cook", "a": 9}, ("own",), {"own": True, "job": "nurse", "a": 4},
    ),
    "the premise is taken back": (
        MARRIED, {"own": True, "a": 9}, {"own": False, "job": "nurse", "a": 3}, ("a",),
        {"own": False, "job": "nurse", "a": 9},
    ),
    "the others go to 0": (
        Exclusive(("a", "b", "c")), {"a": 5}, {"a": 0, "b": 4, "c": -2}, ("a",), {"a": 5, "b": 0, "c": -2},
    ),
    "of two, the one that moved stays": (
        Exclusive(("a", "b")), {"a": 5, "b": 6}, {"a": 5, "b": 0}, (), {"a": 0, "b": 6},
    ),
    "later ones are raised": (
        Ordered(("a", "b", "c")), {"a": 5}, {"a": 1, "b": 2, "c": 9}, ("a",), {"a": 5, "b": 5, "c": 9},
    ),
    "earlier ones are lowered": (
        Ordered(("a", "b", "c")), {"c": 1}, {"a": 1, "b": 2, "c": 9}, ("c",), {"a": 1, "b": 1, "c": 1},
    ),
    "whole numbers are rounded outward": (
        Ordered(("r", "a")), {"r": 2.5}, {"r": 1.0, "a": 1}, ("r",), {"r": 2.5, "a": 3},
    ),
    "an order that was wrong need not become right": (
        Ordered(("a", "b")), {"a": 6}, {"a": 5, "b": 2}, ("a",), {"a": 6, "b": 3},
    ),
    "the total takes up a change": (SPLIT, {"b": 4}, EARLY, ("b",), {"a": 7, "b": 4, "c": 3}),
    "or the column that is named": (
        Sums("a", ("b", "c"), "c"), {"b": 4}, EARLY, ("b",), {"a": 5, "b": 4, "c": 1},
    ),
    "with a kept total, parts are exchanged": (SPLIT, {"b": 4}, EARLY, ("a", "b"), {"a": 5, "b": 4, "c": 1}),
    "a sum that was wrong stays as wrong": (
        SPLIT, {"b": 1}, {"a": 9, "b": 2, "c": 3}, ("b",), {"a": 8, "b": 1, "c": 3},
    ),
    "the column follows": (Follows("age", "a", rate=2), {"a": 3}, {"a": 1, "age": 30}, ("a",), {"age": 34, "a": 3}),
    "but not back": (Follows("age", "a", rate=2), {"a": 0}, {"a": 1, "age": 30}, ("a",), {"age": 30, "a": 0}),
    "nor by itself": (Follows("age", "a", rate=2), {"age": 31}, {"a": 1, "age": 30}, (), {"age": 30, "a": 1}),
    "nor beyond its bounds": (Follows("age", "a", rate=2), {"a": 60}, {"a": 1, "age": 30}, ("a",), None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_how_a_change_is_completed(case):
    relation, now, origin, kept, answer = CASES[case]
    assert one(relation, now, origin, kept) == answer


def test_each_part_of_a_sum_goes_as_far_as_it_may():
    answer = one(Sums("a", ("b", "c", "r")), {"b": 9}, {"a": 9, "b": 1, "c": 4, "r": 4.0}, ("a", "b"), c=(1, 9))
    assert answer == {"a": 9, "b": 9, "c": 1, "r": -1.0}


def test_the_total_and_the_parts_share_what_neither_can_take_up_alone():
    answer = one(SPLIT, {"b": 4}, EARLY, ("b",), a=(0, 6), c=(2, 9))
    assert answer == {"a": 6, "b": 4, "c": 2}


def test_the_value_at_the_origin_may_be_taken_again_also_outside_the_bounds():
    relation = Implies({"own": (True,)}, {"b": (8, 10), "c": (5, 6)})
    answer = one(relation, {"own": True, "b": 3}, {"own": False, "b": 9, "c": 0}, ("own",), b=(0, 4))
    assert answer == {"own": True, "b": 9, "c": 5}


def test_of_several_levels_the_one_at_the_origin_comes_first():
    relation = Implies({"own": (True,)}, {"job": ("cook", "nurse")})
    answer = one(relation, {"own": True, "job": "other"}, {"own": False, "job": "nurse"}, ("own",))
    assert answer == {"own": True, "job": "nurse"}


def test_the_row_with_the_fewest_changes_is_taken():
    rows = ((True, "some", "cook"), (True, "no", "other"), (True, "much", "other"))
    relation = Determines(("own", "low"), "job", rows)
    answer = one(relation, {"low": "no"}, {"own": False, "low": "much", "job": "cook"}, ("low",))
    assert answer == {"own": True, "low": "no", "job": "other"}
    answer = one(relation, {"low": "no"}, {"own": False, "low": "much", "job": "cook"}, ())
    assert answer == {"own": True, "low": "no", "job": "other"}


def test_what_one_rule_changes_the_rules_before_it_hear_of():
    chain = (Ordered(("b", "c")), Sums("b", ("r", "a")), Follows("age", "a", rate=1), TABLE)
    origin = {"job": "cook", "a": 1, "age": 30, "b": 1, "c": 1}
    answer = one(chain, {"job": "other"}, origin, ("job",))
    assert answer == {"job": "other", "a": 3, "age": 32, "r": 0.0, "b": 3, "c": 3}


def test_where_another_rule_refuses_the_first_choice_the_next_is_tried():
    married = Implies({"own": (True,)}, {"job": ("cook", "nurse")})
    rules = (married, Implies({"job": ("cook",)}, {"low": ("much",)}))
    origin = {"own": False, "job": "other", "low": "no"}
    assert one(rules, {"own": True}, origin, ("own", "low")) == {"own": True, "job": "nurse", "low": "no"}
    table = Determines(("job",), "a", (("cook", 1), ("nurse", 2), ("other", 2)))
    rules = (table, Implies({"job": ("nurse",)}, {"low": ("much",)}))
    origin = {"job": "cook", "a": 1, "low": "no"}
    assert one(rules, {"a": 2}, origin, ("a", "low")) == {"job": "other", "a": 2, "low": "no"}


def test_missing_values_break_nothing_and_stay():
    relations = settled(TABLE, MARRIED, Exclusive(("b", "c")), Ordered(("b", "r")), Sums("c", ("b", "r")))
    rules = compiled((*relations, *settled(Follows("age", "a", rate=1))), FEATURES)
    v = torch.full((2, len(FEATURES)), torch.nan, dtype=torch.float64)
    limits = Limits(v, v, torch.ones_like(v, dtype=torch.bool), torch.ones_like(v[0]), torch.zeros_like(v[0]))
    result, ok = mended(rules, v, v, torch.zeros_like(v, dtype=torch.bool), limits)
    assert ok.all()
    assert result.isnan().all()
    for rule in rules:
        assert rule.holds(v).all()


def test_noise_of_encoding_breaks_nothing():
    (rule,) = compiled(settled(Sums("r", ("s", "a"))), FEATURES, slack=[0.01] * len(FEATURES))
    v = torch.zeros(2, len(FEATURES), dtype=torch.float64)
    v[:, NAMES.index("r")] = torch.tensor([0.02, 0.05])
    assert rule.holds(v).tolist() == [True, False]
    (exact,) = compiled(settled(Sums("a", ("b", "c"))), FEATURES)
    v[:, :3] = torch.tensor([[1e7, 1e7, 0], [1e7, 1e7, 1]])
    assert exact.holds(v).tolist() == [True, False], "whole numbers add up exactly"


def test_a_relation_without_rows_is_not_compiled():
    with pytest.raises(ValueError, match=r"'job fixes a' has no rows yet; learn them with schema.learned"):
        compiled(settled(Determines(("job",), "a")), FEATURES)


def test_a_large_table_is_searched_in_blocks(monkeypatch):
    monkeypatch.setattr("holdfast.tabular.rules.PAIRS_AT_ONCE", 8)
    assert one(TABLE, {"a": 3}, WORKS, ("a",)) == {"job": "other", "a": 3}


def test_a_code_beyond_the_declared_bounds_does_not_count_months():
    """Who has no record (-8) of the oldest trade still has none after waiting."""
    features = (Feature("oldest", "integer", mutable=False, lower=0), Feature("latest", "integer", lower=0))
    (rule,) = compiled((Follows("oldest", "latest", rate=1.0),), features)
    origin = torch.tensor([[-8.0, 3.0], [60.0, -7.0], [60.0, 3.0]]).double()
    after = torch.tensor([[-8.0, 20.0], [60.0, 20.0], [60.0, 20.0]]).double()
    assert rule.needed(after, origin).tolist() == [-8, 60, 77]
    assert rule.acceptable(after, origin).tolist() == [True, True, False]
