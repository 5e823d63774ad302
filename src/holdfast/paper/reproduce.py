"""The paper's study at a size that suits the machine, run into a folder and resumed there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import pandas as pd
import torch

from holdfast.paper.declared import PAPER, QUICK
from holdfast.paper.results import frame, read
from holdfast.paper.runner import run
from holdfast.paper.sensitivity import QUICK as SENSITIVITY_QUICK
from holdfast.paper.sensitivity import SENSITIVITY
from holdfast.paper.study import Study

Reading = Literal["text", "release", "both"]
Device = Literal["cpu", "cuda"]

METHODS = tuple(dict.fromkeys(name for study in PAPER.values() for name in study.names))
SEEDS = PAPER["text"].base_seeds
# What is run where nothing else is asked for: test rows (None for all) and deployed networks.
DEFAULT_ROWS: dict[Device, int | None] = {"cpu": 200, "cuda": None}
DEFAULT_BASES: dict[Device, int] = {"cpu": 1, "cuda": len(SEEDS)}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A study, and its rows so far."""

    study: Study
    rows: pd.DataFrame


def declared(
    settings: Reading = "text",
    *,
    quick: bool = False,
    rows: int | None = None,
    members: int | None = None,
    bases: int | None = None,
    device: Device = "cpu",
) -> list[Study]:
    """The paper's study, or both readings of it, with so many rows, members a kind of change and deployed networks.

    What is left out is as suits the device; of the quick study it is its own.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("torch finds no CUDA device here; choose the device cpu")
    if quick and settings != "text":
        raise ValueError(f"the quick study has the settings text, not {settings}; leave one of the two out")
    if quick:
        return [_resized(QUICK, rows or QUICK.rows, members, bases or len(QUICK.base_seeds), device)]
    readings = list(PAPER.values()) if settings == "both" else [PAPER[settings]]
    return [
        _resized(study, rows or DEFAULT_ROWS[device], members, bases or DEFAULT_BASES[device], device)
        for study in readings
    ]


def declared_sensitivity(
    *, quick: bool = False, rows: int | None = None, members: int | None = None, device: Device = "cpu"
) -> Study:
    """SNS's settings varied one by one, on the same deployed network and families as the text's study."""
    study, like = (SENSITIVITY_QUICK, QUICK) if quick else (SENSITIVITY, PAPER["text"])
    changes = tuple((kind, members or dict(like.changes)[kind]) for kind, _ in study.changes)
    return replace(study, rows=rows or like.rows or study.rows, changes=changes, device=device)


def _resized(study: Study, rows: int | None, members: int | None, bases: int, device: Device) -> Study:
    changes = tuple((kind, members or count) for kind, count in study.changes)
    return replace(study, rows=rows, changes=changes, base_seeds=SEEDS[:bases], device=device)


def size(study: Study) -> str:
    """What a study's numbers are of, in words."""
    rows = "all test rows" if study.rows is None else f"the first {study.rows} test rows"
    networks = "1 deployed network" if len(study.base_seeds) == 1 else f"{len(study.base_seeds)} deployed networks"
    retrained = " and ".join(f"{members} times {RETRAINED_HOW.get(kind, kind)}" for kind, members in study.changes)
    return f"{rows} of a dataset, {networks} retrained {retrained}, on {study.device}"


RETRAINED_HOW = {"seeds": "with new seeds", "leave-one-out": "with one row left out"}


def file_of(study: Study, folder: str | Path) -> Path:
    """Where a study's rows are kept."""
    return Path(folder) / f"{study.name.removeprefix('paper-')}.jsonl"


def reproduce(
    studies: Sequence[Study],
    folder: str | Path,
    *,
    only: Collection[str] = (),
    workers: int | None = None,
    progress: bool = False,
) -> list[Reproduction]:
    """Run studies, each into its own file of the folder; what is there already is not computed again.

    ``only`` names datasets and methods; a study that has none of the methods is left alone. The rows that come back are
    all that the folder has of a study: also the datasets and methods that were asked for earlier.
    """
    check_files(studies, folder)
    methods = {name for study in studies for name in study.names}
    chosen_methods = methods & set(only)
    for study in studies:
        if not chosen_methods or chosen_methods & set(study.names):
            names = [name for name in only if name not in methods or name in study.names]
            run(study, file_of(study, folder), workers=workers, progress=progress, only=names)
    return [Reproduction(study, _rows(study, file_of(study, folder))) for study in studies]


def _rows(study: Study, file: Path) -> pd.DataFrame:
    return frame(file, study) if file.exists() else pd.DataFrame()


def check_files(studies: Sequence[Study], folder: str | Path) -> None:
    """All of them, before the work on the first."""
    for study in studies:
        _check_file(study, file_of(study, folder))


def _check_file(study: Study, file: Path) -> None:
    """A study that is complete drops all other cells from its file: hours of work, where somebody asks for less."""
    keys = {cell.key for cell in study.cells}
    if file.exists() and any(row["cell"] not in keys for row in read(file)):
        raise ValueError(
            f"{file} has results of another size, device or version; "
            "name another folder for these, or remove the file if they are of no use"
        )
