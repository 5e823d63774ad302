"""Declared experiments become rows on disk, and no interruption changes what ends up there."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

from holdfast import (
    DATASETS,
    PGD,
    SNS,
    Encoding,
    MinCost,
    Recipe,
    Retraining,
    Space,
    assess,
    audit,
    leave_one_out,
    other_class,
    seeds,
    train,
)
from holdfast.families import training
from holdfast.families.store import entries
from holdfast.named import Then
from holdfast.studies import paper
from holdfast.study import FIRST, Study, each, frame, read, run

FAST = PGD(levels=3, steps=10)
RECIPE = Recipe((8,), epochs=2, batch=64)
TINY = Study(
    name="tiny",
    datasets=("german",),
    methods=(("pgd", FAST), ("pgd+sns", Then(FAST, (SNS(steps=10),))), ("min-l2", MinCost(steps=5, constants=2))),
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


def lines(file):
    return [json.loads(text) for text in Path(file).read_text().splitlines()]


def but_for_seconds(file):
    """A file's lines as they are written, with the times taken out."""
    kept = lines(file)
    for line in kept:
        for row in line["rows"]:
            row.pop("seconds")
    return [json.dumps(line) for line in kept]


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
    keys = (
        "dataset method space change members rows found rate low high cost_l1 cost_l2 seconds spread end_to_end clean"
    )
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
    undone = single[["undone_seeds", "undone_leave-one-out"]].mean(axis=1)
    total = frame(whole).drop_duplicates("cell").sum(numeric_only=True)
    n, c, u = total["found"], total["sum_c"], total["sum_u"]
    shared = total["sum_cu"] - c * u / n
    r2 = shared**2 / ((total["sum_cc"] - c**2 / n) * (total["sum_uu"] - u**2 / n))
    assert r2 == pytest.approx(np.corrcoef(single["cost_l2"], undone)[0, 1] ** 2, rel=1e-4)


def test_a_cell_is_what_the_road_gives_by_hand(whole):
    card = DATASETS["german"]
    table, schema = card.load()
    known, asked = card.divide(table)
    encoding = Encoding.fit(known, schema, card.scaling)
    x, y, question = encoding.encode(known), encoding.labels(known), encoding.encode(asked)[:6]
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
        assert own[f"undone_{row['change']}"].mean() == pytest.approx(row["rate"], abs=1e-6)
        for name in ("cost_l1", "cost_l2"):
            assert own[name].mean() == pytest.approx(row[name], abs=1e-5)
            assert own[name].std(ddof=0) == pytest.approx(row[f"{name}_spread"], abs=1e-5)
        assert own.loc[~own["found"], ["cost_l1", "cost_l2", f"undone_{row['change']}"]].isna().all(axis=None)


def test_nothing_found_is_said_and_not_a_failure(tmp_path, store):
    never = replace(TINY, methods=(("pgd", PGD(radius=1e-6, levels=1, steps=1)),), base_seeds=(0,))
    file = run(never, tmp_path / "never.jsonl", store=store, workers=1)
    assert [(row["found"], row["rate"], row["cost_l2_spread"], row["success"]) for row in read(file)] == [
        (0, None, None, 0)
    ] * 2
    assert np.isnan(each(file)["undone_seeds"]).all()


def test_the_schema_space_and_other_scalings(tmp_path, store):
    other = replace(
        TINY, methods=("min-l2",), space="schema", scalings={"german": "minmax"}, base_seeds=(0,), settings="other"
    )
    row, _ = read(run(other, tmp_path / "other.jsonl", store=store, workers=1))
    assert (row["space"], row["scaling"], row["settings"]) == ("schema", "minmax", "other")
    assert row["found"]


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
        {"device": "cuda"},
    ],
    ids=str,
)
def test_every_setting_is_in_the_key(change):
    keys = {cell.key for cell in TINY.cells}
    assert len(keys) == 6
    assert not keys & {cell.key for cell in replace(TINY, **change).cells}


def test_tensors_are_settings_too():
    def keys(radius):
        return {c.key for c in replace(TINY, methods=(("x", Then(FAST, (SNS(radius=radius),))),)).cells}

    assert keys(torch.ones(6)) == keys(torch.ones(6))
    assert not keys(torch.ones(6)) & keys(torch.full((6,), 1.0000001))


# ---- interrupted ----


@pytest.mark.parametrize(("stop", "kept", "rest"), [(1, 0, 6), (2, 1, 6), (3, 2, 4), (5, 4, 3)])
def test_after_ctrl_c_only_the_rest_is_computed(stop, kept, rest, tmp_path, store, searches, whole):
    """A cell that is there stays; but PGD is searched again where SNS was cut off that starts from it."""
    file = tmp_path / "tiny.jsonl"
    searches["stop"] = stop
    with pytest.raises(KeyboardInterrupt):
        run(TINY, file, store=store, workers=1)
    before = file.read_bytes() if file.exists() else b""
    assert before.count(b"\n") == kept
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


@pytest.mark.parametrize("cut", [1, 2, 100, 1500])
def test_a_line_that_was_cut_is_dropped(cut, tmp_path, store, searches, whole):
    file = tmp_path / "tiny.jsonl"
    contents = whole.read_bytes()
    file.write_bytes(contents[:-cut])
    assert len(read(file)) == 10  # also while it is so
    run(TINY, file, store=store, workers=1)
    assert searches == {"all": 1, "MinCost": 1}
    assert but_for_seconds(file) == but_for_seconds(whole)


posix = pytest.mark.skipif(os.name == "nt", reason="fork and SIGKILL are POSIX")
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def _started(target, *args):
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    process.start()
    return process


def _run(file, store):
    run(TINY, file, store=store, workers=1)


