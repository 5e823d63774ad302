"""Tables from files."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast.utils.messages import some

LOG = logging.getLogger(__name__)
# To the last digit is how pandas 3 reads a number anyway, and it warns whoever asks for it.
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if int(pd.__version__.split(".")[0]) < 3 else {}


def read_table(path: str | Path, index: str | None = None) -> pd.DataFrame:
    """A table from a .csv or .parquet file, numbers to their last digit.

    ``index`` names the column of row labels; a first column without a name, as pandas writes it, is taken for them.
    Text such as "NA" or "none" stays text: it may be a level. An empty cell is missing.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}; check the name and the folder")
    match path.suffix.lower():
        case ".csv":
            table = _read_csv(path)
        case ".parquet" | ".pq":
            table = _read_parquet(path)
        case suffix:
            raise ValueError(f"{path}: files that end in {suffix or 'nothing'!r} are not read; use .csv or .parquet")
    LOG.info("read %s: %d rows, %d columns", path, *table.shape)
    if index is None:
        return table
    if index not in table:
        raise ValueError(f"{path}: no column {index!r} to take the labels from; it has {some(table.columns, 12)}")
    return table.set_index(index)


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        table: pd.DataFrame = pd.read_csv(path, keep_default_na=False, na_values=[""], low_memory=False, **_EXACT)
    except ValueError as error:  # empty, ragged, or not text in UTF-8
        raise ValueError(f"{path} is not a valid CSV file: {error}") from error
    if len(table.columns) == 1 and any(mark in table.columns[0] for mark in ";\t"):
        raise ValueError(f"{path}: its columns are not separated by commas; read it with pd.read_csv(path, sep=...)")
    if table.columns[0] == "Unnamed: 0":
        return table.set_index("Unnamed: 0").rename_axis(None)
    return table


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except ImportError as error:
        raise ImportError(f"{path}: reading Parquet needs the package pyarrow; install it, or write CSV") from error
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} is not a valid Parquet file: {error}") from error
