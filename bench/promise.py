"""Rehearsed searches beside an oracle, and whether a promised rate is kept.

    python bench/promise.py --part train       only the networks that the other parts need
    python bench/promise.py --part quality     cost and invalidation of every search, beside an oracle
    python bench/promise.py --part kept        200 random splits of one pool of models: is the promised rate kept?
    python bench/promise.py --part speed       1,000 rows of HELOC and one person, 32 members; whole promises

Networks are trained by the paper's recipes and kept in the store of families; run again after an interruption, nothing
is trained twice, and cells that are done are read from --cells. Datasets are found through HOLDFAST_DATA.

quality: rehearsals, judges and deployed networks share no training run. "rate" is the share of pairs of a
counterfactual and one of 200 judges in which the judge invalidates it, with a 95 % interval for these rows. "of oracle"
is the cost on the rows that both find, over that of the cheapest point from any of the searches that 99 % of the judges
accept; the oracle's own searches may see the judges.

speed: a promise of 5 % for 100 rows is timed twice, as it is, and with everybody searched anew at each value of the
parameter.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import pandas as pd
import torch
from _side_by_side import check_device, keep, parser_of, show, timed
from numpy.typing import NDArray

from _rehearsals import CALIBRATED, DEPLOYED, SPACES, Cell
from holdfast import Counterfactuals, Margin, MinCost, Rehearsed, promise
from holdfast.guarantees.calibration import bounds, fewest_models, smallest
from holdfast.paper.declared import PAPER_DATASETS
from holdfast.search.stricter import with_parameter
from holdfast.utils.files import append
from holdfast.utils.progress import bar

Floats = NDArray[np.float64]
Result = TypeVar("Result")

PARTS = ("train", "quality", "kept", "speed")
CHANGES = ("seeds", "leave-one-out")
PROMISED = ("german", "heloc")
SPLITS = 200
RATES = (0.01, 0.05, 0.1, 0.2)
LEAST_FOUND = 0.5  # of the rows that the first value of the parameter finds


def asked() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--part", nargs="+", default=["quality", "kept", "speed"], choices=PARTS)
    parser.add_argument("--datasets", nargs="+", default=list(PAPER_DATASETS), choices=PAPER_DATASETS)
    parser.add_argument("--spaces", nargs="+", default=list(SPACES), choices=SPACES)
    parser.add_argument("--norms", nargs="+", type=int, default=[1, 2], choices=(1, 2))
    parser.add_argument("--changes", nargs="+", default=list(CHANGES), choices=CHANGES)
    parser.add_argument("--deployed", type=int, default=len(DEPLOYED), help="deployed networks")
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--calibration", type=int, default=100, help="models that calibrate, in each split")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--workers", type=int, default=2, help="processes that search")
    parser.add_argument("--cells", type=Path, metavar="FILE", help="keep the cells of quality that are done there")
    return parser.parse_args()


def small(options: argparse.Namespace) -> argparse.Namespace:
    """A run of seconds."""
    few = {"datasets": ["german"], "spaces": ["schema"], "norms": [1], "changes": ["seeds"], "deployed": 1, "rows": 6}
    return argparse.Namespace(**vars(options) | few | {"workers": 1, "calibration": 20})


# ---- quality ----


def cells(options: argparse.Namespace) -> list[Cell]:
    members = (32, 20) if options.quick else Cell.members
    return [
        Cell(dataset, space, norm, change, deployed, options.rows, options.device, members, sns=change == "seeds")
        for deployed in DEPLOYED[: options.deployed]
        for change in options.changes
        for norm in options.norms
        for space in options.spaces
        for dataset in options.datasets
    ]


def measured(cell: Cell) -> list[dict[str, Any]]:
    return cell.measured()


def train(options: argparse.Namespace) -> list[dict[str, Any]]:
    """All networks, on whatever device: searches read them from the store."""
    for cell in {(cell.dataset, cell.change, cell.deployed): cell for cell in cells(options)}.values():
        _ = cell.model, cell.families
    for cell in pools(options):
        _ = cell.pool(in_pool(options))
    return []


def quality(options: argparse.Namespace) -> list[dict[str, Any]]:
    wanted = cells(options)
    rows = list(done(options.cells, wanted))
    have = {key(row) for row in rows}
    todo = [cell for cell in wanted if key(asdict(cell)) not in have]
    with bar("cells", len(todo)) as advance:
        for own in in_processes(measured, todo, options.workers):
            rows += own
            if options.cells is not None:
                append(options.cells, (json.dumps(own) + "\n").encode())
            advance(1, f"{own[0]['dataset']}, {own[0]['space']}, l{own[0]['norm']}, {own[0]['change']}")
    show("Rehearsed searches beside an oracle, means over the deployed networks", means(rows), options.json)
    return rows


def in_processes(work: Callable[[Cell], Result], todo: list[Cell], workers: int) -> Iterator[Result]:
    """The work of each cell as it is done, in single-threaded processes."""
    if workers == 1:
        yield from map(work, todo)
        return
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=fresh, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        for future in as_completed([pool.submit(work, cell) for cell in todo]):
            yield future.result()


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("dataset", "space", "norm", "change", "deployed"))


def done(file: Path | None, wanted: list[Cell]) -> Iterator[dict[str, Any]]:
    keys = {key(asdict(cell)) for cell in wanted}
    if file is not None and file.exists():
        for line in file.read_text().splitlines():
            yield from (row for row in json.loads(line) if key(row) in keys)


def means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Over the deployed networks; limits of the rate are means of theirs."""
    frame = pd.DataFrame(rows).drop(columns=["deployed"])
    by = ["dataset", "space", "norm", "change", "method"]
    counted = frame.groupby(by, sort=False).size().rename("deployed")
    return pd.concat([frame.groupby(by, sort=False).mean(), counted], axis=1).reset_index().to_dict("records")


