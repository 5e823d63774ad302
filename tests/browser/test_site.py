"""The site: it builds strictly and offline, and its pages are right in a browser, on a desktop and on a phone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from browsing import PATIENCE, PHONE, WIDE, settle, sideways, violations, watched
from commands import HANG

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
# What a page loads when it opens. A link that a reader may follow is no such thing.
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]*?src=[\"']?((?:https?:)?//[^\"' >]+)|<link[^>]*?href=[\"']?(https?://[^\"' >]+)"
)
IMPORTED = re.compile(r"(?:url\([\"']?|@import\s+[\"'])(https?://[^\"')]+)")
SAMPLE = ("index", "howto/letter", "reference/search", "notebooks/bank", "results", "reference/command_line")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    here = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    made = subprocess.run(command, cwd=ROOT, env=here, capture_output=True, text=True, timeout=HANG)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    """The site as a server gives it, on this machine alone."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def tab(browser) -> Iterator[Callable[..., Page]]:
    """``tab(width=PHONE, scheme="dark")`` is an empty page."""
    contexts = []

    def opened(width: int = WIDE, scheme: str = "light") -> Page:
        viewport = {"width": width, "height": 800}
        contexts.append(browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce"))
        contexts[-1].set_default_timeout(PATIENCE)
        return contexts[-1].new_page()

    yield opened
    for context in contexts:
        context.close()


def test_every_page_of_the_repository_is_a_page_of_the_site(site):
    pages = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    pages = {page for page in pages if "template" not in page.name}
    pages |= {Path(name) for name in ("changelog.html", "contribute.html", "examples.html")}
    assert not [page for page in sorted(pages) if not (site / page).is_file()]


def test_nothing_is_loaded_from_elsewhere(site):
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        found = LOADED.findall(text) if path.suffix == ".html" else IMPORTED.findall(text)
        assert not found, f"{path.relative_to(site)} loads {found}"


def test_every_page_fits_a_desktop_and_a_phone_and_causes_no_trouble(site, address, tab):
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 50
    for width in (WIDE, PHONE):
        page = tab(width)
        trouble = watched(page, address)
        for name in pages:
            page.goto(address + name, wait_until="load")
            settle(page)
            assert trouble == [], f"{name} at {width} pixels"
            assert sideways(page) == 0, f"{name} is wider than {width} pixels"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", SAMPLE)
def test_text_can_be_read(address, tab, name, scheme):
    """By what axe-core says of contrast, of links in a text, and of pictures without words."""
    page = tab(scheme=scheme)
    page.goto(f"{address}{name}.html", wait_until="load")
    assert (
        violations(page, "color-contrast", "link-in-text-block", "image-alt", "document-title", "html-has-lang") == []
    )


def test_search_finds_a_page(address, tab):
    page = tab()
    trouble = watched(page, address)
    page.goto(address, wait_until="load")
    # The page reads its index in a worker, and says when it is ready. It listens to keys, not to a filled field.
    page.locator(".md-search-result__meta", has_text="Type to start searching").wait_for(state="attached")
    page.keyboard.press("/")
    page.locator("[data-md-component=search-query]").press_sequentially("promise")
    page.locator(".md-search-result__item").first.wait_for(state="attached")
    assert page.locator(".md-search-result__item a").first.get_attribute("href").startswith(address)
    assert trouble == []
