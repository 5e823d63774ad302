"""What is known about a dataset: where its file is, what it holds, and how the paper used it."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from holdfast.tabular.schema import Schema
from holdfast.utils.digests import file_digest

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.tabular.encoding import Scaling

LOG = logging.getLogger(__name__)
State = Literal["here", "missing", "wrong checksum"]


@dataclass(frozen=True)
class Card:
    name: str
    title: str
    file: str  # below the data folder; a copy packed as .gz will do as well
    sha256: str  # of the file, unpacked
    rows: int
    schema: Schema
    read: Callable[[Path], pd.DataFrame]  # the raw file -> readable columns in the schema's order, label included
    split: tuple[int, int]  # rows to train and to test on, as in the paper
    scaling: Scaling
    licence: str
    source: str  # whom to cite
    home: str  # the page where a person gets the file
    url: str | None = None  # the file itself, where it may be downloaded and its checksum is known
    packaged: Path | None = None  # the copy that ships with holdfast
    preparation: str = ""  # what to do to the file from there, where it is not yet the one we know

    @property
    def features(self) -> int:
        return self.schema.width

    def path(self) -> Path:
        """Where the file is, or where it would have to be."""
        below = data_folder() / self.file
        candidates = (below, below.with_name(f"{below.name}.gz"), self.packaged)
        return next((path for path in candidates if path is not None and path.exists()), below)

    def state(self) -> State:
        path = self.path()
        if not path.is_file():
            return "missing"
        return "here" if sha256(path) == self.sha256 else "wrong checksum"

    def load(self) -> tuple[pd.DataFrame, Schema]:
        """The whole table in readable units, and its schema."""
        path = self.path()
        match self.state():
            case "missing":
                raise FileNotFoundError(f"dataset '{self.name}': no file at {path}; {self.how_to_get()}")
            case "wrong checksum":
                raise ValueError(
                    f"dataset '{self.name}': {path} ({path.stat().st_size} bytes) is not the expected file: its sha256 "
                    f"is {sha256(path)[:16]}..., expected {self.sha256[:16]}...; it may be cut short or another "
                    f"version; {self.how_to_get()}"
                )
        table = self.read(path)
        LOG.info("read %s: %d rows, %d columns", path, *table.shape)
        self.schema.check(table, labelled=True)
        return table, self.schema

    def how_to_get(self) -> str:
        if self.packaged is not None:
            return "remove it to use the copy that ships with holdfast"
        if self.url is not None:
            return f"get it with: holdfast datasets fetch {self.name}"
        steps = f"{self.preparation} and" if self.preparation else "and"
        return f"get it from {self.home} {steps} save it there, or point HOLDFAST_DATA at a folder that has {self.file}"

    def divide(self, table: pd.DataFrame, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The paper's numbers of training and test rows, drawn by a permutation of all rows."""
        # RandomState's stream is frozen for ever, and seed 0 of it is how the authors' code divides CTG.
        order = np.random.RandomState(seed).permutation(len(table))
        train, test = self.split
        return table.iloc[order[:train]], table.iloc[order[train : train + test]]


def data_folder() -> Path:
    """``HOLDFAST_DATA``, or else a folder of the user's."""
    chosen = os.environ.get("HOLDFAST_DATA")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "holdfast"


def sha256(path: Path) -> str:
    """Of what the file holds: the same contents can be packed as .gz in many ways."""
    if path.suffix == ".gz":
        try:
            with gzip.open(path, "rb") as unpacked:
                return hashlib.file_digest(unpacked, "sha256").hexdigest()
        except (EOFError, gzip.BadGzipFile, zlib.error):
            pass  # cut short or never packed: the file's own bytes will not match either
    return file_digest(path)
