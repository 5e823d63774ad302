"""What all plots share: ink, an axis in percent, a legend above, and a sentence in the place of nothing."""

from __future__ import annotations

import textwrap
from typing import Any

from matplotlib.axes import Axes

from holdfast.utils.messages import printable

MANY = 500  # single marks beyond so many would hide one another
FAINT = 0.5  # opacity of single marks behind a mean
LINE: dict[str, Any] = {"linewidth": 1.0, "linestyle": (0, (4, 3))}  # what was asked or promised: dashed
BESIDE = 34  # letters of a legend that leave room for a second column
ROOM = 0.04  # of the height below 0, so that a mark at 0 is whole


def ink(axes: Axes) -> Any:
    """The colour of the axes' own words, dark on a light style and light on a dark one."""
    return axes.xaxis.label.get_color()


def as_text(words: object) -> str:
    r"""Words as they are: matplotlib takes what stands between two dollars for mathematics, unless they are escaped."""
    return printable(str(words)).replace("$", r"\$")


def in_percent(axes: Axes, highest: float) -> None:
    """A vertical axis from 0 that shows the highest value, in percent, and at least up to 5.

    It never gets shorter: other axes may share it.
    """
    top = max(min(max(1.1 * highest, 5.0), 100 / (1 - ROOM)), axes.get_ylim()[1])
    axes.set_ylim(-ROOM * top, top)


def quiet_grid(axes: Axes, axis: Any = "both") -> None:
    axes.set_axisbelow(True)
    axes.grid(visible=True, axis=axis, color=ink(axes), alpha=0.15, linewidth=0.6, linestyle="-")
    axes.spines[["top", "right"]].set_visible(False)


def legend_above(axes: Axes, title: str | None = None) -> None:
    """Above the axes, where it hides nothing; in two columns where the words are short enough for the usual width."""
    _, words = axes.get_legend_handles_labels()
    columns = 1 if max(map(len, words), default=0) > BESIDE else 2
    legend = axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, borderaxespad=0.2, columnspacing=1.2,
        title=title, alignment="left",
    )  # fmt: skip
    legend.get_title().set_parse_math(False)


def say(axes: Axes, sentence: str) -> None:
    """A sentence in the place of a picture, where there is nothing to draw."""
    axes.set_axis_off()
    words = "\n".join(textwrap.wrap(printable(sentence), 64))
    axes.text(0.5, 0.5, words, ha="center", va="center", transform=axes.transAxes, parse_math=False)
