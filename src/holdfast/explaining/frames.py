"""Tables as users have them, pandas or polars: made pandas on the way in, and what they were on the way out."""

from __future__ import annotations

from typing import Any

import pandas as pd

from holdfast.utils.messages import plain


def is_polars(table: Any) -> bool:
    """A DataFrame or a LazyFrame of polars."""
    return type(table).__module__.partition(".")[0] == "polars" and type(table).__name__ in ("DataFrame", "LazyFrame")


def as_pandas(table: Any, what: str) -> pd.DataFrame:
    """The table as pandas has it; ``what`` it is for is named in the error."""
    if isinstance(table, pd.DataFrame):
        return table
    if is_polars(table):
        found: pd.DataFrame = (table.collect() if hasattr(table, "collect") else table).to_pandas()
        return found
    raise TypeError(
        f"{what} must be a DataFrame of pandas or polars, got {type(table).__name__}; hf.read_table reads one from a "
        "file"
    )


def as_it_came(frame: pd.DataFrame, polars: bool) -> Any:
    """The same kind of table as the user's. A polars column has one type, so mixed values become text there."""
    if not polars:
        return frame
    import polars as pl

    plain_columns = {str(name): one_type(frame[name]).tolist() for name in frame.columns}
    return pl.DataFrame({name: [_or_none(value) for value in values] for name, values in plain_columns.items()})


def one_type(column: pd.Series[Any]) -> pd.Series[Any]:
    """A column whose values are of one type: as it is, or as text where they differ."""
    known = column.dropna()
    if column.dtype != object or len({type(plain(value)) for value in known}) <= 1:
        return column
    return column.map(as_text, na_action="ignore")


def as_text(value: Any) -> str:
    """A value of a table as a person writes it: 36 for 36.0, 0.1 for 0.1."""
    value = plain(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _or_none(value: Any) -> Any:
    value = plain(value)
    return None if value is None or value is pd.NA or (isinstance(value, float) and value != value) else value
