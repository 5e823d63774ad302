"""The reference: every public name is shown, has an example that runs, and links to the paper that it comes from."""

from __future__ import annotations

import doctest
import inspect
import re
import warnings

import pytest

import holdfast as hf
from reference import ROOT, Name, names, shown

FOUND = names()


def test_every_public_name_is_shown_once():
    paths = shown()
    assert len(paths) == len(set(paths))
    missing = {f"holdfast.{name}" for name in hf.__all__} - set(paths) - {"holdfast.changes"}
    kinds = {f"holdfast.changes.{name}" for name, _ in inspect.getmembers(hf.changes, inspect.isfunction) if own(name)}
    assert not missing | (kinds - set(paths) - {f"holdfast.changes.{name}" for name in hf.__all__})


def own(name: str) -> bool:
    """Whether a function is one of the kinds of change, and not what they are made with."""
    return not name.startswith("_") and getattr(hf.changes, name).__module__ == hf.changes.__name__


@pytest.mark.parametrize("name", FOUND, ids=lambda name: name.path)
def test_a_paper_that_a_public_name_comes_from_is_linked(name: Name):
    assert not name.lacks_link, f"link the paper that the docstring of {name.path} names: 'Paper: [...](https://...)'"


@pytest.mark.parametrize("name", FOUND, ids=lambda name: name.path)
def test_the_example_of_a_public_name_runs_as_pasted(name: Name, tmp_path, monkeypatch):
    assert name.example, f"{name.path} has no example"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "no-data"))
    monkeypatch.setenv("HOLDFAST_FAMILIES", str(tmp_path / "families"))
    test = doctest.DocTestParser().get_doctest(name.example, {}, name.path, None, None)
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ran = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
            test, out=said.append
        )
    assert ran.attempted > 0
    assert ran.failed == 0, "".join(said)


def test_a_page_of_the_reference_shows_names_that_a_reader_can_import():
    for path in shown():
        assert re.fullmatch(r"holdfast(\.\w+)+", path), path
    assert (ROOT / "docs" / "reference" / "index.md").is_file()
