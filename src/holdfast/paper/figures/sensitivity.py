"""Invalidation and cost against each of SNS's settings."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from holdfast.paper.declared import PAPER_DATASETS
from holdfast.paper.figures.shared import LOWEST_RATE, of_one_change, plain_log
from holdfast.paper.sensitivity import PAPERS_VALUES, START, VALUES, setting
from holdfast.reporting.plots.style import GREY, WIDTH, look_of_each, style, whiskers


def sensitivity(rows: pd.DataFrame) -> Figure:
    """Invalidation and cost against each of SNS's settings, one line per dataset, from the rows of that study.

    Radius 0 is the start, before SNS. Whiskers are the rows' 95 % intervals; upright lines are the paper's values.
    """
    rows = of_one_change(rows, "seeds")
    with style():
        figure = Figure(figsize=(WIDTH, 5.0), layout="constrained")
        panels = figure.subplots(2, len(VALUES), sharex="col", sharey="row")
        looks = look_of_each(PAPER_DATASETS, rows["dataset"])
        for (upper, lower), name in zip(panels.T, VALUES, strict=True):
            for dataset, (colour, marker) in looks.items():
                curve = _curve(rows[rows["dataset"] == dataset], name)
                _draw_curve(upper, lower, curve, {"color": colour, "marker": marker, "label": dataset})
            _setting_axes(upper, lower, name)
        panels[0, 0].set_ylabel("invalidation, new seeds (%)")
        panels[0, 0].set_ylim(bottom=LOWEST_RATE)
        panels[1, 0].set_ylabel("l2 cost (encoded units)")
        panels[1, 0].set_yscale("log")
        plain_log(panels[1, 0].yaxis)
        handles = panels[1, 0].get_lines()[: len(looks)]
        papers = Line2D([], [], color=GREY, lw=0.8, ls=":", label="the paper's value")
        figure.legend(handles=[*handles, papers], loc="outside lower center", ncols=len(looks) + 1)
        return figure


def _curve(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """One dataset's rows along one setting, in its order; along the radius, the start is where it is 0."""
    settings = {method: setting(method) for method in rows["method"]}
    values = {method: varied.value for method, varied in settings.items() if varied is not None and varied.name == name}
    if name == "radius":
        values[START] = 0.0
    means = rows[rows["method"].isin(list(values))].groupby("method")[["rate", "low", "high", "cost_l2"]].mean()
    return means.assign(value=[values[method] for method in means.index]).sort_values("value")


def _draw_curve(upper: Axes, lower: Axes, curve: pd.DataFrame, look: dict[str, Any]) -> None:
    look = {"ms": 4.5, "lw": 1.2} | look
    reach = whiskers(curve["rate"], curve["low"], curve["high"])
    upper.errorbar(curve["value"], 100 * curve["rate"], reach, capsize=2, elinewidth=0.8, **look)
    lower.plot(curve["value"], curve["cost_l2"], **look)


def _setting_axes(upper: Axes, lower: Axes, name: str) -> None:
    words = {"radius": "share of PGD's largest ε (0: no SNS)", "points": "points on the line", "steps": "steps uphill"}
    upper.set_title(name.capitalize(), fontweight="bold")
    lower.set_xlabel(words[name])
    if name != "radius":
        lower.set_xscale("log")
        lower.set_xticks(VALUES[name], [f"{value:g}" for value in VALUES[name]])
        lower.xaxis.set_minor_locator(NullLocator())
    for axes in (upper, lower):
        axes.axvline(PAPERS_VALUES[name], color=GREY, lw=0.8, ls=":", zorder=0)
        axes.grid(axis="y")
