"""Write every command and its options into docs/reference/command_line.md, asked of the command line itself.

    python tools/write_commands.py

typer writes the list; here its blocks become such as our pages have, and what every command has (--help) is left out.
The words above the list are written by hand, and stay.
"""

from __future__ import annotations

import html
import re
import subprocess
import sys
from pathlib import Path

from holdfast.utils.files import write_text

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "command_line.md"
BEGIN = "<!-- from here on written by tools/write_commands.py -->\n"
EXAMPLE = re.compile(r"^(holdfast .+(?:\n  .+)*)$", flags=re.MULTILINE)  # a command in the words of --help
CHANGES: tuple[tuple[str, str], ...] = (
    (r"^\* `--help`: .*\n", ""),
    (r"^\*\*Commands\*\*:\n\n(\* .*\n)+\n", ""),  # their own sections follow
    (r"^\*\*Options\*\*:\n\n(?!\*)\n?", ""),  # of a command that has none
    (r"^# `(.+)`$", r"## `\1`"),
    (r"^(#+) `(.+)`$", r"#\1 \2"),
    (r"^\*\*Usage\*\*:\n\n```console\n\$ (.+)\n```$", r"```text\n\1\n```"),
)


def listing() -> str:
    """Every command with its options, as Markdown."""
    asked = [sys.executable, "-m", "typer", "holdfast.cli.app", "utils", "docs", "--name", "holdfast"]
    text = subprocess.run(asked, check=True, capture_output=True, encoding="utf-8").stdout
    text = EXAMPLE.sub(r"```text\n\1\n```", html.unescape(text))
    for pattern, instead in CHANGES:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return text.strip() + "\n"


def page() -> str:
    """The page with today's list."""
    above, found, _ = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    if not found:
        raise ValueError(f"{PAGE} has no line {BEGIN!r}, below which the commands are listed")
    return f"{above}{BEGIN}\n{listing()}"


if __name__ == "__main__":
    print(write_text(PAGE, page()))
