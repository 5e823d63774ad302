"""The compiled search of trees: beside all points that there are, and what it must never do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grown_trees import ENCODING, ROWS, SCHEMA, deployed, grown, least, question, table, used_by
from holdfast import Encoding, Implies, Margin, MinCost, Space, Wish, other_class, predict
from holdfast.models.checked import checked_model
from holdfast.models.merged import merged
from holdfast.models.scores import AtLeast, log_odds, margin
from holdfast.search.engine.search import wanted_of


@settings(max_examples=8, deadline=None, derandomize=True)
@given(st.integers(0, 10_000), st.sampled_from([1, 2]))
def test_of_all_points_there_are_the_cheapest_is_found(seed, norm):
    ensemble = grown(seed)
    asks = question(ensemble, norm)
    best = torch.tensor([least(asks, ensemble.edges, used_by([ensemble]), row) for row in range(ROWS)])
    point, there = asks.point(), best.isfinite()
    paid = torch.where(asks.enough(point), asks.cost(point), torch.inf)
    assert (paid.isfinite() == there).all()  # nothing is missed
    # A number that may be anything is told with few decimals, which may cost a thousandth of a deviation.
    assert (paid[there] >= best[there] * (1 - 1e-3) - 1e-3).all()
    assert (paid[there] <= best[there] * (1 + 5e-3) + 5e-3).double().mean() >= 0.8 or not there.any()
    assert (point[~there] == asks.x[~there]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_told_is_valid_and_keeps_its_class_when_it_is_written_down(seed, dtype):
    ensemble = grown(seed, trees=20, used=9)
    asks = question(ensemble, dtype=dtype)
    point = asks.point()
    assert point.dtype == dtype
    assert not asks.space.violations(point, asks.x).any()
    found = asks.enough(point)
    assert found.double().mean() > 0.5
    said = ensemble.encoding.decode(point)
    again = ensemble.encoding.encode(ensemble.encoding.decode(point), dtype)
    for rows in (said, ensemble.encoding.decode(again)):
        labels = ensemble.logits(ensemble.raw(ensemble.cells(rows))).argmax(1)
        assert (torch.from_numpy(labels) == asks.target)[found].all()
    answer = MinCost(norm=1)(deployed(ensemble), asks.x, asks.target, asks.space)
    assert (answer.found == found).all()
    torch.testing.assert_close(answer.point[found], point[found])


def test_directions_gaps_grids_and_levels_to_avoid_are_kept():
    said, before = [], []
    for seed in range(8):
        ensemble = grown(seed, trees=20, used=9)
        asks = question(ensemble)
        point = asks.point()
        said.append(ENCODING.decode(point))
        before.append(ENCODING.decode(asks.x))
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
    asks = question(ensemble)
    point = asks.point()
    cells = [ensemble.cells(ENCODING.decode(part)) for part in (point, asks.x)]
    for place, (_, columns) in enumerate(ENCODING.places):
        same = torch.from_numpy(cells[0][:, place] == cells[1][:, place])
        assert (point[same, columns] == asks.x[same, columns]).all()


def test_a_number_that_may_be_anything_has_few_decimals():
    told = []
    for seed in range(8):
        ensemble = grown(seed, trees=20, used=9)
        asks = question(ensemble)
        point = asks.point()
        told += ENCODING.decode(point)["income"][(point != asks.x)[:, 0].numpy()].tolist()
    assert told
    assert all(len(f"{number:.10g}".partition(".")[2]) <= 2 for number in told)


def test_people_keep_what_they_wish_to_keep():
    space = ENCODING.space_for(Wish(keep=("job",), ranges={"debt": (1000, 2000)}), rows=ROWS)
    paid = []
    for seed in range(8):
        ensemble = grown(seed, trees=20, used=9)
        asks = question(ensemble, space=space)
        point = asks.point()
        assert not asks.space.violations(point, asks.x).any()
        after, home = ENCODING.decode(point), ENCODING.decode(asks.x)
        assert (after["job"] == home["job"]).all()
        paid += after["debt"][after["debt"] != home["debt"]].tolist()
    assert paid
    assert all(1000 <= debt <= 2000 for debt in paid)


def test_as_sure_as_is_asked():
    ensemble = grown(4, trees=20, used=9)
    wanted = AtLeast(log_odds, 0.5)
    asks = replace(question(ensemble), score=wanted)
    point = asks.point()
    there = (point != asks.x).any(1)
    assert there.any()
    assert (log_odds(checked_model(asks.model), point, asks.target)[there] >= 0.5).all()
    answer = Margin(level=0.7, search=MinCost(norm=1))(deployed(ensemble), asks.x, asks.target, asks.space)
    chance = deployed(ensemble)(answer.point).softmax(1).gather(1, asks.target[:, None])[:, 0]
    assert answer.found.any()
    assert (chance[answer.found] >= 0.7 - 1e-6).all()


def test_several_classes_and_groups_of_them():
    labels = np.resize(["a", "b", "c"], 80)
    known = table().drop(columns="outcome").assign(outcome=labels)
    encoding = Encoding.fit(known, replace(SCHEMA, classes=("a", "b", "c")))
    for link in ("logit", "probability"):
        ensemble = grown(7, encoding, outputs=3, trees=12, used=6, link=link)
        asks = question(ensemble)
        point = asks.point()
        found = asks.enough(point)
        assert found.double().mean() > 0.5
        assert (asks.model(point).argmax(1) == asks.target)[found].all()
        either = merged(deployed(ensemble), ((0,), (1, 2)))
        target = 1 - either(asks.x).argmax(1)
        group = replace(asks, model=either, target=target)
        point = group.point()
        good = group.enough(point)
        assert good.any()
        assert (either(point).argmax(1) == target)[good].all()
        # To be any of two is never dearer than to be one of them.
        one = found & (asks.target > 0) & (target == 1)
        assert one.any()
        assert good[one].all()
        assert (group.cost(point)[one] <= asks.cost(asks.point())[one] + 1e-6).double().mean() > 0.9


def test_a_tie_of_two_halves_is_not_enough():
    ensemble = grown(5, trees=4, link="probability")
    halves = replace(ensemble, value=np.where(ensemble.feature[:, None] < 0, 0.5 / 4, 0.0))
    asks = question(ensemble)
    tied = replace(asks, model=deployed(halves))
    assert (tied.point() == asks.x).all()


def test_rows_do_not_depend_on_one_another():
    ensemble = grown(6, trees=20, used=9)
    asks = question(ensemble)
    whole = asks.point()
    for rows in (torch.arange(5), torch.arange(5, ROWS), torch.tensor([7])):
        assert (asks.of(rows).point() == whole[rows]).all()


def test_without_people_to_start_from_nothing_is_missed():
    ensemble = grown(8, trees=20, used=9)
    alone = replace(ensemble, encoding=replace(ENCODING, known=None))
    asks = question(ensemble)
    points = [replace(asks, model=deployed(own)).point() for own in (ensemble, alone)]
    assert (asks.enough(points[0]) == asks.enough(points[1])).all()


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


def test_where_every_column_may_be_any_number_trees_are_asked():
    """In the paper's free space the columns of a level are no feature, so that the trees as arrays are no guide."""
    ensemble = grown(3, trees=20, used=9)
    model, x = deployed(ensemble), ENCODING.encode(table())[:ROWS]
    space, target = Space.free(ENCODING.encode(table())), other_class(model, x)
    assert not wanted_of(model, margin).fits(space)
    assert wanted_of(model, margin).fits(ENCODING.space)
    answer = MinCost(norm=1)(model, x, target, space)
    assert answer.found.double().mean() > 0.8
    assert (predict(model, answer.point[answer.found]) == target[answer.found]).all()
