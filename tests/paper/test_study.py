"""Declared experiments become rows on disk, and no interruption changes what ends up there."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from holdfast import (
    PGD,
    SNS,
    Encoding,
    MinCost,
    Recipe,
    Retraining,
    Space,
    assess,
    audit,
    other_class,
    predict,
    seeds,
    train,
)
from holdfast.datasets import DATASETS
from holdfast.families import training
from holdfast.families.changes import leave_one_out
from holdfast.families.entries import entries
from holdfast.models.merged import merged
from holdfast.paper.results import each, frame, join, read
from holdfast.paper.runner import run
from holdfast.paper.study import FIRST, Study
from holdfast.paper.trials import anywhere_else, data_of, trial
from holdfast.search.pipeline import Pipeline
from killing import calls_of, exit_code_of, forks, killed_at, posix

FAST = PGD(levels=3, steps=10)
RECIPE = Recipe((8,), epochs=2, batch=64)
TINY = Study(
    name="tiny",
    datasets=("german",),
    methods=(("pgd", FAST), ("pgd+sns", Pipeline(FAST, (SNS(steps=10),))), ("min-l2", MinCost(steps=5, constants=2))),
    changes=(("seeds", 3), ("leave-one-out", 2)),
    rows=6,
    base_seeds=(0, 1),
    recipes={"german": RECIPE},
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("families")


@pytest.fixture(scope="module")
def whole(tmp_path_factory, store):
    """The file of a run that nothing interrupted."""
    return run(TINY, tmp_path_factory.mktemp("whole") / "tiny.jsonl", store=store, workers=1)


def by_hand(dataset, rows):
    """What a study trains on, and the rows that it asks about."""
    card = DATASETS[dataset]
    table, schema = card.load()
    known, asked = card.divide(table)
    encoding = Encoding.fit(known, schema, card.scaling)
    return encoding.encode(known), encoding.labels(known), encoding.encode(asked)[:rows]


def lines(file):
    return [json.loads(text) for text in Path(file).read_text().splitlines()]


def but_for_seconds(file):
    """A file's lines without the seconds, and the checksums that they are part of."""
    written = lines(file)
    for line in written:
        line.pop("checksum")
        for row in line["rows"]:
            row.pop("seconds")
    return [json.dumps(line) for line in written]


@pytest.fixture
def searches(monkeypatch):
    """Counts the calls of methods; ``searches["stop"] = 3`` is Ctrl-C in the third."""
    counts = Counter()
    for kind in (PGD, SNS, MinCost):

        def counted(self, *args, kind=kind, original=kind.__call__):
            counts["all"] += 1
            counts[kind.__name__] += 1
            if counts["all"] == counts["stop"]:
                raise KeyboardInterrupt
            return original(self, *args)

        monkeypatch.setattr(kind, "__call__", counted)
    return counts


# ---- what is in the file ----


def test_rows_have_what_tables_need(whole):
    rows = read(whole)
    assert len(rows) == 2 * 3 * 2  # base seeds, methods, kinds of change
    keys = "dataset method space change members rows found rate low high cost_l1 cost_l2 seconds spread"
    keys += " found_and_held baseline_flips"
    own = "study settings base_seed success cost_l1_spread cost_l2_spread search recipe scaling device data seeds cell"
    sums = "sum_c sum_u sum_cc sum_cu sum_uu"
    names = {*keys.split(), *own.split(), *sums.split(), "holdfast", "torch", "numpy"}
    assert all(set(row) == names for row in rows)
    assert [row["seeds"] for row in rows[:2]] == [f"{FIRST}-{FIRST + 2}", "0"]
    assert [(row["base_seed"], row["method"], row["change"]) for row in rows] == [
        (seed, method, change)
        for seed in (0, 1)
        for method in ("pgd", "pgd+sns", "min-l2")
        for change in ("seeds", "leave-one-out")
    ]
    assert rows[0]["search"] == repr(FAST)
    assert rows[0]["torch"] == torch.__version__
    assert all(not isinstance(value, (dict, list)) for row in rows for value in row.values())
    assert len(frame(whole)) == len(rows)


