"""The paper's figures, and ours: values and rows in, a matplotlib figure out, and `save` to put it into files.

Each figure is a `matplotlib.figure.Figure` of its own with settings of its own: whatever style or backend the caller
uses stays as it is. Colours are Okabe and Ito's, which colour-blind people tell apart too; what a colour says, a
marker's shape, a line's dashes or a hatch says as well, for print in black and white.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch, Polygon
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from holdfast.files import appearing
from holdfast.studies.paper import DATASETS
from holdfast.studies.plane import Disagreement, Normal, Paths, Regions, Twins
from holdfast.studies.sensitivity import PAPERS_VALUES, START, VALUES, setting

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
def _style() -> Iterator[None]:
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
    with _style():
        with appearing(svg) as file:
            figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
        with appearing(png) as file:
            figure.savefig(file, format="png", dpi=200, metadata={"Software": None})
    figure.clear()
    return svg, png


def _titled(axes: Axes, title: str, below: str = "") -> None:
    """A bold title, and a line below it in plain type."""
    axes.set_title(title, fontweight="bold", pad=18 if below else 6)
    if below:
        axes.annotate(below, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points")


# ------------------------------------------------------------------------------------------------ Figure 1


def disagreement(shown: Disagreement) -> Figure:
    """Figure 1: where networks of two seeds differ, and two counterfactuals of one cost, for deep and linear ones."""
    with _style():
        figure = Figure(figsize=(WIDTH, 4.95), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, name, twins in ((left, "Deep", shown.deep), (right, "Linear", shown.linear)):
            fates = "different fates" if twins.holds[0] != twins.holds[1] else "the same fate"
            below = f"two seeds disagree on {100 * twins.apart:.1f} % of the plane"
            _titled(axes, f"{name}: same cost, {fates}", below)
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
    for own, marker, fill in ((0, "o", GREY), (1, "s", "none")):
        axes.plot(*shown.x[shown.y == own].T, marker, ms=2.2, mew=0.5, mec=GREY, mfc=fill, alpha=0.7)
    here = (float(shown.person[0]), float(shown.person[1]))
    axes.add_patch(Circle(here, twins.cost[0], fill=False, ec=BLUE, lw=0.9, ls=":"))
    for (across, up), holds in zip(twins.point.tolist(), twins.holds.tolist(), strict=True):
        colour, marker, word = (GREEN, "o", "holds") if holds else (VERMILLION, "X", "undone")
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


# ------------------------------------------------------------------------------------------------ Figure 2(a)


def regions(shown: Regions) -> Figure:
    """Figure 2(a): a network's activation regions, its decision boundary, and gradients normal to its pieces."""
    span = (-shown.limit, shown.limit)
    with _style():
        figure = Figure(figsize=(0.66 * WIDTH, 5.9), layout="constrained")
        axes = figure.subplots()
        _titled(axes, "Gradients are normal to the boundary", f"{len(shown.cells)} activation regions of one network")
        axes.set(xlim=span, ylim=span, xlabel=f"feature 1 {UNIT}", ylabel=f"feature 2 {UNIT}")
        axes.set_aspect("equal")
        _draw_cells(axes, shown)
        for normal, (tint, marker) in zip(shown.normals, NORMALS, strict=False):
            _draw_normal(axes, normal, tint, marker)
        figure.legend(handles=_regions_legend(shown), loc="outside lower center", ncols=2)
        return figure


def _draw_cells(axes: Axes, shown: Regions) -> None:
    """From the bottom up: what is accepted, the regions that have a normal, every region's border, the boundary."""
    for cell in shown.cells:
        axes.add_patch(Polygon(cell.accepted, fc=SHADE, ec="none"))
    for normal, (tint, _) in zip(shown.normals, NORMALS, strict=False):
        axes.add_patch(Polygon(shown.cells[normal.cell].corners, fc=tint, ec="none", alpha=0.45))
    for cell in shown.cells:
        axes.add_patch(Polygon(cell.corners, fill=False, ec=GREY, lw=0.5))
    for cell in shown.cells:
        if cell.boundary is not None:
            axes.plot(*cell.boundary.T, color=BLACK, lw=2, solid_capstyle="round")


