"""How often retrained models invalidate counterfactuals, by kind of change."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

from holdfast.auditing.audit import Audit
from holdfast.reporting.plots.marks import FAINT, as_text, ink, legend_above, quiet_grid, say
from holdfast.reporting.plots.style import BLUE, VERMILLION, whiskers

SPREAD = 0.36  # of the room of a kind: its models stand so far above and below the middle
GOLDEN = (math.sqrt(5) - 1) / 2  # steps by it fall into no pattern


def draw_audit(axes: Axes, audit: Audit) -> None:
    """For each kind of change its models' rates as dots, and the rate of all with its 95 % interval."""
    if not audit.invalidated.size:
        say(axes, "Nothing was found, so there is nothing that a retrained model could invalidate.")
        return
    parts = audit.by_kind
    ys = range(len(parts))
    for y, part in zip(ys, parts.values(), strict=True):
        _draw_members(axes, y, part)
    rates = np.array([part.rate for part in parts.values()])
    low, high = np.array([part.interval() for part in parts.values()]).T
    axes.errorbar(
        100 * rates, ys, xerr=whiskers(rates, low, high), color=VERMILLION, fmt="s", markersize=6, elinewidth=1.6,
        capsize=4, label="all models, 95 % interval", zorder=3,
    )  # fmt: skip
    _draw_flips(axes, audit)
    names = [f"{as_text(kind)}\n{_models(len(part.kinds))}" for kind, part in parts.items()]
    axes.set_yticks(ys, names)
    axes.set_ylim(len(parts) - 0.5, -0.5)
    axes.set_xlim(left=min(-0.01 * axes.get_xlim()[1], axes.get_xlim()[0]))
    axes.set_xlabel(f"invalidated, of {audit.invalidated.shape[1]:,} counterfactuals found (%)")
    quiet_grid(axes, "x")
    legend_above(axes)


def _draw_members(axes: Axes, y: int, part: Audit) -> None:
    """One dot per model, moved up and down so that models of one rate do not hide one another."""
    steps = (np.arange(len(part.kinds)) * GOLDEN + 0.5) % 1 - 0.5
    axes.plot(
        100 * part.per_member, y + 2 * SPREAD * steps, ".", color=BLUE, alpha=FAINT, markersize=7, markeredgewidth=0,
        label="one retrained model" if y == 0 else None, clip_on=False,
    )  # fmt: skip


def _draw_flips(axes: Axes, audit: Audit) -> None:
    """What retraining changes anyway, where that is known."""
    flips = [part.baseline_flips for part in audit.by_kind.values()]
    if not np.isnan(flips).all():
        axes.plot(
            100 * np.array(flips), np.arange(len(flips)), "|", color=ink(axes), markersize=12, markeredgewidth=1.4,
            label="rows whose class changes without any counterfactual",
        )  # fmt: skip


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"
