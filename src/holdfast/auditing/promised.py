"""What `holdfast explain` and `holdfast promise` leave for an audit to read: the counterfactuals, and who took part."""

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
ADVICE = Kind("advice", "summary of advice", format=1, unsealed=-1)
DESCRIPTION, POINTS = "promise.json", "counterfactuals.csv"
SUMMARY, PLANS = "summary.json", "advice.csv"
# Columns of these tables that are no features; one that a feature is called like has an underscore more.
EXTRA = ("promised", "plan", "cost", "cost_l1", "cost_l2", "hold", "low", "high", "why_not", "status")


@dataclass(frozen=True)
class Promised:
    """What was said of a file of counterfactuals, and which retrained models had a say in it."""

    rate: float | None  # promised; None where advice was given without a promise
    kinds: tuple[str, ...]
    taken: dict[str, int]  # kind of change -> trained members, from the first on, that rehearsed or calibrated
    seen: frozenset[str]  # the fingerprints of all members that did

    def without_extra(self, points: pd.DataFrame, features: tuple[str, ...]) -> pd.DataFrame:
        """The table without what was written beside the features."""
        extra = [name for name in points if str(name).rstrip("_") in EXTRA and name not in features]
        return points.drop(columns=extra)


def write_promise(folder: Path, points: str, about: Mapping[str, Any]) -> list[Path]:
    """The counterfactuals, and then their description, which names them by their checksum."""
    from holdfast import __version__  # here, since the package loads this module before it has one

    table = write_text(folder / POINTS, points)
    own = {"version": __version__, "file": POINTS, "sha256": hashlib.sha256(points.encode("utf-8")).hexdigest()}
    text = json.dumps(with_checksum(PROMISE, {**own, **about}), indent=1, allow_nan=False)
    return [table, write_text(folder / DESCRIPTION, text + "\n")]


def promised_points(given: str | Path) -> tuple[Path, Promised | None]:
    """The file of counterfactuals, and what was said of it: given the folder of advice or of a promise, or the file."""
    path = Path(given)
    folder = path if path.is_dir() else path.parent
    for points, description, read in ((POINTS, DESCRIPTION, _promise), (PLANS, SUMMARY, _advice)):
        if (path.is_dir() or path.name == points) and (folder / description).is_file():
            return folder / points, read(folder)
    if path.is_dir():
        raise ValueError(
            f"{path} is a folder without a {SUMMARY} or {DESCRIPTION}; name a file, or what holdfast explain or "
            "holdfast promise wrote"
        )
    return path, None


def _promise(folder: Path) -> Promised | None:
    about = unsealed(PROMISE, (folder / DESCRIPTION).read_bytes(), str(folder / DESCRIPTION))
    _check_unchanged(folder / POINTS, about["sha256"], folder / DESCRIPTION)
    if not about["promised"]:
        return None
    members = about["members"]
    seen = frozenset(name for role in ("rehearsed", "calibrated") for name in members.get(role, ()))
    return Promised(about["rate"], tuple(about["calibrated"]), dict(about["taken"]), seen)


def _advice(folder: Path) -> Promised:
    about = unsealed(ADVICE, (folder / SUMMARY).read_bytes(), str(folder / SUMMARY))
    _check_unchanged(folder / PLANS, about["files"][PLANS], folder / SUMMARY)
    rate = about["decided"]["promise"] if about.get("promise", {}).get("promised") else None
    had_a_say = about["had_a_say"]
    return Promised(rate, tuple(had_a_say["kinds"]), dict(had_a_say["taken"]), frozenset(had_a_say["members"]))


def _check_unchanged(points: Path, checksum: str, description: Path) -> None:
    if hashlib.sha256(points.read_bytes()).hexdigest() != checksum:
        raise ValueError(
            f"{points} is not the file that {description} describes (it was changed later); make it again, or audit a "
            "copy in another folder"
        )
