"""The public names are the ones listed, all of them, and each is what it claims to be."""

from __future__ import annotations

import ast
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__).parent

# Loading every submodule sets attributes on the packages above it: a module must not take the place of a function.
EVERY_SUBMODULE = """
import pkgutil
from importlib import import_module

import holdfast

for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
for name, home in holdfast._HOME.items():
    assert getattr(holdfast, name) is getattr(import_module(f"holdfast.{home}"), name), name
for name, home in holdfast._MODULES.items():
    assert getattr(holdfast, name) is import_module(f"holdfast.{home}"), name
"""


def public(*kinds: type) -> list[str]:
    return [name for name in holdfast.__all__ if isinstance(getattr(holdfast, name), kinds)]


def test_all_lists_every_name_once_in_order():
    assert holdfast.__all__ == sorted(set(holdfast.__all__))
    assert set(holdfast.__all__) == {*holdfast._HOME, *holdfast._MODULES, "__version__"}
    assert sum(map(len, holdfast._HOMES.values())) == len(holdfast._HOME), "a name has two homes"


def test_every_public_name_is_what_its_home_defines():
    for name, home in holdfast._HOME.items():
        value = getattr(holdfast, name)
        assert value is getattr(import_module(f"holdfast.{home}"), name)
        if isinstance(value, (type, types.FunctionType)):
            assert value.__module__ == f"holdfast.{home}", f"{name} comes from {value.__module__}"


@pytest.mark.slow
def test_loading_every_submodule_hides_no_public_name():
    ran = subprocess.run([sys.executable, "-c", EVERY_SUBMODULE], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_type_checkers_are_told_the_same_homes():
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    told = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, f"write `import {alias.name} as {alias.name}`, which exports it"
            told[alias.name] = str(node.module)
    homes = {name: f"holdfast.{home}" for name, home in holdfast._HOME.items()}
    modules = {name: f"holdfast.{home}".rpartition(".")[0] for name, home in holdfast._MODULES.items()}
    assert told == homes | modules


def test_dir_shows_every_public_name():
    assert set(dir(holdfast)) >= set(holdfast.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing_of_this_name'"):
        _ = holdfast.nothing_of_this_name


@pytest.mark.parametrize(("old", "new"), holdfast._RENAMED.items())
def test_an_old_name_warns_and_gives_the_new_thing(old, new):
    with pytest.warns(DeprecationWarning, match=f"holdfast.{old} is now holdfast.{new}"):
        value = getattr(holdfast, old)
    assert value is getattr(holdfast, new)
    assert old not in holdfast.__all__


@pytest.mark.parametrize("name", public(type, types.FunctionType))
def test_every_public_class_and_function_has_a_docstring_of_its_own(name):
    text = getattr(holdfast, name).__doc__
    assert text, f"{name} has no docstring"
    assert not text.startswith(f"{name}("), f"{name} has only the docstring that dataclass makes"


def test_no_folder_has_the_name_of_a_public_name():
    folders = {path.name for path in PACKAGE.rglob("*") if path.is_dir()}
    assert not folders & set(holdfast.__all__)
