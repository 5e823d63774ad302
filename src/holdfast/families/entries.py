"""Where families are kept: the folders of a store, listed and removed without loading a network.

Loads without torch, so that `holdfast families list` answers at once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from holdfast.utils.digests import digest
from holdfast.utils.files import check_writable
from holdfast.utils.sealing import Kind, SealError, unsealed

FAMILY = Kind("family", "family manifest", format=2, unsealed=0)
PART = Kind("part", "part of a family", format=1, unsealed=0)
ALGORITHM = 2  # of training; to be raised whenever it comes to give other bits
UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
MANIFEST = {"sha256", "members", "recipe", "data", "accuracy", "networks", "places"}


NAME_ANOTHER = "name the folder of a family, or save the family again"


class StoreError(ValueError):
    """A file in a store is not what it should be. It is named, and nothing of it was used."""


@dataclass(frozen=True)
class Entry:
    """The place of one family in a store, named by its members' fingerprints."""

    folder: Path

    @classmethod
    def of(cls, store: str | Path, fingerprints: Sequence[str]) -> Entry:
        if not isinstance(store, (str, Path)):
            raise TypeError(f"store must be a folder, got {store!r}")
        return cls(Path(store).expanduser() / digest(list(fingerprints))[:20])

    @property
    def complete(self) -> bool:
        return (self.folder / "manifest.json").exists()

    @property
    def exists(self) -> bool:
        return self.complete or (self.folder / "parts").is_dir()

    def size(self) -> int:
        """Bytes on disk."""
        total = 0
        for path in self.folder.rglob("*"):
            with suppress(FileNotFoundError):  # removed meanwhile
                total += path.lstat().st_size if path.is_file() else 0
        return total

    def members_so_far(self) -> int:
        """How many members interrupted runs have finished, as the headers of their files say."""
        return sum(len(part_description(path)["members"]) for path in self.part_files())

    def part_files(self) -> list[Path]:
        try:
            return sorted((self.folder / "parts").glob("*.safetensors"))
        except FileNotFoundError:  # another process removes them
            return []

    def remove(self) -> None:
        """The manifest first, so that a family is never there by half. Of a link, the link alone."""
        if self.folder.is_symlink():
            self.folder.unlink()
            return
        (self.folder / "manifest.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder)


def default_store() -> Path:
    """``HOLDFAST_FAMILIES``, or else a folder of the user's."""
    chosen = os.environ.get("HOLDFAST_FAMILIES")
    home = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share") / "holdfast" / "families"
    return (Path(chosen) if chosen else home).expanduser()


def check_store(store: Path) -> None:
    """Raise unless a store can be written to: before the networks are trained, not after."""
    try:
        check_writable(store)
    except OSError as error:
        raise ValueError(
            f"the store {store} cannot be written to ({error.strerror}); name a folder that can: store=..., or "
            "HOLDFAST_FAMILIES"
        ) from error


def in_units(size: int) -> str:
    unit = max((name for name in UNITS if UNITS[name] <= max(size, 1)), key=UNITS.__getitem__)
    return f"{size / UNITS[unit]:.1f} {unit}" if size >= 1000 else f"{size} B"


def entries(store: str | Path) -> list[Entry]:
    """Every family in a store, finished or not."""
    folder = Path(store).expanduser()
    found = [Entry(path) for path in sorted(folder.iterdir())] if folder.is_dir() else []
    return [entry for entry in found if entry.exists]


def find(store: str | Path, name: str) -> Entry:
    """The one family whose name begins so."""
    alike = [entry for entry in entries(store) if entry.folder.name.startswith(name)] if name else []
    if len(alike) != 1:
        names = ", ".join(entry.folder.name for entry in alike or entries(store)) or "none"
        what = f"{len(alike)} families begin with" if alike else "no family begins with"
        raise ValueError(f"{what} '{name}' in {store}; choose one of: {names}")
    return alike[0]


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / "manifest.json"
    try:
        manifest = unsealed(FAMILY, file_bytes(path), str(path))
    except SealError as error:
        raise StoreError(f"{error}; {NAME_ANOTHER}") from None
    if not _complete(manifest):
        raise StoreError(f"{path} is not a valid family manifest (edited, or of a newer version); {NAME_ANOTHER}")
    return manifest


def _complete(manifest: dict[str, Any]) -> bool:
    """Whether all is there that a family is made of, and of its kind."""
    if not set(manifest) >= MANIFEST or manifest.get("algorithm") not in range(ALGORITHM + 1):
        return False
    members, places, digest = manifest["members"], manifest["places"], manifest["sha256"]
    return (
        isinstance(digest, str)
        and manifest.get("file", "family.safetensors") in ("family.safetensors", tensor_file(digest))
        and isinstance(members, list)
        and all(isinstance(member, dict) and isinstance(member.get("kind"), str) for member in members)
        and isinstance(places, list)
        and sorted(places) == list(range(len(members)))
        and isinstance(manifest["networks"], list)
    )


def tensor_file(digest: str) -> str:
    """Named by what it holds, so that a family that is saved over another never takes its tensors away."""
    return f"family-{digest[:20]}.safetensors"


def part_description(path: Path) -> dict[str, Any]:
    """What the header of a part's file says of it: its members and their checksum."""
    try:
        with safe_open(path, "numpy") as file:
            about = unsealed(PART, file.metadata()["holdfast"].encode(), str(path))
        if not isinstance(about["members"], list) or not isinstance(about["sha256"], str):
            raise TypeError("members")
        return about
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise damaged_part(path, error) from error


def damaged_part(path: Path, error: Exception) -> StoreError:
    return StoreError(
        f"{path} is damaged or was not written by holdfast ({type(error).__name__}); remove it and run again"
    )


def file_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise StoreError(f"there is no {path}; is this the folder of a family?") from error
