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


def homes() -> dict[str, str]:
    """Each public name of the stub with the module that it comes from."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: f"holdfast.{node.module}" for node in imports for alias in node.names}


HOMES = homes()
MODULES = {"changes": "holdfast.families.changes"}  # public names that are modules

# Loading every submodule sets attributes on the packages above it: a module must not take the place of a function.
EVERY_SUBMODULE = f"""
import pkgutil
from importlib import import_module

import holdfast

for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
for name, home in {HOMES}.items():
    assert getattr(holdfast, name) is getattr(import_module(home), name), name
"""


def public(*kinds: type) -> list[str]:
    return [name for name in holdfast.__all__ if isinstance(getattr(holdfast, name), kinds)]


def test_all_lists_every_name_once():
    assert len(holdfast.__all__) == len(set(holdfast.__all__))
    assert set(holdfast.__all__) == set(HOMES)


def test_there_are_at_most_60_public_names():
    assert len(holdfast.__all__) <= 60


def test_every_public_name_is_what_its_home_defines():
    for name, home in HOMES.items():
        value = getattr(holdfast, name)
        assert value is getattr(import_module(home), name)
        if isinstance(value, types.ModuleType):
            assert value.__name__ == MODULES[name]
        elif isinstance(value, (type, types.FunctionType)):
            assert value.__module__ == home, f"{name} comes from {value.__module__}"


@pytest.mark.slow
def test_loading_every_submodule_hides_no_public_name():
    ran = subprocess.run([sys.executable, "-c", EVERY_SUBMODULE], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_stub_exports_what_it_imports():
    """In a stub, only `import name as name` makes a name public for type checkers."""
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    aliases = [alias for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert [alias.name for alias in aliases if alias.asname != alias.name] == []
    assert len(aliases) == len(HOMES), "a name has two homes"


def test_dir_shows_every_public_name():
    assert set(dir(holdfast)) >= set(holdfast.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = holdfast.nothing_of_this_name


@pytest.mark.parametrize("name", public(type, types.FunctionType))
def test_every_public_class_and_function_has_a_docstring_of_its_own(name):
    text = getattr(holdfast, name).__doc__
    assert text, f"{name} has no docstring"
    assert not text.startswith(f"{name}("), f"{name} has only the docstring that dataclass makes"


def test_no_folder_has_the_name_of_a_public_name():
    folders = {path.name for path in PACKAGE.rglob("*") if path.is_dir()}
    assert not folders & set(holdfast.__all__)
