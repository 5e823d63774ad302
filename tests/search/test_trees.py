"""The search inside trees: beside all cells there are, and what it must never do."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import EVERYTHING, everything
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Encoding, Feature, Implies, Margin, MinCost, Wish, merged, other_class
from holdfast.models.asked import asked
from holdfast.models.deployed import Deployed
from holdfast.models.scores import AtLeast, log_odds, margin
from holdfast.models.trees.ensemble import Ensemble
from holdfast.search.gradients import LEAST_SCORE, Ball
from holdfast.search.moves import Task
from holdfast.search.tree_cells import INSIDE, Board
from holdfast.search.trees import cheapest_in_trees

ROWS = 12


def table(rows: int = 80) -> pd.DataFrame:
    """Every kind of feature, with a gap and with missing numbers."""
    draw = np.random.default_rng(5)
    more = pd.DataFrame(
        {
            "limit": draw.choice([*range(11), *range(50, 61)], rows),
            "rating": np.where(draw.random(rows) < 0.2, np.nan, draw.normal(0, 3, rows).round(4)),
        }
    )
    return pd.concat([everything(rows), more], axis=1)


MORE = (
    Feature("limit", "integer", ranges=((0, 10), (50, 60))),
    Feature("rating", "real", lower=-9, upper=9, missing=True),
)
SCHEMA = replace(EVERYTHING, features=(*EVERYTHING.features, *MORE))
ENCODING = Encoding.fit(table(), SCHEMA)


def grown(
    seed: int, encoding: Encoding = ENCODING, outputs: int = 1, trees: int = 6, used: int = 4, link: str = "logit"
) -> Ensemble:
    """Trees of four leaves over some features, drawn by chance."""
    draw = np.random.default_rng(seed)
    features = encoding.schema.features
    chosen = draw.permutation(len(features))[:used]
    edges = []
    for place, feature in enumerate(features):
        own = encoding.known[feature.name].dropna().to_numpy() if feature.is_numeric else np.empty(0)
        own = np.unique(draw.choice(own, 3)).astype(float) if place in chosen and len(own) else np.empty(0)
        edges.append(own + (0.5 if feature.kind == "integer" else 0.0))
    most = max(len(feature.values) + feature.missing for feature in features)
    sets = draw.random((3 * trees, most)) < 0.5
    feature, split, value = [], [], []
    for _ in range(trees):
        for node in range(7):
            own = int(draw.choice(chosen)) if node < 3 else -1
            if own >= 0 and features[own].is_numeric and not len(edges[own]):
                own = next(int(other) for other in chosen if not features[other].is_numeric or len(edges[other]))
            feature.append(own)
            number = own >= 0 and features[own].is_numeric
            split.append(int(draw.integers(len(edges[own]))) if number else int(draw.integers(len(sets))))
            leaf = (
                draw.normal(size=outputs)
                if link == "logit"
                else draw.dirichlet(np.ones(max(2, outputs)))[:outputs] / trees
            )
            value.append(leaf if node > 2 else np.zeros(outputs))
    start = np.arange(trees)[:, None] * 7
    left, right = ((start + ends).ravel() for ends in ([1, 3, 5, 0, 0, 0, 0], [2, 4, 6, 0, 0, 0, 0]))
    i32 = np.int32
    return Ensemble(
        encoding,
        tuple(edges),
        np.array(feature, i32),
        np.array(split, i32),
        draw.random(7 * trees) < 0.5,
        left.astype(i32),
        right.astype(i32),
        np.array(value),
        (np.arange(trees) * 7).astype(i32),
        sets,
        np.zeros(outputs),
        link,
    )


def deployed(ensemble: Ensemble) -> Deployed:
    """The trees as the user's own object, asked about tables."""

    def ask(rows: pd.DataFrame) -> np.ndarray:
        return ensemble.logits(ensemble.raw(ensemble.cells(rows)))

    return Deployed(ensemble, ensemble.encoding, ask, "trees drawn by chance", ensemble=ensemble)


