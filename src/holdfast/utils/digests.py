"""One name for equal values, and for equal files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any


def digest(value: Any) -> str:
    """Of anything that JSON can say: the same for equal values."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file's contents; of a folder, the digest of its files' names and contents."""
    path = Path(path)
    if not path.is_dir():
        with path.open("rb") as contents:
            return hashlib.file_digest(contents, "sha256").hexdigest()
    files = (file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))  # no locks, no parts
    return digest({file.relative_to(path).as_posix(): file_digest(file) for file in files})
