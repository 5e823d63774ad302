"""What cannot be kept is said before the networks are trained; what is removed is only what lies in the store."""

from __future__ import annotations

import threading

import pytest
import torch

from families.sameness import same
from holdfast import Recipe, save_family, seeds, train
from holdfast.families import training
from holdfast.families.entries import Entry, StoreError, entries, find, in_units
from holdfast.families.store import load_family
from holdfast.utils import memory

RECIPE, MEMBERS = Recipe((8,), epochs=2, batch=16), seeds(3)


def data(rows=40, columns=5):
    x = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] > 0).long()


@pytest.fixture
def no_training(monkeypatch):
    """Whoever trains in spite of all fails."""

    def trained(*job):
        raise AssertionError("this should have been noticed before the training")

    monkeypatch.setattr(training, "train_stack", trained)


X, Y = data()
WRONG = {
    "other columns": ((X[:, :4], Y), ValueError, "held_out rows have 4 columns, the others 5; use one encoding"),
    "other length": ((X, Y[:3]), ValueError, r"expected x \(n, d\) and y \(n,\)"),
    "whole numbers": ((X.long(), Y), ValueError, "x must hold floating-point numbers"),
    "labels as floats": ((X, Y.float()), ValueError, "y class indices as int64"),
    "an unknown class": ((X, Y + 1), ValueError, "labels of held_out go from 1 to 2; expected class indices 0 to 1"),
    "rows alone": (X, TypeError, r"held_out must be rows and their labels, held_out=\(x, y\), got Tensor"),
    "arrays": ((X.numpy(), Y), TypeError, "x must be a torch tensor, got ndarray"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_held_out_rows_are_checked_before_the_training(wrong, no_training):
    held_out, error, message = WRONG[wrong]
    with pytest.raises(error, match=message):
        train(X, Y, RECIPE, MEMBERS, held_out=held_out)


def test_a_store_that_cannot_be_written_to_is_known_before_the_training(tmp_path, no_training):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match=r"the store .*file.* cannot be written to .*; name a folder that can"):
            train(X, Y, RECIPE, MEMBERS, store=place)


def test_a_family_that_does_not_fit_into_memory_is_refused_before_the_training(monkeypatch, no_training):
    monkeypatch.setattr(memory, "available", lambda: 10_000_000)
    with pytest.raises(ValueError, match=r"a family of 3 networks of 5-900-900-2 needs about 19.6 MB .*, and 10.0 MB"):
        train(X, Y, Recipe((900, 900), epochs=1), MEMBERS)


def test_sizes_are_said_as_people_say_them():
    assert [in_units(size) for size in (0, 999, 1500, 2 * 10**9)] == ["0 B", "999 B", "1.5 kB", "2.0 GB"]


def test_removing_a_link_leaves_what_it_points_to(tmp_path):
    outside = save_family(train(X, Y, RECIPE, MEMBERS), tmp_path / "outside")
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "linked").symlink_to(outside)
    find(tmp_path / "store", "linked").remove()
    assert list((tmp_path / "store").iterdir()) == []
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before


def test_a_folder_of_something_else_is_never_to_be_removed(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="is this the folder of a family") as caught:
        load_family(tmp_path)
    assert "remove" not in str(caught.value)
    (tmp_path / "manifest.json").write_text('{"name": "a web page"}')
    with pytest.raises(StoreError, match="is not a valid family manifest") as caught:
        load_family(tmp_path)
    assert "remove" not in str(caught.value)


def test_threads_that_train_one_family_into_one_store_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "CHUNK", 1.0)  # a part for each member
    whole, problems = train(X, Y, RECIPE, MEMBERS, workers=1), []

    def train_it(store, start):
        try:
            start.wait()
            assert same(train(X, Y, RECIPE, MEMBERS, store=store, workers=1), whole)
        except BaseException as error:
            problems.append(error)

    for number in range(8):
        start = threading.Barrier(3)
        threads = [threading.Thread(target=train_it, args=(tmp_path / str(number), start)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (entry,) = entries(tmp_path / str(number))
        assert same(load_family(entry.folder), whole)
        assert sorted(path.suffix for path in entry.folder.iterdir()) == [".json", ".safetensors"]
    assert problems == []


def test_long_training_is_kept_piece_by_piece(tmp_path, monkeypatch):
    """No piece takes long, so an interruption loses little."""
    each = 6 * (5 * 8 + 8 + 8 * 2 + 2) * len(X) * RECIPE.epochs  # operations
    monkeypatch.setattr(training, "CHUNK", 2.5 * each)
    sizes, one_stack = [], training.train_stack
    monkeypatch.setattr(training, "train_stack", lambda *job: sizes.append(len(job[-1])) or one_stack(*job))
    train(X, Y, RECIPE, seeds(7), store=tmp_path, workers=1)
    assert sizes == [2, 2, 2, 1]
    assert Entry(next(tmp_path.iterdir())).complete
