"""`holdfast plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.options import errors_as_sentences
from holdfast.utils.terminal import console


def plan(
    width: Annotated[float, typer.Option(help="How wide the interval of the rate may be, such as 0.05.")] = 0.05,
    rate: Annotated[float, typer.Option(help="The invalidation rate that you expect.")] = 0.1,
    spread: Annotated[
        float | None,
        typer.Option(help="How much retrained models differ (standard deviation); by default, the worst case."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the interval.")] = 0.95,
) -> None:
    """Say how many retrained models an audit needs."""
    with errors_as_sentences():
        from holdfast.auditing.intervals import members_needed

        needed = members_needed(width, rate, spread, confidence)
        case = "in the worst case" if spread is None else f"if models differ by {spread:g}"
        console().print(f"{needed} retrained models for an interval {width:g} wide around a rate of {rate:g}, {case}")
