"""Searching inside an ensemble of trees, beside the proven optimum.

Gradient boosting of scikit-learn on the datasets, searched for people of the test split in the space without relations
and people: what a solver can express. The optimum is that of OR-tools' CP-SAT on one thread, over the same values that
the search may tell a person: a Boolean for every leaf and for every cell, leaf values and prices as whole millionths.

    found, missed   rows with an answer, and rows without one for which the solver has one
    ratio           mean cost over the mean of the proven optima
    worst           the largest ratio of one row
    optimal         share of the rows that cost no more than the optimum
    ms a row        of the search, for as many rows as ``batch`` says, all that is prepared for a search included; by
                    the clock, and of the processor, where others use the machine too

With --large, 300 trees of 31 leaves: against what the solver has found after --seconds, proven or not ("no dearer").
Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import torch
from _side_by_side import parser_of, show, timed
from numpy.typing import NDArray
from torch import Tensor

from holdfast import MinCost, Space, as_model, other_class
from holdfast.datasets.prepared import Prepared, prepare
from holdfast.models.checked import checked_model
from holdfast.models.scores import margin
from holdfast.models.trees.ensemble import Ensemble
from holdfast.search.engine.board import board_of
from holdfast.search.engine.search import wanted_of
from holdfast.search.gradients import LEAST_SCORE
from holdfast.search.task import Task
from holdfast.utils.progress import bar

MILLIONTHS = 1_000_000
NO_DEARER = 1e-4  # of a cost, and in itself, is rounding


@dataclass(frozen=True, eq=False)
class Case:
    """A dataset, an ensemble, and people."""

    data: Prepared
    trees: int
    leaves: int
    norm: int
    batch: int

    @cached_property
    def model(self) -> Any:
        from sklearn.compose import make_column_transformer
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder

        schema, table = self.data.schema, self.data.train
        levels = [feature.name for feature in schema.features if not feature.is_numeric]
        coded = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
        pipeline = make_pipeline(
            make_column_transformer((coded, levels), remainder="passthrough"),
            HistGradientBoostingClassifier(
                max_iter=self.trees, max_leaf_nodes=self.leaves, early_stopping=False, random_state=0
            ),
        )
        return as_model(pipeline.fit(table[list(schema.names)], table[schema.label]), self.data.encoding)

    @property
    def ensemble(self) -> Ensemble:
        assert self.model.ensemble is not None, "these trees were not read"
        return self.model.ensemble

    @cached_property
    def rows(self) -> Tensor:
        """So many people of the test split, from the start again where it has fewer."""
        test = self.data.test
        return self.data.encoding.encode(pd.concat([test] * -(-self.batch // len(test))).iloc[: self.batch])

    @cached_property
    def space(self) -> Space:
        return replace(self.data.encoding.space, people=None, related=None).to(self.rows)

    @cached_property
    def task(self) -> Task:
        return Task(checked_model(self.model), self.rows, other_class(self.model, self.rows), self.space, self.norm)

    @cached_property
    def beside(self) -> tuple[Tensor, ...]:
        """Of every feature of the ensemble the encoded values that the search may tell beside its thresholds."""
        wanted = wanted_of(self.task.model, margin)
        assert wanted is not None
        board, _ = board_of(self.space, self.norm)
        forest, columns = wanted.models(board).forest, board.features["column"].tolist()
        found = []
        for _, place in self.data.encoding.places:
            at = columns.index(place.start)
            own = slice(int(forest.first_edge[at]), int(forest.first_edge[at + 1]))
            values = np.concatenate([forest.below[own], forest.above[own]])
            found.append(torch.from_numpy(values[~np.isnan(values)]).to(self.rows))
        return tuple(found)

    def cells(self, row: int) -> list[NDArray[np.float64]]:
        """What it costs to be in each cell of each feature; infinite where nobody can go."""
        own, counts = self.task.of(torch.tensor([row])), self.ensemble.counts()
        return [self._cost_of_cells(own, number, count) for number, count in enumerate(counts)]

    def _cost_of_cells(self, own: Task, number: int, count: int) -> NDArray[np.float64]:
        encoding = self.data.encoding
        feature, columns = encoding.places[number]
        if feature.is_numeric:
            tried = own.origin.repeat(len(self.beside[number]) + 1, 1)
            tried[1:, columns.start] = self.beside[number]
        else:
            levels = encoding.decode(own.origin).iloc[np.zeros(len(feature.values), dtype=int)]
            told = encoding.encode(levels.assign(**{feature.name: list(feature.values)}), own.origin.dtype)
            tried = torch.cat([own.origin, told])
        many = own.of(torch.zeros(len(tried), dtype=torch.long))
        paid = torch.where(many.space.violations(tried, many.origin).any(1), torch.inf, many.cost(tried))
        cost = np.full(count, np.inf)
        np.minimum.at(cost, self.ensemble.cells_of(encoding.raw(tried))[:, number], paid.double().numpy())
        return cost


# ---- the solver ----


def proven(case: Case, row: int, seconds: float) -> tuple[float, bool]:
    """The least cost that the solver finds for a row, infinite if there is none, and whether that is proven."""
    from ortools.sat.python import cp_model

    ensemble = case.ensemble
    sign = 1 if int(case.task.target[row]) == 1 else -1
    model = cp_model.CpModel()
    inside, price = cells(model, ensemble, case.cells(row))
    gained = [term for root in ensemble.roots for term in tree(model, ensemble, inside, int(root), sign)]
    # Every leaf is rounded by half a millionth at most: a whole one is allowed for, in the optimum's favour.
    least = (LEAST_SCORE - sign * float(ensemble.base[0])) * MILLIONTHS - len(ensemble.roots)
    model.add(sum(gained) >= int(np.floor(least)))
    model.minimize(sum(price))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds, solver.parameters.num_workers = seconds, 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return float("inf"), True
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return float("inf"), False
    return solver.objective_value / MILLIONTHS, status == cp_model.OPTIMAL


def cells(model: Any, ensemble: Ensemble, cost: list[NDArray[np.float64]]) -> tuple[list[Any], list[Any]]:
    """For every feature a function from a set of its cells to literals of which one is true inside, and the price.

    A number is written by order: a Boolean for "at most cell i". Levels have a Boolean each.
    """
    inside, price = [], []
    true = model.new_constant(1)
    for feature, own in zip(ensemble.features, cost, strict=True):
        if feature.is_numeric and not feature.missing:
            upto = [*(model.new_bool_var("") for _ in own[:-1]), true]
            for before, after in pairwise(upto):
                model.add_implication(before, after)
            for place, paid in enumerate(own):
                here = upto[place] - (upto[place - 1] if place else 0)
                if np.isfinite(paid):
                    price.append(int(np.floor(paid * MILLIONTHS)) * here)
                else:
                    model.add(here == 0)
            inside.append(upto)
        else:
            each = [model.new_bool_var("") for _ in own]
            model.add_exactly_one(each)
            for chosen, paid in zip(each, own, strict=True):
                if np.isfinite(paid):
                    price.append(int(np.floor(paid * MILLIONTHS)) * chosen)
                else:
                    model.add(chosen == 0)
            inside.append(each)
    return inside, price


def tree(model: Any, ensemble: Ensemble, inside: list[Any], root: int, sign: int) -> list[Any]:
    """What one tree adds to the score: exactly one of its leaves, whose way must be open."""
    leaves, gained, waiting = [], [], [(root, [])]
    while waiting:
        node, conditions = waiting.pop()
        place = int(ensemble.feature[node])
        if place < 0:
            leaf = model.new_bool_var("")
            for condition in conditions:
                model.add_bool_or([leaf.negated(), *condition])
            leaves.append(leaf)
            gained.append(round(sign * float(ensemble.value[node, 0]) * MILLIONTHS) * leaf)
            continue
        left, right = ways(ensemble, inside[place], node, place)
        waiting += [(int(ensemble.left[node]), [*conditions, left]), (int(ensemble.right[node]), [*conditions, right])]
    model.add_exactly_one(leaves)
    return gained


def ways(ensemble: Ensemble, own: list[Any], node: int, place: int) -> tuple[list[Any], list[Any]]:
    """Literals of which one is true where a node goes left, and where it goes right."""
    feature, split = ensemble.features[place], int(ensemble.split[node])
    if feature.is_numeric and not feature.missing:
        return [own[split]], [own[split].negated()]
    if feature.is_numeric:
        left = [*(cell <= split for cell in range(len(own) - 1)), bool(ensemble.missing_left[node])]
    else:
        left = ensemble.sets[split][: len(own)].tolist()
    return (
        [cell for cell, goes in zip(own, left, strict=True) if goes],
        [cell for cell, goes in zip(own, left, strict=True) if not goes],
    )


# ---- the comparison ----


def compared(case: Case, rows: int, seconds: float, advance: Any) -> dict[str, Any]:
    search, task = MinCost(norm=case.norm), case.task
    some = task.of(torch.zeros(1, dtype=torch.long))
    search.cheapest(task.model, some.origin, some.target, some.space, margin)  # compiled, or read from the cache
    begun = time.process_time()
    point, took = timed(lambda: search.cheapest(task.model, task.origin, task.target, task.space, margin))
    worked = time.process_time() - begun
    cost = np.where(case.task.enough(point).numpy(), case.task.cost(point).double().numpy(), np.inf)
    best, sure = np.full(rows, np.inf), np.zeros(rows, dtype=bool)
    for row in range(rows):
        best[row], sure[row] = proven(case, row, seconds)
        advance(1, f"{case.data.card.name}, {case.trees} x {case.leaves}")
    own, both = cost[:rows], np.isfinite(best) & np.isfinite(cost[:rows])
    ratio = own[both] / np.maximum(best[both], 1e-9)
    judged = MinCost(norm=case.norm)(case.model, case.rows[:rows], case.task.target[:rows], case.space)
    return {
        "dataset": case.data.card.name,
        "trees": f"{case.trees} x {case.leaves}",
        "norm": case.norm,
        "solved": rows,
        "proven": int(sure.sum()),
        "found": int(np.isfinite(own).sum()),
        "by_the_model": int(judged.found.sum()),
        "missed": int((np.isfinite(best) & ~np.isfinite(own)).sum()),
        "ratio": float(own[both].mean() / best[both].mean()),
        "worst": float(ratio.max()),
        "no_dearer": float((own[both] <= best[both] * (1 + NO_DEARER) + NO_DEARER).mean()),
        "batch": case.batch,
        "ms_a_row": 1000 * took / case.batch,
        "processor_ms": 1000 * worked / case.batch,
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="german,heloc", help="names of datasets of two classes, joined by commas")
    parser.add_argument("--rows", type=int, default=40, help="for which the solver looks for the optimum")
    parser.add_argument("--batch", type=int, default=1000, help="rows that are searched")
    parser.add_argument("--norm", type=int, default=1, choices=(1, 2))
    parser.add_argument("--seconds", type=float, default=60, help="that the solver has for a row")
    parser.add_argument("--large", action="store_true", help="300 trees of 31 leaves, not 100 of 8")
    options = parser.parse_args()
    size = (300, 31) if options.large else (100, 8)
    rows, batch = options.rows, options.batch
    names = options.only.split(",")
    if options.quick:
        names, rows, batch, size = ["german"], 3, 20, (20, 4)
    found = []
    with bar("optima", len(names) * rows) as advance:
        for name in names:
            case = Case(prepare(name), *size, options.norm, max(batch, rows))
            found.append(compared(case, rows, options.seconds, advance))
    show("Inside trees, beside the optimum", found, options.json)


if __name__ == "__main__":
    main()
