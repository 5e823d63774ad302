"""What the paper's figures share: the rows that one may show, its titles and axes, and how it is saved."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from holdfast.reporting.plots.style import style
from holdfast.reporting.rows import check_columns
from holdfast.utils.files import appearing

SHADE = "#e4e4e4"  # where people are accepted
LOWEST_RATE = -3  # percent, so that a marker at 0 is whole
UNIT = "(standard deviations)"


def save(figure: Figure, path: str | Path) -> tuple[Path, Path]:
    """Write ``path``.svg and ``path``.png, each whole or not at all, and empty the figure.

    The same figure gives the same bytes on every run: no date, no version, no random ids.
    """
    svg, png = Path(f"{path}.svg"), Path(f"{path}.png")
    with style():
        with appearing(svg) as file:
            figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        with appearing(png) as file:
            figure.savefig(file, format="png", dpi=200, metadata={"Software": None})
    figure.clear()
    return svg, png


def titled(axes: Axes, title: str, below: str = "") -> None:
    """A bold title, and a line below it in plain type."""
    axes.set_title(title, fontweight="bold", pad=18 if below else 6)
    if below:
        axes.annotate(below, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points")


def of_one_change(rows: pd.DataFrame, change: str) -> pd.DataFrame:
    """The rows of one kind of change, if they may stand in one figure."""
    check_columns(rows, ("dataset", "method", "change", "rows", "found", "rate", "low", "high", "cost_l2"))
    kinds = sorted(rows["change"].unique()) if len(rows) else []
    if change not in kinds:
        raise ValueError(f"no rows with the change '{change}'; there are {', '.join(kinds) or 'none at all'}")
    chosen = rows[rows["change"] == change]
    for name in ("space", "settings"):
        values = sorted(chosen[name].unique()) if name in chosen else []
        if len(values) > 1:
            raise ValueError(f"rows of different {name} do not compare ({', '.join(values)}); pass those of one")
    return chosen


def plain_log(axis: XAxis | YAxis) -> None:
    """Ticks of a logarithmic axis at 1, 2, 3 and 5, in plain figures."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
