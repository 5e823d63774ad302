"""What the paper prints (Black et al., ICLR 2022): its tables as one tidy one, in our names.

``printed.csv`` has a line a number, with the spread that is printed beside it: of invalidation over the retrained
networks, of costs over the counterfactuals. Where the paper prints "-" there is no line.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FILE = Path(__file__).with_name("printed.csv")

# Our names -> those of the paper's own tables, in its order.
METHODS = {
    "min-l1-art": "min_l1",
    "min-l1-art+sns": "min_l1+sns",
    "min-l2-art": "min_l2",
    "min-l2-art+sns": "min_l2+sns",
    "pgd": "pgd",
    "pgd+sns": "pgd+sns",
    "prototype-alibi": "looveren",
    "latent": "pawelczyk",
}
THEIRS = {
    "german": "german_credit",
    "seizure": "seizure",
    "ctg": "ctg",
    "warfarin": "warfarin",
    "heloc": "heloc",
    "taiwan": "taiwan_credit",
    **METHODS,
    "iv_loo": "iv_loo",
    "iv_seeds": "iv_rs",
    "cost_l1": "cost_l1",
    "cost_l2": "cost_l2",
    "success": "success",
}


def printed() -> pd.DataFrame:
    """One row per printed number: dataset, method, quantity, value, spread (NaN where none is printed)."""
    table = _read()
    return table[table["quantity"] != "r2"].reset_index(drop=True)


def printed_r2() -> dict[str, float]:
    """R² of the regression of invalidation on l2 cost, by dataset."""
    table = _read()
    own = table[table["quantity"] == "r2"]
    return dict(zip(own["dataset"], own["value"], strict=True))


def _read() -> pd.DataFrame:
    return pd.read_csv(FILE, dtype={"value": float, "spread": float})
