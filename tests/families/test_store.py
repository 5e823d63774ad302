"""A family is trained once; a run that is cut off, however, goes on where it was and ends with the same bytes."""

from __future__ import annotations

import random

import pytest
import safetensors.torch
import torch

from families.sameness import same
from holdfast import Recipe, Retraining, changes, leave_one_out, load_family, save_family, seeds, train
from holdfast.families import store as store_module
from holdfast.families import training
from holdfast.families.entries import Entry, StoreError, entries, find
from holdfast.families.store import finish_entry, finished_members
from killing import calls_of, forks, killed_at, posix

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
@pytest.mark.parametrize("name", ["family.safetensors", "manifest.json"])
def test_a_damaged_family_is_named_and_not_used(name, damage, tmp_path):
    ask(tmp_path)
    (path,) = tmp_path.rglob(name)
    whole = path.read_bytes()
    broken = (
        DAMAGE[damage](whole) if name != "manifest.json" or damage != "a flipped bit" else whole.replace(b"sha", b"sah")
    )
    path.write_bytes(broken)
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
    assert contents(store).keys() == {f"{entry.folder.name}/{name}" for name in ("family.safetensors", "manifest.json")}


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