def test_sums_give_the_regression_over_all_counterfactuals(whole):
    single = each(whole)
    single = single[single["found"]]
    invalidated = single[["invalidated_seeds", "invalidated_leave-one-out"]].mean(axis=1)
    total = frame(whole).drop_duplicates("cell").sum(numeric_only=True)
    n, c, u = total["found"], total["sum_c"], total["sum_u"]
    shared = total["sum_cu"] - c * u / n
    r2 = shared**2 / ((total["sum_cc"] - c**2 / n) * (total["sum_uu"] - u**2 / n))
    assert r2 == pytest.approx(np.corrcoef(single["cost_l2"], invalidated)[0, 1] ** 2, rel=1e-4)


@pytest.mark.parametrize("split", [(0, 10), (10, 0), (990, 11)])
def test_a_split_that_cannot_be_is_refused(split):
    with pytest.raises(ValueError, match="the split of german"):
        replace(TINY, splits={"german": split})


def test_a_cell_is_what_the_road_gives_by_hand(whole):
    x, y, question = by_hand("german", 6)
    base = Retraining(init_seed=1, order_seed=1)
    model = train(x, y, RECIPE, [base])[0]
    family = train(x, y, RECIPE, seeds(3, start=FIRST) + leave_one_out(2, len(x), seed=1, base=base))
    found = FAST(model, question, other_class(model, question), Space.free(x))
    expected = audit(found, family).rows(dataset="german", method="pgd", space="free", seconds=0)
    got = [row for row in read(whole) if row["base_seed"] == 1 and row["method"] == "pgd"]
    for one, other in zip(got, expected, strict=True):
        assert {name: one[name] for name in other} | {"seconds": 0} == other


def test_single_counterfactuals_add_up_to_the_rows(whole):
    single = each(whole)
    assert len(single) == 2 * 3 * 6
    for row in read(whole):
        own = single[(single["base_seed"] == row["base_seed"]) & (single["method"] == row["method"])]
        assert own["found"].sum() == row["found"]
        assert own[f"invalidated_{row['change']}"].mean() == pytest.approx(row["rate"], abs=1e-6)
        for name in ("cost_l1", "cost_l2"):
            assert own[name].mean() == pytest.approx(row[name], abs=1e-5)
            assert own[name].std(ddof=0) == pytest.approx(row[f"{name}_spread"], abs=1e-5)
        assert own.loc[~own["found"], ["cost_l1", "cost_l2", f"invalidated_{row['change']}"]].isna().all(axis=None)


def test_nothing_found_is_said_and_not_a_failure(tmp_path, store):
    never = replace(TINY, methods=(("pgd", PGD(radius=1e-6, levels=1, steps=1)),), base_seeds=(0,))
    file = run(never, tmp_path / "never.jsonl", store=store, workers=1)
    assert [(row["found"], row["rate"], row["cost_l2_spread"], row["success"]) for row in read(file)] == [
        (0, None, None, 0)
    ] * 2
    assert np.isnan(each(file)["invalidated_seeds"]).all()


def test_the_schema_space_and_other_scalings(tmp_path, store):
    other = replace(
        TINY,
        methods=("min-l2",),
        space="schema",
        scalings={"german": "minmax"},
        base_seeds=(0,),
        settings="other",
        rows=30,  # of six, none can be accepted
    )
    row, _ = read(run(other, tmp_path / "other.jsonl", store=store, workers=1))
    assert (row["space"], row["scaling"], row["settings"]) == ("schema", "minmax", "other")
    assert row["found"]


def test_a_split_of_ones_own(tmp_path, store):
    Fitted.seen.clear()
    study = replace(TINY, methods=(("own", Fitted()),), splits={"german": (600, 50)}, rows=None, base_seeds=(0,))
    rows = read(run(study, tmp_path / "split.jsonl", store=store, workers=1))
    assert Fitted.seen == [(600, 0)]
    assert [row["rows"] for row in rows] == [50, 50]


