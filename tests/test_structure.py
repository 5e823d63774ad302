"""Data walks one road: no module imports from one further down."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__).parent
ROAD = [
    "utils", "tabular", "datasets", "models", "theory", "search", "external", "families", "auditing",
    "guarantees", "explaining", "reporting", "paper", "demo", "cli",
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


def runtime_imports(path: Path) -> set[str]:
    """Modules of the package that a file imports when it runs, inside functions too; not those that only types need."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checking = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    for_types = {id(part) for node in checking for line in node.body for part in ast.walk(line)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in for_types:
            named = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= named & MODULE_NAMES.keys() or {node.module}
    return found & MODULE_NAMES.keys()


def module_name(path: Path) -> str:
    return ".".join(("holdfast", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


MODULE_NAMES = {module_name(path): path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py"}


def test_no_module_imports_itself_by_way_of_others():
    imports = {name: runtime_imports(path) - {name} for name, path in MODULE_NAMES.items()}
    while leaves := [name for name, wanted in imports.items() if not wanted]:  # what imports nothing is in no circle
        for name in leaves:
            del imports[name]
        imports = {name: wanted & imports.keys() for name, wanted in imports.items()}
    assert not imports
