"""A study's rows beside what the paper prints (Black et al., ICLR 2022), and what is within tolerance."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pandas as pd

from holdfast.auditing.correlation import r_squared_of_sums
from holdfast.paper.declared import PAPER_DATASETS
from holdfast.paper.printed import METHODS, printed
from holdfast.reporting.rows import check_columns

# A quantity -> the kind of change it is of (costs and success are of none), its column and that of its spread.
QUANTITIES: dict[str, tuple[str | None, str, str | None]] = {
    "iv_loo": ("leave-one-out", "rate", "spread"),
    "iv_seeds": ("seeds", "rate", "spread"),
    "cost_l1": (None, "cost_l1", "cost_l1_spread"),
    "cost_l2": (None, "cost_l2", "cost_l2_spread"),
    "success": (None, "success", None),
}
VALUES = tuple(name for _, *names in QUANTITIES.values() for name in names if name)
KINDS = {"iv": ("iv_loo", "iv_seeds"), "cost": ("cost_l1", "cost_l2"), "all": tuple(QUANTITIES)}

SPREADS = 2.0  # an invalidation may differ by so many of the paper's spreads,
LEAST = 0.05  # or by so much, whichever is more
COST_SHARE = 0.2  # a cost by this share of the paper's
ROUNDING = 1e-9  # so that a difference of exactly as much is within

KEY = ["dataset", "method", "quantity"]
SUMS = ("sum_c", "sum_u", "sum_cc", "sum_cu", "sum_uu")  # of costs c and shares invalidated u, over a cell

Key = tuple[str, str, str]  # dataset, method, quantity
Cell = dict[Hashable, Any]  # a line of `beside` or of `printed`


def beside(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per dataset, method and quantity: ours, the paper's, and whether the two are within tolerance.

    ``ours`` is the mean over deployed networks and ``over_bases`` their standard deviation, NaN of a single one;
    ``ours_spread`` is the paper's kind of spread: over retrained networks for invalidation, over counterfactuals for
    costs. ``within`` is None where the paper prints nothing, and for success, which is shown and not judged. Where we
    found nothing and the paper did, it is False.
    """
    columns = [*KEY, "ours", "ours_spread", "over_bases", "printed", "printed_spread", "within"]
    check_columns(rows, ("dataset", "method", "change", "settings", "cell", *VALUES))
    if rows.empty:
        return pd.DataFrame(columns=columns)
    _check_one_reading(rows)
    ours = pd.concat([_averaged(rows, quantity) for quantity in QUANTITIES], ignore_index=True)
    theirs = printed().rename(columns={"value": "printed", "spread": "printed_spread"})
    table = ours.merge(theirs, on=KEY, how="left")
    judged = zip(table["quantity"], table["ours"], table["printed"], table["printed_spread"], strict=True)
    table["within"] = pd.Series([is_within(*cell) for cell in judged], dtype=object)
    return _in_order(table)[columns].reset_index(drop=True)


def _check_one_reading(rows: pd.DataFrame) -> None:
    readings = list(rows["settings"].unique())
    if len(readings) > 1:
        raise ValueError(
            f"these rows are of the settings {' and '.join(readings)}; compare one at a time, such as "
            f"rows[rows['settings'] == '{readings[0]}']"
        )


def _averaged(rows: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Over deployed networks."""
    change, value, spread = QUANTITIES[quantity]
    chosen = rows.drop_duplicates("cell") if change is None else rows[rows["change"] == change]
    chosen = chosen.assign(
        value=chosen[value].astype(float), spread=chosen[spread].astype(float) if spread else float("nan")
    )
    groups = chosen.groupby(["dataset", "method"], sort=False)
    averages = {"ours": groups["value"].mean(), "ours_spread": groups["spread"].mean()}
    return pd.DataFrame({**averages, "over_bases": groups["value"].std()}).reset_index().assign(quantity=quantity)


def is_within(quantity: str, ours: float, theirs: float, spread: float) -> bool | None:
    """Whether a figure is within tolerance of a printed one; None where that is not judged."""
    if quantity in KINDS["iv"] and not pd.isna(theirs):
        return abs(ours - theirs) <= max(SPREADS * spread, LEAST) + ROUNDING
    if quantity in KINDS["cost"] and not pd.isna(theirs):
        return abs(ours - theirs) <= COST_SHARE * theirs + ROUNDING
    return None


def _in_order(table: pd.DataFrame) -> pd.DataFrame:
    """The paper's order of datasets and methods, then our own methods as they come."""
    orders: dict[Hashable, tuple[str, ...]] = {
        "dataset": PAPER_DATASETS,
        "method": methods_in(table),
        "quantity": tuple(QUANTITIES),
    }
    return table.sort_values(KEY, key=lambda names: names.map(orders[names.name].index))


def methods_in(table: pd.DataFrame) -> tuple[str, ...]:
    names = list(table["method"].unique())
    return (*(name for name in METHODS if name in names), *(name for name in names if name not in METHODS))


def r2(rows: pd.DataFrame) -> pd.Series[float]:
    """R² of the regression of invalidation on l2 cost, by dataset: the paper's methods pooled, SNS included.

    Of each deployed network by itself, then averaged. NaN where all costs or all rates are the same.
    """
    cells = rows[rows["method"].isin(METHODS)].drop_duplicates("cell")  # a cell's sums are the same in all its rows
    sums = cells.groupby(["dataset", "base_seed"], sort=False)[["found", *SUMS]].sum()
    squared = r_squared_of_sums(*(sums[name] for name in ("found", *SUMS)))
    mean: pd.Series[float] = squared.groupby("dataset", sort=False).mean()
    return mean


def reached(comparison: pd.DataFrame) -> pd.DataFrame:
    """How many cells are within tolerance: one row per group and kind.

    Groups are "all", every dataset and every method of the paper; kinds are "iv", "cost" and "all". ``share`` is NaN
    where there are no cells.
    """
    judged = comparison[comparison["within"].notna()]
    groups = {"all": judged}
    for column in ("dataset", "method"):
        groups |= {name: judged[judged[column] == name] for name in judged[column].unique()}
    counted = [
        (group, kind, *_counted(cells[cells["quantity"].isin(KINDS[kind])]))
        for group, cells in groups.items()
        for kind in KINDS
    ]
    table = pd.DataFrame(counted, columns=["group", "kind", "within", "cells"])
    return table.assign(share=table["within"] / table["cells"])


def _counted(cells: pd.DataFrame) -> tuple[int, int]:
    return int(cells["within"].sum()), len(cells)