def test_warfarins_classes_are_merged(tmp_path, loaded, store):
    loaded("warfarin")  # skipped where the file is missing
    study = replace(
        TINY, datasets=("warfarin",), methods=(("pgd", PGD(radius=0.5)),), recipes={"warfarin": RECIPE}, rows=40
    )
    rows = read(run(study, tmp_path / "warfarin.jsonl", store=store, workers=1))
    assert len(rows) == 4
    assert all(row["found"] > 0 for row in rows)


@dataclass(frozen=True)
class Fitted:
    """Finds nothing, and remembers what it was fitted to."""

    seen: ClassVar[list[tuple[int, int]]] = []

    def fit(self, x, y, space, seed=0):
        self.seen.append((len(x), seed))
        return self

    def __call__(self, model, x, target, space):
        return assess(model, x, x, target, space)


def test_methods_are_fitted_to_the_training_rows_with_the_base_seed(tmp_path, store):
    Fitted.seen.clear()
    run(replace(TINY, methods=(("own", lambda dataset: Fitted()),)), tmp_path / "own.jsonl", store=store, workers=1)
    assert Fitted.seen == [(700, 0), (700, 1)]


@dataclass(frozen=True)
class Keeper:
    """A stabiliser that leaves all as it is, and remembers what it was fitted to."""

    rows: int | None = None
    seen: ClassVar[list[tuple[int, int]]] = []
    used: ClassVar[list[int | None]] = []

    def fit(self, x, y, space, seed=0):
        assert len(x) == len(y)
        assert torch.equal(space.lower, Space.free(x).lower)
        self.seen.append((len(x), seed))
        return replace(self, rows=len(x))

    def __call__(self, model, start, space):
        self.used.append(self.rows)
        return start


def test_a_stabiliser_that_wants_the_data_is_fitted_to_the_training_rows(tmp_path, store, whole):
    Keeper.seen.clear()
    Keeper.used.clear()
    longer = Pipeline(FAST, (Keeper(), SNS(steps=10)))
    study = replace(TINY, methods=(("pgd", FAST), ("pgd+sns", longer)))
    file = run(study, tmp_path / "longer.jsonl", store=store, workers=1)
    assert Keeper.seen == [(700, 0), (700, 1)]
    assert Keeper.used == [700, 700]
    unlike = {"cell", "search", "seconds"}
    for one, other in zip(read(file), (row for row in read(whole) if row["method"] != "min-l2"), strict=True):
        assert {name: one[name] for name in one if name not in unlike} == {
            name: other[name] for name in other if name not in unlike
        }
    assert "rows=700" not in read(file)[-1]["search"]  # the method as it was declared


# ---- any other class ----


def test_with_two_classes_any_other_is_the_other(tmp_path, store, whole):
    free = run(replace(TINY, untargeted=("german",)), tmp_path / "free.jsonl", store=store, workers=1)
    one, other = each(free), each(whole)
    assert one["found"].any()
    assert one["found"].tolist() == other["found"].tolist()
    for name in ("cost_l1", "cost_l2", "invalidated_seeds", "invalidated_leave-one-out"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-3, atol=1e-5)
    assert frame(free)["baseline_flips"].tolist() == frame(whole)["baseline_flips"].tolist()


@dataclass(frozen=True)
class Together:
    """PGD that remembers how many rows it was asked about."""

    radius: float
    asked: ClassVar[list[int]] = []

    def __call__(self, model, x, target, space):
        self.asked.append(len(x))
        return PGD(radius=self.radius)(model, x, target, space)


