"""What a file holds, by its bytes and not by its name, before any library reads it. Nothing here executes anything."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

MOST_BYTES = 4 << 30  # that a file may unpack to
MOST_TIMES = 200  # its own size, unless that is little
LITTLE = 64 << 20
MOST_PARTS = 10_000  # files in an archive
DEEPEST = 200  # values inside values: parsers that call themselves end the process on files that go on for ever

PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
HDF5 = b"\x89HDF\r\n\x1a\n"
ZIP = b"PK\x03\x04"

INSTEAD = {
    "scikit-learn": 'skops.io.dump(model, "model.skops")',
    "XGBoost": 'model.save_model("model.ubj")',
    "LightGBM": 'model.booster_.save_model("model.txt")',
    "torch": 'safetensors.torch.save_file(model.state_dict(), "model.safetensors"), read with like=module',
    "Keras": 'model.save("model.keras")',
}


class RefusedError(ValueError):
    """A file that is not read, because reading it could do more than give a model."""


def refused(path: Path, what: str) -> RefusedError:
    ways = "; ".join(f"{name}: {way}" for name, way in INSTEAD.items())
    return RefusedError(
        f"{path} {what}: to read it is to run whatever program it holds, so holdfast does not. Save the model as data, "
        f"where you made it. {ways}. Or load it yourself and pass the object to as_model"
    )


def check_content(path: Path) -> bytes:
    """The first bytes of a file, if it is not a pickle, not an archive with one, and not an HDF5 file."""
    with open(path, "rb") as file:
        start = file.read(16)
    if not start:
        raise ValueError(f"{path} is empty; save the model again")
    if start.startswith(PICKLES):
        raise refused(path, "is a pickle")
    if start.startswith(HDF5):
        raise refused(path, "is an HDF5 file, as old versions of Keras write them")
    if start.startswith(ZIP):
        check_archive(path)
    return start


def check_archive(path: Path) -> None:
    """Raise unless a zip file holds few parts that unpack to a size that fits it, none of them a pickle."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
            if len(parts) > MOST_PARTS:
                raise RefusedError(f"{path} holds {len(parts)} files; a model has {MOST_PARTS} at most")
            check_size(path, sum(part.file_size for part in parts))
            for part in parts:
                with archive.open(part) as file:
                    pickled = file.read(2).startswith(PICKLES)
                if pickled or part.filename.endswith((".pkl", ".pickle", ".joblib", ".pt", ".pth")):
                    raise refused(path, f"holds the pickle {part.filename!r}")
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, OSError) as error:
        raise damaged(path, error) from error


def check_size(path: Path, size: int) -> None:
    """Raise where a file unpacks to far more than it holds."""
    held = path.stat().st_size
    if size > MOST_BYTES or size > max(LITTLE, MOST_TIMES * held):
        raise RefusedError(f"{path} has {held} bytes and would unpack to {size}; a model does not: is it made to harm?")


def damaged(path: Path, error: Exception) -> ValueError:
    said = str(error).strip().splitlines()
    return ValueError(
        f"{path} is damaged or not what its name says ({type(error).__name__}{': ' + said[0][:200] if said else ''}); "
        "save the model again"
    )


def check_json(path: Path, contents: bytes) -> None:
    """Raise where JSON is nested so deeply that reading it would end the process."""
    outside = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", contents, flags=re.DOTALL)
    depth = deepest = 0
    for bracket in re.finditer(rb"[\[{]+|[\]}]+", outside):
        size = bracket.end() - bracket.start()
        depth += size if outside[bracket.start()] in b"[{" else -size
        deepest = max(deepest, depth)
    if deepest > DEEPEST:
        raise RefusedError(f"{path} nests values {deepest} deep; a model does not: is it made to harm?")


KINDS = {b"i": ">i1", b"U": ">u1", b"I": ">i2", b"u": ">u2", b"l": ">i4", b"m": ">u4", b"L": ">i8", b"M": ">u8",
         b"d": ">f4", b"D": ">f8", b"C": "S1"}  # fmt: skip
WORDS: dict[bytes, Any] = {b"Z": None, b"T": True, b"F": False}
COUNTS = (b"i", b"U", b"I", b"u", b"l", b"m", b"L", b"M")


def from_ubjson(contents: bytes) -> Any:
    """What UBJSON says, arrays of numbers as arrays of numpy. Raises ValueError where it is cut short or too deep."""
    return _Walk(contents).through()


class _Walk:
    """Through one value and all that it holds, without calling itself."""

    def __init__(self, contents: bytes) -> None:
        self.contents, self.place = contents, 0

    def through(self) -> Any:
        """Each open value is kept with how many values it still lacks: None until its closing bracket."""
        whole: list[Any] = []
        unfinished: list[tuple[Any, int | None]] = [(whole, 1)]
        while unfinished:
            held, left = unfinished.pop()
            if left == 0 or (left is None and self._closes()):
                continue
            key = self._text() if isinstance(held, dict) else None
            value, count = self._value()
            unfinished.append((held, None if left is None else left - 1))
            if isinstance(held, dict):
                held[key] = value
            else:
                held.append(value)
            if isinstance(value, (dict, list)):
                unfinished.append((value, count))
            if len(unfinished) > DEEPEST:
                raise ValueError(f"values are nested more than {DEEPEST} deep")
        return whole[0]

    def _closes(self) -> bool:
        closing = self.contents[self.place : self.place + 1] in (b"]", b"}")
        self.place += closing
        return closing

    def _value(self) -> tuple[Any, int | None]:
        """A value, and how many others a list or dictionary lacks."""
        kind = self._leap(1)
        if kind == b"S":
            return self._text(), 0
        if kind in KINDS:
            return np.frombuffer(self._leap(np.dtype(KINDS[kind]).itemsize), KINDS[kind])[0].item(), 0
        if kind in WORDS:
            return WORDS[kind], 0
        if kind not in (b"[", b"{"):
            raise ValueError(f"no value begins with {kind!r}")
        numbers = self._next_is(b"$")
        of = self._leap(1) if numbers else b""
        count = self._count() if self._next_is(b"#") else None
        if not numbers:
            return ({} if kind == b"{" else []), count
        if of not in KINDS or kind == b"{" or count is None:
            raise ValueError(f"no array of {of!r} is expected")
        return np.frombuffer(self._leap(count * np.dtype(KINDS[of]).itemsize), KINDS[of]), 0

    def _next_is(self, mark: bytes) -> bool:
        there = self.contents[self.place : self.place + 1] == mark
        self.place += there
        return there

    def _text(self) -> str:
        return self._leap(self._count()).decode()

    def _count(self) -> int:
        kind = self._leap(1)
        if kind not in COUNTS:
            raise ValueError(f"a length begins with {kind!r}")
        number = int(np.frombuffer(self._leap(np.dtype(KINDS[kind]).itemsize), KINDS[kind])[0])
        if number < 0:
            raise ValueError(f"a length is {number}")
        return number

    def _leap(self, size: int) -> bytes:
        start, self.place = self.place, self.place + size
        if self.place > len(self.contents):
            raise ValueError(f"{size} bytes are announced where {len(self.contents) - start} are left")
        return self.contents[start : self.place]
