"""A figure as part of an HTML page: in the page's colours and font, with words for people who cannot see it."""

from __future__ import annotations

import re
import warnings
from html import escape
from io import StringIO

import matplotlib
from matplotlib.figure import Figure

from holdfast.reporting.plots.style import COLOURS, style
from holdfast.utils.messages import printable

INK = "#000000"  # black is what words and axes are drawn in; on the page it is the colour of the page's own words
VARIABLES = {
    colour.lower(): f"var(--series-{number}, {colour.lower()})"
    for number, colour in enumerate((one for one in COLOURS if one != INK), start=1)
}
PIXELS = 4 / 3  # in a point: at its own size, a figure has letters as large as they were asked for

_ROOT = re.compile(r"<svg\b[^>]*?viewBox=\"([\d. -]+)\"[^>]*>", re.DOTALL)
_DROPPED = re.compile(r"<metadata>.*?</metadata>|<style\b[^>]*>.*?</style>|<!--.*?-->", re.DOTALL)
_FONT = re.compile(r"(?<![\w-])font-family: [^;\"]*(; )?")
_SHORTHAND = re.compile(r"(?<![\w-])font: ((?:[a-z0-9]+ )*)([\d.]+px) [^;\"]*")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b(?=[;\"])")
_IDS = re.compile(r"(\bid=\"|href=\"#|url\(#)")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_svg(figure: Figure, *, title: str, description: str, name: str) -> str:
    """The figure as one ``<svg>`` element, the same bytes for the same figure.

    Black becomes ``currentColor`` and the series' colours ``var(--series-1, ...)``, so a page can set them by theme;
    the background is transparent and words are text in the page's font. ``title`` and ``description`` are read out in
    the place of the picture. Every id begins with ``name``, which must differ between the figures of a page.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> from holdfast.reporting.plots.svg import as_svg
        >>> figure = Figure(figsize=(3, 2))
        >>> _ = figure.subplots().plot([1, 2], [0.3, 0.1])
        >>> text = as_svg(figure, title="Cost", description="The rate falls as cost grows.", name="cost")
        >>> text.startswith("<svg"), "currentColor" in text
        (True, True)

    Words in the place of a picture are what [WCAG 2.2, criterion 1.1.1](https://www.w3.org/TR/WCAG22/#non-text-content)
    asks for.
    """
    if not re.fullmatch(r"[A-Za-z][\w-]*", name, re.ASCII):
        raise ValueError(f"name must be a letter, then letters, digits, - or _, such as 'cost'; got {name!r}")
    text = _DROPPED.sub("", _written(figure))
    root = _ROOT.search(text)
    if root is None:
        raise RuntimeError("matplotlib wrote an SVG without a viewBox; this version of it is not known to work")
    inside = _NO_XML.sub("\ufffd", text[root.end() :].strip())
    inside = _IDS.sub(rf"\g<1>{name}-", inside)
    inside = _COLOUR.sub(lambda found: _themed(found[0].lower()), inside)
    inside = _SHORTHAND.sub(r"font-size: \2", _FONT.sub("", inside))
    return f"{_opening(name, root[1])}\n{_words(name, title, description)}\n{inside}\n"


def _written(figure: Figure) -> str:
    """What matplotlib writes, with words as text."""
    file = StringIO()
    with style(), warnings.catch_warnings():
        # The page's font draws the words, whatever letters this one lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        matplotlib.rcParams["svg.fonttype"] = "none"
        for _ in range(2):
            figure.draw_without_rendering()
        figure.set_layout_engine("none")  # else it moves a little at each drawing
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return file.getvalue()


def _themed(colour: str) -> str:
    return "currentColor" if colour == INK else VARIABLES.get(colour, colour)


def _opening(name: str, box: str) -> str:
    """What matplotlib gives no fill is black, and a style for the whole page joined its lines: both are said here."""
    width = PIXELS * float(box.split()[2])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}" '
        f'width="100%" style="max-width: {width:.0f}px; height: auto" role="img" fill="currentColor" '
        f'stroke-linejoin="round" stroke-linecap="butt" aria-labelledby="{name}-title {name}-desc">'
    )


def _words(name: str, title: str, description: str) -> str:
    tags = {"title": title, "desc": description}
    return "".join(f'<{tag} id="{name}-{tag}">{_shown(words)}</{tag}>' for tag, words in tags.items())


def _shown(words: str) -> str:
    return _NO_XML.sub("\ufffd", escape(printable(words)))
