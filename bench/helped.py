"""For how many refused people is there a plan that holds, and where are the others lost?

    python bench/helped.py --only trees --cells FILE

HELOC, the first rows of the test split as people, boosted trees as `bench/front_door.py` has them and their refits to
bootstrapped rows, in the schema space, with relations and people. A plan holds if 95 % of the models of pool B accept
it, which no search and no selection has seen. What is possible is found by an oracle that may see pool A, all models
that rehearse or select: it rehearses with the whole of A, asks for more or for less, and keeps what holds. The others
are searched for as `Explainer.explain(people, hold=0.95)` does: 32 models rehearse, and 32, 100 or 200 select.

    trees     100 boosted trees of 8 leaves (scikit-learn)
    xgboost   100 boosted trees of depth 4 (needs xgboost)

    refused       people whom the deployed model does not give the class; each is in one of the next five columns
    impossible    without a plan, and for whom no search has found one that holds
    not found     without a plan, though one is possible: the search has found nothing
    lost          without a plan, though one is possible: the selection models refused all that was found
    given         the plan holds
    not held      the plan does not hold: less of pool B accept it
    possible      for whom a search has found a plan that holds, the oracle's or ours
    reached       of the possible: for whom ours has, before any selection
    kept          given, of those who were reached
    seconds       of search and selection

People are searched for in parts. With --cells an interrupted run goes on where it was, once the models are fitted
again. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from _side_by_side import parser_of, show, timed
from torch import Tensor

from front_door import HOLD, estimator
from holdfast import Counterfactuals, Family, MinCost, Rehearsed, as_model, changes, predict, refit
from holdfast.datasets.prepared import Prepared, prepare
from holdfast.explaining.searching import search_held
from holdfast.explaining.selection import Answers, Question
from holdfast.utils.files import append

Row = dict[str, Any]

CASES = ("trees", "xgboost")
CAUTIONS = (0.0, 0.2, -0.05, -0.035, -0.02)  # of the oracle; the first is quick and serves most people
SETTING = ("case", "rehearse", "select", "judges")


@dataclass(frozen=True)
class Models:
    case: str
    rehearsal: int = 32
    selection: tuple[int, ...] = (32, 100, 200)
    judges: int = 200
    trees: int = 100
    train: int | None = None  # rows of German Credit that models are fitted on, in the place of HELOC

    @cached_property
    def data(self) -> Prepared:
        return prepare("heloc" if self.train is None else "german")

    @cached_property
    def deployed(self) -> Any:
        table, encoding = self.data.train[: self.train], self.data.encoding
        numbers, labels = encoding.encode(table).numpy(), encoding.labels(table).numpy()
        return as_model(estimator(self.case, self.trees).fit(numbers, labels), encoding)

    @cached_property
    def family(self) -> Family:
        table = self.data.train[: self.train]
        return refit(self.deployed, table, changes.bootstrap(self.seen + self.judges))

    @property
    def seen(self) -> int:
        """How many rehearse or select: pool A."""
        return self.rehearsal + max(self.selection)

    @property
    def judged_by(self) -> Family:
        """Pool B."""
        return self.family[self.seen :]

    def selecting(self, count: int) -> Family:
        return self.family[self.rehearsal : self.rehearsal + count]

    def rehearsing(self, count: int) -> Rehearsed:
        return Rehearsed(self.family[:count], search=MinCost(norm=1))

    def holds(self, answer: Counterfactuals) -> Tensor:
        accepted = (self.judged_by.predict(answer.point) == answer.target).double().mean(0)
        return answer.found & (accepted >= HOLD - 1e-9)


@dataclass(frozen=True)
class People:
    models: Models
    places: range

    @cached_property
    def question(self) -> Question:
        """Those whom the deployed model refuses."""
        x = self.models.data.question(self.places.stop)[self.places.start :]
        refused = x[predict(self.models.deployed, x) != 1]
        target = torch.ones(len(refused), dtype=torch.int64)
        return Question(self.models.deployed, refused, target, self.models.data.encoding.space, plans=1)

    @property
    def nobody(self) -> Tensor:
        return torch.zeros(len(self.question.x), dtype=torch.bool)

    def oracle(self) -> Tensor:
        """For whom a search that sees pool A finds a plan that holds: (n,)."""
        held, hopeless = self.nobody, self.nobody
        method = self.models.rehearsing(self.models.seen)
        for caution in CAUTIONS:
            rows = torch.nonzero(~held & ~hopeless).flatten()
            if len(rows):
                answer = self.question.search(method.with_parameter(caution), rows).answers[0]
                held[rows] = self.models.holds(answer)
                # Who finds nothing that so few accept finds nothing that more accept.
                hopeless[rows] = ~answer.found & (caution < 0)
        return held

    def found(self) -> Tensor:
        """For whom our search finds anything, at the value of its parameter where it begins: (n,)."""
        method = self.models.rehearsing(self.models.rehearsal)
        first = min(value for value in method.parameter_values if value >= HOLD - 1)
        return self.question.search(method.with_parameter(first), torch.arange(len(self.nobody))).answers[0].found

    def given(self, selection: Family) -> tuple[Tensor, Tensor]:
        """Who is given a plan, and one that holds: (n,), (n,)."""
        method = self.models.rehearsing(self.models.rehearsal)
        answers: Answers = search_held(self.question, method, selection, HOLD).given
        have, held = self.nobody, self.nobody
        have[answers.place] = True
        held[answers.place] = self.models.holds(answers.counterfactuals)
        return have, held

    def counted(self) -> list[Row]:
        """How many people there are in each column, for each number of models that select."""
        oracle = took("the oracle", self.oracle)
        found = took("what the search finds", self.found)
        # Where those who judge select, nothing is lost.
        _, reached = took("what of it holds", partial(self.given, self.models.judged_by))
        possible = oracle | reached
        rows = []
        for count in self.models.selection:
            (have, held), seconds = timed(partial(self.given, self.models.selecting(count)))
            columns = {
                "refused": ~self.nobody,
                "impossible": ~have & ~possible,
                "not_found": ~have & possible & ~found,
                "lost": ~have & possible & found,
                "given": held,
                "not_held": have & ~held,
                "possible": possible,
                "reached": reached,
            }
            setting = (self.models.case, self.models.rehearsal, count, self.models.judges)
            numbers = {name: int(column.sum()) for name, column in columns.items()}
            rows.append(dict(zip(SETTING, setting, strict=True)) | numbers | {"seconds": seconds})
        return rows


def took(step: str, work: Callable[[], Any]) -> Any:
    result, seconds = timed(work)
    print(f"{step}: {seconds:.0f} s", flush=True)
    return result


def asked() -> argparse.Namespace:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default=",".join(CASES), help="names of cases, joined by commas")
    parser.add_argument("--rows", type=int, default=1000, help="people, refused or not")
    parser.add_argument("--part", type=int, default=200, help="people of one part")
    parser.add_argument("--rehearsal", type=int, default=Models.rehearsal, help="models that rehearse")
    parser.add_argument("--selection", nargs="+", type=int, default=Models.selection, help="models that select")
    parser.add_argument("--judges", type=int, default=Models.judges, help="models of pool B")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes that fit, threads that search")
    parser.add_argument("--cells", type=Path, metavar="FILE", help="keep the parts that are done there")
    return parser.parse_args()


def parts(options: argparse.Namespace) -> list[People]:
    if options.quick:
        return [People(Models("trees", 4, (4, 8), judges=8, trees=8, train=300), range(80))]
    sizes = options.rehearsal, tuple(options.selection), options.judges
    places = [range(start, min(start + options.part, options.rows)) for start in range(0, options.rows, options.part)]
    cases = [Models(case, *sizes) for case in options.only.split(",")]
    return [People(models, own) for models in cases for own in places]


def rows_of(people: People, cells: Path | None) -> list[Row]:
    """Read, or counted and kept."""
    models = people.models
    key = [
        models.case,
        models.rehearsal,
        list(models.selection),
        models.judges,
        people.places.start,
        people.places.stop,
    ]
    for line in cells.read_text().splitlines() if cells is not None and cells.exists() else ():
        known, rows = json.loads(line)
        if known == key:
            return list(rows)
    took(f"{models.case}: {models.seen + models.judges} refits", lambda: models.family)
    rows = people.counted()
    if cells is not None:
        append(cells, (json.dumps([key, rows]) + "\n").encode())
    return rows


def main() -> None:
    options = asked()
    os.environ["LOKY_MAX_CPU_COUNT"] = str(options.workers)
    rows = [row for people in parts(options) for row in rows_of(people, options.cells)]
    total = pd.DataFrame(rows).groupby(list(SETTING), sort=False).sum().reset_index()
    total["kept"] = total["given"] / total["reached"]
    total["reached"] /= total["possible"]
    table = [{str(name): value for name, value in row.items()} for row in total.to_dict("records")]
    show("Plans that hold, and where the others are lost", table, options.json)


if __name__ == "__main__":
    main()
