"""What `holdfast promise` leaves for an audit to read: the rate, the counterfactuals, and who took part."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from holdfast.utils.files import write_text
from holdfast.utils.sealing import Kind, unsealed
from holdfast.utils.sealing import sealed as with_checksum

PROMISE = Kind("promise", "promise", format=1, unsealed=0)
DESCRIPTION, POINTS = "promise.json", "counterfactuals.csv"
EXTRA = ("promised", "plan", "cost", "cost_l1", "cost_l2")  # columns of a promise's table that are no features


@dataclass(frozen=True)
class Promised:
    """What was promised of a file of counterfactuals."""

    rate: float
    kinds: tuple[str, ...]
    taken: dict[str, int]  # kind of change -> trained members, from the first on, that rehearsed or calibrated
    seen: frozenset[str]  # the fingerprints of all members that did

    def without_extra(self, points: pd.DataFrame, features: tuple[str, ...]) -> pd.DataFrame:
        """The table without what a promise has written beside the features."""
        return points.drop(columns=[name for name in points if name in EXTRA and name not in features])


def write_promise(folder: Path, points: str, about: Mapping[str, Any]) -> list[Path]:
    """The counterfactuals, and then their description, which names them by their checksum."""
    from holdfast import __version__  # here, since the package loads this module before it has one

    table = write_text(folder / POINTS, points)
    own = {"version": __version__, "file": POINTS, "sha256": hashlib.sha256(points.encode("utf-8")).hexdigest()}
    text = json.dumps(with_checksum(PROMISE, {**own, **about}), indent=1, allow_nan=False)
    return [table, write_text(folder / DESCRIPTION, text + "\n")]


def promised_points(given: str | Path) -> tuple[Path, Promised | None]:
    """The file of counterfactuals, and what was promised of it: given the folder of a promise, or the file in it."""
    path = Path(given)
    if not path.is_dir() and path.name != POINTS:
        return path, None
    folder = path if path.is_dir() else path.parent
    description = folder / DESCRIPTION
    if not description.is_file():
        if path.is_dir():
            raise ValueError(f"{path} is a folder without a {DESCRIPTION}; name a file, or what holdfast promise wrote")
        return path, None
    about = unsealed(PROMISE, description.read_bytes(), str(description))
    path = folder / POINTS
    if hashlib.sha256(path.read_bytes()).hexdigest() != about["sha256"]:
        raise ValueError(
            f"{path} is not the file that {description} describes (changed after the promise was made); run holdfast "
            "promise again, or audit a copy in another folder"
        )
    if not about["promised"]:
        return path, None
    members = about["members"]
    seen = frozenset(name for role in ("rehearsed", "calibrated") for name in members.get(role, ()))
    return path, Promised(about["rate"], tuple(about["calibrated"]), dict(about["taken"]), seen)
