"""What makes a rehearsal count for more: other ways to ask several models at once, at equal numbers of them.

Each way turns the margins of the deployed network and of 32 rehearsals into one number, and has one setting; `MinCost`
then looks for the cheapest point at which it is above 0. "rate" and "of oracle" are those of `bench/promise.py`.
Compare ways at the same rate. Datasets are found through HOLDFAST_DATA, networks are kept in the store of families.

    margin            the least margin, minus c                                  (c in logits)
    soft              the soft minimum −c log Σ exp(−margin / c)                 (c in logits)
    soft, relative    the same with c in standard deviations of the margins: what `Rehearsed(temperature=c)` does
    deviations        the mean minus c standard deviations
    least deviations  the least margin minus c standard deviations
    gap               the least margin minus c times the gap to the third least
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from _side_by_side import parser_of, show, timed
from torch import Tensor

from _rehearsals import ACCEPTED, Cell
from holdfast import Counterfactuals, Family, MinCost, Rehearsed, assess
from holdfast.models.model import Model
from holdfast.models.worst_case import margins, with_undecided
from holdfast.paper.declared import PAPER_DATASETS
from holdfast.utils.progress import bar

Way = Callable[[Tensor, float], Tensor]  # margins (1 + k, n, c), the setting -> (n, c)


def soft(all_of_them: Tensor, c: Tensor | float) -> Tensor:
    return -c * torch.logsumexp(-all_of_them / c, 0)


def relative(all_of_them: Tensor, c: float) -> Tensor:
    return soft(all_of_them, (c * all_of_them.std(0)).detach().clamp_min(1e-6))


def gap(all_of_them: Tensor, c: float) -> Tensor:
    first, _, third = all_of_them.topk(3, 0, largest=False).values
    return first - c * (third - first)


WAYS: dict[str, tuple[Way, tuple[float, ...]]] = {
    "margin": (lambda m, c: m.amin(0) - c, (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)),
    "soft": (soft, (0.1, 0.25, 0.5, 1.0, 2.0)),
    "soft, relative": (relative, (0.1, 0.2, 0.3, 0.45, 0.7)),
    "deviations": (lambda m, c: m.mean(0) - c * m.std(0), (1.5, 2.0, 2.5, 3.0, 4.0)),
    "least deviations": (lambda m, c: m.amin(0) - c * m.std(0), (0.125, 0.25, 0.5, 1.0)),
    "gap": (gap, (0.25, 0.5, 1.0, 2.0)),
}


@dataclass(frozen=True, eq=False)
class Together:
    """Models as one, in some way; the deployed one always counts by itself."""

    deployed: Model
    members: Family
    way: Way
    setting: float

    def __call__(self, x: Tensor) -> Tensor:
        own = margins(self.deployed(x))
        several = torch.cat([own[None], margins(self.members.logits(x)).to(own)])
        return with_undecided(torch.minimum(own, self.way(several, self.setting)), 0.0)


def measured(cell: Cell, quick: bool) -> Iterator[dict[str, Any]]:
    x, target, space = cell.question
    rehearsed, judges = cell.families
    search = MinCost(norm=cell.norm)

    def found(way: Way, setting: float) -> Counterfactuals:
        answer = search(Together(cell.model, rehearsed, way, setting), x, target, space)
        return assess(cell.model, x, answer.point, target, space, also=answer.found)

    answers = {
        f"{name}, {setting:g}": timed(partial(found, way, setting))
        for name, (way, settings) in WAYS.items()
        for setting in (settings[:1] if quick else settings)
    }
    oracle = Rehearsed(judges, share=ACCEPTED, search=search)
    answers["oracle"] = timed(partial(oracle, cell.model, x, target, space))
    shown = ("dataset", "space", "norm", "method", "found", "found_of_possible", "rate", "of_oracle", "seconds")
    yield from ({name: row[name] for name in shown} for row in cell.beside_oracle(answers))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--datasets", nargs="+", default=list(PAPER_DATASETS), choices=PAPER_DATASETS)
    parser.add_argument("--rows", type=int, default=100)
    options = parser.parse_args()
    datasets, rows, members = (["german"], 4, (8, 10)) if options.quick else (options.datasets, options.rows, (32, 200))
    places = (("schema", 1),) if options.quick else (("schema", 1), ("free", 2))
    cells = [
        Cell(dataset, space, norm, "seeds", 0, rows, "cpu", members) for dataset in datasets for space, norm in places
    ]
    table = []
    with bar("cells", len(cells)) as advance:
        for cell in cells:
            table += list(measured(cell, options.quick))
            advance(1, f"{cell.dataset}, {cell.space}")
    show("Ways to ask several models at once", table, options.json)


if __name__ == "__main__":
    main()
