"""How pages and letters are made from templates: all is escaped, and a value that is missing is an error."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from holdfast.utils.messages import printable


def environment(folder: Path) -> Environment:
    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    made.filters |= {"percent": percent, "asked": asked, "points": points}
    return made


def percent(share: float | None) -> str:
    """A share as people read it; a dash where there is none."""
    return "–" if share is None or share != share else f"{share:.1%}"


def asked(share: float) -> str:
    """A share that somebody chose, with no more digits than they gave."""
    return f"{100 * share:.6g}%"


def points(difference: float) -> str:
    """The difference of two shares in percentage points, with its sign."""
    return f"{100 * difference:+.1f}".replace("-", "−")
