"""What mkdocs needs to know of this repository: pages that live outside docs/, and links that lead to them.

mkdocs.yml names this file under `hooks`. CHANGELOG.md, CONTRIBUTING.md and the examples stay where readers of the
repository look for them, and are pages of the site as well.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contribute.md",
    "examples/README.md": "examples.md",
    "README.md": "index.md",
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that live outside docs/."""
    for source, page in OUTSIDE.items():
        if files.get_file_from_path(page) is None:
            files.append(File.generated(config, page, content=outside(source)))
    return files


def outside(source: str) -> str:
    """The text of such a page."""
    text = (ROOT / source).read_text(encoding="utf-8")
    return text + examples() if source.startswith("examples/") else text


def examples() -> str:
    """Each example in full, under a heading of its own."""
    parts = [f"\n## {path.name}\n\n```python\n{path.read_text(encoding='utf-8')}```\n" for path in example_files()]
    return "".join(parts)


def example_files() -> list[Path]:
    return sorted((ROOT / "examples").glob("*.py"))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links between files of the repository as links between pages of the site."""
    # Room for code and tables; in front matter, other readers of the file would see this as a table.
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    elif page.parent is None:
        page.meta["hide"] = ["navigation"]  # the page is alone in its tab
    here = PurePosixPath(sources().get(page.file.src_uri, f"docs/{page.file.src_uri}")).parent
    return LINK.sub(lambda link: site_link(here, link[1], page.file.src_uri), markdown)


def sources() -> dict[str, str]:
    """Page of the site -> the file outside docs/ that it shows."""
    return {page: source for source, page in OUTSIDE.items() if page != "index.md"}


def site_link(here: PurePosixPath, link: str, page: str) -> str:
    """A link as the site needs it: the place of a page of docs/, or of one that lives outside."""
    target = os.path.normpath(here / link)
    known = OUTSIDE.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
    if known is None:
        return link
    return os.path.relpath(known, PurePosixPath(page).parent).replace(os.sep, "/")
