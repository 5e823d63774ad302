"""What holds for every document: links lead somewhere, and one thing has one name."""

from __future__ import annotations

import re
from functools import reduce

import pytest
from pages import FENCE, PAGES, ROOT

import holdfast as hf
from holdfast.studies.study import Study

# Words of earlier versions -> the term of the glossary.
REPLACED = {
    r"undone|undoes|undo\b": "invalidated, invalidates",
    r"end[ _]to[ _]end": "found and held",
    r"brought|\bbring\b": "imported, external",
    r"as (they|it) (are|is)\b": "without any counterfactual; the row itself",
    r"tells beforehand": "what predicts invalidation",
    r"a line a\b|\ba row a\b": "one row per",
    r"networks? of ours|survives?\b": "retrained models; holds",
}


def anchors(text: str) -> set[str]:
    """The parts of a page that a link can lead to, named as GitHub does."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere():
    for name, text in PAGES.items():
        for link, part in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
            page = ((ROOT / name).parent / link) if link else ROOT / name
            assert page.exists(), f"{name} links to {link}"
            if part:
                assert part in anchors(page.read_text(encoding="utf-8")), f"{name} links to {link}#{part}"


def test_every_page_is_in_the_index():
    index = PAGES["docs/README.md"]
    for name in PAGES:
        if name.startswith("docs/") and name != "docs/README.md":
            assert f"({name.removeprefix('docs/')})" in index, f"docs/README.md does not name {name}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_uses_the_terms_of_the_glossary(name):
    for words, instead in REPLACED.items():
        found = re.findall(f".*(?:{words}).*", PAGES[name])
        assert not found, f"{name} says {found[0]!r}; say: {instead}"


def test_the_glossary_names_what_there_is():
    """Names that begin with hf or holdfast, and attributes of public classes."""
    named = re.findall(r"`((?:hf|holdfast)(?:\.\w+)+|[A-Z]\w+\.\w+)", PAGES["docs/glossary.md"])
    assert len(named) > 50
    for name in named:
        first, *rest = name.split(".")
        if first == "holdfast":
            module = __import__(".".join([first, *rest[:-1]]), fromlist=rest[-1:])
            assert hasattr(module, rest[-1]), name
        elif first == "hf":
            reduce(getattr, rest, hf)
        else:
            owner = Study if first == "Study" else getattr(hf, first)
            fields = getattr(owner, "__dataclass_fields__", {})
            assert hasattr(owner, rest[0]) or rest[0] in fields, name
