"""Advice as a person reads it on a terminal: who has a plan, how well plans hold, and the first few people."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.explaining.advice import ALREADY, GIVEN, NOT_DURABLE, NOTHING, Advice
from holdfast.utils.messages import printable

SHOWN = 3  # people whose advice is shown in full
WORDS = {
    GIVEN: "with a plan",
    NOT_DURABLE: "without a plan that holds as asked; the best there is: not_durable.csv",
    ALREADY: "with the class already",
    NOTHING: "without any plan; advice.csv says why",
}


def advice_text(advice: Advice, report: Path) -> Group:
    """``report`` is where the report of it was written."""
    parts: list[RenderableType] = [Text(f"Advice for {len(advice)} people", style="bold"), *_counts(advice)]
    parts.append(Text(f"Method: {advice.decided['method']}. {_model(advice)}\n"))
    for warning in advice.decided.get("warnings", ()):
        parts.append(Text(f"{warning}\n", style="yellow"))
    if advice.promise is not None:
        parts.append(Text(f"{advice.promise.statement}\n"))
    parts.append(_holding(advice))
    chosen = [label for label, status in advice.status.items() if status == GIVEN][:SHOWN]
    parts += [Text(f"{advice.of(label)}\n") for label in chosen]
    parts.append(Text(f"The report, for a browser: {printable(str(report))}\n"))
    return Group(*parts)


def _counts(advice: Advice) -> list[Text]:
    counts = advice.status.value_counts()
    lines = [Text(f"  {counts.get(name, 0):>5}  {words}") for name, words in WORDS.items() if counts.get(name, 0)]
    problems = len(advice.problems)
    return [*lines, *([Text(f"  {problems:>5}  rows to look at: problems.csv")] if problems else []), Text()]


def _model(advice: Advice) -> str:
    if advice.decided["model_is_ours"]:
        return "The model is a network that holdfast trained, not one of yours."
    return ""


def _holding(advice: Advice) -> RenderableType:
    """How many of the plans retrained models invalidate, by kind of change."""
    audited = advice.summary()["audited"]
    if not len(advice.given):
        return Text("No plan is given.\n")
    if not audited:
        return Text(
            "There are no retrained models, so nobody knows whether the plans hold: see --retrain, --retrained.\n"
        )
    title = "Invalidated by retrained models that chose nothing"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("change", overflow="fold")
    for name in ("models", "rate %", "at most %"):
        table.add_column(name, justify="right")
    for one in audited:
        rate, most = (f"{100 * one[name]:.1f}" for name in ("invalidated", "at_most"))
        table.add_row(Text(one["kind"]), str(one["models"]), rate, most)
    return table
