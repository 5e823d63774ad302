"""Files that appear whole or not at all, with one writer at a time: write beside, fsync, rename."""

from __future__ import annotations

import glob
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

LOG = logging.getLogger(__name__)
DAY = 24 * 3600  # seconds after which a part is what a killed writer left behind
RESULTS = "holdfast"  # begins the name of the lock and of the parts in a folder of results
BLOCK = 4096  # bytes that a file takes on most disks
FILE_MODE, FOLDER_MODE = 0o664, 0o775  # less the user's umask: never writable for everybody


class InUseError(OSError):
    """Somebody else is writing there now."""


@contextmanager
def appearing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write to that takes its name only when the block ends well.

    Whatever goes wrong inside, Ctrl-C included, leaves the old file (or none) and no half-written one. What a killed
    process left behind is swept away, a day later, by the next writer of the same name.
    """
    path = Path(path)
    make_folder(path.parent)
    sweep(path.parent, glob.escape(path.name))
    # A random name: threads share a process id, and so do containers that share a volume.
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with _named_in_errors(path):
            with open(part, "xb", opener=_create) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        LOG.info("wrote %s", path)
    finally:
        part.unlink(missing_ok=True)


def as_path(given: Any, what: str) -> Path:
    """Where a user wants something to be, or to be read from."""
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"expected the name of {what}, got {given!r}")
    return Path(given)


def write_text(path: str | Path, text: str) -> Path:
    with appearing(path) as file:
        file.write(text.encode("utf-8"))
    return Path(path)


def append(path: Path, contents: bytes) -> None:
    """Add to the end of a file, all or nothing."""
    with _named_in_errors(path), open(path, "ab", buffering=0, opener=_create) as file:
        start, remaining = file.tell(), memoryview(contents)
        try:
            while remaining:
                remaining = remaining[file.write(remaining) :]
            os.fsync(file.fileno())
        except BaseException:  # Ctrl-C and a full disk among them
            file.truncate(start)
            raise


def make_folder(folder: Path) -> Path:
    """The folder, made with those above it where they are not there."""
    for above in reversed(folder.parents):
        if not above.exists():
            above.mkdir(FOLDER_MODE, exist_ok=True)
    folder.mkdir(FOLDER_MODE, exist_ok=True)
    return folder


def check_writable(folder: Path) -> None:
    """Make the folder and a file in it, which is removed again: what would fail after the work fails before it."""
    make_folder(folder)
    part = folder / f".{secrets.token_hex(8)}.part"
    try:
        with open(part, "xb", opener=_create) as file:
            file.write(bytes(BLOCK))  # a full disk takes an empty file
            file.flush()
            os.fsync(file.fileno())
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def all_or_none(folder: str | Path) -> Iterator[Path]:
    """A folder to write several files to, which take their places in ``folder`` only when the block ends well.

    So a disk that fills up at the last of them leaves none, and the old ones where there were some. Descriptions, which
    are JSON, come after what they describe.
    """
    folder = make_folder(Path(folder))
    sweep(folder, RESULTS)
    parts = folder / f".{RESULTS}.{secrets.token_hex(8)}.part"
    try:
        yield make_folder(parts)
        written = (path for path in sorted(parts.rglob("*")) if path.is_file())
        for path in sorted(written, key=lambda path: path.suffix == ".json"):
            target = folder / path.relative_to(parts)
            make_folder(target.parent)
            path.replace(target)
            LOG.info("wrote %s", target)
    finally:
        shutil.rmtree(parts, ignore_errors=True)


@contextmanager
def no_empty_folders(folder: Path) -> Iterator[None]:
    """Remove the folder, and those above it, if they were not there before the block and are empty after it."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    finally:
        with suppress(OSError):  # the first that holds something ends it
            for path in made:
                path.rmdir()


def sweep(folder: Path, name: str = "*", age: int = DAY) -> None:
    """Remove what killed writers of files of this name have left behind, if it is older than so many seconds.

    Whether a writer still works cannot be known from outside, so one that works for a day is taken for killed. The only
    writer, see below, need not wait that long.
    """
    with suppress(FileNotFoundError):  # another process removes the folder, or a part
        for part in folder.glob(f".{name}.*.part"):
            if age == 0 or time.time() - part.stat().st_mtime > age:
                shutil.rmtree(part) if part.is_dir() else part.unlink()


@contextmanager
def only_writer(path: Path, wait: bool = False) -> Iterator[None]:
    """Nobody else writes to this path while the block lasts. A second process or thread waits, or is told.

    The lock is the operating system's, so it ends with its process, however that ends.
    """
    from filelock import FileLock, Timeout

    make_folder(path.parent)
    lock = path.with_name(f".{path.name}.lock")
    with open(lock, "ab", opener=_create):  # else its mode would be the umask's alone
        pass
    try:
        held = FileLock(lock, timeout=-1 if wait else 0, thread_local=False).acquire()
    except Timeout:
        raise InUseError(
            f"another process is writing to {path}; wait until it has ended, or name another place"
        ) from None
    with held:
        sweep(path.parent, glob.escape(path.name), age=0)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)  # while it is held: whoever waits for it notices, and makes a new one


@contextmanager
def _named_in_errors(path: Path) -> Iterator[None]:
    """A full disk does not say which file it was that did not fit."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        explained = OSError(f"could not write {path}: {error.strerror}; make room there, or name another place")
        explained.errno = error.errno
        raise explained from error


def _create(path: str, flags: int) -> int:
    return os.open(path, flags, FILE_MODE)