def _draw_normal(axes: Axes, normal: Normal, tint: str, marker: str) -> None:
    point, foot = normal.point, normal.foot
    towards = (foot - point) / normal.length
    along = np.array([-towards[1], towards[0]])
    if not normal.crossed:
        axes.plot(*(foot + np.outer([-1, 1], along)).T, color=VERMILLION, lw=1.8, ls=":")
    corner = min(0.11, 0.3 * normal.length) * np.array([along, along - towards, -towards])  # the mark of a right angle
    axes.plot(*(foot + corner).T, color=BLACK, lw=0.8)
    arrow = {"arrowstyle": "-|>", "color": BLACK, "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", tuple(foot), tuple(point), arrowprops=arrow)
    axes.plot(*point, marker, ms=8, mfc=tint, mec=BLACK, mew=1)


def _regions_legend(shown: Regions) -> list[Line2D | Patch]:
    words = {True: "gradient, crossed region", False: "gradient, region not crossed"}
    return [
        Line2D([], [], color=BLACK, lw=2, label="decision boundary"),
        Line2D([], [], color=GREY, lw=0.5, label="borders of regions"),
        Patch(fc=SHADE, label="accepted"),
        Line2D([], [], color=VERMILLION, lw=1.8, ls=":", label="boundary of that region's map"),
        *(
            Line2D([], [], marker=marker, ms=8, mfc=tint, mec=BLACK, color=BLACK, lw=1.2, label=words[normal.crossed])
            for normal, (tint, marker) in zip(shown.normals, NORMALS, strict=False)
        ),
    ]


# ------------------------------------------------------------------------------------------------ Figure 2(b)


def paths(shown: Paths) -> Figure:
    """Figure 2(b): the target's probability on the way from zero to counterfactuals, before and after SNS."""
    with _style():
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, name, own, again, held in (
            (left, "Before", shown.before, shown.retrained_before, shown.held_before),
            (right, "After", shown.after, shown.retrained_after, shown.held_after),
        ):
            _titled(axes, f"{name} SNS", f"{100 * held:.0f} % hold on retrained networks")
            axes.plot(shown.t, own.T, color=SKY, lw=0.5, alpha=0.6)
            axes.fill_between(shown.t, again.min(0), again.max(0), color=VERMILLION, alpha=0.2, lw=0)
            axes.plot(shown.t, again.mean(0), color=VERMILLION, lw=2.2, ls="--")
            axes.plot(shown.t, own.mean(0), color=BLUE, lw=2.6)
            axes.axhline(0.5, color=GREY, lw=0.8, ls=":")
            axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="t, from zero (0) to the counterfactual x′ (1)")
        left.set_ylabel("probability of the target at t·x′")
        figure.legend(handles=_paths_legend(shown), loc="outside lower center", ncols=2)
        return figure


def _paths_legend(shown: Paths) -> list[Line2D | Patch]:
    members = len(shown.retrained_before)
    return [
        Line2D([], [], color=SKY, lw=0.8, label="deployed network, each counterfactual"),
        Line2D([], [], color=BLUE, lw=2.6, label=f"deployed network, mean of {len(shown.before)} counterfactuals"),
        Line2D([], [], color=VERMILLION, lw=2.2, ls="--", label=f"{members} retrained networks, mean of the same"),
        Patch(fc=VERMILLION, alpha=0.2, label="from the lowest retrained network to the highest"),
    ]


# ------------------------------------------------------------------------------------------------ SNS's settings


def sensitivity(rows: pd.DataFrame) -> Figure:
    """Invalidation and cost against each of SNS's settings, a line a dataset, from the rows of that study.

    Radius 0 is the start, before SNS. Whiskers are the rows' 95 % intervals; upright lines are the paper's values.
    """
    rows = _alike(rows, "seeds")
    with _style():
        figure = Figure(figsize=(WIDTH, 5.0), layout="constrained")
        panels = figure.subplots(2, len(VALUES), sharex="col", sharey="row")
        looks = _looks(DATASETS, rows["dataset"])
        for (upper, lower), name in zip(panels.T, VALUES, strict=True):
            for dataset, (colour, marker) in looks.items():
                curve = _curve(rows[rows["dataset"] == dataset], name)
                _draw_curve(upper, lower, curve, {"color": colour, "marker": marker, "label": dataset})
            _setting_axes(upper, lower, name)
        panels[0, 0].set_ylabel("invalidation, new seeds (%)")
        panels[0, 0].set_ylim(bottom=LOWEST)
        panels[1, 0].set_ylabel("l2 cost (encoded units)")
        panels[1, 0].set_yscale("log")
        _plain_log(panels[1, 0].yaxis)
        handles = panels[1, 0].get_lines()[: len(looks)]
        papers = Line2D([], [], color=GREY, lw=0.8, ls=":", label="the paper's value")
        figure.legend(handles=[*handles, papers], loc="outside lower center", ncols=len(looks) + 1)
        return figure


