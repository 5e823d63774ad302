"""What a file holds, by its bytes and not by its name, before any library reads it. Nothing here executes anything."""

from __future__ import annotations

import lzma
import re
import zipfile
import zlib
from pathlib import Path

MOST_BYTES = 4 << 30  # that a file may unpack to
MOST_TIMES = 200  # its own size, unless that is little
LITTLE_BYTES = 64 << 20
MOST_PARTS = 10_000  # files in an archive
DEEPEST_VALUES = 200  # values inside values: parsers that call themselves end the process on files that go on for ever

PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
HDF5 = b"\x89HDF\r\n\x1a\n"
ZIP = b"PK\x03\x04"
# what reading a damaged archive raises
UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, UnicodeDecodeError, EOFError, RuntimeError, OSError)

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
            if len({part.filename for part in parts}) < len(parts):
                raise RefusedError(f"{path} holds two files of one name, of which readers may take either")
            for part in parts:
                with archive.open(part) as file:
                    pickled = file.read(2).startswith(PICKLES)
                if pickled or part.filename.endswith((".pkl", ".pickle", ".joblib", ".pt", ".pth")):
                    raise refused(path, f"holds the pickle {part.filename!r}")
    except UNREADABLE as error:
        raise damaged(path, error) from error


def check_size(path: Path, size: int, held: int | None = None) -> None:
    """Raise where a file, or a part of it that has ``held`` bytes, unpacks to far more than it holds."""
    held = path.stat().st_size if held is None else held
    if size > MOST_BYTES or size > max(LITTLE_BYTES, MOST_TIMES * held):
        raise RefusedError(f"{path} has {held} bytes and would unpack to {size}; a model does not: is it made to harm?")


def damaged(path: Path, error: Exception) -> ValueError:
    lines = str(error).strip().splitlines()
    reason = f": {lines[0][:200]}" if lines else ""
    return ValueError(
        f"{path} is damaged or not what its name says ({type(error).__name__}{reason}); save the model again"
    )


def check_json(path: Path, contents: bytes) -> None:
    """Raise where JSON is nested so deeply that reading it would end the process."""
    outside = re.sub(rb'"(?:[^"\\]|\\.)*"', b"", contents, flags=re.DOTALL)
    depth = deepest = 0
    for bracket in re.finditer(rb"[\[{]+|[\]}]+", outside):
        size = bracket.end() - bracket.start()
        depth += size if outside[bracket.start()] in b"[{" else -size
        deepest = max(deepest, depth)
    if deepest > DEEPEST_VALUES:
        raise RefusedError(f"{path} nests values {deepest} deep; a model does not: is it made to harm?")
