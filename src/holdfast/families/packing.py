"""Fitted estimators as bytes, by skops: data that is read without executing anything, never a pickle."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED

from holdfast.models.files.skops import UnknownTypeError, checked, loaded

LIBRARIES = ("sklearn", "numpy", "scipy", "xgboost", "lightgbm")
WRITTEN = Path("a kept estimator")  # in errors: it has no file of its own


class PackingError(TypeError):
    """An estimator that cannot be kept, with the reason."""


def packed(estimator: Any) -> bytes:
    """The bytes of a skops file, if `unpacked` reads them."""
    import skops.io

    try:
        contents = bytes(skops.io.dumps(estimator, compression=ZIP_DEFLATED, compresslevel=1))
        checked(WRITTEN, contents)
    except UnknownTypeError as error:
        raise PackingError(
            f"{type(estimator).__name__} holds {error.name}, which no library that is trusted defines"
        ) from None
    except Exception as error:  # skops says in many ways that it does not know an object
        raise PackingError(f"{type(estimator).__name__} cannot be kept: {error}") from error
    return contents


def unpacked(contents: bytes) -> Any:
    """The estimator. Raises where the file names types that are not known: nothing of it has been built then."""
    try:
        return loaded(WRITTEN, contents)
    except UnknownTypeError as error:
        raise PackingError(f"it names {error.name}; only types of {', '.join(LIBRARIES)} are built") from None


def versions(estimator: Any) -> dict[str, str]:
    """Of the libraries that an estimator and its parts come from: with another version it may be another model."""
    known = sorted(_libraries(estimator) & set(LIBRARIES))
    return {name: str(import_module(name).__version__) for name in known}


def _libraries(estimator: Any) -> set[str]:
    own = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return {type(part).__module__.partition(".")[0] for part in (estimator, *own)} | {"numpy"}
