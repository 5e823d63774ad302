"""Figures of a page follow its theme, have words of their own, and do not get in each other's way."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ElementTree

import matplotlib
import pytest
from matplotlib.figure import Figure

from holdfast.reporting.plots.marks import legend_above, quiet_grid
from holdfast.reporting.plots.style import BLUE, VERMILLION, style
from holdfast.reporting.plots.svg import as_svg

WORDS = {"title": "Cost & <holding>", "description": "Dearer plans\x1b[31m hold better"}


def figure(words: str = "cost") -> Figure:
    with style():
        made = Figure(figsize=(5, 3), layout="constrained")
        axes = made.subplots()
        axes.plot([1, 2, 3], [2, 4, 8], "o-", color=BLUE, label="a long name for a short line that takes much room")
        axes.bar([1, 2], [3, 4], color=VERMILLION, label="bars")
        axes.fill_between([1, 2], [0, 0], [1, 1], color="black", alpha=0.3)
        axes.set_xlabel(words)
        quiet_grid(axes)
        legend_above(axes)
    return made


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def styles(svg: str) -> str:
    return "; ".join(re.findall(r'style="([^"]*)"', svg))


def test_it_is_one_element_that_a_page_can_hold():
    svg = as_svg(figure(), **WORDS, name="cost")
    assert svg.startswith("<svg ")
    assert svg.rstrip().endswith("</svg>")
    root = parsed(svg)
    assert root.get("width") == "100%"
    assert root.get("height") is None
    assert root.get("viewBox") == "0 0 360 216"
    for kept_out in ("<?xml", "<!DOCTYPE", "metadata", "<style", "matplotlib.org", "http://purl.org", "<script"):
        assert kept_out not in svg


def test_it_has_words_for_people_who_cannot_see_it():
    root = parsed(as_svg(figure(), **WORDS, name="cost"))
    told = {one.get("id"): one.text for one in root if one.tag.endswith(("title", "desc"))}
    assert root.get("role") == "img"
    assert root.get("aria-labelledby").split() == ["cost-title", "cost-desc"]
    assert told == {"cost-title": "Cost & <holding>", "cost-desc": r"Dearer plans\x1b[31m hold better"}


def test_the_same_figure_gives_the_same_bytes():
    one = figure()
    first = as_svg(one, **WORDS, name="cost")
    assert as_svg(one, **WORDS, name="cost") == first
    assert as_svg(figure(), **WORDS, name="cost") == first


def test_no_colour_is_fixed_but_those_that_a_page_can_set():
    svg = as_svg(figure(), **WORDS, name="cost")
    assert parsed(svg).get("fill") == "currentColor"  # what has no fill of its own
    used = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", styles(svg)))
    assert used == {"none", "currentColor", "var(--series-1, #0072b2)", "var(--series-2, #d55e00)"}
    assert not re.search(r"(fill|stroke)=\"#|#000|black|#fff|white", svg)


def test_words_are_text_in_the_font_of_the_page():
    svg = as_svg(figure("income of the family"), **WORDS, name="cost")
    texts = [one.text for one in parsed(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert "income of the family" in texts
    assert "font-family" not in svg
    assert not re.search(r"font: |DejaVu", svg)
    assert "font-size: 9px" in svg


def test_letters_that_our_font_lacks_are_left_to_the_page():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        svg = as_svg(figure("収入 \uffff"), **WORDS, name="cost")
    assert "収入 \ufffd" in svg


def test_two_figures_of_a_page_share_no_id():
    ids = [set(re.findall(r'\bid="([^"]*)"', as_svg(figure(), **WORDS, name=name))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_what_is_referred_to_is_there():
    svg = as_svg(figure(), **WORDS, name="cost")
    ids = re.findall(r'\bid="([^"]*)"', svg)
    referred = set(re.findall(r'href="#([^"]*)"|url\(#([^)]*)\)', svg))
    assert referred
    assert len(ids) == len(set(ids))
    assert {one or other for one, other in referred} <= set(ids)


def test_nothing_is_left_changed():
    before = dict(matplotlib.rcParams)
    as_svg(figure(), **WORDS, name="cost")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", ["", "1st", 'a"b', "a b", "ä"])
def test_a_name_that_is_no_id_is_refused(name):
    with pytest.raises(ValueError, match="such as 'cost'"):
        as_svg(figure(), **WORDS, name=name)
