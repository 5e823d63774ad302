"""The package and the commands that train nothing start without torch and pandas."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args

import pytest

from holdfast import METHODS, STABILISERS, datasets
from holdfast.cli import inputs, options
from holdfast.cli.methods import LISTING
from holdfast.datasets import DATASETS
from holdfast.paper import reproduce
from holdfast.paper.declared import PAPER_DATASETS, QUICK
from holdfast.reporting.listings import describe_methods
from holdfast.tabular.encoding import SCALINGS

COMMANDS = ("--version", "--help", "methods", "datasets", "families list")
COMMAND = """
import sys
from holdfast.cli import main

sys.argv = ["holdfast", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
LOADED = """
print("loaded:", *sorted({"torch", "pandas", "numpy", "scipy", "sklearn", "matplotlib"} & set(sys.modules)))
"""


def loaded(program: str, *words: str) -> set[str]:
    """The heavy libraries that a fresh process has loaded at the end of the program."""
    ran = subprocess.run([sys.executable, "-c", program + LOADED, *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.splitlines()[-1].removeprefix("loaded:").split())


def test_importing_holdfast_loads_no_heavy_library():
    assert loaded("import sys, holdfast") == set()


def test_the_check_sees_what_is_loaded():
    assert {"torch", "numpy"} <= loaded("import sys, holdfast; holdfast.Family")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_trains_nothing_loads_neither_torch_nor_pandas(command, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_FAMILIES", str(tmp_path))
    assert not {"torch", "pandas"} & loaded(COMMAND, *command.split())


def test_a_schema_is_shown_in_a_notebook_without_pandas():
    feature = "holdfast.Feature('job', 'categorical', levels=('clerk', 'nurse'))"
    schema = f"holdfast.Schema(({feature},), 'outcome', ('no', 'yes'))"
    assert not {"torch", "pandas"} & loaded(f"import sys, holdfast; assert 'nurse' in {schema}._repr_html_()")


# ---- what the commands say without asking the library ----


def test_the_choices_of_the_commands_are_those_of_the_library():
    assert tuple(DATASETS) == options.DATASETS
    assert PAPER_DATASETS == options.DATASETS
    assert reproduce.METHODS == options.PAPER_METHODS
    assert datasets.card("german").split == options.GERMAN_SPLIT
    assert len(reproduce.SEEDS) == options.PAPER_BASES
    assert QUICK.rows == options.QUICK_ROWS
    assert {members for _, members in QUICK.changes} == {options.QUICK_MEMBERS}


def test_the_scalings_of_holdfast_audit_are_those_of_the_encoding():
    assert get_args(inputs.Scaling) == SCALINGS


def test_the_listing_of_methods_is_what_the_methods_say():
    listed = json.loads(LISTING.read_text(encoding="utf-8"))
    assert listed == describe_methods(METHODS, STABILISERS), "the listing is out of date; run `make listing`"
