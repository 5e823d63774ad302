"""The page of files names every kind of file that has a version, with the number that the code has."""

from __future__ import annotations

import re

from pages import PAGES, ROOT

TEXT = PAGES["docs/reference/files.md"]
KIND = re.compile(r'Kind\("(\w+)", "[^"]+", format=(\d+)')


def test_the_page_has_the_format_number_of_every_kind_of_file():
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    written = {kind: number for source in sources for kind, number in KIND.findall(source)}
    listed = dict(re.findall(r"^- `(\w+)`, format (\d+): ", TEXT, flags=re.MULTILINE))
    assert len(written) > 5
    assert listed == written
