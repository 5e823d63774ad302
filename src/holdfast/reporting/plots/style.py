"""What all figures share: colours, markers, settings, and how one is saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILLION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#777777"
COLOURS, MARKERS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, BLACK, SKY, GREY), "os^DvPX*"
LOOKS = tuple((COLOURS[n % 8], MARKERS[(n + 3 * (n // 8)) % 8]) for n in range(24))  # no two the same
STARTS = ("min-l1-art", "min-l2-art", "pgd", "prototype-alibi", "latent", "min-l1", "min-l2", "margin")
WIDTH = 7.2  # inches: the width of a page's text

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "svg.hashsalt": "holdfast",  # or its ids are drawn anew each time
}


@contextmanager
def style() -> Iterator[None]:
    """Our settings and else matplotlib's own, whatever the caller has set, who has it back afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def look_of_each(known: Sequence[str], names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A colour and a shape for each name. Known ones come first and look the same in every figure."""
    given = dict.fromkeys(names)
    fixed = {name: look for name, look in zip(known, LOOKS, strict=False) if name in given}
    others = [name for name in given if name not in fixed]
    free = [look for look in LOOKS if look not in fixed.values()]
    return fixed | dict(zip(others, cycle(free), strict=False))


def whiskers(rate: Any, low: Any, high: Any) -> Floats:
    """From each rate down to its low and up to its high, in percent: (2, n)."""
    reach = [np.atleast_1d(rate) - np.atleast_1d(low), np.atleast_1d(high) - np.atleast_1d(rate)]
    return np.maximum(100 * np.stack(reach).astype(np.float64), 0.0)
