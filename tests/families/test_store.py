"""A family is trained once; a run that is cut off, however, goes on where it was and ends with the same bytes."""

from __future__ import annotations

import json
import random

import pytest
import safetensors.torch
import torch

from families.sameness import same
from holdfast import Recipe, Retraining, changes, load_family, save_family, seeds, train
from holdfast.families import store as store_module
from holdfast.families import training
from holdfast.families.changes import leave_one_out
from holdfast.families.entries import Entry, StoreError, entries, find, read_manifest
from holdfast.families.store import finish_entry, finished_members
from holdfast.utils.digests import digest
from killing import calls_of, forks, killed_at, killed_before, posix

RECIPE = Recipe((16, 8), epochs=8, batch=16)
MEMBERS = [
    *seeds(6),
    *changes.hyperparameters(2, epochs=(5, 6)),
    *leave_one_out(8, 65),
    *changes.both(seeds(2, start=50), changes.windows(2, 40, 65)),
    *changes.architecture(2, widths=(8,), depths=(1,)),
]


def data():
    x = torch.randn(65, 7, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] > 0).long()


def ask(store, recipe=RECIPE, members=MEMBERS, **others):
    return train(*data(), recipe, members, store=store, workers=1, **others)


def contents(store) -> dict[str, bytes]:
    return {path.relative_to(store).as_posix(): path.read_bytes() for path in store.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(training, "CACHE", 20_000)  # ten stacks of two


@pytest.fixture
def stacks(monkeypatch):
    """How many members were trained, stack by stack."""
    trained, one_stack = [], training.train_stack
    monkeypatch.setattr(training, "train_stack", lambda *job: trained.append(len(job[-1])) or one_stack(*job))
    return trained


def test_asking_twice_trains_once(tmp_path, stacks):
    first = ask(tmp_path)
    assert sum(stacks) == 20
    second = ask(tmp_path)
    assert sum(stacks) == 20
    assert same(first, second)
    assert same(first, train(*data(), RECIPE, MEMBERS))
    for name in ("retrainings", "kinds", "fingerprints", "recipe", "data"):
        assert getattr(first, name) == getattr(second, name)


def test_other_data_recipes_and_members_are_other_families(tmp_path, stacks):
    few = MEMBERS[:2]
    ask(tmp_path, members=few)
    ask(tmp_path, members=few, recipe=Recipe((16, 8), epochs=8, batch=16, learning_rate=2e-3))
    ask(tmp_path, members=MEMBERS[1:3])
    ask(tmp_path, members=few, classes=3)
    x, y = data()
    train(x + 1e-6, y, RECIPE, few, store=tmp_path)
    assert len(entries(tmp_path)) == 5
    before = len(stacks)
    renamed = [Retraining(init_seed=m.init_seed, order_seed=m.order_seed, kind="mine") for m in few]
    assert ask(tmp_path, members=renamed).kinds == ("mine", "mine")  # a name is not what a network is made of
    assert len(stacks) == before


def test_a_family_is_loaded_as_it_was_saved(tmp_path):
    x, y = data()
    family = train(x, y, RECIPE, MEMBERS, held_out=(x, y))
    back = load_family(save_family(family, tmp_path / "saved"))
    assert same(family, back)
    for name in ("retrainings", "fingerprints", "accuracy", "recipe", "data"):
        assert getattr(family, name) == getattr(back, name)
    assert torch.equal(family.predict(x), back.predict(x))
    with pytest.raises(ValueError, match="before merging"):
        save_family(family.merged(((0,), (1,))), tmp_path / "merged")


@posix
@forks
def test_killed_before_each_file_operation_a_save_leaves_the_old_family_or_the_new_one(tmp_path):
    old, new = (train(*data(), RECIPE, members) for members in (MEMBERS[:2], MEMBERS[2:5]))
    left = []
    for moment in range(100):
        folder = save_family(old, tmp_path / str(moment))
        killed = killed_before(moment, folder, save_family, new, folder)
        back = load_family(folder)
        left.append("new" if same(back, new) else "old" if same(back, old) else "neither")
        assert same(load_family(save_family(new, folder)), new)
        assert len(list(folder.iterdir())) == 2
        if not killed:
            break
    assert not killed
    assert left == sorted(left, reverse=True)  # old, old, ..., new, new: once there it stays
    assert set(left) == {"old", "new"}


def test_flipped_bits_never_make_another_family(tmp_path):
    family = train(*data(), RECIPE, MEMBERS[:3], held_out=data())
    manifest = save_family(family, tmp_path) / "manifest.json"
    contents, draw, refused = manifest.read_bytes(), random.Random(0), 0
    for _ in range(600):
        flipped = bytearray(contents)
        flipped[draw.randrange(len(contents))] ^= 1 << draw.randrange(8)
        manifest.write_bytes(flipped)
        try:
            back = load_family(tmp_path)
            assert same(back, family)
            assert all(getattr(back, name) == getattr(family, name) for name in ("fingerprints", "accuracy", "recipe"))
        except StoreError as error:
            refused += str(manifest) in str(error)
    assert refused > 590


def _resealed(folder, **changes):
    """A manifest that says something else under a checksum that fits."""
    about = json.loads((folder / "manifest.json").read_text()) | changes
    del about["checksum"]
    (folder / "manifest.json").write_text(json.dumps(about | {"checksum": digest(about)}))


WRONG = {
    "a newer format": ({"format": 9, "version": "9.0"}, "has format 9, written by holdfast 9.0; this version reads up"),
    "a newer algorithm": ({"algorithm": 99}, "is not a valid family manifest"),
    "an unknown setting": (
        {"recipe": {"hidden": [3], "colour": 1}},
        "a family that this version cannot build .*colour",
    ),
    "no recipe": ({"recipe": [3]}, "a family that this version cannot build"),
    "an unknown change": ({"members": [{"kind": "seeds", "fingerprint": None, "moon": 1}] * 2}, "cannot build .*moon"),
    "another file": ({"file": "../elsewhere.safetensors"}, "is not a valid family manifest"),
    "places twice": ({"places": [0, 0]}, "is not a valid family manifest"),
    "no names": ({"members": [3, 4]}, "is not a valid family manifest"),
    "another program's": ({"holdfast": "other"}, "is not a valid family manifest"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_manifest_that_does_not_describe_a_family_is_refused_with_a_sentence(wrong, tmp_path):
    changed, message = WRONG[wrong]
    save_family(train(*data(), RECIPE, MEMBERS[:2]), tmp_path)
    _resealed(tmp_path, **changed)
    with pytest.raises(StoreError, match=message) as caught:
        load_family(tmp_path)
    assert str(tmp_path / "manifest.json") in str(caught.value)
    assert "remove" not in str(caught.value)  # it may be somebody's own folder


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, stacks, monkeypatch):
    ask(tmp_path / "whole")
    stacks.clear()
    counted = training.train_stack

    def tired(*job):
        if len(stacks) == 4:
            raise KeyboardInterrupt
        return counted(*job)

    monkeypatch.setattr(training, "train_stack", tired)
    with pytest.raises(KeyboardInterrupt):
        ask(tmp_path / "cut")
    (entry,) = entries(tmp_path / "cut")
    assert not entry.complete
    done = sum(stacks)
    assert len(finished_members(entry)) == entry.members_so_far() == done
    monkeypatch.setattr(training, "train_stack", counted)
    stacks.clear()
    ask(tmp_path / "cut")
    assert sum(stacks) == 20 - done
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


@posix
@forks
def test_killed_at_twenty_moments_it_ends_with_the_same_bytes(tmp_path):
    calls, moments = calls_of(ask, tmp_path / "whole"), random.Random(0)
    killed = [killed_at(moments.randrange(1, calls // 5), ask, tmp_path / "cut") for _ in range(20)]
    assert sum(killed) >= 10
    ask(tmp_path / "cut")
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def _interrupted(store, monkeypatch):
    """A store with some parts in it."""
    counted, done = training.train_stack, []

    def tired(*job):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(1)
        return counted(*job)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(training, "train_stack", tired)
        ask(store)
    return sorted(store.rglob("parts/*.safetensors"))


DAMAGE = {
    "a flipped bit": lambda whole: whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:],
    "cut short": lambda whole: whole[:-10],
    "empty": lambda whole: b"",
    "something else": lambda whole: b"not a family at all",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_part_is_named_and_not_used(damage, tmp_path, monkeypatch):
    part = _interrupted(tmp_path, monkeypatch)[0]
    part.write_bytes(DAMAGE[damage](part.read_bytes()))
    with pytest.raises(StoreError, match="is damaged or was not written by holdfast") as caught:
        ask(tmp_path)
    assert str(part) in str(caught.value)
    part.unlink()
    assert same(ask(tmp_path), train(*data(), RECIPE, MEMBERS))


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["family-*.safetensors", "manifest.json"])
def test_a_damaged_family_is_named_and_not_used(name, damage, tmp_path):
    ask(tmp_path)
    (path,) = tmp_path.rglob(name)
    path.write_bytes(DAMAGE[damage](path.read_bytes()))
    with pytest.raises(StoreError) as caught:
        ask(tmp_path)
    assert str(path) in str(caught.value)


def test_a_family_in_the_wrong_folder_is_not_taken_for_another(tmp_path):
    ask(tmp_path / "a", members=MEMBERS[:2])
    ask(tmp_path / "b", members=MEMBERS[2:4])
    (mine,), (other,) = entries(tmp_path / "a"), entries(tmp_path / "b")
    other.folder.rename(tmp_path / "a" / "other")
    mine.remove()
    (tmp_path / "a" / "other").rename(mine.folder)
    with pytest.raises(StoreError, match="holds another family than the one its name says"):
        ask(tmp_path / "a", members=MEMBERS[:2])


@pytest.mark.slow
def test_workers_put_their_chunks_there_too(tmp_path):
    one = ask(tmp_path / "one")
    two = train(*data(), RECIPE, MEMBERS, store=tmp_path / "two", workers=2)
    assert same(one, two)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.parametrize("moment", ["writing a part", "reading parts"])
def test_a_family_that_another_process_finishes_meanwhile(moment, tmp_path, monkeypatch):
    """Both end with the same family: what one sweeps away the other does not need any more."""
    whole = ask(tmp_path / "whole")
    store, others = tmp_path / "store", []

    def finish_elsewhere():
        if not others:
            others.append(None)
            (entry,) = entries(store)
            finish_entry(entry, whole)

    if moment == "writing a part":
        written = safetensors.torch.save

        def save(tensors, metadata=None):
            if metadata is not None:
                finish_elsewhere()
            return written(tensors, metadata=metadata)

        monkeypatch.setattr(safetensors.torch, "save", save)
    else:
        stop_after(3, monkeypatch)
        with pytest.raises(KeyboardInterrupt):
            ask(store)
        monkeypatch.undo()
        read = store_module._read_part
        monkeypatch.setattr(store_module, "_read_part", lambda path: finish_elsewhere() or read(path))
    assert same(ask(store), whole)
    assert others
    (entry,) = entries(store)
    assert entry.complete
    tensors = read_manifest(entry.folder)["file"]
    assert contents(store).keys() == {f"{entry.folder.name}/{name}" for name in (tensors, "manifest.json")}


def stop_after(stacks, monkeypatch):
    """Ctrl-C after so many stacks."""
    done, one_stack = [], training.train_stack

    def train_stack(*job):
        if len(done) == stacks:
            raise KeyboardInterrupt
        done.append(None)
        return one_stack(*job)

    monkeypatch.setattr(training, "train_stack", train_stack)


def test_a_store_is_listed_and_searched_by_name(tmp_path):
    assert entries(tmp_path / "nowhere") == []
    ask(tmp_path, members=MEMBERS[:2])
    ask(tmp_path, members=MEMBERS[2:4])
    (tmp_path / "unrelated").mkdir()
    first, second = entries(tmp_path)
    assert find(tmp_path, first.folder.name[:6]) == first
    with pytest.raises(ValueError, match=f"no family begins with 'zz'.*{second.folder.name}"):
        find(tmp_path, "zz")
    with pytest.raises(ValueError, match="no family begins with ''"):
        find(tmp_path, "")
    first.remove()
    assert entries(tmp_path) == [second]
    assert Entry(first.folder).exists is False
