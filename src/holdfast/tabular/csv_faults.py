"""What is wrong with a file that should be CSV, in a sentence that says how to mend it, also without Python."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast.utils.messages import some

BYTES_AT_ONCE = 1 << 20  # bytes read at once
LOOKED_AT = 1000  # cells of a column of text that are looked at before all of them are
_STARTS = {
    b"PK\x03\x04": "a spreadsheet (.xlsx) or an archive; open it and save the sheet as CSV UTF-8",
    b"\x1f\x8b": "compressed; unpack it first, for example with gunzip",
    b"PAR1": "a Parquet file; give it a name that ends in .parquet",
}
_MARKS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_SAVE_AS_UTF8 = "save it as CSV UTF-8 from a spreadsheet or an editor"
_DECIMAL = re.compile(r"[+-]?\d+(?:[. ]\d{3})*,\d+")
_WHOLE = re.compile(r"[+-]?\d+")


def check_bytes(path: Path) -> None:
    """Refuse what is not text in UTF-8: pandas would read a cell up to its first zero byte and pass over the rest."""
    decoder, lines = codecs.getincrementaldecoder("utf-8")(), 1
    with open(path, "rb") as file:
        first = file.read(BYTES_AT_ONCE)
        _check_start(path, first)
        chunk = first
        while chunk:
            if b"\0" in chunk:
                raise ValueError(
                    f"{path} is not a valid CSV file: it holds bytes of value 0, as binary files and text in UTF-16 "
                    "do; save it as CSV in UTF-8"
                )
            _decode(path, decoder, chunk, lines)
            lines += chunk.count(b"\n")
            chunk = file.read(BYTES_AT_ONCE)
    _decode(path, decoder, b"", lines)


def check_separator(path: Path, names: Sequence[str]) -> None:
    """Refuse a first line that was cut at its commas and has more of another mark."""
    line, commas = ",".join(names), len(names) - 1
    mark = max(_MARKS, key=line.count)
    if line.count(mark) <= commas:
        return
    raise ValueError(
        f"{path}: its columns are separated by {_MARKS[mark]}; CSV here has commas between columns and points in "
        "numbers: save it so from a spreadsheet that is set to English, or read it with pandas, "
        f"read_csv(sep={mark!r}, decimal=','), and write it with to_csv(index=False)"
    )


def check_decimals(path: Path, table: pd.DataFrame) -> None:
    """Refuse columns of text that are numbers with a decimal comma: they would be taken for levels."""
    for name in table.select_dtypes(exclude="number"):
        known = table[name].dropna()
        if _are_decimals(known[:LOOKED_AT]) and _are_decimals(known):
            example = next(cell for cell in known if "," in cell)
            raise ValueError(
                f"{path}: column {name!r} has numbers with commas in them, such as {example!r} in row "
                f"{known.index[known == example][0]!r}; write them with a decimal point and without marks for "
                "thousands (1.5, 1500); if they are no numbers, write something else than a comma"
            )


def parse_error(path: Path, error: Exception) -> ValueError:
    """What pandas said, in the words of a person who has the file before them."""
    message = str(error).strip()
    ragged = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if ragged:
        names, line, cells = ragged.groups()
        return ValueError(
            f"{path}: line {line} has {cells} cells, but the lines before it have {names}; put text that holds a comma "
            "in quotation marks, or delete what is too much"
        )
    opened = re.search(r"EOF inside string starting at row (\d+)", message)
    if opened:
        return ValueError(
            f"{path}: a quotation mark in about line {int(opened[1]) + 1} is never closed; close it, or write two of "
            "them where one is meant"
        )
    if "No columns to parse" in message:
        return ValueError(f"{path} is empty; it needs a first line with the names of the columns, and a line per row")
    return ValueError(f"{path} is not a valid CSV file: {message}")


def _check_start(path: Path, first: bytes) -> None:
    for start, what_it_is in _STARTS.items():
        if first.startswith(start):
            raise ValueError(f"{path} is not a valid CSV file but {what_it_is}")
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{path} is text in UTF-16, not in UTF-8; {_SAVE_AS_UTF8}")


def _decode(path: Path, decoder: codecs.IncrementalDecoder, chunk: bytes, lines: int) -> None:
    try:
        decoder.decode(chunk, final=not chunk)
    except UnicodeDecodeError as error:
        byte = error.object[error.start : error.start + 1]
        line = lines + error.object[: error.start].count(b"\n")
        meant = byte.decode("cp1252", errors="replace")
        guess = f" (in Windows' Western encoding it is {meant!r})" if meant.isprintable() and meant != "\ufffd" else ""
        raise ValueError(
            f"{path} is not text in UTF-8: byte 0x{byte.hex()} in line {line} is no character of it{guess}; "
            f"{_SAVE_AS_UTF8}"
        ) from None


def _are_decimals(cells: pd.Series[Any]) -> bool:
    """Whether all are spelt as numbers, and some with a comma."""
    texts = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
    some_so = any(_DECIMAL.fullmatch(text) for text in texts[:LOOKED_AT])
    return some_so and all(_DECIMAL.fullmatch(text) or _WHOLE.fullmatch(text) for text in texts)


def more_cells(path: Path, names: Sequence[str]) -> ValueError:
    return ValueError(
        f"{path}: its rows have more cells than its first line has names ({some(names, 12)}); name every column; "
        "only the first, for row labels, may have an empty name; put text that holds a comma in quotation marks"
    )
