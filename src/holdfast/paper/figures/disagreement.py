"""Figure 1: two networks of different seeds, and two counterfactuals of one cost with different fates."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch

from holdfast.paper.figures.shared import SHADE, UNIT, titled
from holdfast.paper.plane import Disagreement, Twins
from holdfast.reporting.plots.style import BLACK, BLUE, GREEN, GREY, ORANGE, VERMILLION, WIDTH, style

PLATE = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.85}  # behind words that lie on data


def disagreement(shown: Disagreement) -> Figure:
    """Figure 1: where networks of two seeds differ, and two counterfactuals of one cost, for deep and linear ones."""
    with style():
        figure = Figure(figsize=(WIDTH, 4.95), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, name, twins in ((left, "Deep", shown.deep), (right, "Linear", shown.linear)):
            fates = "different fates" if twins.holds[0] != twins.holds[1] else "the same fate"
            below = f"two seeds disagree on {100 * twins.apart:.1f} % of the plane"
            titled(axes, f"{name}: same cost, {fates}", below)
            axes.set(xlim=shown.axis[[0, -1]], ylim=shown.axis[[0, -1]], xlabel=f"feature 1 {UNIT}")
            axes.set_aspect("equal")
            _draw_twins(axes, shown, twins)
        left.set_ylabel(f"feature 2 {UNIT}")
        figure.legend(handles=_disagreement_legend(), loc="outside lower center", ncols=3)
        return figure


def _draw_twins(axes: Axes, shown: Disagreement, twins: Twins) -> None:
    accepts, axis = twins.score > 0, shown.axis
    axes.contourf(axis, axis, accepts.all(0), levels=[0.5, 1], colors=[SHADE])
    axes.contourf(axis, axis, accepts[0] != accepts[1], levels=[0.5, 1], colors=[ORANGE], hatches=["////"])
    axes.contour(axis, axis, twins.score[0], levels=[0], colors=[BLACK], linewidths=1.4)
    axes.contour(axis, axis, twins.score[1], levels=[0], colors=[BLACK], linewidths=1.1, linestyles="--")
    for label, marker, fill in ((0, "o", GREY), (1, "s", "none")):
        axes.plot(*shown.x[shown.y == label].T, marker, ms=2.2, mew=0.5, mec=GREY, mfc=fill, alpha=0.7)
    here = (float(shown.person[0]), float(shown.person[1]))
    axes.add_patch(Circle(here, twins.cost[0], fill=False, ec=BLUE, lw=0.9, ls=":"))
    for (across, up), holds in zip(twins.point.tolist(), twins.holds.tolist(), strict=True):
        colour, marker, word = (GREEN, "o", "holds") if holds else (VERMILLION, "X", "invalidated")
        axes.annotate("", (across, up), here, arrowprops={"arrowstyle": "->", "color": BLUE, "lw": 1.3, "shrinkB": 5})
        axes.plot(across, up, marker, ms=9, mfc=colour, mec="white", mew=1)
        _word(axes, word, (across, up), below=up < here[1], colour=colour)
    axes.plot(*here, "D", ms=7, mfc=BLUE, mec="white", mew=1)


def _word(axes: Axes, word: str, at: tuple[float, float], below: bool, colour: str) -> None:
    """A word above or below a point; near the side it is moved inwards, and near the top it stands beside."""
    limit = axes.get_xlim()[1]
    aside = int(np.sign(at[0])) if abs(at[0]) > 0.75 * limit else 0
    moved, align = (-6 * aside, -14 if below else 14), ("left", "center", "right")[aside + 1]
    if at[1] > 0.8 * limit:
        moved, align = (10, 0), "left"
    style: dict[str, Any] = {"ha": align, "va": "center", "weight": "bold", "bbox": PLATE}
    axes.annotate(word, at, moved, textcoords="offset points", color=colour, **style)


def _disagreement_legend() -> list[Line2D | Patch]:
    return [
        Line2D([], [], color=BLACK, lw=1.4, label="boundary, first seed"),
        Line2D([], [], color=BLACK, lw=1.1, ls="--", label="boundary, second seed"),
        Patch(fc=ORANGE, hatch="////", ec=BLACK, lw=0, label="the two disagree"),
        Patch(fc=SHADE, label="both accept (white: neither)"),
        Line2D([], [], marker="D", ms=7, mfc=BLUE, mec="white", ls="none", label="a person who was turned down"),
        Line2D([], [], color=BLUE, ls=":", lw=0.9, label="all points of the same cost"),
        Line2D([], [], marker="o", ms=3, mfc=GREY, mec=GREY, ls="none", label="training row, turned down"),
        Line2D([], [], marker="s", ms=3, mfc="none", mec=GREY, ls="none", label="training row, accepted"),
    ]
