"""What all figures share: colours, markers, settings, and how one is saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from holdfast.reporting.rows import check_columns
from holdfast.utils.files import appearing

Floats = NDArray[np.float64]

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY, SHADE = "#777777", "#e4e4e4"
NORMALS = ((SKY, "o"), (GREEN, "s"), (YELLOW, "^"))  # colour and marker of Figure 2(a)'s regions
COLOURS, MARKERS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, BLACK, SKY, GREY), "os^DvPX*"
LOOKS = tuple((COLOURS[n % 8], MARKERS[(n + 3 * (n // 8)) % 8]) for n in range(24))  # no two the same
HALVES = ("left", "bottom", "right", "top")
STARTS = ("min-l1-art", "min-l2-art", "pgd", "prototype-alibi", "latent", "min-l1", "min-l2", "margin")
CHANGES = {"seeds": "new seeds", "leave-one-out": "one row left out"}
PLATE = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}  # behind words that lie on data
LOWEST = -3  # percent, so that a marker at 0 is whole
UNIT = "(standard deviations)"
WIDTH = 7.2  # inches: the width of a page's text

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "svg.hashsalt": "holdfast",  # or its ids are drawn anew each time
}


@contextmanager
def style() -> Iterator[None]:
    """Our settings and else matplotlib's own, whatever the caller has set, who has it back afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


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
        own = sorted(chosen[name].unique()) if name in chosen else []
        if len(own) > 1:
            raise ValueError(f"rows of different {name} do not compare ({', '.join(own)}); pass those of one")
    return chosen


def look_of_each(known: Sequence[str], names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a shape for each name. Known ones come first and look the same in every figure."""
    given = dict.fromkeys(names)
    fixed = {name: look for name, look in zip(known, LOOKS, strict=False) if name in given}
    others = [name for name in given if name not in fixed]
    free = [look for look in LOOKS if look not in fixed.values()]
    return fixed | dict(zip(others, cycle(free), strict=False))


def whiskers(rate: Any, low: Any, high: Any) -> Floats:
    """From each rate down to its low and up to its high, in percent: (2, n)."""
    reach = [np.atleast_1d(rate) - np.atleast_1d(low), np.atleast_1d(high) - np.atleast_1d(rate)]
    return np.maximum(100 * np.stack(reach).astype(np.float64), 0.0)


def plain_log(axis: XAxis | YAxis) -> None:
    """Ticks of a logarithmic axis at 1, 2, 3 and 5, in plain figures."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
