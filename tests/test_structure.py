"""Data walks one road: no module imports from one further down."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__).parent
ROAD = [
    "utils", "tabular", "datasets", "models", "theory", "search", "external", "families", "auditing",
    "guarantees", "explaining", "studies", "reporting", "demo", "cli",
]  # fmt: skip
MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or not path.name.startswith("__")]


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {
                f"{node.module}.{alias.name}" if node.module == "holdfast" else str(node.module) for alias in node.names
            }
    return {name.split(".")[1] for name in names if name.startswith("holdfast.") and "__version__" not in name}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_one_way(path):
    here = room(path)
    assert here in ROAD
    below = {name for name in imported(path) if ROAD.index(name) > ROAD.index(here)}
    assert not below, f"{here} reaches forward to {below}"


def test_every_room_is_on_the_road():
    assert {room(path) for path in MODULES} == set(ROAD)
