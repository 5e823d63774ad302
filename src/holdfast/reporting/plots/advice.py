"""Does dearer advice hold better? What plans cost against how many audit models invalidate them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from numpy.typing import NDArray

from holdfast.explaining.advice import Advice
from holdfast.reporting.plots.marks import FAINT, LINE, MANY, in_percent, ink, legend_above, quiet_grid, say
from holdfast.reporting.plots.style import BLUE, VERMILLION, whiskers

GROUPS, FEWEST = 5, 8  # fifths, but no group of fewer plans than that
PARTS = {1: "all plans together", 2: "half of the plans", 3: "a third of the plans", 4: "a quarter of the plans"}
FIFTH = "a fifth of the plans"


@dataclass(frozen=True)
class CostGroup:
    """Plans of about the same cost, and the share of pairs of a plan and an audit model that are invalidated."""

    plans: int
    cost: float  # mean
    cheapest: float
    dearest: float
    rate: float
    low: float  # 95 % limits for these plans and future retrainings
    high: float

    def __str__(self) -> str:
        return (
            f"{self.plans} plans that cost {self.cheapest:.3g} to {self.dearest:.3g}: {self.rate:.1%} invalidated "
            f"(95 % interval {self.low:.1%} to {self.high:.1%})"
        )


def cost_groups(advice: Advice) -> list[CostGroup]:
    """The plans in fifths by cost, cheapest first; in fewer parts where there are few plans, none without an audit."""
    if advice.audit is None or not len(advice.given):
        return []
    groups, costs = [], _costs(advice)
    for rows in np.array_split(np.argsort(costs, kind="stable"), min(max(len(costs) // FEWEST, 1), GROUPS)):
        part, cost = advice.audit.of_rows(torch.from_numpy(rows)), costs[rows]
        limits = (part.rate, *part.interval())
        groups.append(CostGroup(len(rows), float(cost.mean()), float(cost.min()), float(cost.max()), *limits))
    return groups


def draw_advice(axes: Axes, advice: Advice) -> None:
    """Mean cost against invalidation by parts of the plans, over the single plans, with what was asked as a line."""
    if not len(advice.given):
        say(axes, "No plan is given, so there is no cost to compare.")
        return
    if advice.audit is None:
        say(axes, "There are no audit models, so whether dearer plans hold better is not known.")
        return
    groups, cost, invalidated = cost_groups(advice), _costs(advice), 100 * advice.audit.per_row
    if len(cost) <= MANY:
        axes.plot(cost, invalidated, ".", color=BLUE, alpha=FAINT, markersize=7, markeredgewidth=0, label="one plan")
    _draw_groups(axes, groups)
    levels_asked = _draw_asked(axes, advice)
    shown = [100 * group.high for group in groups] + (invalidated.tolist() if len(cost) <= MANY else [])
    in_percent(axes, max([*shown, *levels_asked]))
    axes.set_xlabel("cost of the plan")
    axes.set_ylabel("invalidated by audit models (%)")
    quiet_grid(axes)
    legend_above(axes)


def describe_advice(advice: Advice) -> str:
    """What `draw_advice` shows, in sentences for people who cannot see it."""
    groups = cost_groups(advice)
    if not groups:
        return "Nothing is drawn: there are no plans, or no audit models."
    return f"Plans by their cost, cheapest first. {'. '.join(map(str, groups))}."


def _draw_groups(axes: Axes, groups: list[CostGroup]) -> None:
    cost, rate, low, high = (
        np.array([getattr(group, name) for group in groups]) for name in ("cost", "rate", "low", "high")
    )
    reach = np.array([[group.cost - group.cheapest, group.dearest - group.cost] for group in groups]).T
    axes.errorbar(
        cost, 100 * rate, whiskers(rate, low, high), np.maximum(reach, 0), color=VERMILLION, fmt="s", markersize=5,
        elinewidth=1.4, capsize=3, label=f"{PARTS.get(len(groups), FIFTH)}: mean, 95 % interval", zorder=3,
    )  # fmt: skip


def _draw_asked(axes: Axes, advice: Advice) -> list[float]:
    """The level that was asked for, in percent, where there is one."""
    hold: Any = advice.decided.get("hold")
    promised: Any = advice.decided.get("promise")
    if hold is None and promised is None:
        return []
    level, words = (
        (100 * (1 - hold), "asked for each plan") if promised is None else (100 * promised, "asked on average")
    )
    axes.axhline(level, color=ink(axes), label=f"{words}: at most {level:.3g} %", **LINE)
    return [level]


def _costs(advice: Advice) -> NDArray[np.float64]:
    cost: NDArray[np.float64] = advice.counterfactuals.cost(advice.norm).double().cpu().numpy()
    return cost
