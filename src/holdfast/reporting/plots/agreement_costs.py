"""What it costs people that more of the retrained models accept their advice."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from holdfast.reporting.plots.marks import FAINT, MANY, as_text, legend_above, quiet_grid, say
from holdfast.reporting.plots.style import BLUE, GREEN, VERMILLION
from holdfast.search.agreement_cost import AgreementCost
from holdfast.utils.settings import check_whole


def draw_agreement_costs(axes: Axes, price: AgreementCost, row: int | None = None) -> None:
    """Cost against the share of the rehearsed models that accept: each person, and the mean of those found at every
    share, who are the same people all along. ``row`` is the number of a person who is shown apart."""
    if row is not None:
        check_whole("row", row)
        if not 0 <= row < len(price):
            raise IndexError(f"there is no row {row}; the rows are 0 to {len(price) - 1}")
    cost: NDArray[np.float64] = price.cost.double().cpu().numpy()
    found = (~np.isnan(cost)).sum(0)
    if not found.any():
        say(axes, f"No counterfactual was found that even {price.shares[0]:.0%} of the models accept.")
        return
    places = np.arange(len(price.shares))
    if len(cost) <= MANY:
        broken = np.column_stack([cost, np.full(len(cost), np.nan)])  # one line, broken between people
        axes.plot(
            np.tile([*places, np.nan], len(cost)), broken.ravel(), ".-", color=BLUE, alpha=0.6 * FAINT, linewidth=0.8,
            markersize=4, markeredgewidth=0, label="one person",
        )  # fmt: skip
    everywhere = ~np.isnan(cost).any(1)
    if everywhere.any():
        words = f"mean of the {int(everywhere.sum())} people with an answer at every share"
        axes.plot(places, cost[everywhere].mean(0), "s-", color=VERMILLION, markersize=5, label=words)
    if row is not None:
        who = as_text(price.answers[0].called(np.arange(len(price)))[row])
        axes.plot(places, cost[row], "D-", color=GREEN, markersize=5, label=f"row {who}")
    ticks = [f"{share:.0%}\n{count} found" for share, count in zip(price.shares, found, strict=True)]
    axes.set_xticks(places, [tick.replace("%", " %") for tick in ticks])
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"rehearsed models that must accept; for how many of {len(cost)} people")
    axes.set_ylabel(f"cost (l{price.norm})")
    quiet_grid(axes, "y")
    legend_above(axes)
