"""Fitted estimators as bytes, by skops: data that is read without executing anything, never a pickle.

skops names every type that a file would build. Only those of the libraries below are built; a file that names another,
a transformer of the user's own for example, is refused.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any
from zipfile import ZIP_DEFLATED

LIBRARIES = ("sklearn", "numpy", "scipy", "xgboost", "lightgbm")
ALSO = frozenset({"collections.OrderedDict"})
SCORES = ("sklearn.feature_selection.", "sklearn.metrics.")  # where functions, not only classes, are parts of a model


class PackingError(TypeError):
    """An estimator that cannot be kept, with the reason."""


def packed(estimator: Any) -> bytes:
    """The bytes of a skops file, if `unpacked` reads them."""
    import skops.io

    try:
        contents = bytes(skops.io.dumps(estimator, compression=ZIP_DEFLATED, compresslevel=1))
        own = _foreign(contents)
    except Exception as error:  # skops says in many ways that it does not know an object
        raise PackingError(f"skops cannot write {type(estimator).__name__}: {error}") from error
    if own:
        raise PackingError(
            f"{type(estimator).__name__} holds {', '.join(own)}, which no library that is trusted defines"
        )
    return contents


def unpacked(contents: bytes) -> Any:
    """The estimator. Raises where the file names types that are not trusted: nothing of it has been built then."""
    import skops.io

    own = _foreign(contents)
    if own:
        raise PackingError(f"it names {', '.join(own)}; only types of {', '.join(LIBRARIES)} are built")
    return skops.io.loads(contents, trusted=skops.io.get_untrusted_types(data=contents))


def versions(estimator: Any) -> dict[str, str]:
    """Of the libraries that an estimator and its parts come from: with another version it may be another model."""
    known = sorted(_libraries(estimator) & set(LIBRARIES))
    return {name: str(import_module(name).__version__) for name in known}


def _libraries(estimator: Any) -> set[str]:
    own = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return {type(part).__module__.partition(".")[0] for part in (estimator, *own)} | {"numpy"}


def _foreign(contents: bytes) -> list[str]:
    """The types of a file that neither skops nor we trust."""
    import skops.io

    return sorted(name for name in skops.io.get_untrusted_types(data=contents) if not _is_trusted(name))


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
