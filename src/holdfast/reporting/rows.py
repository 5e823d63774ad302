"""What every table and figure checks of the rows it is made from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd


def check_columns(rows: Any, columns: Iterable[str]) -> None:
    """Raise unless these are a study's rows as a table; a table without rows need not have columns either."""
    if not isinstance(rows, pd.DataFrame):
        raise TypeError(f"expected rows as a DataFrame, got {type(rows).__name__}; use paper.results.frame")
    missing = [name for name in columns if name not in rows]
    if len(rows) and missing:
        raise ValueError(f"the rows lack the columns {', '.join(missing)}; give those of a study's file")
