"""Advice as a person reads it on a terminal: who has a plan, how well plans hold, and the first few people."""

from __future__ import annotations

from pathlib import Path

from rich.console import Group
from rich.text import Text

from holdfast.explaining.advice import Advice
from holdfast.explaining.person import GIVEN
from holdfast.utils.messages import printable

MOST_PEOPLE = 3  # whose advice is shown in full


def advice_text(advice: Advice, report: Path) -> Group:
    """``report`` is where the report of it was written."""
    view = advice.view
    people = [person for person in view.people if person.status == GIVEN]
    return Group(
        Text(view.title, style="bold"),
        *(Text(f"  {words}") for words in view.counted()),
        Text(),
        *(Text(f"{line}\n") for line in view.sentences()),
        *(Text(f"{warning}\n", style="yellow") for warning in view.warnings),
        *(Text(f"{person}\n") for person in people[:MOST_PEOPLE]),
        Text(f"The report, for a browser: {printable(str(report))}\n"),
    )
