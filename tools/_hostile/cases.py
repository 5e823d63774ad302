"""One hostile file, and small tools to make some."""

from __future__ import annotations

import pickle
import zipfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

CANARY = "ran"  # the only file that a hostile one ever tries to make, in the folder of the process that reads it
SECRET = "secret"  # another file of that folder, which no model may read: 16 bytes that are numbers and a table
EPOCH = (2020, 1, 1, 0, 0, 0)  # of every part of an archive, so that the bytes are the same each time


@dataclass(frozen=True)
class Hostile:
    """A file that must be refused."""

    name: str
    contents: bytes
    tries: str  # what it would do, in a sentence
    error: str  # a piece of the sentence that refuses it


def table(classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """48 rows of four numbers, and their classes. Nothing is drawn: they are the same on every machine."""
    x = np.array([[row * 5 % size for size in (17, 13, 11, 7)] for row in range(48)], dtype=np.float64)
    return x, (x[:, 0] + x[:, 1] > 14).astype(int) + (x[:, 2] > 6) * (classes - 2)


def zipped(parts: dict[str, bytes] | list[tuple[str, bytes]]) -> bytes:
    """An archive; parts may come twice."""
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in parts.items() if isinstance(parts, dict) else parts:
            archive.writestr(zipfile.ZipInfo(name, EPOCH), contents, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def with_bomb(parts: dict[str, bytes], name: str) -> bytes:
    """An archive with a part that is 80 MiB of nothing in a few bytes."""
    written = BytesIO(zipped(parts))
    with zipfile.ZipFile(written, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name, EPOCH), bytes(80 << 20), zipfile.ZIP_BZIP2)
    return written.getvalue()


def unzipped(contents: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(BytesIO(contents)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def as_array(array: np.ndarray) -> bytes:
    """In numpy's format. The bytes between the fields of a record are zero, and not what memory had there."""
    clean = array
    if array.dtype.names:
        clean = np.zeros(array.shape, array.dtype)
        for name in array.dtype.names:
            clean[name] = array[name]
    written = BytesIO()
    np.save(written, clean)
    return written.getvalue()


def replaced(contents: bytes, old: bytes, new: bytes) -> bytes:
    """With the first ``old`` replaced; an error where there is none, as the file would then be honest."""
    if old not in contents:
        raise ValueError(f"{old!r} is not in the honest file")
    return contents.replace(old, new, 1)


class Program:
    """Unpickled, it makes the canary."""

    def __reduce__(self) -> Any:
        return Path.touch, (Path(CANARY),)


def pickled(protocol: int = 2) -> bytes:
    return pickle.dumps(Program(), protocol)
