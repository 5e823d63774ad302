"""What keeping a promised rate costs: every value of the parameter that was searched, and the one that was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from holdfast.guarantees.promises import Promise
from holdfast.reporting.plots.marks import LINE, as_text, in_percent, ink, legend_above, quiet_grid, say
from holdfast.reporting.plots.style import LOOKS
from holdfast.search.plans import norm_of
from holdfast.search.stricter import parameter_of

ASIDE = 0.025  # of the range of costs: what was realised stands beside the value chosen, not on it


def draw_promise(axes: Axes, promise: Promise) -> None:
    """Mean cost against what is invalidated, by kind of change: by the selection models, what could be promised, and
    what the audit models invalidate, with its 95 % upper limit."""
    curve, cost = promise.curve, f"cost_l{norm_of(promise.method)}"
    if not len(curve):
        say(axes, f"Nothing is promised. {promise.refusal}")
        return
    highest = [100 * promise.rate]
    for (kind, of_kind), (colour, marker) in zip(curve.groupby("kind", sort=False), LOOKS, strict=False):
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5}
        axes.plot(
            of_kind[cost], 100 * of_kind["bound"], linestyle="-", label=f"{as_text(kind)}: could be promised", **look
        )
        for at, bound, value in zip(of_kind[cost], of_kind["bound"], of_kind["value"], strict=True):
            axes.annotate(f"{value:g}", (at, 100 * bound), (5, 5), textcoords="offset points", fontsize=7)
        loss_look = {"linestyle": ":", "markerfacecolor": "none", "label": f"{as_text(kind)}: selection models"}
        axes.plot(of_kind[cost], 100 * of_kind["loss"], **look | loss_look)
        highest += [*(100 * of_kind["bound"]), *(100 * of_kind["loss"])]
    axes.axhline(100 * promise.rate, color=ink(axes), label=f"rate asked: {100 * promise.rate:.3g} %", **LINE)
    highest += _draw_chosen(axes, promise, curve, cost)
    in_percent(axes, max(highest))
    axes.set_xlabel(
        f"mean cost (l{norm_of(promise.method)}), one mark for each value of {parameter_of(promise.method)}"
    )
    axes.set_ylabel("invalidated on average (%)")
    quiet_grid(axes)
    legend_above(axes)


def describe_promise(promise: Promise) -> str:
    """What `draw_promise` shows, in sentences for people who cannot see it."""
    curve, name = promise.curve, parameter_of(promise.method)
    sentences = [
        f"At {name} = {step.value:g} the mean cost is {getattr(step, f'cost_l{norm_of(promise.method)}'):.3g}, and at "
        f"most {curve.loc[curve['value'] == step.value, 'bound'].max():.1%} could be promised."
        for step in promise.steps
    ]
    return " ".join([*sentences, promise.statement])


def _draw_chosen(axes: Axes, promise: Promise, curve: pd.DataFrame, cost: str) -> list[float]:
    """A ring around the value chosen, and beside it what was realised; gives the heights that must be seen."""
    if not promise.promised:
        return []
    chosen = curve[curve["value"] == promise.value]
    words = f"chosen: {parameter_of(promise.method)} = {promise.value:g}"
    axes.plot(
        chosen[cost], 100 * chosen["bound"], "o", markersize=14, markerfacecolor="none", markeredgecolor=ink(axes),
        markeredgewidth=1.2, label=words,
    )  # fmt: skip
    step = ASIDE * float(np.ptp(curve[cost]) or abs(curve[cost].iloc[0]) or 1.0)
    look_of = dict(zip(curve["kind"].unique(), LOOKS, strict=False))
    heights = []
    for number, (kind, part) in enumerate(promise.realised_by_kind.items(), start=1):
        limit, colour = promise.realised_limit(kind), look_of.get(kind, (ink(axes), ""))[0]
        at = float(chosen[cost].iloc[0]) + number * step
        _draw_realised(axes, at, part.rate, limit, colour, as_text(kind))
        heights.append(100 * limit)
    return heights


def _draw_realised(axes: Axes, at: float, rate: float, limit: float, colour: Any, kind: str) -> None:
    up = [[0.0], [max(100 * (limit - rate), 0.0)]]
    axes.errorbar(
        [at], [100 * rate], up, color=colour, fmt="D", markersize=5, elinewidth=1.4, capsize=4,
        label=f"{kind}: audit models, 95 % upper limit", zorder=3,
    )  # fmt: skip
