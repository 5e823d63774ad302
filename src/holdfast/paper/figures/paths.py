"""Figure 2(b): the target's probability on the way from zero to counterfactuals, before and after SNS."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from holdfast.paper.figures.shared import titled
from holdfast.paper.plane import Paths
from holdfast.reporting.plots.style import BLUE, GREY, SKY, VERMILLION, WIDTH, style


def paths(shown: Paths) -> Figure:
    """Figure 2(b): the target's probability on the way from zero to counterfactuals, before and after SNS."""
    with style():
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, name, deployed, retrained, held in (
            (left, "Before", shown.before, shown.retrained_before, shown.held_before),
            (right, "After", shown.after, shown.retrained_after, shown.held_after),
        ):
            titled(axes, f"{name} SNS", f"{100 * held:.0f} % hold on retrained networks")
            axes.plot(shown.t, deployed.T, color=SKY, lw=0.5, alpha=0.6)
            axes.fill_between(shown.t, retrained.min(0), retrained.max(0), color=VERMILLION, alpha=0.2, lw=0)
            axes.plot(shown.t, retrained.mean(0), color=VERMILLION, lw=2.2, ls="--")
            axes.plot(shown.t, deployed.mean(0), color=BLUE, lw=2.6)
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
