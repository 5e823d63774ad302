"""How pages and letters are made from templates: pages are escaped, and a value that is missing is an error."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from holdfast.utils.messages import printable


def environment(*folders: Path) -> Environment:
    """Templates of these folders, the first that has one. In Jinja2's sandbox: whatever a bank's own template says, it
    can only read what it is given."""
    made = ImmutableSandboxedEnvironment(
        loader=FileSystemLoader(folders),
        autoescape=lambda name: name is None or name.endswith(".html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    made.filters |= {"percent": percent, "exact_percent": exact_percent, "points": points}
    return made


def percent(share: float | None) -> str:
    """A share as people read it; a dash where there is none."""
    return "–" if share is None or share != share else f"{share:.1%}"


def exact_percent(share: float) -> str:
    """A share that somebody chose, with no more digits than they gave."""
    return f"{100 * share:.6g}%"


def points(difference: float) -> str:
    """The difference of two shares in percentage points, with its sign."""
    return f"{100 * difference:+.1f}".replace("-", "−")
