"""Files that appear whole or not at all: write beside, fsync, rename."""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

LOG = logging.getLogger(__name__)


@contextmanager
def appearing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to that takes its name only when the block ends well.

    Whatever goes wrong inside, Ctrl-C included, leaves the old file (or none) and no half-written one.
    What a killed process left behind is swept away by the next writer of the same name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    sweep(path.parent, glob.escape(path.name))
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        LOG.info("wrote %s", path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    with appearing(path) as file:
        file.write(text.encode("utf-8"))
    return Path(path)


def sweep(folder: Path, name: str = "*") -> None:
    """Remove what writers that no longer run have left behind."""
    for part in folder.glob(f".{name}.*.part"):
        owner = part.name.split(".")[-2]
        if not (owner.isdigit() and _runs(int(owner))):
            part.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    if os.name == "nt":  # there, signal 0 is not a question but Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
