"""Fitted estimators by skops: data that is read without executing anything, never a pickle.

skops names every type that a file would build. Only those of the libraries below are built; a file that names another,
a transformer of the user's own for example, is refused.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

LIBRARIES = ("sklearn", "numpy", "scipy", "xgboost", "lightgbm")
ALSO = frozenset({"collections.OrderedDict"})
SCORES = ("sklearn.feature_selection.", "sklearn.metrics.")  # where functions, not only classes, are parts of a model


def foreign_types(contents: bytes) -> list[str]:
    """The types of a file that neither skops nor we trust."""
    import skops.io

    return sorted(name for name in skops.io.get_untrusted_types(data=contents) if not _is_trusted(name))


def loaded(contents: bytes) -> Any:
    """What a file holds that names no foreign types."""
    import skops.io

    return skops.io.loads(contents, trusted=skops.io.get_untrusted_types(data=contents))


def _is_trusted(name: str) -> bool:
    """A class of one of the libraries, or a function that scores columns: no other function, which a model would call
    with whatever the file says."""
    if name in ALSO:
        return True
    module, _, own = name.rpartition(".")
    if module.partition(".")[0] not in LIBRARIES:
        return False
    try:
        found = getattr(import_module(module), own, None)
    except ImportError:
        return False
    return isinstance(found, type) or (found is not None and name.startswith(SCORES))
