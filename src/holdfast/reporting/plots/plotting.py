"""Any of the library's values as a picture."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from holdfast.auditing.audit import Audit
from holdfast.auditing.comparison import Comparison
from holdfast.explaining.advice import Advice
from holdfast.explaining.person import PersonAdvice
from holdfast.guarantees.promises import Promise
from holdfast.reporting.plots.advice import describe_advice, draw_advice
from holdfast.reporting.plots.agreement_costs import draw_agreement_costs
from holdfast.reporting.plots.audits import draw_audit
from holdfast.reporting.plots.comparisons import draw_comparison
from holdfast.reporting.plots.people import draw_person, lines_of
from holdfast.reporting.plots.promises import describe_promise, draw_promise
from holdfast.reporting.plots.style import style
from holdfast.reporting.plots.svg import as_svg
from holdfast.search.agreement_cost import AgreementCost
from holdfast.utils.messages import did_you_mean

WIDTH = 6.0  # inches


@dataclass(frozen=True)
class Plot:
    """How the values of one type are drawn, and how much room they need."""

    draw: Callable[..., None]  # (axes, value, and options by name)
    height: Callable[[Any], float]  # inches
    made_by: str  # what gives such a value

    @property
    def options(self) -> list[str]:
        return list(inspect.signature(self.draw).parameters)[2:]


PLOTS: dict[type, Plot] = {
    Advice: Plot(draw_advice, lambda advice: 3.6, "explainer.explain(people)"),
    PersonAdvice: Plot(draw_person, lambda person: 1.1 + 0.3 * lines_of(person), "advice.of(label)"),
    Audit: Plot(draw_audit, lambda audit: 1.5 + 0.6 * len(set(audit.kinds)), "audit(counterfactuals, family)"),
    Comparison: Plot(draw_comparison, lambda compared: 3.4 + 0.1 * len(compared.audits), "compare({name: audit, ...})"),
    Promise: Plot(draw_promise, lambda promise: 3.5 + 0.4 * len(promise.selected_by), "promise(...)"),
    AgreementCost: Plot(draw_agreement_costs, lambda price: 3.6, "agreement_cost(...)"),
}


def plot(value: Any, ax: Axes | None = None, **options: Any) -> Axes:
    """Draw a value of the library, and return the axes that it is drawn on.

    - `Advice`: what plans cost, against how many audit models invalidate them
    - `PersonAdvice`: what one person changes, plan by plan: ``hf.plot(advice.of(8004))``
    - `Audit`: how often retrained models invalidate, by kind of change
    - `Comparison`: methods by cost and invalidation
    - `Promise`: every value of the parameter that was searched, and the one chosen
    - `AgreementCost`: what it costs that more models accept; ``row=3`` shows one person apart

    Without ``ax`` there is a new figure of `matplotlib.pyplot`, which a notebook shows. Your style and your settings
    are used and stay as they are.

    Examples:
        >>> import pandas as pd
        >>> from matplotlib.figure import Figure
        >>> from sklearn.linear_model import LogisticRegression
        >>> import holdfast as hf
        >>> table = pd.DataFrame({"income": range(10, 90, 2), "debt": [8, 2, 5, 9] * 10})
        >>> table["loan"] = ["yes" if row.income > 6 * row.debt else "no" for row in table.itertuples()]
        >>> model = LogisticRegression().fit(table[["income", "debt"]], table["loan"])
        >>> people = pd.DataFrame({"income": [20, 24], "debt": [9, 8]}, index=["Ada", "Bo"])
        >>> advice = hf.Explainer(model, table, label="loan", want="yes").explain(people)
        >>> axes = hf.plot(advice.of("Ada"), ax=Figure().subplots())
        >>> type(axes).__name__
        'Axes'

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109) has no such pictures: its Table 1 (Section 5) gives the
    same invalidation rates and costs as numbers.
    """
    chosen = _plot_of(value)
    for name in options:
        if name not in chosen.options:
            raise TypeError(
                f"plot of {_kind(value)} has no option {name!r}{did_you_mean(name, chosen.options)}; "
                f"it takes {', '.join(chosen.options) or 'none'}"
            )
    if ax is not None and not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {_kind(ax)}; make them with figure, ax = plt.subplots()")
    if ax is None:
        import matplotlib.pyplot as plt  # not at the top: it looks for a window system, which no report needs

        ax = plt.figure(figsize=(WIDTH, chosen.height(value)), layout="constrained").add_subplot()
    chosen.draw(ax, value, **options)
    return ax


def svg_of(value: Advice | Promise, *, title: str, name: str) -> str:
    """A value as a figure of an HTML page, see `as_svg`; its description says in sentences what is drawn."""
    chosen = _plot_of(value)
    with style():
        figure = Figure(figsize=(WIDTH, chosen.height(value)), layout="constrained")
        chosen.draw(figure.subplots(), value)
    description = describe_advice(value) if isinstance(value, Advice) else describe_promise(value)
    return as_svg(figure, title=title, description=description, name=name)


def _plot_of(value: Any) -> Plot:
    for kind, plot_of_kind in PLOTS.items():
        if isinstance(value, kind):
            return plot_of_kind
    if isinstance(getattr(value, "audit", None), Audit):
        raise TypeError(f"plot cannot draw {_kind(value)}; draw its audit: plot(value.audit)")
    known = "; ".join(f"{kind.__name__}, made by {plot_of_kind.made_by}" for kind, plot_of_kind in PLOTS.items())
    raise TypeError(f"plot cannot draw {_kind(value)}. It draws: {known}")


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a value of type {type(value).__name__}"
