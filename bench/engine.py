"""The compiled search beside another commit's, in one run: what it finds, at what cost, how often that is invalidated.

The other commit is checked out into a folder that is removed afterwards. Both searches are given the same models,
rehearsals and people, in the schema space, alone and among people who could exist. Costs are compared on the rows that
both found; invalidation is that by models that neither has seen, on the same rows, with its interval. Times are of
one process on one core: per person where all are searched together, and of one person at a time. With --quick a few
rows of German Credit. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _side_by_side import parser_of, show
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor

import holdfast as hf
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.merged import merged

ROOT = Path(__file__).parents[1]
BEFORE = "992fb9d"  # the last commit without the engine
DATASETS = ("german", "heloc", "ctg", "warfarin", "taiwan", "seizure")
FIRST_JUDGE = 1001
ONE_BY_ONE = 20  # people who are searched one at a time


@dataclass(frozen=True)
class Cell:
    dataset: str
    model: str  # network, linear or boosted; module: a network whose layers nobody can read
    people: bool
    members: int  # 0: the deployed model alone
    rows: int
    judges: int

    @property
    def groups(self) -> tuple[tuple[int, ...], ...] | None:
        """More than two classes are the first and the rest."""
        classes = len(prepare(self.dataset).encoding.schema.classes)
        return ((0,), tuple(range(1, classes))) if classes > 2 else None

    def problem(self) -> tuple[Any, Tensor, Tensor, hf.Space]:
        """What is searched, and the people."""
        data = prepare(self.dataset)
        model, rehearsed = self.models(range(1))[0], self.models(range(1, 1 + max(1, self.members)))
        if self.groups is not None:
            model, rehearsed = merged(model, self.groups), rehearsed.merged(self.groups)
        x = data.question(self.rows)
        space = data.encoding.space if self.people else data.encoding.space.without_people()
        method = hf.MinCost(norm=1)
        search = hf.Rehearsed(rehearsed[: self.members], search=method) if self.members else method
        return (search, model), x, hf.other_class(model, x), space.to(x)

    def judged_by(self) -> hf.Family:
        """Models that no search has seen."""
        judges = self.readable(range(FIRST_JUDGE, FIRST_JUDGE + self.judges))
        return judges if self.groups is None else judges.merged(self.groups)

    def models(self, places: range) -> hf.Family:
        own = self.readable(places)
        if self.model != "module":
            return own
        return hf.Family.from_models([Unread(own[place]) for place in range(len(own))])

    def readable(self, places: range) -> hf.Family:
        """The models before anything is hidden of them."""
        if self.model == "boosted":
            return boosted(self.dataset, places)
        return trained(self.dataset, "linear" if self.model == "linear" else "network", places)


class Unread(torch.nn.Module):
    """A network in torch whose layers nobody can read."""

    def __init__(self, own: Any) -> None:
        super().__init__()
        self.own = own

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.own(x)
        return logits


def trained(dataset: str, model: str, places: range) -> hf.Family:
    """Networks of the paper's recipe that differ by their seeds; the first is deployed."""
    recipe = PAPER_RECIPES[dataset]
    recipe = recipe if model == "network" else replace(recipe, hidden=())
    retrainings = hf.seeds(len(places), start=places.start) if places.start else [hf.Retraining()]
    return hf.train(*prepare(dataset).rows, recipe, retrainings, store=os.environ["FAMILIES"])


@cache
def boosted(dataset: str, places: range) -> hf.Family:
    """100 trees of 8 leaves and their refits to rows drawn with replacement; the first, to all rows, is deployed."""
    data = prepare(dataset)
    model = HistGradientBoostingClassifier(max_iter=100, max_leaf_nodes=8, early_stopping=False, random_state=0)
    deployed = hf.as_model(model.fit(*(rows.numpy() for rows in data.rows)), data.encoding)
    if not places.start:
        return hf.Family.from_models([deployed])
    return hf.refit(deployed, data.train, hf.changes.bootstrap(len(places), start=places.start))


# ---- in a process that imports one of the two ----


