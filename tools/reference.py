"""Count the public names that the reference shows without a runnable example or with a paper that has no link.

    python tools/reference.py

A public name is one that a page of docs/reference shows (`::: holdfast.SNS`). Its docstring has an "Examples:" section
with lines that begin with >>>, which tests/docs/test_docstrings.py runs. Where the name comes from a paper, a last
paragraph "Paper: ..." links to it.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import griffe

ROOT = Path(__file__).parents[1]
SHOWN = re.compile(r"^::: (holdfast[\w.]*)$", flags=re.MULTILINE)
LINK = re.compile(r"^Paper: .*\]\(https://[^)]+\)", flags=re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Name:
    """A public name: where it is, and what its docstring says."""

    path: str
    text: str

    @property
    def example(self) -> str:
        """Its Examples section as Python's doctest reads it; empty where there is none."""
        _, found, examples = self.text.partition("\nExamples:\n")
        return examples if found and ">>>" in examples else ""

    @property
    def lacks_link(self) -> bool:
        """Whether it names a paper and does not link to it."""
        return "\nPaper:" in self.text and not LINK.search(self.text)


@cache
def package() -> griffe.Module:
    module = griffe.load("holdfast", search_paths=[str(ROOT / "src")])
    assert isinstance(module, griffe.Module)
    return module


def shown() -> list[str]:
    """Every name that a page of the reference shows, in the order of the pages."""
    pages = sorted((ROOT / "docs" / "reference").glob("*.md"))
    return [path for page in pages for path in SHOWN.findall(page.read_text(encoding="utf-8"))]


def names() -> list[Name]:
    return [name_of(path) for path in shown()]


def name_of(path: str) -> Name:
    held = package()[path.removeprefix("holdfast.")]
    target = held.final_target if held.is_alias else held
    return Name(path, target.docstring.value if target.docstring else "")


def main() -> None:
    found = names()
    without = {
        "example": [name.path for name in found if not name.example],
        "link": [name.path for name in found if name.lacks_link],
    }
    print(f"{len(found)} public names in the reference")
    for what, missing in without.items():
        print(f"without {what}: {len(missing)}", *missing, sep="\n  ")
    sys.exit(any(without.values()))


if __name__ == "__main__":
    main()