def test_each_row_leaves_its_own_class_or_stays_where_it_is():
    """Three classes as three corners: the plane to the nearer of the two others is the one to cross."""
    corners = torch.tensor([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
    x = torch.randn(60, 2, generator=torch.Generator().manual_seed(1))
    space = Space.box(torch.full((2,), -50.0), torch.full((2,), 50.0))
    model = lambda r: r @ corners.T  # noqa: E731
    own = predict(model, x)
    between = corners[own][:, None] - corners  # (n, 3, d)
    distance = (between * x[:, None]).sum(-1) / between.norm(dim=-1)  # to each plane, NaN to one's own
    nearest = distance.nan_to_num(torch.inf).amin(1)
    Together.asked.clear()
    answer = anywhere_else(Together(0.5), model, x, space)
    assert Together.asked == [60] * 3  # all of them each time
    clear = (nearest - 0.5).abs() > 0.02
    assert torch.equal(answer.found[clear], (nearest < 0.5)[clear])
    found = answer.found
    assert 10 < found.sum() < 50
    assert torch.equal(answer.target, predict(model, answer.point))
    assert torch.equal(answer.before, own)
    assert (answer.target != own)[found].all()
    assert set(zip(own[found].tolist(), answer.target[found].tolist(), strict=True)) == set(permutations(range(3), 2))
    assert torch.equal(answer.point[~found], x[~found])


def test_in_any_other_class_also_of_the_same_group_and_invalidated_only_by_another_group(tmp_path, loaded, store):
    """Warfarin's class 2 will do for a row of class 1; a member that then says 1 does not invalidate it, one
    that says 0 does."""
    loaded("warfarin")  # skipped where the file is missing
    recipe = Recipe((8,), epochs=10, batch=64)
    study = Study(
        name="free",
        datasets=("warfarin",),
        methods=(("pgd", replace(FAST, radius=0.5)),),
        changes=(("seeds", 3),),
        rows=60,
        recipes={"warfarin": recipe},
        untargeted=("warfarin",),
    )
    file = run(study, tmp_path / "free.jsonl", store=store, workers=1)
    single = each(file)

    x, y, question = by_hand("warfarin", 60)
    model, *family = train(x, y, recipe, [Retraining(), *seeds(3, start=FIRST)])
    before = predict(model, question)
    found = torch.zeros(60, dtype=torch.bool)
    invalidated = torch.full((60,), torch.nan)
    beside = excused = 0
    for own in range(3):  # each class by itself, towards whichever of the two others
        rows = torch.nonzero(before == own).flatten()
        towards = merged(model, ((own,), tuple({0, 1, 2} - {own})))
        answer = study.method("warfarin", "pgd")(towards, question[rows], torch.ones_like(rows), Space.free(x))
        came = predict(model, answer.point)
        said = torch.stack([predict(member, answer.point) for member in family])
        found[rows] = came != own
        invalidated[rows[came != own]] = ((said == 0) != (came == 0)).float().mean(0)[came != own]
        sideways = (own != 0) & (came != own) & (came != 0)
        beside += int(sideways.sum())
        excused += int(((said != came) & (said != 0))[:, sideways].sum())
    assert beside
    assert excused
    assert single["found"].tolist() == found.tolist()
    np.testing.assert_allclose(single["invalidated_seeds"], invalidated, rtol=1e-6)
    (row,) = read(file)
    apart = torch.stack([(predict(member, question) == 0) != (before == 0) for member in family])
    assert row["baseline_flips"] == pytest.approx(float(apart.float().mean()), abs=1e-6)  # in the groups as well


# ---- nothing twice ----


def test_one_family_serves_all_methods_and_new_seeds_all_networks(tmp_path, monkeypatch):
    trained = []
    original = training.train_stack
    monkeypatch.setattr(training, "train_stack", lambda *args, **more: trained.append(1) or original(*args, **more))
    run(TINY, tmp_path / "tiny.jsonl", store=tmp_path / "store", workers=1)
    assert len(entries(tmp_path / "store")) == 5  # two deployed networks, each with rows left out; the seeds once
    first = len(trained)
    assert first == 5
    run(replace(TINY, name="again", rows=5), tmp_path / "again.jsonl", store=tmp_path / "store", workers=1)
    assert len(trained) == first


def test_what_is_there_is_not_computed_again(tmp_path, store, searches):
    file = run(TINY, tmp_path / "tiny.jsonl", store=store, workers=1)
    assert searches == {"all": 6, "PGD": 2, "SNS": 2, "MinCost": 2}  # SNS started from the PGD that was there
    before = file.read_bytes()
    run(TINY, file, store=store, workers=1)
    assert searches["all"] == 6
    assert file.read_bytes() == before


def test_only_some_cells(tmp_path, store, searches, whole):
    file = tmp_path / "tiny.jsonl"
    run(TINY, file, store=store, workers=1, only=("german", "min-l2"))
    assert [line["method"] for line in lines(file)] == ["min-l2"] * 2
    run(TINY, file, store=store, workers=1)
    assert searches["MinCost"] == 2
    assert but_for_seconds(file) == but_for_seconds(whole)  # in the study's order
    with pytest.raises(ValueError, match="has no dataset or method 'heloc'; it has the datasets german and the"):
        run(TINY, file, store=store, only=("heloc",))


def test_a_changed_setting_is_another_cell(tmp_path, store, searches):
    file = run(TINY, tmp_path / "tiny.jsonl", store=store, workers=1)
    old = lines(file)
    slower = replace(FAST, steps=11)
    changed = replace(TINY, methods=(("pgd", slower), *TINY.methods[1:]))
    assert read(file, changed) == [row for line in old if line["method"] != "pgd" for row in line["rows"]]
    searches.clear()
    run(changed, file, store=store, workers=1)
    assert searches == {"all": 2, "PGD": 2}
    new = lines(file)
    assert [line["cell"] for line in new] == [cell.key for cell in changed.cells]
    assert [a == b for a, b in zip(old, new, strict=True)] == [False, True, True] * 2
    assert new[0]["rows"][0]["search"] == repr(slower)
    assert read(file, changed) == read(file)


def test_going_back_to_a_setting_finds_its_cells_again(tmp_path, store, searches):
    file = run(TINY, tmp_path / "tiny.jsonl", store=store, workers=1)
    before = read(file)
    changed = replace(TINY, rows=5)
    run(changed, file, store=store, workers=1, only=("pgd",))
    assert [row["rows"] for row in read(file)] == [5, 5, 6, 6, 6, 6] * 2  # the newer line of a cell counts
    assert read(file, TINY) == before
    searches.clear()
    run(TINY, file, store=store, workers=1)
    assert not searches
    assert read(file) == before


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 7},
        {"changes": (("seeds", 4), ("leave-one-out", 2))},
        {"space": "schema"},
        {"settings": "text"},
        {"scalings": {"german": "minmax"}},
        {"recipes": {}},
        {"splits": {"german": (600, 300)}},
        {"untargeted": ("german",)},
        {"device": "cuda"},
    ],
    ids=str,
)
def test_every_setting_is_in_the_key(change):
    keys = {cell.key for cell in TINY.cells}
    assert len(keys) == 6
    assert not keys & {cell.key for cell in replace(TINY, **change).cells}


