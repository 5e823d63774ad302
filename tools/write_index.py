"""Write every public name and what it is into docs/reference/index.md, read off the pages and the docstrings.

    python tools/write_index.py

The words above the list are written by hand, and stay.
"""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.utils.files import write_text
from reference import ROOT, SHOWN, Name, name_of

REFERENCE = ROOT / "docs" / "reference"
INDEX = REFERENCE / "index.md"
BEGIN = "<!-- from here on written by tools/write_index.py -->\n"
# In the order of mkdocs.yml.
TOPICS = ("tables", "models", "retraining", "explaining", "search", "auditing", "promises", "reporting", "theory")


def listing() -> str:
    """Every name by topic, with the first sentence of its docstring."""
    return "\n".join(_topic(REFERENCE / f"{topic}.md") for topic in TOPICS)


def _topic(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    title = text.partition("\n")[0].removeprefix("# ")
    lines = [_line(name_of(path)) for path in SHOWN.findall(text)]
    return "\n".join([f"## [{title}]({page.name})", "", *lines, ""])


def _line(name: Name) -> str:
    return f"- `{name.path.removeprefix('holdfast.')}`: {first_sentence(name.text)}"


def first_sentence(text: str) -> str:
    first = " ".join(text.partition("\n\n")[0].split())
    found = re.match(r"(.+?)(?:\.(?= [A-Z`]|$)|$)", first)
    return found[1].rstrip(":") if found else "not described yet"


def page() -> str:
    """The page with today's list."""
    above, found, _ = INDEX.read_text(encoding="utf-8").partition(BEGIN)
    if not found:
        raise ValueError(f"{INDEX} has no line {BEGIN!r}, below which the names are listed")
    return f"{above}{BEGIN}\n{listing()}"


if __name__ == "__main__":
    print(write_text(INDEX, page()))
