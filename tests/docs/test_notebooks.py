"""The notebooks run from the top and show what is stored of them, in the words of the other pages."""

from __future__ import annotations

import copy
import re
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import load_once
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from pages import ROOT, plain
from test_readme import REPLACED, anchors, exists

import run_notebooks
from commands import runs
from run_notebooks import NOTEBOOKS, cleaned, faults, read, run, store, texts

STORED = {name: read(path) for name, path in NOTEBOOKS.items()}
NEEDS = {"clinic": "ctg"}  # datasets that do not ship with holdfast
PRINTED = ("stdout", "text/plain")  # HTML shows the same, or a page in a frame
ROW = re.compile(r"\s*\d+ {2}")  # of a table: which rows come first depends on figures


def printed(notebook: NotebookNode) -> list[tuple[int, str]]:
    """What a notebook prints, by cell: the words, without rows of tables."""
    return [
        (number, plain("\n".join(line for line in text.splitlines() if not ROW.match(line))))
        for number, kind, text in texts(notebook)
        if kind in PRINTED
    ]


def markdown(notebook: NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


# ---- what is stored ----


def test_there_are_notebooks():
    assert set(NOTEBOOKS) == {"bank", "clinic"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_and_shows_what_is_stored(name, tmp_path):
    if name in NEEDS:
        load_once(NEEDS[name])  # skips, or fails, where its file is missing
    done = run(STORED[name], tmp_path)
    assert not faults(done)
    assert printed(done) == printed(STORED[name]), f"run python tools/run_notebooks.py {name}"
    assert figures(done).keys() == figures(STORED[name]).keys()


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_is_stored_is_clean(name):
    assert not faults(STORED[name])
    same = nbformat.writes(cleaned(copy.deepcopy(STORED[name]))) + "\n"
    assert same == NOTEBOOKS[name].read_text(encoding="utf-8"), f"run python tools/run_notebooks.py {name}"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_figure_is_told_in_words(name):
    told = figures(STORED[name])
    assert told
    assert not [number for number, words in told.items() if len(words.split()) < 10]


def figures(notebook: NotebookNode) -> dict[int, str]:
    """Cells that draw -> what they say to people who cannot see it."""
    return {
        number: cell.metadata.get("alt", "")
        for number, cell in enumerate(notebook.cells, start=1)
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
    }


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_uses_the_terms_of_the_glossary(name):
    text = " ".join(markdown(STORED[name]).split())
    for words, instead in REPLACED.items():
        found = re.findall(f".{{,40}}(?:{words}).{{,40}}", text)
        assert not found, f"{name} says {found[0]!r}; say: {instead}"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_links_and_names_of_a_notebook_lead_somewhere(name):
    text = markdown(STORED[name])
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text)
    assert links
    for link, part in links:
        page = NOTEBOOKS[name].parent / link
        assert page.is_file(), f"{name} links to {link}"
        assert not part or part in anchors(page.read_text(encoding="utf-8")), f"{name} links to {link}#{part}"
    for called in re.findall(r"`((?:hf|holdfast)(?:\.\w+)+)", text):
        assert exists(called), f"{name} names {called}"


# ---- how they are run and stored ----


def test_the_kernel_is_this_python_in_an_empty_folder_and_on_no_network(tmp_path):
    asks = """
import os, sys
from ipykernel.kernelapp import IPKernelApp
print(sys.executable, os.getcwd(), os.listdir(), IPKernelApp.instance().transport, os.getpid(), sep="\\n")
"""
    done = run(new_notebook(cells=[new_code_cell(asks)]), tmp_path)
    python, folder, files, transport, process = done.cells[0].outputs[0].text.split()
    assert python == sys.executable
    assert Path(folder) == tmp_path.resolve()
    assert (files, transport) == ("[]", "ipc")
    assert not runs(int(process))


@pytest.fixture
def notebook(tmp_path, monkeypatch):
    """A function that writes a notebook of these cells where the tool looks for the one called "mine"."""

    def write(*sources: str) -> Path:
        path = tmp_path / "docs" / "mine.ipynb"
        path.parent.mkdir(exist_ok=True)
        cells = [new_markdown_cell("# Mine"), *map(new_code_cell, sources)]
        path.write_text(nbformat.writes(new_notebook(cells=cells)) + "\n", encoding="utf-8")
        monkeypatch.setattr(run_notebooks, "ROOT", tmp_path)
        monkeypatch.setattr(run_notebooks, "NOTEBOOKS", {"mine": path})
        return path

    return write


def test_the_same_notebook_is_stored_twice_in_the_same_way(notebook, capsys):
    path = notebook("import time\nprint(1)", "print(1)", "print(1)")
    store("mine")
    first = path.read_bytes()
    store("mine")
    assert path.read_bytes() == first
    assert capsys.readouterr().out.splitlines() == ["docs/mine.ipynb"] * 2
    kept = read(path)
    assert len({cell.id for cell in kept.cells}) == 4
    assert all(cell.execution_count is None for cell in kept.cells[1:])
    assert [text for _, _, text in texts(kept)] == ["1\n"] * 3


@pytest.mark.parametrize(
    ("source", "error", "says"),
    [
        ("1 / 0", CellExecutionError, "ZeroDivisionError"),
        ("import warnings\nwarnings.warn('look out')", SystemExit, "(?s)is not stored.*look out"),
        ("import sys\nprint(sys.prefix)", SystemExit, "(?s)is not stored.*cell 3 shows the path"),
        ("object()", SystemExit, "(?s)is not stored.*an address in memory"),
    ],
)
def test_a_notebook_that_fails_leaves_the_stored_one(source, error, says, notebook):
    path = notebook("print(1)", source)
    before = path.read_bytes()
    with pytest.raises(error, match=says):
        store("mine")
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["mine.ipynb"]


def test_an_unknown_notebook_is_named():
    with pytest.raises(SystemExit, match="no notebook is called bnak; there are bank, clinic"):
        run_notebooks.main(["bnak"])


def test_the_tool_has_a_target():
    assert "tools/run_notebooks.py" in (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nnotebooks:")[2]
