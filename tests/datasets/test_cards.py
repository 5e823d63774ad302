"""Files that are missing, cut short, or packed."""

from __future__ import annotations

import dataclasses
import gzip

import pandas as pd
import pytest

from holdfast.datasets import DATASETS, german, seizure

KNOWN = german.CARD.packaged.read_bytes()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    return tmp_path


def put(folder, file, contents):
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents)
    return path


def test_german_ships_with_holdfast(folder):
    assert german.CARD.path() == german.CARD.packaged
    assert german.CARD.state() == "here"


@pytest.mark.parametrize("keep", [0, 1000, len(KNOWN) - 1])
def test_cut_file_is_named_and_the_way_out_is_said(folder, keep):
    path = put(folder, german.CARD.file, KNOWN[:keep])
    with pytest.raises(ValueError, match=r"is not the expected file.*remove it to use the copy that ships") as caught:
        german.CARD.load()
    assert str(path) in str(caught.value)


def test_packing_does_not_matter(folder):
    unpackaged = dataclasses.replace(german.CARD, packaged=None)
    put(folder, german.CARD.file + ".gz", gzip.compress(KNOWN, compresslevel=1))
    pd.testing.assert_frame_equal(unpackaged.load()[0], german.CARD.read(german.CARD.packaged))


@pytest.mark.parametrize("contents", [gzip.compress(KNOWN), gzip.compress(KNOWN)[:5000], b"not packed", b""])
def test_wrong_packed_file_is_a_wrong_file(folder, contents):
    put(folder, seizure.CARD.file + ".gz", contents)
    assert seizure.CARD.state() == "wrong checksum"
    with pytest.raises(ValueError, match=r"data\.csv\.gz .*get it from https://"):
        seizure.CARD.load()


@pytest.mark.parametrize("name", [name for name, card in DATASETS.items() if card.packaged is None])
def test_missing_file_says_where_it_should_be_and_how_to_get_it(folder, name):
    card = DATASETS[name]
    assert card.state() == "missing"
    with pytest.raises(FileNotFoundError) as caught:
        card.load()
    assert str(folder / card.file) in str(caught.value)
    assert (f"holdfast datasets fetch {name}" if card.url else card.home) in str(caught.value)
