"""The paper's study at the size of a machine, run into a folder."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from holdfast import PGD, Recipe
from holdfast.paper import reproduce as module
from holdfast.paper.declared import PAPER, QUICK
from holdfast.paper.reproduce import declared, reproduce, size
from holdfast.paper.results import read

RECIPE = {"german": Recipe((8,), epochs=2, batch=64)}


def test_defaults_suit_the_device(monkeypatch):
    (small,) = declared()
    assert small == replace(PAPER["text"], rows=200, base_seeds=(0,))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert declared("both", device="cuda") == [replace(study, device="cuda") for study in PAPER.values()]


def test_what_is_asked_for_counts():
    (study,) = declared("release", rows=3, members=7, bases=2)
    assert study == replace(PAPER["release"], rows=3, changes=(("seeds", 7), ("leave-one-out", 7)), base_seeds=(0, 1))
    assert size(study) == (
        "the first 3 test rows of a dataset, 2 deployed networks retrained 7 times with new seeds and 7 times with one "
        "row left out, on cpu"
    )
    assert size(PAPER["text"]).startswith("all test rows of a dataset, 5 deployed networks retrained 100 times")


def test_the_quick_study_keeps_its_size_unless_asked_for_another():
    assert declared(quick=True) == [QUICK]
    assert declared(quick=True, rows=3, members=2) == [
        replace(QUICK, rows=3, changes=(("seeds", 2), ("leave-one-out", 2)))
    ]
    with pytest.raises(ValueError, match="the quick study has the settings text, not both"):
        declared("both", quick=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_an_error():
    with pytest.raises(ValueError, match="torch finds no CUDA device here; choose the device cpu"):
        declared(device="cuda")


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """Both readings with networks that are trained in no time."""
    monkeypatch.setenv("HOLDFAST_FAMILIES", str(tmp_path / "families"))
    small = {name: replace(study, recipes=RECIPE) for name, study in PAPER.items()}
    monkeypatch.setattr(module, "PAPER", small)
    return declared("both", rows=3, members=2)


def test_each_reading_has_its_file_and_grows_there(tiny, tmp_path):
    first = reproduce(tiny, tmp_path / "out", only=("german", "pgd"), workers=1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["release.jsonl", "text.jsonl"]
    assert [set(done.rows["settings"]) for done in first] == [{"text"}, {"release"}]
    second = reproduce(tiny, tmp_path / "out", only=("german", "pgd+sns"), workers=1)
    for before, after in zip(first, second, strict=True):
        assert list(after.rows["method"].unique()) == ["pgd", "pgd+sns"]
        assert after.rows[after.rows["method"] == "pgd"].equals(before.rows)  # seconds and all


def test_results_of_another_size_are_not_mixed_nor_lost(tiny, tmp_path, monkeypatch):
    reproduce(tiny, tmp_path, only=("german", "pgd"), workers=1)
    before = read(tmp_path / "release.jsonl")
    (tmp_path / "text.jsonl").unlink()
    monkeypatch.setattr(PGD, "__call__", lambda *args: pytest.fail("worked before it looked"))
    with pytest.raises(ValueError, match="release.jsonl has results of another size, device or version; name another"):
        reproduce(declared("both", rows=4, members=2), tmp_path, only=("german", "pgd"), workers=1)
    assert read(tmp_path / "release.jsonl") == before


def test_more_deployed_networks_go_on_from_fewer(tiny, tmp_path):
    reproduce(tiny, tmp_path, only=("german", "pgd"), workers=1)
    more = reproduce(declared("both", rows=3, members=2, bases=2), tmp_path, only=("german", "pgd"), workers=1)
    assert list(more[0].rows["base_seed"]) == [0, 0, 1, 1]


def test_a_study_without_any_of_the_methods_is_left_alone(tiny, tmp_path):
    text, release = reproduce(tiny, tmp_path, only=("german", "pgd+confidence"), workers=1)
    assert set(text.rows["method"]) == {"pgd+confidence"}
    assert release.rows.empty
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["text.jsonl"]


def test_all_files_are_checked_before_any_work(tiny, tmp_path):
    reproduce([tiny[1]], tmp_path, only=("german", "pgd"), workers=1)
    other = replace(tiny[1], rows=2)
    with pytest.raises(ValueError, match="release.jsonl has results of another size"):
        reproduce([tiny[0], other], tmp_path, only=("german", "pgd"), workers=1)
    assert not (tmp_path / "text.jsonl").exists()
