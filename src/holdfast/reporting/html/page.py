"""The report as one file: templates, figures and people put together."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from markupsafe import Markup

from holdfast.explaining.advice import Advice
from holdfast.explaining.advice_view import WORDS
from holdfast.reporting.groups import FEWEST_PEOPLE, groupings
from holdfast.reporting.html.cards import as_json, cards
from holdfast.reporting.html.constraints import cost_of_change, may_change, reachable_values
from holdfast.reporting.html.summary import comparing, cost_ends, dearer, held_as_asked, holding, reasons
from holdfast.reporting.plots.advice import cost_groups
from holdfast.reporting.plots.plotting import svg_of
from holdfast.reporting.templates import environment
from holdfast.utils.files import as_path, write_text

TEMPLATES = Path(__file__).parent / "templates"
NOT_SAID: dict[str, Any] = {  # by advice that was put together by hand
    "data": None, "model_sha256": None, "model_sha256_of": "", "retrained_from": None, "kinds_of_change": {},
    "accuracy": None, "people_sha256": None, "wishes": 0, "versions": {}, "files": {}, "command": None,
}  # fmt: skip
ROLES = {
    "rehearsal": "rehearse: the search asks them, and looks for plans that they accept too",
    "selection": "select: they decide which plans are given, or how cautious a promise must be",
    "audit": "audit: they chose nothing; all shares of invalidated plans in tables and on cards come from them",
}


def report(
    advice: Advice,
    path: str | Path,
    *,
    groups: Sequence[str] = (),
    title: str | None = None,
    made: date | None = None,
) -> Path:
    """Write one HTML page about advice: how well it holds and for whom, and a card for each person.

    The page needs nothing but a browser: it can be mailed, and it asks nobody for anything.

    Args:
        groups: columns of the people, such as ["sex", "age"]: how groups fare beside one another. Groups of fewer
            than 20 people are not shown
        title: in the place of "Advice for ... people"
        made: the date on the page, today if left out

    Examples:
        >>> import pandas as pd
        >>> from sklearn.linear_model import LogisticRegression
        >>> import holdfast as hf
        >>> table = pd.DataFrame({"income": range(10, 90, 2), "debt": [8, 2, 5, 9] * 10})
        >>> table["loan"] = ["yes" if row.income > 6 * row.debt else "no" for row in table.itertuples()]
        >>> model = LogisticRegression().fit(table[["income", "debt"]], table["loan"])
        >>> people = pd.DataFrame({"income": [20, 24], "debt": [9, 8]}, index=["Ada", "Bo"])
        >>> advice = hf.Explainer(model, table, label="loan", want="yes").explain(people)
        >>> page = hf.report(advice, "report.html", title="Loans in May")
        >>> "<title>Loans in May</title>" in page.read_text(encoding="utf-8")
        True
    """
    path = as_path(path, "a path to write the report to, such as 'report.html'")
    return write_text(path, report_text(advice, groups=groups, title=title, made=made))


def report_text(
    advice: Advice, *, groups: Sequence[str] = (), title: str | None = None, made: date | None = None
) -> str:
    """The page that `report` writes."""
    _check(advice, title, made)
    compared, by_cost = groupings(advice, groups), cost_groups(advice)
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    return (
        environment(TEMPLATES)
        .get_template("report.html")
        .render(
            title=title or advice.view.title,
            made=(made or date.today()).isoformat(),
            advice=advice,
            view=advice.view,
            decided=NOT_SAID | dict(advice.decided),
            roles=ROLES,
            statuses=WORDS,
            held_as_asked=held_as_asked(advice),
            costs=cost_ends(advice),
            groupings=compared,
            fewest_people=FEWEST_PEOPLE,
            reasons=reasons(advice),
            may_change=may_change,
            reachable_values=reachable_values,
            cost_of_change=cost_of_change,
            figures=_figures(advice),
            cost_groups=by_cost,
            holding=holding(advice),
            comparing=comparing(compared),
            dearer=dearer(by_cost),
            people=Markup(as_json(cards(advice, compared))),  # has no character that HTML reads
            style=Markup((TEMPLATES / "report.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),  # for the page's policy
        )
    )


def _check(advice: Any, title: Any, made: Any) -> None:
    if not isinstance(advice, Advice):
        raise TypeError(f"a report is made of Advice, got {type(advice).__name__}; explainer.explain(people) gives one")
    if title is not None and not isinstance(title, str):
        raise TypeError(f"title is {title!r}; give text, or leave it out")
    if made is not None and not isinstance(made, date):
        raise TypeError(
            f"made is {made!r}; give a date, such as datetime.date(2026, 11, 16), or leave it out for today"
        )


def _figures(advice: Advice) -> dict[str, Markup | None]:
    """What is worth a picture; None where there is nothing to draw."""
    promise, cost, promised = advice.promise, None, None
    if cost_groups(advice):
        cost = Markup(svg_of(advice, title="Cost against invalidation", name="figure-cost"))
    if promise is not None and promise.steps:
        promised = Markup(svg_of(promise, title="Cost against what can be promised", name="figure-promise"))
    return {"cost": cost, "promise": promised}
