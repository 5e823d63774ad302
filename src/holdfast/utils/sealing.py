"""JSON of ours that says what it is, and shows whether it is whole.

Every value that we write has its kind (`"holdfast": "audit"`), a format number, and a checksum over all the rest:

    {"holdfast": "audit", "format": 2, ..., "checksum": "9f86d081..."}

A value whose checksum does not fit is refused, and so is one of a newer format. Formats from before there were
checksums are still read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.utils.digests import digest


@dataclass(frozen=True)
class Kind:
    """A kind of value that we keep in files."""

    name: str
    what: str  # in words
    format: int  # to be raised whenever older versions could not read what is written
    unsealed: int  # formats up to this one have no checksum; 0 where they have no number either


class SealError(ValueError):
    """A value is not what was written, or was written by a newer version."""


def sealed(kind: Kind, value: Mapping[str, Any]) -> dict[str, Any]:
    whole = {"holdfast": kind.name, "format": kind.format, **value}
    return {**whole, "checksum": digest(whole)}


def unsealed(kind: Kind, contents: bytes, source: str) -> dict[str, Any]:
    """The value as it was given to `sealed`. ``source`` says in errors where it was read."""
    value = _parsed(contents)
    nameless = kind.name if kind.unsealed >= 0 else None  # what had no checksum had no name either
    if value is None or value.pop("holdfast", nameless) != kind.name:
        raise SealError(f"{source} is not a valid {kind.what} (damaged, edited, or written by another program)")
    form, checksum = value.pop("format", 0), value.pop("checksum", None)
    if type(form) is not int:
        raise SealError(f"{source} is not a valid {kind.what}: its format is {form!r}, expected a whole number")
    if form > kind.format:
        raise SealError(
            f"{source} has format {form}, written by holdfast {value.get('version', 'of later')}; this version reads "
            f"up to format {kind.format}: update holdfast"
        )
    old = checksum is None and 0 <= form <= kind.unsealed
    if not old and checksum != digest({"holdfast": kind.name, "format": form, **value}):
        raise SealError(f"{source} is not a valid {kind.what}: its checksum does not fit (damaged, or edited)")
    return value


def without_nan(value: Any) -> Any:
    """The same as JSON has it, which knows no NaN and no infinity: null in their place."""
    if isinstance(value, Mapping):
        return {str(key): without_nan(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_nan(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _parsed(contents: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(contents)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