def question(ensemble: Ensemble, norm: int = 1, dtype: torch.dtype = torch.float32, score=margin, space=None) -> Task:
    model = asked(deployed(ensemble))
    x = ensemble.encoding.encode(ensemble.encoding.known.iloc[:ROWS], dtype)
    target = (model(x).argmax(1) + 1) % len(ensemble.encoding.schema.classes)
    space = ensemble.encoding.space if space is None else space
    return Task(model, x, target, replace(space, people=None, related=None).to(x), norm, score)


def least(task: Task, ensemble: Ensemble, row: int) -> float:
    """What the cheapest of all points of a row costs that is valid and scores enough; infinite if there is none."""
    board, some = Board.of(ensemble, task.space), task.of(torch.tensor([row]))
    home = ensemble.cells(ensemble.encoding.decode(some.origin)).astype(np.int64)
    cost, value = board.offers(some.origin, home, task.norm, some.space)
    choices = [
        np.flatnonzero(np.isfinite(cost[0, start:end])) if (ensemble.feature == number).any() else home[0, number, None]
        for number, (start, end) in enumerate(itertools.pairwise(board.offset))
    ]
    cells = np.array(list(itertools.product(*choices)))
    people = torch.zeros(len(cells), dtype=torch.long)
    many = some.of(people)
    rows = people.numpy()
    points = board.written(many.origin, home[rows], cells, value[rows])
    assert not many.space.violations_apart(points, many.origin).any()
    enough = many.tried(many.score, points[:, None])[:, 0] > 1.03 * LEAST_SCORE
    return float(torch.where(enough, many.cost(points), torch.inf).min())


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.sampled_from([1, 2]))
def test_of_all_cells_there_are_the_cheapest_is_found(seed, norm):
    ensemble = grown(seed)
    task = question(ensemble, norm)
    point = cheapest_in_trees(task, ensemble)
    paid = torch.where(task.enough(point), task.cost(point), torch.inf).double()
    best = torch.tensor([least(task, ensemble, row) for row in range(ROWS)])
    assert (paid.isfinite() == best.isfinite()).all()  # nothing is missed
    there = best.isfinite()
    assert (paid[there] >= best[there] * (1 - 1e-5) - 1e-6).all()
    assert (paid[there] <= best[there] * (1 + 1e-5) + 1e-6).double().mean() >= 0.9 or not there.any()
    assert (point[~there] == task.origin[~there]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_told_is_valid_and_keeps_its_class_when_it_is_written_down(seed, dtype):
    ensemble = grown(seed, trees=20, used=9)
    task = question(ensemble, dtype=dtype)
    point = cheapest_in_trees(task, ensemble)
    assert point.dtype == dtype
    assert not task.space.violations_apart(point, task.origin).any()
    found = task.enough(point)
    assert found.double().mean() > 0.5
    said = ensemble.encoding.decode(point)
    again = ensemble.encoding.encode(ensemble.encoding.decode(point), dtype)
    for rows in (said, ensemble.encoding.decode(again)):
        labels = ensemble.logits(ensemble.raw(ensemble.cells(rows))).argmax(1)
        assert (torch.from_numpy(labels) == task.target)[found].all()
    answer = MinCost(norm=1)(deployed(ensemble), task.origin, task.target, task.space)
    assert (answer.found == found).all()
    torch.testing.assert_close(answer.point[found], point[found])


def test_directions_gaps_grids_and_levels_to_avoid_are_kept():
    said, before = [], []
    for seed in range(8):
        ensemble = grown(seed, trees=20, used=9)
        task = question(ensemble)
        point = cheapest_in_trees(task, ensemble)
        said.append(ENCODING.decode(point))
        before.append(ENCODING.decode(task.origin))
    after, home = pd.concat(said, ignore_index=True), pd.concat(before, ignore_index=True)
    moved = {name: (after[name] != home[name]) & ~(after[name].isna() & home[name].isna()) for name in after}
    assert not moved["age"].any()
    assert (after["income"] >= home["income"]).all()
    assert (after["debt"] % 100 == 0).all()
    assert (after["limit"][moved["limit"]].between(0, 10) | after["limit"][moved["limit"]].between(50, 60)).all()
    assert not (after["job"][moved["job"]] == "none").any()
    assert not (after["delay"][moved["delay"]] == -9).any()
    order = {"low": 0, "middle": 1, "high": 2}
    assert (after["grade"].map(order) >= home["grade"].map(order)).all()
    assert after["rating"][moved["rating"]].notna().all()  # nobody is told to lose a value
    for name in ("income", "debt", "limit", "job", "delay", "grade", "rating"):
        assert moved[name].any(), f"{name} never moves"
    assert (home["rating"].isna() & after["rating"].notna()).any()


def test_what_does_not_move_keeps_its_bits():
    ensemble = grown(3, trees=20, used=9)
    task = question(ensemble)
    point = cheapest_in_trees(task, ensemble)
    cells = [ensemble.cells(ENCODING.decode(part)) for part in (point, task.origin)]
    for place, (_, columns) in enumerate(ENCODING.places):
        same = torch.from_numpy(cells[0][:, place] == cells[1][:, place])
        assert (point[same, columns] == task.origin[same, columns]).all()


def test_a_number_that_may_be_anything_has_few_decimals():
    told = []
    for seed in range(8):
        ensemble = grown(seed, trees=20, used=9)
        task = question(ensemble)
        point = cheapest_in_trees(task, ensemble)
        told += ENCODING.decode(point)["income"][(point != task.origin)[:, 0].numpy()].tolist()
    assert told
    assert all(len(f"{number:.10g}".partition(".")[2]) <= 2 for number in told)


@pytest.mark.parametrize("measure", ["deviation", "percentile"])
@pytest.mark.parametrize("norm", [1, 2])
def test_a_cell_costs_no_more_than_any_valid_value_in_it(measure, norm):
    ensemble = grown(1, trees=20, used=9)
    task = question(ensemble, norm, torch.float64, space=ENCODING.space_by(measure))
    board = Board.of(ensemble, task.space)
    home = ensemble.cells(ENCODING.decode(task.origin)).astype(np.int64)
    cost, _ = board.offers(task.origin, home, norm, task.space)
    draw = torch.Generator().manual_seed(0)
    low, high = task.space.bounds(task.origin)
    for _ in range(30):
        anywhere = low + torch.rand(low.shape, generator=draw, dtype=torch.float64) * (high - low)
        valid = task.space.snap_apart(anywhere, task.origin)
        cells = ensemble.cells(ENCODING.decode(valid))
        paid = task.costs_of_columns(valid[:, None])[:, 0].numpy()
        for place, (_, columns) in enumerate(ENCODING.places):
            own = paid[:, columns].sum(1)
            offered = cost[np.arange(ROWS), board.offset[place] + cells[:, place]]
            room = INSIDE * (1 + 2 * own) if measure == "deviation" else 0.02
            assert (offered <= own + room).all(), ENCODING.schema.names[place]


def test_people_keep_what_they_wish_to_keep():
    space = ENCODING.space_for(Wish(keep=("job",), ranges={"debt": (1000, 2000)}), rows=ROWS)
    paid = []
    for seed in range(8):
        ensemble = grown(seed, trees=20, used=9)
        task = question(ensemble, space=space)
        point = cheapest_in_trees(task, ensemble)
        assert not task.space.violations_apart(point, task.origin).any()
        after, home = ENCODING.decode(point), ENCODING.decode(task.origin)
        assert (after["job"] == home["job"]).all()
        paid += after["debt"][after["debt"] != home["debt"]].tolist()
    assert paid
    assert all(1000 <= debt <= 2000 for debt in paid)


def test_as_sure_as_is_asked():
    ensemble = grown(4, trees=20, used=9)
    wanted = AtLeast(log_odds, 0.5)
    task = question(ensemble, score=wanted)
    point = cheapest_in_trees(task, ensemble)
    there = (point != task.origin).any(1)
    assert there.any()
    assert (log_odds(task.model, point, task.target)[there] >= 0.5).all()
    answer = Margin(level=0.7, search=MinCost(norm=1))(deployed(ensemble), task.origin, task.target, task.space)
    chance = deployed(ensemble)(answer.point).softmax(1).gather(1, task.target[:, None])[:, 0]
    assert answer.found.any()
    assert (chance[answer.found] >= 0.7 - 1e-6).all()


def test_several_classes_and_groups_of_them():
    labels = np.resize(["a", "b", "c"], 80)
    known = table().drop(columns="outcome").assign(outcome=labels)
    encoding = Encoding.fit(known, replace(SCHEMA, classes=("a", "b", "c")))
    for link in ("logit", "probability"):
        ensemble = grown(7, encoding, outputs=3, trees=12, used=6, link=link)
        task = question(ensemble)
        point = cheapest_in_trees(task, ensemble)
        found = task.enough(point)
        assert found.double().mean() > 0.5
        assert (task.model(point).argmax(1) == task.target)[found].all()
        either = asked(merged(deployed(ensemble), ((0,), (1, 2))))
        target = 1 - either(task.origin).argmax(1)
        group = replace(task, model=either, target=target)
        point = cheapest_in_trees(group, ensemble)
        good = group.enough(point)
        assert good.any()
        assert (either(point).argmax(1) == target)[good].all()
        # To be any of two is never dearer than to be one of them.
        one = found & (task.target > 0) & (target == 1)
        assert one.any()
        assert good[one].all()
        assert (
            group.cost(point)[one] <= task.cost(cheapest_in_trees(task, ensemble))[one] + 1e-6
        ).double().mean() > 0.9


def test_a_tie_of_two_halves_is_not_enough():
    ensemble = grown(5, trees=4, link="probability")
    halves = replace(ensemble, value=np.where(ensemble.feature[:, None] < 0, 0.5 / 4, 0.0))
    task = question(ensemble)
    tied = replace(task, model=asked(deployed(halves)))
    assert (cheapest_in_trees(tied, halves) == task.origin).all()


def test_rows_do_not_depend_on_one_another():
    ensemble = grown(6, trees=20, used=9)
    task = question(ensemble)
    whole = cheapest_in_trees(task, ensemble)
    for rows in (torch.arange(5), torch.arange(5, ROWS), torch.tensor([7])):
        assert (cheapest_in_trees(task.of(rows), ensemble) == whole[rows]).all()


def test_without_people_to_start_from_nothing_is_missed():
    ensemble = grown(8, trees=20, used=9)
    alone = replace(ensemble, encoding=replace(ENCODING, known=None))
    task = question(ensemble)
    points = [cheapest_in_trees(task, own) for own in (ensemble, alone)]
    assert (task.enough(points[0]) == task.enough(points[1])).all()


def test_with_relations_and_people_points_keep_both():
    schema = replace(SCHEMA, relations=(Implies({"job": ("baker",)}, {"owner": (True,)}),))
    known = table(200)
    known["owner"] = known["owner"] | (known["job"] == "baker")
    encoding = Encoding.fit(known, schema)
    ensemble = grown(9, encoding, trees=20, used=9)
    model = deployed(ensemble)
    x = encoding.encode(known.iloc[:30])
    target = other_class(model, x)
    free = replace(encoding.space, related=None, people=None)
    spaces = {"free": free, "related": encoding.space.without_people(), "both": encoding.space}
    answers = {name: MinCost(norm=1)(model, x, target, space) for name, space in spaces.items()}
    counts = {name: int(answer.found.sum()) for name, answer in answers.items()}
    assert counts["free"] >= counts["related"] >= counts["both"] > 0
    related, both = answers["related"], answers["both"]
    after, home = encoding.decode(related.point), encoding.decode(x)
    broken = (after["job"] == "baker") & ~after["owner"].astype(bool) & related.found.numpy()
    assert not broken[(home["job"] != "baker").to_numpy()].any()
    assert encoding.people.plausible(both.point, target, x)[both.found].all()
    for answer in (related, both):
        there = answer.found & answers["free"].found
        assert (answer.cost(1)[there] >= answers["free"].cost(1)[there] * 0.999).double().mean() > 0.95


def test_what_it_cannot_do_is_said():
    ensemble = grown(0)
    task = question(ensemble)
    with pytest.raises(NotImplementedError, match="no ball"):
        cheapest_in_trees(replace(task, ball=Ball(task.origin, torch.ones(ROWS))), ensemble)
    with pytest.raises(TypeError, match="margin or log-odds"):
        cheapest_in_trees(replace(task, score=lambda *_: torch.zeros(ROWS)), ensemble)
