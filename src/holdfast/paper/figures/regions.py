"""Figure 2(a): where a small network is linear, its decision boundary, and gradients normal to it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon

from holdfast.paper.figures.shared import SHADE, UNIT, titled
from holdfast.paper.plane import Normal, Regions
from holdfast.reporting.plots.style import BLACK, GREEN, GREY, SKY, VERMILLION, WIDTH, YELLOW, style

NORMALS = ((SKY, "o"), (GREEN, "s"), (YELLOW, "^"))  # colour and marker of each region that has a normal


def regions(shown: Regions) -> Figure:
    """Figure 2(a): a network's activation regions, its decision boundary, and gradients normal to its pieces."""
    span = (-shown.limit, shown.limit)
    with style():
        figure = Figure(figsize=(0.66 * WIDTH, 5.9), layout="constrained")
        axes = figure.subplots()
        titled(axes, "Gradients are normal to the boundary", f"{len(shown.cells)} activation regions of one network")
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
