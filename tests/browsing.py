"""A real browser for tests of pages. Every page is guarded: it says nothing on the console and asks for no other file.

`visit(file)` opens a page as a reader does, from the disk and without a network. A test is skipped where there is no
browser, unless HOLDFAST_REQUIRE_BROWSER=1 makes that a failure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import browsers
import holdfast as hf

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 60_000  # milliseconds; it only ends a test that hangs, and no result depends on it
WIDE, PHONE = 1280, 360  # pixels
Visit = Callable[..., "Page"]


def executable() -> str:
    found = browsers.find()
    if found is None:
        reason = f"there is no browser here: run `make browser`, or name one with {browsers.VARIABLE}"
        if os.environ.get("HOLDFAST_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a file. It ends with them: while it is open, this process runs an event loop, and
    code of other tests that starts one of its own would be refused."""
    program = executable()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = browsers.launch(playwright, program, timeout=PATIENCE)
        yield own
        own.close()


# ---- the guard ----


def watched(page: Page, home: str) -> list[str]:
    """Whatever a page does that it should not, as it happens.

    It may ask for its ``home``, and for what is in it where that is a folder: ends in /.
    """
    trouble: list[str] = []

    def said(message: Any) -> None:
        if message.type in ("error", "warning"):  # the content security policy reports here what it blocks
            trouble.append(f"console {message.type}: {message.text}")

    def asked(request: Any) -> None:
        address = request.url.partition("#")[0]
        own = address.startswith(home) if home.endswith("/") else address == home
        if not own and not address.startswith(("data:", "blob:")):
            trouble.append(f"request: {address}")

    def dialog(one: Any) -> None:
        trouble.append(f"dialog: {one.message}")
        one.dismiss()

    page.on("console", said)
    page.on("request", asked)
    page.on("dialog", dialog)
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on("popup", lambda other: trouble.append(f"popup: {other.url}"))
    return trouble


@pytest.fixture
def unguarded(browser: Browser) -> Iterator[Callable[..., tuple[Page, list[str]]]]:
    """``unguarded(file)`` opens a page; what it does that it should not is listed beside it."""
    contexts = []

    def opened(file: Path, at: str = "", width: int = WIDE, scheme: str = "light") -> tuple[Page, list[str]]:
        context = browser.new_context(
            offline=True, viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        trouble = watched(page, file.as_uri())
        page.goto(file.as_uri() + at, wait_until="load")
        return page, trouble

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def visit(unguarded: Callable[..., tuple[Page, list[str]]]) -> Iterator[Visit]:
    """``visit(file, at="#person-3", width=PHONE, scheme="dark")`` opens a page that must cause no trouble."""
    watches = []

    def opened(*words: Any, **settings: Any) -> Page:
        page, trouble = unguarded(*words, **settings)
        watches.append((page, trouble))
        return page

    yield opened
    for page, trouble in watches:
        settle(page)
        assert trouble == []


def settle(page: Page) -> None:
    """Return when all that the page has begun by now was reported: an answer of the page comes after it."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))")


# ---- what is asked of a page ----


def violations(page: Page, *rules: str) -> list[str]:
    """What axe-core has against the page as it is now, by all its rules or by some: one line for each element."""
    from axe_playwright_python.base import AXE_FILE_PATH

    page.evaluate(AXE_FILE_PATH.read_text(encoding="utf-8"))
    options = {"resultTypes": ["violations"]} | ({"runOnly": list(rules)} if rules else {})
    answer = page.evaluate("options => axe.run(document, options)", options)
    assert answer["passes"], "axe-core found nothing to look at"
    return [
        f"{rule['id']}: {rule['help']}: {node['target']} {node['html'][:200]} {node.get('failureSummary')}"
        for rule in answer["violations"]
        for node in rule["nodes"]
    ]


def sideways(page: Page) -> int:
    """How many pixels of the page a reader has to scroll sideways to see."""
    pixels: int = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return pixels


def printed_pages(page: Page) -> int:
    """How many sheets the page prints on: of the size that it asks for, or A4."""
    paper = page.pdf(format="A4", prefer_css_page_size=True, print_background=True)
    return len(re.findall(rb"/Type\s*/Page\b", paper))


# ---- what is written into pages ----


@pytest.fixture(scope="session")
def loan_advice() -> hf.Advice:
    """Advice for 60 people who are in no order: 14 are refused, and every status is there."""
    executable()  # first: without a browser nobody reads it, and it takes a while
    import pandas as pd

    from loans import FEATURES, loans, model, schema, train_rows

    own = schema()
    stuck = [replace(one, mutable=one.name in ("savings", "housing")) for one in own.features]
    others = loans().iloc[300:].drop(columns="approved")
    refused = model().predict(others[FEATURES]) == "no"
    people = pd.concat([others[refused].iloc[:14], others[~refused].iloc[:46]]).sample(frac=1, random_state=0)
    explainer = hf.Explainer(
        model(), train_rows(), want="yes", schema=replace(own, features=tuple(stuck)),
        retrain=hf.changes.bootstrap(20), sizes=hf.Sizes(rehearsal=0, selection=4, audit=16), workers=1,
    )  # fmt: skip
    advice = explainer.explain(people.set_index("id"), hold=0.5, plans=2)  # so little that some models do not agree
    assert len(set(advice.given.held)) > 3
    assert set(advice.status) == {"plan", "not durable", "has the class", "nothing found"}
    return advice
