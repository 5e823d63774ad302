"""Make docs/figures/card.png, the picture of the front page: run its first block, and photograph a card of its report.

    python docs/make_picture.py

It needs a browser: `make browser`.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
WIDTH, SHARP = 1180, 1.5  # pixels of the page; of the picture for each of the page

sys.path.insert(0, str(DOCS.parent / "tools"))


def front_page() -> str:
    """The first block of the front page."""
    return BLOCK.findall((DOCS.parent / "README.md").read_text(encoding="utf-8"))[0]


def photograph(report: Path, picture: Path) -> None:
    """The first card with a plan, opened."""
    from playwright.sync_api import sync_playwright

    import browsers

    program = browsers.find()
    if program is None:
        raise SystemExit("there is no browser here: run `make browser`")
    with sync_playwright() as playwright:
        browser = browsers.launch(playwright, program)
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, device_scale_factor=SHARP)
        page.goto(report.as_uri())
        card = page.locator("li.card:has(.badge.plan)").first
        card.locator("summary").first.click()
        card.screenshot(path=picture)
        browser.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile(front_page(), "README.md", "exec"), {"__name__": "front_page"})
        photograph(Path(folder, "report.html"), DOCS / "figures" / "card.png")


if __name__ == "__main__":
    main()
