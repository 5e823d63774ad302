"""What the paper prints (Black et al., ICLR 2022): its tables as one tidy one, in our names.

``printed.csv`` has a line a number, with the spread that is printed beside it: of invalidation over the retrained
networks, of costs over the counterfactuals. Where the paper prints "-" there is no line.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FILE = Path(__file__).with_name("printed.csv")

# The paper's methods by our names, in its order.
METHODS = (
    "min-l1-art", "min-l1-art+sns", "min-l2-art", "min-l2-art+sns", "pgd", "pgd+sns", "prototype-alibi", "latent",
)  # fmt: skip


def printed() -> pd.DataFrame:
    """One row per printed number: dataset, method, quantity, value, spread (NaN where none is printed)."""
    table = _read()
    return table[table["quantity"] != "r2"].reset_index(drop=True)


def printed_r2() -> dict[str, float]:
    """R² of the regression of invalidation on l2 cost, by dataset."""
    table = _read()
    squared = table[table["quantity"] == "r2"]
    return dict(zip(squared["dataset"], squared["value"], strict=True))


def _read() -> pd.DataFrame:
    return pd.read_csv(FILE, dtype={"value": float, "spread": float})