def _curve(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """One dataset's rows along one setting, in its order; along the radius, the start is where it is 0."""
    settings = {method: setting(method) for method in rows["method"]}
    values = {method: own.value for method, own in settings.items() if own is not None and own.name == name}
    if name == "radius":
        values[START] = 0.0
    means = rows[rows["method"].isin(list(values))].groupby("method")[["rate", "low", "high", "cost_l2"]].mean()
    return means.assign(value=[values[method] for method in means.index]).sort_values("value")


def _draw_curve(upper: Axes, lower: Axes, curve: pd.DataFrame, look: dict[str, Any]) -> None:
    look = {"ms": 4.5, "lw": 1.2} | look
    whiskers = _whiskers(curve["rate"], curve["low"], curve["high"])
    upper.errorbar(curve["value"], 100 * curve["rate"], whiskers, capsize=2, elinewidth=0.8, **look)
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


# ------------------------------------------------------------------------------------------------ cost, invalidation


def cost_against_invalidation(rows: pd.DataFrame, change: str = "seeds") -> Figure:
    """For each dataset, every method's mean l2 cost and invalidation, an arrow from each start to what SNS makes of it.

    A marker is the mean over deployed networks. Its whisker reaches from the lowest to the highest of them, or over
    the rows' mean 95 % interval where that is wider. A small number is the share of rows found where it is below half.
    """
    rows = _alike(rows, change)
    names = list(_looks(DATASETS, rows["dataset"]))
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    with _style():
        figure = Figure(figsize=(WIDTH, 2.4 * lines + 1.2), layout="constrained")
        panels = figure.subplots(lines, columns, sharey=True, squeeze=False)
        looks = _method_looks(rows["method"])
        for axes, name in zip(panels.flat, names, strict=False):
            _draw_marks(axes, _marks(rows[rows["dataset"] == name]), looks)
            axes.set_title(name, fontweight="bold")
        panels[0, 0].set_ylim(bottom=LOWEST)
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
    return {str(name): _mark(own) for name, own in each if own["found"].any()}


def _mark(rows: pd.DataFrame) -> _Mark:
    """One row a deployed network; those for which nothing was found count for the share of rows found alone."""
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
        whisker = _whiskers(mark.rate, mark.low, mark.high)
        axes.errorbar(*mark.place, whisker, ecolor=looks[name]["mec"], elinewidth=0.9, **looks[name])
        if mark.found < 0.5:
            share = f"{100 * mark.found:.0f} %"
            axes.annotate(share, mark.place, (5, 5), textcoords="offset points", fontsize=7, color=GREY)
    axes.set_xscale("log")
    _plain_log(axes.xaxis)
    axes.grid()


def _method_looks(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """A colour and shape for each start: hollow as it is, full after SNS, half full after other stabilisers."""
    names = list(dict.fromkeys(methods))
    looks = _looks(STARTS, [name.split("+")[0] for name in names])
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


# ------------------------------------------------------------------------------------------------ both


def _alike(rows: pd.DataFrame, change: str) -> pd.DataFrame:
    """The rows of one kind of change, if they may stand in one figure."""
    kinds = sorted(rows["change"].unique()) if len(rows) else []
    if change not in kinds:
        raise ValueError(f"no rows with the change '{change}'; there are {', '.join(kinds) or 'none at all'}")
    chosen = rows[rows["change"] == change]
    for name in ("space", "settings"):
        own = sorted(chosen[name].unique()) if name in chosen else []
        if len(own) > 1:
            raise ValueError(f"rows of different {name} do not compare ({', '.join(own)}); pass those of one")
    return chosen


def _looks(known: Sequence[str], names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a shape for each name. Known ones come first and look the same in every figure."""
    given = dict.fromkeys(names)
    fixed = {name: look for name, look in zip(known, LOOKS, strict=False) if name in given}
    others = [name for name in given if name not in fixed]
    free = [look for look in LOOKS if look not in fixed.values()]
    return fixed | dict(zip(others, cycle(free), strict=False))


def _whiskers(rate: Any, low: Any, high: Any) -> Floats:
    """From each rate down to its low and up to its high, in percent: (2, n)."""
    reach = [np.atleast_1d(rate) - np.atleast_1d(low), np.atleast_1d(high) - np.atleast_1d(rate)]
    return np.maximum(100 * np.stack(reach).astype(np.float64), 0.0)


def _plain_log(axis: XAxis | YAxis) -> None:
    """Ticks of a logarithmic axis at 1, 2, 3 and 5, in plain figures."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
