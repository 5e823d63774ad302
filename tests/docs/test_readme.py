"""What holds for every document: links lead somewhere, and one thing has one name."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from pages import FENCE, PAGES, ROOT

import holdfast as hf
from holdfast.external.judging import PROBLEMS
from reference import shown

HOMES = {path.rpartition(".")[2]: path for path in shown()}  # names of the reference -> where they are

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
    """The parts of a page that a link can lead to: headings, named as GitHub does, and names of the reference."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), flags=re.MULTILINE)
    names = re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(names)


def test_links_lead_somewhere():
    for name, text in PAGES.items():
        for link, part in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
            page = ((ROOT / name).parent / link) if link else ROOT / name
            assert page.exists(), f"{name} links to {link}"
            if part:
                assert part in anchors(page.read_text(encoding="utf-8")), f"{name} links to {link}#{part}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_uses_the_terms_of_the_glossary(name):
    text = " ".join(PAGES[name].split())
    for words, instead in REPLACED.items():
        found = re.findall(f".{{,40}}(?:{words}).{{,40}}", text)
        assert not found, f"{name} says {found[0]!r}; say: {instead}"


def test_names_in_the_text_exist():
    """Names that begin with hf or holdfast."""
    for page, text in PAGES.items():
        for name in re.findall(r"`((?:hf|holdfast)(?:\.\w+)+)", FENCE.sub("", text)):
            assert exists(name), f"{page} names {name}"


def test_attributes_in_the_glossary_exist():
    named = re.findall(r"`([A-Z]\w+)\.(\w+)", PAGES["docs/glossary.md"])
    assert len(named) > 30
    for owner, attribute in named:
        home, _, name = HOMES[owner].rpartition(".")
        value = getattr(import_module(home), name)
        known = {*dir(value), *getattr(value, "__dataclass_fields__", {})}
        assert attribute in known, f"docs/glossary.md names {owner}.{attribute}"


def test_the_page_on_imports_lists_every_problem():
    listed = re.findall(
        r"^\| ([a-z][\w ]+) \|", PAGES["docs/howto/external.md"].partition("| problem |")[2], flags=re.MULTILINE
    )
    assert tuple(listed) == PROBLEMS


def exists(name: str) -> bool:
    """Whether a module or a public name is called so."""
    value, (_, *rest) = hf, name.split(".")
    for place, part in enumerate(rest):
        if hasattr(value, part):
            value = getattr(value, part)
        else:
            try:
                value = import_module(".".join(["holdfast", *rest[: place + 1]]))
            except ModuleNotFoundError:
                return False
    return True
