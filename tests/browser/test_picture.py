"""The picture of the front page: a card of a real report, photographed in a real browser."""

from __future__ import annotations

import struct
from pathlib import Path

import holdfast as hf
import make_picture
from browsing import executable

ROOT = Path(__file__).parents[2]


def test_a_card_of_the_report_is_photographed(loan_advice, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_BROWSER", executable())
    report, picture = tmp_path / "report.html", tmp_path / "card.png"
    hf.report(loan_advice, report)
    make_picture.photograph(report, picture)
    assert "hf.report(" in make_picture.front_page()
    assert width(picture) > 1.4 * 0.8 * make_picture.WIDTH


def test_the_stored_picture_is_a_card_of_that_width():
    assert width(ROOT / "docs" / "figures" / "card.png") > 1400


def width(picture: Path) -> int:
    """The width of a PNG, which its header has after 16 bytes."""
    contents = picture.read_bytes()
    assert contents.startswith(b"\x89PNG")
    return struct.unpack(">I", contents[16:20])[0]
