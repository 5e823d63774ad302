"""What plans cost of which 1 % are invalidated, beside the cheapest plans known.

    python bench/oracle.py --points FOLDER --datasets german    one dataset; a process for each dataset, if you like
    python bench/oracle.py --points FOLDER --part train         only the networks that the other parts need
    python bench/oracle.py --points FOLDER --name old           the search of another checkout: PYTHONPATH=OLD/src
    python bench/oracle.py --points FOLDER --part report        what the searches of all checkouts found, side by side

Networks are trained by the paper's recipes with new seeds: one is deployed, the others rehearse or audit. The people
are the first rows of the test split. Each wants the other class, at the least l1 cost, in the schema space among people
who could exist. An interrupted run goes on where it was: networks are kept in the store of families, and what each
search finds is a file in FOLDER. Datasets are found through HOLDFAST_DATA.

The oracle is, for each person, the cheapest point in FOLDER that 99 % of the audit models accept, whichever search of
whichever checkout found it. Its own searches may see the audit models; all others may not. Their caution is raised
until the audit models invalidate at most 1 % of the plans.

    possible    people for whom the oracle has a plan
    at 1 %      cost over the oracle's, on the rows that both find, interpolated to where 1 % of the plans are
                invalidated; nan if more are at every caution; if fewer are at every caution, that at the least
    caution     the cheapest one tried of which at most 1 % are invalidated; to the right of it, how many of the
                possible people have a plan there, the rate with a 95 % interval for these people, and the cost
    seconds     of all the searches of that size
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _side_by_side import check_device, keep, parser_of, show, timed

from _rehearsals import Cell
from holdfast import Counterfactuals, assess
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.paper.declared import PAPER_DATASETS
from holdfast.utils.files import appearing, make_folder

Row = dict[str, Any]

PARTS = ("train", "search", "report")
FIRST_JUDGE = 5001  # beyond the seeds of those that rehearse
CAUTIONS = (-0.05, -0.02, -0.01, -0.005, -0.002, 0.0, 0.1, 0.2, 0.45, 0.7, 1.0)
RATE = 0.01


def asked() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--part", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--datasets", nargs="+", default=list(PAPER_DATASETS), choices=PAPER_DATASETS)
    parser.add_argument("--rows", type=int, default=100, help="people")
    parser.add_argument("--members", nargs="+", type=int, default=[64, 256, 1024], help="models that rehearse")
    parser.add_argument("--judges", type=int, default=200, help="models that audit")
    parser.add_argument("--epochs", type=int, help="train for so long, instead of as the recipe says")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where networks are trained")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes that train, threads that search")
    parser.add_argument("--points", type=Path, metavar="FOLDER", help="keep there what is found")
    parser.add_argument("--name", default="new", help="of the checkout that searches")
    return parser.parse_args()


def small(options: argparse.Namespace) -> argparse.Namespace:
    few = {"datasets": ["german"], "rows": 6, "members": [4, 8], "judges": 10, "epochs": 5, "workers": 1}
    return argparse.Namespace(**vars(options) | few)


def cell_of(dataset: str, options: argparse.Namespace) -> Cell:
    searched = tuple((members, caution) for members in options.members for caution in cautions(members))
    sizes = max(options.members), options.judges
    own = Cell(dataset, "people", 1, "seeds", 0, options.rows, members=sizes, sns=False, searched=searched)
    return replace(own, first_judge=FIRST_JUDGE, epochs=options.epochs)


def cautions(members: int) -> Iterator[float]:
    """Those that ask for different numbers of so many members."""
    return (value for value in CAUTIONS if value >= 0 or math.ceil((1 + value) * members - 1e-9) < members)


def folder_of(cell: Cell, options: argparse.Namespace) -> Path:
    """What one oracle is made of: the same people, and the same audit models."""
    folder: Path = (
        options.points / f"{cell.dataset}, {cell.rows} rows, {options.judges} judges, {epochs_of(cell)} epochs"
    )
    return folder


def epochs_of(cell: Cell) -> int:
    return cell.epochs or PAPER_RECIPES[cell.dataset].epochs


# ---- search ----


def search(cell: Cell, folder: Path) -> None:
    """Each search that has no file yet; of each size, until few enough plans are invalidated."""
    _, judges = cell.families
    _, target, _ = cell.question
    enough = set()
    for name, method in cell.searches().items():
        size, _, _ = name.partition(",")
        if size in enough:
            continue
        file = folder / f"{name}.npz"
        if not file.exists():
            found, seconds = timed(partial(method, cell.model, *cell.question))
            with appearing(file) as opened:
                np.savez(opened, point=found.point.numpy(), found=found.found.numpy(), seconds=np.array(seconds))
        answer, _ = answered(cell, file)
        wrong = judges.predict(answer.point[answer.found]) != target[answer.found]
        if float(wrong.double().mean()) <= RATE:
            enough.add(size)


def answered(cell: Cell, file: Path) -> tuple[Counterfactuals, float]:
    """What a search found, judged by this checkout, and its seconds."""
    x, target, space = cell.question
    with np.load(file) as kept:
        point, found = torch.from_numpy(kept["point"]), torch.from_numpy(kept["found"])
        return assess(cell.model, x, point, target, space, also=found), float(kept["seconds"])


# ---- report ----


def report(cell: Cell, folder: Path) -> list[Row]:
    names = sorted(path.name for path in folder.iterdir())
    answers = {
        f"{file.stem}, {name}": answered(cell, file) for name in names for file in sorted((folder / name).glob("*.npz"))
    }
    beside = {row["method"]: row for row in cell.beside_oracle(answers)}
    curves = {
        (members, name): {
            caution: beside[key]
            for caution in cautions(members)
            if (key := f"rehearsed {members}, caution {caution:g}, {name}") in beside
            and math.isfinite(beside[key]["of_oracle"])
        }
        for members in sorted({members for members, _ in cell.searched})
        for name in names
    }
    return [
        {"dataset": cell.dataset, "epochs": epochs_of(cell), "members": members, "search": name, **at_rate(curve)}
        for (members, name), curve in curves.items()
        if curve
    ]


def at_rate(curve: dict[float, Row]) -> Row:
    rows = sorted(curve.values(), key=lambda row: float(row["rate"]))
    reached = [caution for caution, row in curve.items() if row["rate"] <= RATE]
    at = min(reached, key=lambda caution: float(curve[caution]["of_oracle"])) if reached else max(curve)
    interpolated = np.interp(RATE, [row["rate"] for row in rows], [row["of_oracle"] for row in rows])
    own = curve[at]
    return {
        "rows": own["rows"],
        "possible": own["possible"],
        "at_1_%": float(interpolated) if reached else math.nan,
        "caution": at,
        "found": own["found"],
        "found_of_possible": own["found_of_possible"],
        "invalidated": own["rate"],
        "low": own["low"],
        "high": own["high"],
        "of_oracle": own["of_oracle"],
        "seconds": sum(row["seconds"] for row in curve.values()),
    }


@contextmanager
def points(folder: Path | None) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


def main() -> None:
    options = asked()
    options = small(options) if options.quick else options
    check_device(options.device)
    os.environ["LOKY_MAX_CPU_COUNT"] = str(options.workers)
    torch.set_num_threads(1)
    rows = []
    with points(options.points) as options.points:
        for dataset in options.datasets:
            cell = cell_of(dataset, options)
            folder = folder_of(cell, options)
            if "train" in options.part:
                own = replace(cell, device=options.device)
                _ = own.model, own.families
            if "search" in options.part:
                search(cell, make_folder(folder / options.name))
            if "report" in options.part:
                rows += report(cell, folder)
                if options.json is not None:
                    keep(options.json, rows)
    if rows:
        show("Cost beside the oracle, where 1 % of the plans are invalidated", rows)


if __name__ == "__main__":
    main()
