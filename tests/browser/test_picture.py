"""The picture of the front page: a card of a real report, photographed in a real browser."""

from __future__ import annotations

import importlib.util
import struct
from pathlib import Path

import holdfast as hf
from browsing import executable

ROOT = Path(__file__).parents[2]


def test_a_card_of_the_report_is_photographed(loan_advice, tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_BROWSER", executable())
    spec = importlib.util.spec_from_file_location("make_picture", ROOT / "docs" / "make_picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    report, picture = tmp_path / "report.html", tmp_path / "card.png"
    hf.report(loan_advice, report)
    module.photograph(report, picture)
    assert "hf.report(" in module.front_page()
    assert widths(picture) > 1.4 * 0.8 * module.WIDTH


def test_the_stored_picture_is_a_card_of_that_width():
    assert widths(ROOT / "docs" / "figures" / "card.png") > 1400


def widths(picture: Path) -> int:
    """The width of a PNG, which its header has after 16 bytes."""
    contents = picture.read_bytes()
    assert contents.startswith(b"\x89PNG")
    return struct.unpack(">I", contents[16:20])[0]
