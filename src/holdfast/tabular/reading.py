"""Tables from files."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast.tabular.csv_faults import check_bytes, check_decimals, check_separator, more_cells, parse_error
from holdfast.utils.files import as_path
from holdfast.utils.messages import repeated, some
from holdfast.utils.spreadsheets import unmarked, without_marks

LOG = logging.getLogger(__name__)
_AS_TEXT: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
# To the last digit is how pandas 3 reads a number anyway, and it warns whoever asks for it.
_EXACT: dict[str, Any] = {"float_precision": "round_trip"} if int(pd.__version__.split(".")[0]) < 3 else {}


def read_table(path: str | Path, index: str | None = None) -> pd.DataFrame:
    """A table from a .csv or .parquet file, numbers to their last digit.

    Text such as "NA" or "none" stays text: it may be a level. An empty cell is missing, and so are cells that a line
    lacks at its end. Where holdfast writes CSV, text that a spreadsheet would compute has an apostrophe before it
    ('=1+1): that one is taken away. A file that would be read wrongly is refused, and the error says where it is wrong.

    Args:
        path: the file
        index: the column of row labels. A first column without a name, as pandas writes it, is taken for them.

    Examples:
        >>> import holdfast as hf
        >>> import pandas as pd
        >>> people = pd.DataFrame({"id": [7, 8], "age": [31, 54]})
        >>> people["housing"] = ["NA", "own"]
        >>> people.to_csv("people.csv", index=False)
        >>> hf.read_table("people.csv", index="id")
            age housing
        id
        7    31      NA
        8    54     own
    """
    path = as_path(path, "a .csv or .parquet file")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file in it")
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
    check_bytes(path)
    try:
        names = _header(path)
    except (ValueError, OverflowError) as error:
        raise parse_error(path, error) from error
    check_separator(path, names)
    try:
        table = _rows(path)
    except pd.errors.ParserWarning as error:
        raise more_cells(path, names) from error
    except (ValueError, OverflowError) as error:
        raise parse_error(path, error) from error
    nameless = [number for number, name in enumerate(names, start=1) if not name.strip()]
    if [number for number in nameless if number > 1]:
        raise ValueError(
            f"{path}: columns number {some(nameless)} have no name; only the first, for row labels, may have none"
        )
    table = without_marks(_empty_is_missing(table))
    _check_names(path, [unmarked(name) for name in names])
    check_decimals(path, table)
    if nameless:
        return table.set_index(table.columns[0]).rename_axis(None)
    return table


def _rows(path: Path) -> pd.DataFrame:
    """Without index_col=False, pandas would take the first of too many cells for a row label, in silence."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        table: pd.DataFrame = pd.read_csv(path, **_AS_TEXT, index_col=False, low_memory=False, **_EXACT)
    return table


def _empty_is_missing(table: pd.DataFrame) -> pd.DataFrame:
    """Beside whole numbers too long for 64 bits, pandas reads an empty cell as empty text."""
    for name in table.select_dtypes(exclude="number"):
        empty = table[name] == ""
        if empty.any():
            table[name] = table[name].mask(empty)
    return table


def _header(path: Path) -> list[str]:
    """The names of the columns as the file has them: pandas would call a second `age` `age.1`."""
    first = pd.read_csv(path, **_AS_TEXT, header=None, nrows=1, dtype=str)
    return ["" if pd.isna(name) else name for name in first.iloc[0].tolist()]


def _check_names(path: Path, names: Iterable[str]) -> None:
    twice = repeated(names)
    if twice:
        raise ValueError(f"{path}: columns {some(twice)} appear more than once; rename or delete the copies")


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        from pyarrow import parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(f"{path}: reading Parquet needs the package pyarrow; install it, or write CSV") from error
    try:
        names = parquet.read_schema(path).names
    except Exception as error:  # a damaged file makes pyarrow raise many kinds
        raise _no_parquet(path, error) from error
    _check_names(path, names)
    try:
        return pd.read_parquet(path)
    except Exception as error:
        raise _no_parquet(path, error) from error


def _no_parquet(path: Path, error: Exception) -> ValueError:
    return ValueError(f"{path} is not a valid Parquet file: {error}")
