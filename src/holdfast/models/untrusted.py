"""What a file holds, by its bytes and not by its name, before any library reads it. Nothing here executes anything."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

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


FIXED = {b"Z": 0, b"N": 0, b"T": 0, b"F": 0, b"i": 1, b"U": 1, b"I": 2, b"u": 2, b"l": 4, b"m": 4, b"L": 8, b"M": 8,
         b"d": 4, b"D": 8, b"C": 1}  # fmt: skip
COUNTS = b"iUIulmLM"


def check_ubjson(path: Path, contents: bytes) -> None:
    """The same of UBJSON. Numbers may look like brackets there, so it is walked through, an array of them at a leap."""
    try:
        _Walk(contents).through()
    except (IndexError, ValueError) as error:
        raise damaged(path, error) from None


class _Walk:
    """Through one value of UBJSON and all that it holds, without calling itself."""

    def __init__(self, contents: bytes) -> None:
        self.contents, self.place = contents, 0

    def through(self) -> None:
        """Each open value is its bracket and how many values are left in it, None until its closing bracket."""
        open_values: list[list[int | None]] = []
        self._value(open_values)
        while open_values:
            bracket, left = open_values[-1]
            closing = left is None and self.contents[self.place] in b"]}"
            if left == 0 or closing:
                self.place += closing
                open_values.pop()
                continue
            if left is not None:
                open_values[-1][1] = left - 1
            if bracket == ord("{"):
                self._leap(self._count())  # the key
            self._value(open_values)
            if len(open_values) > DEEPEST:
                raise ValueError(f"values are nested more than {DEEPEST} deep")

    def _value(self, open_values: list[list[int | None]]) -> None:
        kind = self._next()
        if kind in (b"S", b"H"):
            self._leap(self._count())
        elif kind in FIXED:
            self._leap(FIXED[kind])
        elif kind in (b"[", b"{"):
            size, left = self._header()
            if size is None:
                open_values.append([ord(kind), left])
            else:
                self._leap(size * (left or 0))
        else:
            raise ValueError(f"no value begins with {kind!r}")

    def _header(self) -> tuple[int | None, int | None]:
        """The size of each value, where all are numbers of one kind, and how many there are."""
        size = left = None
        if self.contents[self.place : self.place + 1] == b"$":
            self.place += 1
            size = FIXED[kind] if (kind := self._next()) in FIXED else None
            if size is None:
                raise ValueError(f"no array of {kind!r} is expected")
        if self.contents[self.place : self.place + 1] == b"#":
            self.place += 1
            left = self._count()
        return size, left

    def _count(self) -> int:
        kind = self._next()
        if kind not in FIXED or kind not in COUNTS:
            raise ValueError(f"a length begins with {kind!r}")
        number = int.from_bytes(self._leap(FIXED[kind]), "big", signed=kind not in (b"U", b"u", b"m", b"M"))
        if number < 0:
            raise ValueError(f"a length is {number}")
        return number

    def _next(self) -> bytes:
        return self._leap(1)

    def _leap(self, size: int) -> bytes:
        start, self.place = self.place, self.place + size
        if self.place > len(self.contents):
            raise ValueError(f"{size} bytes are announced where {len(self.contents) - start} are left")
        return self.contents[start : start + min(size, 8)]