def test_saying_what_is_so_anyway_is_the_same_cell():
    card = DATASETS["german"]
    same = replace(TINY, splits={"german": card.split, "ctg": (10, 10)}, scalings={"german": card.scaling})
    assert same.cells == TINY.cells


def test_methods_go_by_their_names():
    assert TINY.names == ("pgd", "pgd+sns", "min-l2")
    assert replace(TINY, methods=("pgd+sns", ("own", lambda dataset: FAST))).names == ("pgd+sns", "own")


def test_tensors_are_settings_too():
    def keys(radius):
        return {c.key for c in replace(TINY, methods=(("x", Pipeline(FAST, (SNS(radius=radius),))),)).cells}

    assert keys(torch.ones(6)) == keys(torch.ones(6))
    assert not keys(torch.ones(6)) & keys(torch.full((6,), 1.0000001))


# ---- interrupted ----


@pytest.mark.parametrize(("stop", "done", "rest"), [(1, 0, 6), (2, 1, 6), (3, 2, 4), (5, 4, 3)])
def test_after_ctrl_c_only_the_rest_is_computed(stop, done, rest, tmp_path, store, searches, whole):
    """A cell that is there stays; but PGD is searched again where SNS was cut off that starts from it."""
    file = tmp_path / "tiny.jsonl"
    searches["stop"] = stop
    with pytest.raises(KeyboardInterrupt):
        run(TINY, file, store=store, workers=1)
    before = file.read_bytes() if file.exists() else b""
    assert before.count(b"\n") == done
    searches.clear()
    run(TINY, file, store=store, workers=1)
    assert searches["all"] == rest
    assert file.read_bytes().startswith(before)  # seconds and all
    assert but_for_seconds(file) == but_for_seconds(whole)


