"""All figures of the paper's study, drawn into a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from holdfast.paper import plane
from holdfast.paper.figures.cost import cost_against_invalidation
from holdfast.paper.figures.disagreement import disagreement
from holdfast.paper.figures.paths import paths
from holdfast.paper.figures.regions import regions
from holdfast.paper.figures.sensitivity import sensitivity
from holdfast.paper.figures.shared import save
from holdfast.paper.reproduce import Reproduction
from holdfast.utils.progress import bar


def draw(
    results: Sequence[Reproduction], varied: Sequence[pd.DataFrame], folder: str | Path, progress: bool = False
) -> list[Path]:
    """The paper's figures 1 and 2, cost against invalidation for each reading, and SNS's sensitivity where it is known.

    Figures 1 and 2 train a few small networks of their own, in some seconds.
    """
    wanted: dict[str, Callable[[], Figure]] = {
        "figure-1": lambda: disagreement(plane.disagreement()),
        "figure-2a": lambda: regions(plane.regions(plane.small_network())),
        "figure-2b": lambda: paths(plane.paths()),
    }
    for result in results:
        if len(result.rows):
            wanted[f"cost-{result.study.settings}"] = partial(cost_against_invalidation, result.rows)
    for rows in varied:
        wanted["sensitivity"] = partial(sensitivity, rows)
    Path(folder).mkdir(parents=True, exist_ok=True)
    with bar("figures", len(wanted), progress) as advance:
        return [path for name, make in wanted.items() for path in _saved(make, Path(folder) / name, advance)]


def _saved(make: Callable[[], Figure], path: Path, advance: Callable[[int], None]) -> tuple[Path, Path]:
    files = save(make(), path)
    advance(1)
    return files
