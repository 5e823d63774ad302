"""Every example runs as pasted, in an empty folder, and prints advice that retrained models judged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commands import HANG

EXAMPLES = Path(__file__).parents[1] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))


def test_the_list_of_examples_is_complete():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(listed) == [file.name for file in FILES]


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_runs_as_it_stands(file, tmp_path):
    here = {"HOLDFAST_DATA": str(tmp_path / "none"), "HOLDFAST_FAMILIES": str(tmp_path / "families"), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", file],
        capture_output=True,
        cwd=tmp_path,
        timeout=HANG,
        env=os.environ | here,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert "Explainer of " in done.stdout
    assert re.search(r"Advice for \d+ people: [1-9]\d* with a plan", done.stdout)
    assert re.search(r"[1-9]\d* audit models of kind '.+' invalidate", done.stdout)
    assert [path.name for path in tmp_path.iterdir() if path.name != "families"] == []  # nothing is left behind


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_fits_a_screen(file):
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 40