def test_ctrl_c_while_writing_leaves_whole_lines(tmp_path, store, monkeypatch, whole):
    file, original = tmp_path / "tiny.jsonl", os.fsync

    def interrupted(number):
        if file.exists() and file.read_bytes().count(b"\n") == 2:
            raise KeyboardInterrupt
        original(number)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "fsync", interrupted)
        run(TINY, file, store=store, workers=1)
    assert file.read_bytes().endswith(b"\n")
    assert len(lines(file)) == 1
    assert but_for_seconds(run(TINY, file, store=store, workers=1)) == but_for_seconds(whole)


def test_a_line_that_lacks_only_its_end_is_whole(tmp_path, store, searches, whole):
    file = tmp_path / "tiny.jsonl"
    file.write_bytes(whole.read_bytes()[:-1])
    assert len(read(file)) == 12
    run(TINY, file, store=store, workers=1)
    assert not searches
    assert file.read_bytes() == whole.read_bytes()


def test_flipped_bits_change_no_result(tmp_path, whole):
    contents, rows, draw = whole.read_bytes(), read(whole), random.Random(0)
    places = [8 * len(contents) - bit for bit in range(1, 17)] + [draw.randrange(8 * len(contents)) for _ in range(400)]
    file, refused = tmp_path / "flipped.jsonl", 0
    for place in places:
        flipped = bytearray(contents)
        flipped[place // 8] ^= 1 << place % 8
        file.write_bytes(flipped)
        try:
            assert read(file) == rows
        except ValueError as error:
            refused += "line" in str(error) and str(file) in str(error)
    assert refused > 400


@pytest.mark.parametrize("cut", [2, 100, 1500])
def test_a_line_that_was_cut_is_dropped(cut, tmp_path, store, searches, whole):
    file = tmp_path / "tiny.jsonl"
    contents = whole.read_bytes()
    file.write_bytes(contents[:-cut])
    assert len(read(file)) == 10  # also while it is so
    run(TINY, file, store=store, workers=1)
    assert searches == {"all": 1, "MinCost": 1}
    assert but_for_seconds(file) == but_for_seconds(whole)


def _run(file, store):
    run(TINY, file, store=store, workers=1)


@posix
@forks
def test_killed_at_random_moments_it_ends_with_the_same_file(tmp_path, whole):
    reading, calls = calls_of(data_of, TINY, "german"), calls_of(_run, tmp_path / "measured.jsonl", tmp_path / "one")
    moments = random.Random(0)
    file, store, killed, seen = tmp_path / "tiny.jsonl", tmp_path / "other", 0, [0]
    for _ in range(12):
        killed += killed_at(moments.randrange(reading, reading + (calls - reading) // 3), _run, file, store)
        seen.append(len(read(file)) if file.exists() else 0)
    assert killed > 2
    assert len(set(seen)) > 2  # so there was something that could be lost
    assert seen == sorted(seen)  # nothing that was there is lost
    run(TINY, file, store=store, workers=1)
    assert but_for_seconds(file) == but_for_seconds(whole)


def _run_and_die_half_way(file, store, cell):
    """Be killed when half of a cell's line is written."""
    from holdfast.paper import results

    original, count = results._text, 0

    def halved(line):
        nonlocal count
        count += 1
        if count < cell:
            return original(line)
        with open(file, "ab") as half:
            half.write(original(line)[: len(original(line)) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    results._text = halved
    run(TINY, file, store=store, workers=1)


def _run_and_die_at_the_rename(file, store):
    """Be killed when the file in the study's order is written and has not taken its name."""

    def hook(event, args):
        if event == "os.rename" and Path(args[1]) == file:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    run(TINY, file, store=store, workers=1)


@posix
@forks
def test_killed_while_writing_it_ends_with_the_same_file(tmp_path, store, whole):
    file = tmp_path / "tiny.jsonl"
    run(TINY, file, store=store, workers=1, only=("min-l2",))
    for target, args, left in [
        (_run_and_die_half_way, (2,), 3),
        (_run_and_die_half_way, (1,), 3),
        (_run_and_die_at_the_rename, (), 6),
    ]:
        assert exit_code_of(target, file, store, *args) == -signal.SIGKILL
        assert len(read(file)) == 2 * left
    run(TINY, file, store=store, workers=1)
    assert but_for_seconds(file) == but_for_seconds(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.jsonl"]


# ---- how far it is ----


@pytest.fixture
def bars(monkeypatch):
    """Every bar that is begun: its title, total, whether it is shown, and what was reported to it."""
    begun = []

    @contextmanager
    def recorded(title, total, show=True):
        reported = []
        begun.append((title, total, show, reported))
        yield lambda amount, doing=None: reported.append((amount, doing))

    for module in ("holdfast.paper.runner", "holdfast.families.training"):
        monkeypatch.setattr(f"{module}.bar", recorded)
    return begun


def test_one_bar_for_all_cells(tmp_path, bars):
    run(TINY, tmp_path / "tiny.jsonl", store=tmp_path / "store", workers=1, progress=True)
    ((title, total, _, reported),) = [bar for bar in bars if bar[2]]
    assert (title, total) == ("tiny", 6)
    assert sum(amount for amount, _ in reported) == 6
    assert [doing for _, doing in reported if doing] == [
        f"german, base seed {seed}, {doing}" for seed in (0, 1) for doing in ("training", "pgd", "pgd+sns", "min-l2")
    ]


def test_the_bar_counts_what_is_left(tmp_path, store, bars):
    file = run(TINY, tmp_path / "tiny.jsonl", store=store, workers=1, only=("min-l2",))
    run(TINY, file, store=store, workers=1, progress=True)
    assert [bar[:3] for bar in bars if bar[0] == "tiny"] == [("tiny", 2, False), ("tiny", 4, True)]


# ---- several files ----


def test_files_of_several_processes_are_joined(tmp_path, store, searches, whole):
    parts = [
        run(TINY, tmp_path / f"{name}.jsonl", store=store, workers=1, only=(name,)) for name in reversed(TINY.names)
    ]
    file = join(parts, tmp_path / "new" / "joined.jsonl")
    assert sorted(but_for_seconds(file)) == sorted(but_for_seconds(whole))
    assert file.read_bytes() == b"".join(part.read_bytes() for part in parts)
    searches.clear()
    run(TINY, file, store=store, workers=1)  # nothing is left to do but to put them in order
    assert not searches
    assert but_for_seconds(file) == but_for_seconds(whole)


def test_what_a_killed_process_left_of_a_line_is_not_joined(tmp_path, whole):
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(whole.read_bytes()[:-20])
    assert lines(join([torn], tmp_path / "joined.jsonl")) == lines(whole)[:-1]


def test_two_studies_are_not_joined(tmp_path, store, whole):
    one = replace(TINY, name="other", methods=TINY.methods[:1], base_seeds=(0,))
    other = run(one, tmp_path / "other.jsonl", store=store, workers=1)
    with pytest.raises(ValueError, match="these files hold the studies other, tiny; give each study a file of its own"):
        join([whole, other], tmp_path / "joined.jsonl")
    with pytest.raises(ValueError, match="line 1 of .*notes.jsonl is not a valid study result"):
        (tmp_path / "notes.jsonl").write_text("my notes\n")
        join([whole, tmp_path / "notes.jsonl"], tmp_path / "joined.jsonl")
    assert not (tmp_path / "joined.jsonl").exists()


# ---- what is refused ----


@dataclass(frozen=True)
class Opaque:
    inside: object = object()

    def fit(self, x, y, space, seed=0):
        return self

    def __call__(self, model, x, target, space): ...


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"datasets": ("german", "nowhere")}, ValueError, "no dataset 'nowhere'; there are german, seizure"),
        ({"datasets": "german"}, TypeError, "datasets must be a tuple"),
        ({"recipes": {"nowhere": RECIPE}}, ValueError, "no dataset 'nowhere'"),
        ({"splits": {"nowhere": (10, 10)}}, ValueError, "no dataset 'nowhere'"),
        ({"untargeted": ("nowhere",)}, ValueError, "no dataset 'nowhere'"),
        ({"methods": ("pgd", "dice")}, ValueError, "no dice; methods are min-l1"),
        ({"methods": ("pgd", "pgd")}, ValueError, "methods must be a tuple of one or more different ones"),
        ({"methods": ()}, ValueError, "methods must be"),
        ({"methods": (("pgd", PGD),)}, TypeError, "method 'pgd' on german is <class .*PGD'>; give a value such as"),
        ({"methods": (("pgd", lambda dataset: 3.0),)}, TypeError, "method 'pgd' on german is 3.0; give a value"),
        ({"changes": (("seed", 3),)}, ValueError, "changes must be different ones of seeds, leave-one-out"),
        ({"changes": (("seeds", 0),)}, ValueError, "members of changes 'seeds' must be 1 or more"),
        ({"rows": 0}, ValueError, "rows must be 1 or more"),
        ({"base_seeds": (0, FIRST)}, ValueError, "base_seeds must be below 1000"),
        ({"base_seeds": (0, 0)}, ValueError, "base_seeds must be a tuple of one or more different ones"),
        ({"space": "open"}, ValueError, "space must be 'free' or 'schema', got 'open'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_makes_no_sense_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        replace(TINY, **change)


def test_a_method_that_cannot_be_distinguished_from_another_is_refused(tmp_path):
    with pytest.raises(TypeError, match="cannot tell one object from another .* frozen dataclasses"):
        run(replace(TINY, methods=(("own", Opaque()),)), tmp_path / "own.jsonl")


def test_missing_data_is_named_before_any_work(tmp_path, monkeypatch, searches):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="dataset 'ctg': no file at .*get it with: holdfast datasets fetch ctg"):
        run(replace(TINY, datasets=("german", "ctg")), tmp_path / "tiny.jsonl", store=tmp_path)
    assert not searches["all"]


def test_what_a_study_does_not_have_is_refused(tmp_path):
    for words in ({"dataset": "ctg"}, {"dataset": "german", "base_seed": 2}):
        with pytest.raises(
            ValueError, match=r"study 'tiny' has no dataset '.*' with base seed .*; it has german with 0"
        ):
            trial(TINY, **words)
    with pytest.raises(FileNotFoundError, match=r"no files to join: .*none.jsonl"):
        join([tmp_path / "none.jsonl"], tmp_path / "whole.jsonl")
    with pytest.raises(FileNotFoundError, match="no files to join: none were given"):
        join([], tmp_path / "whole.jsonl")
    assert not list(tmp_path.iterdir())


def test_a_dataset_named_for_its_scaling_alone_needs_no_methods():
    settings = {"german": FAST}
    study = replace(TINY, methods=(("pgd", lambda dataset: settings[dataset]),), scalings={"ctg": "minmax"})
    assert study.method("german", "pgd") == FAST


def test_files_of_others_are_left_alone(tmp_path, whole):
    with pytest.raises(ValueError, match="holds study 'tiny', not 'other'; give each study a file of its own"):
        run(replace(TINY, name="other"), whole)
    own = tmp_path / "own.jsonl"
    for contents in (b"my notes\n", b'{"study": "tiny"}\n', b"3\n", b"\xff\n", b"\n" + whole.read_bytes()):
        own.write_bytes(contents)
        with pytest.raises(ValueError, match="line 1 of .*own.jsonl is not a valid study result"):
            run(TINY, own)
        assert own.read_bytes() == contents
    with pytest.raises(FileNotFoundError, match="there is no .*none.jsonl"):
        read(tmp_path / "none.jsonl")