# ---- kept ----


def pools(options: argparse.Namespace) -> list[Cell]:
    """Two datasets, with 32 rehearsals and a pool of models that calibrate or come next."""
    chosen = [name for name in options.datasets if name in PROMISED]
    return [
        Cell(dataset, space, 1, "seeds", 0, options.rows, options.device, (32, 20))
        for dataset in chosen
        for space in options.spaces
    ]


def in_pool(options: argparse.Namespace) -> int:
    return 2 * (options.calibration if options.quick else max(CALIBRATED, options.calibration))


def kept(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Split one pool at random into models that calibrate and models that come next, over and over."""
    work = partial(splits, models=in_pool(options), calibration=options.calibration, quick=options.quick)
    rows = [row for own in in_processes(work, pools(options), options.workers) for row in own]
    show("Is the promised rate kept? Random splits of one pool of models", rows)
    return rows


def splits(cell: Cell, models: int, calibration: int, quick: bool) -> list[dict[str, Any]]:
    rehearsed, _ = cell.families
    methods = {"rehearsed 32": Rehearsed(rehearsed, search=MinCost(norm=1)), "margin": Margin(search=MinCost(norm=1))}
    rows = []
    for name, method in methods.items():
        values, losses, found, cost = lost(cell, method, models)
        for rate in RATES:
            n = CALIBRATED if rate < 0.02 and not quick else calibration
            allowed = values >= -rate  # as `promise` takes them
            if n >= fewest_models(rate):
                row = split(losses[allowed], found[allowed], cost[allowed], rate, n)
                rows.append({"dataset": cell.dataset, "space": cell.space, "method": name, "rows": cell.rows} | row)
    return rows


def lost(cell: Cell, method: Any, models: int) -> tuple[Floats, Floats, Floats, Floats]:
    """The values of the parameter, what each model of the pool loses there (values, models), rows found, mean cost."""
    x, target, space = cell.question
    pool = cell.pool(models)
    values, losses, found, cost = [], [], [], []
    for value in method.parameter_values:
        answer = with_parameter(method, value)(cell.model, x, target, space)
        if found and int(answer.found.sum()) < max(1, LEAST_FOUND * max(found)):
            break
        wrong = (pool.predict(answer.point[answer.found]) != target[answer.found]).double().mean(1)
        values.append(value)
        losses.append(wrong.cpu().numpy())
        found.append(int(answer.found.sum()))
        cost.append(float(answer.cost(1)[answer.found].mean()))
    return np.array(values), np.stack(losses), np.array(found), np.array(cost)


def split(losses: Floats, found: Floats, cost: Floats, rate: float, n: int) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    realised, places = [], []
    for _ in range(SPLITS):
        order = generator.permutation(losses.shape[1])
        place = smallest(bounds(losses[:, order[:n]]), rate)
        realised.append(0.0 if place is None else float(losses[place, order[n:]].mean()))
        places += [] if place is None else [place]
    mean, error = float(np.mean(realised)), float(np.std(realised) / np.sqrt(SPLITS))
    return {
        "rate": rate,
        "calibration": n,
        "splits": SPLITS,
        "promised": len(places) / SPLITS,
        "realised": mean,
        "error": error,
        "given_promised": mean * SPLITS / len(places) if places else float("nan"),
        "kept": mean <= rate + 2 * error,
        "found": float(found[places].mean()) if places else float("nan"),
        "cost": float(cost[places].mean()) if places else float("nan"),
    }


# ---- speed ----


def speed(options: argparse.Namespace) -> list[dict[str, Any]]:
    many = 6 if options.quick else 1000
    dataset = "german" if options.quick else "heloc"
    rows = []
    for space in ("schema", "people"):
        for count in (many, 1):
            cell = Cell(dataset, space, 1, "seeds", 0, count, options.device, (32, 20))
            x, target, place = cell.question
            for name, method in {"min-cost": MinCost(norm=1), "rehearsed 32": Rehearsed(cell.families[0])}.items():
                method(cell.model, x[:2], target[:2], place.of(slice(0, 2)))  # warm
                answer, seconds = timed(partial(method, cell.model, x, target, place))
                rows.append(
                    {"dataset": dataset, "space": space, "rows": count, "method": name,
                     "found": int(answer.found.sum()), "seconds": seconds}
                )  # fmt: skip
    show(f"How long a rehearsed search takes, {options.device}", rows)
    return rows + promised(options)


@dataclass(frozen=True)
class Anew:
    """The same search, which does not say what it asks of a point: everybody is searched for at each value."""

    own: Rehearsed
    parameter: ClassVar[str] = Rehearsed.parameter

    @property
    def family(self) -> Any:
        return self.own.family

    @property
    def parameter_values(self) -> tuple[float, ...]:
        return self.own.parameter_values

    def with_parameter(self, caution: float) -> Anew:
        return Anew(self.own.with_parameter(caution))

    def __call__(self, *question: Any) -> Counterfactuals:
        return self.own(*question)


def promised(options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for dataset in ("german",) if options.quick else PROMISED:
        cell = Cell(dataset, "people", 1, "seeds", 0, 6 if options.quick else 100, options.device, (32, 20))
        rehearsed, calibration = Rehearsed(cell.families[0]), cell.families[1]
        for name, method in {"promise": rehearsed, "everybody anew": Anew(rehearsed)}.items():
            result, seconds = timed(partial(promise, method, cell.model, *cell.question, calibration))
            rows.append(
                {"dataset": dataset, "rows": len(cell.question[0]), "method": name, "caution": result.value,
                 "found": [step.found for step in result.steps][-1], "seconds": seconds}
            )  # fmt: skip
    show("How long a promise of 5 % takes", rows)
    return rows


def main() -> None:
    options = asked()
    options = small(options) if options.quick else options
    check_device(options.device)
    parts = {"train": train, "quality": quality, "kept": kept, "speed": speed}
    results = {part: parts[part](options) for part in options.part}
    if options.json is not None:
        keep(options.json, results)
    for row in [row for row in results.get("kept", ()) if not row["kept"]]:
        print(f"not kept: {row}", file=sys.stderr)


if __name__ == "__main__":
    main()
