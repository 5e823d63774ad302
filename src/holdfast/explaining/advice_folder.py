"""The folder of advice, as an audit reads it: the plans, and which retrained models took part in them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from holdfast.explaining.file_audit import Excluded
from holdfast.utils.sealing import Kind, unsealed

ADVICE = Kind("advice", "summary of advice", format=1, unsealed=-1)
SUMMARY, PLANS = "summary.json", "advice.csv"


def read_advice(given: str | Path) -> tuple[Path, Excluded | None]:
    """The file of counterfactuals, and the models that no audit of it may ask: given a folder of advice, its table of
    plans, or any other file, of which nothing is known."""
    path = Path(given)
    folder = path if path.is_dir() else path.parent
    if (path.is_dir() or path.name == PLANS) and (folder / SUMMARY).is_file():
        return folder / PLANS, _excluded(folder)
    if path.is_dir():
        raise ValueError(f"{path} is a folder without a {SUMMARY}; name a file, or what holdfast explain wrote")
    return path, None


def _excluded(folder: Path) -> Excluded:
    about = unsealed(ADVICE, (folder / SUMMARY).read_bytes(), str(folder / SUMMARY))
    plans = folder / PLANS
    if hashlib.sha256(plans.read_bytes()).hexdigest() != about["files"][PLANS]:
        raise ValueError(
            f"{plans} is not the file that {folder / SUMMARY} describes (it was changed later); make it again, or "
            "audit a copy in another folder"
        )
    rate = about["decided"]["promise"] if about.get("promise", {}).get("promised") else None
    excluded = about["excluded_from_audit"]
    return Excluded(rate, tuple(excluded["kinds"]), dict(excluded["taken"]), frozenset(excluded["members"]))
