"""Methods side by side: what their counterfactuals cost, and how often retrained models invalidate them."""

from __future__ import annotations

from matplotlib.axes import Axes

from holdfast.auditing.comparison import Comparison
from holdfast.reporting.plots.marks import as_text, in_percent, ink, legend_above, quiet_grid
from holdfast.reporting.plots.style import STARTS, look_of_each, whiskers


def draw_comparison(axes: Axes, comparison: Comparison) -> None:
    """Mean cost against invalidation of each method, on the rows that every method found. Full marks lie on the front:
    no other method is both cheaper and invalidated less often."""
    table = comparison.table()
    looks = look_of_each(STARTS, map(str, table["method"]))
    front = table[table["front"]]
    axes.plot(front["cost"], 100 * front["rate"], color=ink(axes), alpha=0.4, linewidth=1, label="the front")
    for row in table.to_dict("records"):
        (colour, marker), words = looks[str(row["method"])], as_text(row["method"])
        axes.errorbar(
            [row["cost"]], [100 * row["rate"]], whiskers(row["rate"], row["low"], row["high"]), color=colour,
            fmt=marker, markersize=6, markerfacecolor=colour if row["front"] else "none", elinewidth=1.2, capsize=3,
            label=words,
        )  # fmt: skip
    in_percent(axes, 100 * float(table["high"].max()))
    axes.set_xlabel(f"mean cost (l{comparison.norm:g}) on {int(comparison.common.sum())} rows that every method found")
    axes.set_ylabel("invalidated (%), 95 % interval")
    quiet_grid(axes)
    legend_above(axes)