def search_cells(cells: list[Cell], folder: Path) -> None:
    torch.set_num_threads(1)
    for number, cell in enumerate(cells):
        (search, model), x, target, space = cell.problem()
        search(model, x[:2], target[:2], space.of(slice(0, 2)))  # which compiles, and prepares the models
        start = time.process_time()
        answer = search(model, x, target, space)
        together = (time.process_time() - start) / len(x)
        alone = []
        for row in range(min(ONE_BY_ONE, len(x))):
            start = time.process_time()
            search(model, x[row : row + 1], target[row : row + 1], space.of(slice(row, row + 1)))
            alone.append(time.process_time() - start)
        arrays = {"point": answer.point.numpy(), "found": answer.found.numpy()}
        times = {"together": np.array(together), "alone": np.median(alone)}
        np.savez(folder / f"{number}.npz", **arrays, **times)


def run(source: Path, cells: list[Cell], folder: Path) -> None:
    folder.mkdir()
    path = os.pathsep.join([str(source), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "LOKY_MAX_CPU_COUNT": "1", "OMP_NUM_THREADS": "1"}
    task = json.dumps([asdict(cell) for cell in cells])
    command = [sys.executable, __file__, "--search", str(folder)]
    subprocess.run(command, input=task, text=True, env=environment, check=True)


# ---- side by side ----


def compared(cell: Cell, before: Any, after: Any) -> dict[str, Any]:
    (_, model), x, target, space = cell.problem()
    judges = cell.judged_by()
    old, new = (
        hf.assess(model, x, torch.from_numpy(side["point"]), target, space, also=torch.from_numpy(side["found"]))
        for side in (before, after)
    )
    both = old.found & new.found
    ratio = (new.cost(1) / old.cost(1))[both].double()
    rates = {}
    for name, answer in (("old", old), ("new", new)):
        result = hf.audit(answer[both], judges)
        low, high = result.interval()
        rates |= {f"{name}_rate": result.rate, f"{name}_interval": f"{low:.3f}-{high:.3f}"}
    return {
        "dataset": cell.dataset,
        "model": cell.model,
        "people": cell.people,
        "members": cell.members,
        "rows": len(x),
        "old_found": int(old.found.sum()),
        "new_found": int(new.found.sum()),
        "cost": float(new.cost(1)[both].mean() / old.cost(1)[both].mean()),
        "ratio_95": float(ratio.quantile(0.95)),
        **rates,
        "old_ms": 1000 * float(before["together"]),
        "new_ms": 1000 * float(after["together"]),
        "times_faster": float(before["together"] / after["together"]),
        "old_ms_alone": 1000 * float(before["alone"]),
        "new_ms_alone": 1000 * float(after["alone"]),
    }


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """The sources of a commit, or in a folder."""
    if Path(revision).is_dir():
        yield Path(revision)
        return
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "old"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", tree, revision], cwd=ROOT, check=True)
        try:
            yield tree / "src"
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def cells_of(options: argparse.Namespace) -> list[Cell]:
    if options.quick:
        return [Cell("german", model, True, members=4, rows=8, judges=4) for model in ("linear", "boosted", "module")]
    return [
        Cell(dataset, model, people, members, options.rows, judges=200)
        for dataset in options.datasets.split(",")
        for model in options.models.split(",")
        for people in (False, True)
        for members in (0, 32)
    ]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with, or a folder of sources")
    parser.add_argument("--rows", type=int, default=200, help="people for each cell")
    parser.add_argument("--models", default="network,linear,boosted,module")
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.search is not None:
        search_cells([Cell(**cell) for cell in json.load(sys.stdin)], options.search)
        return
    cells = cells_of(options)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ.setdefault("FAMILIES", str(folder / "families"))
        for cell in cells:
            cell.problem()  # trained once, for both
            cell.judged_by()
        run(ROOT / "src", cells, folder / "new")
        with checkout(options.before) as source:
            run(source, cells, folder / "old")
        rows = [
            compared(cell, *(np.load(folder / side / f"{number}.npz") for side in ("old", "new")))
            for number, cell in enumerate(cells)
        ]
    show(f"The compiled search beside {options.before}", rows, options.json)


if __name__ == "__main__":
    main()
