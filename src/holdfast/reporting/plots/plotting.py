"""Any of the library's values as a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from holdfast.auditing.audit import Audit
from holdfast.explaining.advice import Advice
from holdfast.guarantees.promises import Promise
from holdfast.reporting.figures.style import style
from holdfast.reporting.plots.advice import describe_advice, draw_advice
from holdfast.reporting.plots.audits import describe_audit, draw_audit
from holdfast.reporting.plots.promises import describe_promise, draw_promise
from holdfast.reporting.plots.svg import as_svg

WIDTH = 6.0  # inches


@dataclass(frozen=True)
class Plot:
    """How the values of one type are drawn, told to people who cannot see it, and how much room they need."""

    draw: Callable[..., None]  # (axes, value)
    describe: Callable[[Any], str]
    height: Callable[[Any], float]  # inches


PLOTS: dict[type, Plot] = {
    Advice: Plot(draw_advice, describe_advice, lambda advice: 3.6),
    Audit: Plot(draw_audit, describe_audit, lambda audit: 1.5 + 0.6 * len(set(audit.kinds))),
    Promise: Plot(draw_promise, describe_promise, lambda promise: 3.5 + 0.4 * len(promise.calibrated)),
}


def svg_of(value: Any, *, title: str, name: str) -> str:
    """A value as a figure of an HTML page, see `as_svg`; its description says in sentences what is drawn."""
    plot = PLOTS[type(value)]
    with style():
        figure = Figure(figsize=(WIDTH, plot.height(value)), layout="constrained")
        plot.draw(figure.subplots(), value)
    return as_svg(figure, title=title, description=plot.describe(value), name=name)