@posix
@forks
def test_killed_at_random_moments_it_ends_with_the_same_file(tmp_path, whole):
    begin = time.perf_counter()
    process = _started(_run, tmp_path / "measured.jsonl", tmp_path / "one")
    process.join()
    took, moments, seen = time.perf_counter() - begin, random.Random(0), [0]
    assert process.exitcode == 0
    file, store, killed = tmp_path / "tiny.jsonl", tmp_path / "other", 0
    for _ in range(12):
        process = _started(_run, file, store)
        process.join(moments.uniform(0, took / 2))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        seen.append(len(read(file)) if file.exists() else 0)
    assert killed
    assert seen == sorted(seen)  # nothing that was there is lost
    run(TINY, file, store=store, workers=1)
    assert but_for_seconds(file) == but_for_seconds(whole)


def _run_and_die_half_way(file, store, cell):
    """Be killed when half of a cell's line is written."""
    from holdfast import study

    original, count = study._text, 0

    def halved(line):
        nonlocal count
        count += 1
        if count < cell:
            return original(line)
        with open(file, "ab") as half:
            half.write(original(line)[: len(original(line)) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    study._text = halved
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
        process = _started(target, file, store, *args)
        process.join()
        assert process.exitcode == -signal.SIGKILL
        assert len(read(file)) == 2 * left
    run(TINY, file, store=store, workers=1)
    assert but_for_seconds(file) == but_for_seconds(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny.jsonl"]


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
        ({"datasets": ("german", "adult")}, ValueError, "no dataset 'adult'; there are german, seizure"),
        ({"datasets": "german"}, ValueError, "datasets must be a tuple"),
        ({"recipes": {"adult": RECIPE}}, ValueError, "no dataset 'adult'"),
        ({"methods": ("pgd", "dice")}, ValueError, "no dice; methods are min-l1"),
        ({"methods": ("pgd", "pgd")}, ValueError, "methods must be a tuple of one or more different ones"),
        ({"methods": ()}, ValueError, "methods must be"),
        ({"methods": (("pgd", PGD),)}, TypeError, "method 'pgd' on german is <class .*PGD'>; give a value such as"),
        ({"methods": (("pgd", lambda dataset: 3.0),)}, TypeError, "method 'pgd' on german is 3.0; give a value"),
        ({"changes": (("seed", 3),)}, ValueError, "changes must be different ones of seeds, leave-one-out"),
        ({"changes": (("seeds", 0),)}, ValueError, "members and rows must be 1 or more"),
        ({"rows": 0}, ValueError, "members and rows must be 1 or more"),
        ({"base_seeds": (0, FIRST)}, ValueError, "choose from 0 to 999"),
        ({"base_seeds": (0, 0)}, ValueError, "base_seeds must be a tuple of one or more different ones"),
        ({"space": "open"}, ValueError, "space must be 'free' or 'schema', got 'open'"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        replace(TINY, **change)


def test_a_method_that_cannot_be_told_from_another_is_refused(tmp_path):
    with pytest.raises(TypeError, match="cannot tell one object from another .* frozen dataclasses"):
        run(replace(TINY, methods=(("own", Opaque()),)), tmp_path / "own.jsonl")


def test_missing_data_is_named_before_any_work(tmp_path, monkeypatch, searches):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="dataset 'ctg': no file at .*get it with: holdfast datasets fetch ctg"):
        run(replace(TINY, datasets=("german", "ctg")), tmp_path / "tiny.jsonl", store=tmp_path)
    assert not searches["all"]


def test_files_of_others_are_left_alone(tmp_path, whole):
    with pytest.raises(ValueError, match="holds study 'tiny', not 'other'; give each study a file of its own"):
        run(replace(TINY, name="other"), whole)
    own = tmp_path / "own.jsonl"
    for contents in (b"my notes\n", b'{"study": "tiny"}\n', b"3\n", b"\xff\n", b"\n" + whole.read_bytes()):
        own.write_bytes(contents)
        with pytest.raises(ValueError, match="line 1 of .*own.jsonl is not a study's cell"):
            run(TINY, own)
        assert own.read_bytes() == contents
    with pytest.raises(FileNotFoundError, match="there is no .*none.jsonl"):
        read(tmp_path / "none.jsonl")


# ---- the paper's ----


def test_the_papers_study_is_what_the_paper_says():
    text, release = paper.PAPER["text"], paper.PAPER["release"]
    for study in (text, release):
        assert study.datasets == tuple(DATASETS)
        assert study.changes == (("seeds", 100), ("leave-one-out", 100))
        assert len(study.cells) == 6 * 5 * 12 == len({cell.key for cell in study.cells})
        assert study.method("taiwan", "pgd") == PGD(radius=5.0)
        assert study.method("german", "pgd+sns").stabilisers[0].radius == pytest.approx(2.4)
        for name in ("pgd", "min-l1-art", "min-l2-art"):  # so that what SNS starts from is searched for once
            assert study.method("ctg", f"{name}+sns").method == study.method("ctg", name)
        assert study.method("german", "latent").radius == 0.3
    assert text.method("warfarin", "min-l1-art").learning_rate == 0.5
    assert release.method("warfarin", "min-l1-art").learning_rate == 0.001
    assert (text.scaling("ctg"), release.scaling("ctg")) == ("minmax", "minmax-global")
    assert (text.scaling("taiwan"), release.scaling("taiwan")) == ("minmax", "standard")


def test_the_quick_study_runs(tmp_path, store):
    study = replace(paper.QUICK, recipes={"german": RECIPE}, rows=4)
    file = run(study, tmp_path / "quick.jsonl", store=store, workers=1, only=("pgd", "pgd+sns", "margin"))
    assert [row["settings"] for row in read(file)] == ["text"] * 6
