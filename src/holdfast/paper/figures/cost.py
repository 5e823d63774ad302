"""Every method's cost against its invalidation rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from holdfast.paper.declared import PAPER_DATASETS
from holdfast.paper.figures.shared import LOWEST_RATE, of_one_change, plain_log
from holdfast.reporting.plots.style import GREY, STARTS, WIDTH, look_of_each, style, whiskers

CHANGES = {"seeds": "new seeds", "leave-one-out": "one row left out"}
HALVES = ("left", "bottom", "right", "top")


def cost_against_invalidation(rows: pd.DataFrame, change: str = "seeds") -> Figure:
    """For each dataset, every method's mean l2 cost and invalidation, an arrow from each start to what SNS makes of it.

    A marker is the mean over deployed networks. Its whisker reaches from the lowest to the highest of them, or over
    the rows' mean 95 % interval where that is wider. A small number is the share of rows found where it is below half.
    """
    rows = of_one_change(rows, change)
    names = list(look_of_each(PAPER_DATASETS, rows["dataset"]))
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    with style():
        figure = Figure(figsize=(WIDTH, 2.4 * lines + 1.2), layout="constrained")
        panels = figure.subplots(lines, columns, sharey=True, squeeze=False)
        looks = _method_looks(rows["method"])
        for axes, name in zip(panels.flat, names, strict=False):
            _draw_marks(axes, _marks(rows[rows["dataset"] == name]), looks)
            axes.set_title(name, fontweight="bold")
        panels[0, 0].set_ylim(bottom=LOWEST_RATE)
        for axes in panels.flat[len(names) :]:
            axes.remove()
        for axes in panels.flat[max(len(names) - columns, 0) : len(names)]:
            axes.set_xlabel("mean l2 cost (encoded units)")
        for axes in panels[:, 0]:
            axes.set_ylabel(f"invalidation, {CHANGES.get(change, change)} (%)")
        figure.legend(handles=_marks_legend(looks), loc="outside lower center", ncols=4)
        return figure


@dataclass(frozen=True)
class _Mark:
    """One method on one dataset; rates are shares."""

    cost: float
    rate: float
    low: float
    high: float
    found: float

    @property
    def place(self) -> tuple[float, float]:
        return self.cost, 100 * self.rate


def _marks(rows: pd.DataFrame) -> dict[str, _Mark]:
    """Every method that found something."""
    each = rows.groupby("method", sort=False)
    return {str(name): _mark(of_method) for name, of_method in each if of_method["found"].any()}


def _mark(rows: pd.DataFrame) -> _Mark:
    """One row per deployed network; those for which nothing was found count for the share of rows found alone."""
    share = float(rows["found"].sum() / rows["rows"].sum())
    rows = rows[rows["found"] > 0]
    intervals = float(rows["low"].mean()), float(rows["high"].mean())
    networks = float(rows["rate"].min()), float(rows["rate"].max())
    low, high = max(intervals, networks, key=lambda ends: ends[1] - ends[0])
    return _Mark(float(rows["cost_l2"].mean()), float(rows["rate"].mean()), low, high, share)


def _draw_marks(axes: Axes, marks: dict[str, _Mark], looks: dict[str, dict[str, Any]]) -> None:
    arrow = {"arrowstyle": "->", "color": GREY, "lw": 0.8, "shrinkA": 4, "shrinkB": 4}
    for name, mark in marks.items():
        start = marks.get(name.removesuffix("+sns"), mark)
        if start is not mark:
            axes.annotate("", mark.place, start.place, arrowprops=arrow)
        whisker = whiskers(mark.rate, mark.low, mark.high)
        axes.errorbar(*mark.place, whisker, ecolor=looks[name]["mec"], elinewidth=0.9, **looks[name])
        if mark.found < 0.5:
            share = f"{100 * mark.found:.0f} %"
            axes.annotate(share, mark.place, (5, 5), textcoords="offset points", fontsize=7, color=GREY)
    axes.set_xscale("log")
    plain_log(axes.xaxis)
    axes.grid()


def _method_looks(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and shape for each start: hollow as it is, full after SNS, half full after other stabilisers."""
    names = list(dict.fromkeys(methods))
    looks = look_of_each(STARTS, [name.split("+")[0] for name in names])
    halves: dict[str, str] = {}  # which half is full, by stabiliser
    found = {}
    for name in names:
        start, _, stabiliser = name.partition("+")
        colour, marker = looks[start]
        found[name] = {"marker": marker, "ms": 6, "mew": 1.2, "mec": colour, "mfc": colour if stabiliser else "white"}
        if stabiliser not in ("", "sns"):
            half = halves.setdefault(stabiliser, HALVES[len(halves) % len(HALVES)])
            found[name] |= {"fillstyle": half, "mfcalt": "white"}
    return found


def _marks_legend(looks: dict[str, dict[str, Any]]) -> list[Line2D]:
    return [
        *(Line2D([], [], ls="none", label=name, **look) for name, look in looks.items()),
        Line2D([], [], ls="none", marker=r"$\rightarrow$", ms=12, color=GREY, label="what SNS makes of it"),
        Line2D([], [], ls="none", marker=r"$\%$", ms=7, color=GREY, mew=0.1, label="rows found, if below half"),
    ]
