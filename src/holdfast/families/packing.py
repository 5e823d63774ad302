"""Fitted estimators as bytes, by skops: data that is read without executing anything, never a pickle."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from zipfile import ZIP_DEFLATED

from holdfast.models.files.skops import LIBRARIES, foreign_types, loaded


class PackingError(TypeError):
    """An estimator that cannot be kept, with the reason."""


def packed(estimator: Any) -> bytes:
    """The bytes of a skops file, if `unpacked` reads them."""
    import skops.io

    try:
        contents = bytes(skops.io.dumps(estimator, compression=ZIP_DEFLATED, compresslevel=1))
        own = foreign_types(contents)
    except Exception as error:  # skops says in many ways that it does not know an object
        raise PackingError(f"skops cannot write {type(estimator).__name__}: {error}") from error
    if own:
        raise PackingError(
            f"{type(estimator).__name__} holds {', '.join(own)}, which no library that is trusted defines"
        )
    return contents


def unpacked(contents: bytes) -> Any:
    """The estimator. Raises where the file names types that are not trusted: nothing of it has been built then."""
    own = foreign_types(contents)
    if own:
        raise PackingError(f"it names {', '.join(own)}; only types of {', '.join(LIBRARIES)} are built")
    return loaded(contents)


def versions(estimator: Any) -> dict[str, str]:
    """Of the libraries that an estimator and its parts come from: with another version it may be another model."""
    known = sorted(_libraries(estimator) & set(LIBRARIES))
    return {name: str(import_module(name).__version__) for name in known}


def _libraries(estimator: Any) -> set[str]:
    own = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return {type(part).__module__.partition(".")[0] for part in (estimator, *own)} | {"numpy"}
