"""The public names are the ones listed, all of them, and they are there."""

import types

import holdfast


def test_all_lists_what_can_be_imported():
    assert holdfast.__all__ == sorted(
        holdfast.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )
    for name in holdfast.__all__:
        assert hasattr(holdfast, name)


def test_nothing_public_is_left_out():
    public = {
        name
        for name, value in vars(holdfast).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert public | {"__version__", "changes"} == set(holdfast.__all__)


def test_every_public_function_and_class_says_what_it_is():
    for name in holdfast.__all__:
        value = getattr(holdfast, name)
        if isinstance(value, (type, types.FunctionType)) and name not in ("Model", "Space"):
            assert value.__doc__, name
            assert not value.__doc__.startswith(f"{name}("), f"{name} has only the docstring that dataclass makes"
