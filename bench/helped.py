"""For how many refused people is there a plan that holds, and where are the others lost?

    python bench/helped.py --only trees

HELOC, the first rows of the test split as people, boosted trees as `bench/front_door.py` has them and their refits to
bootstrapped rows, in the schema space, with relations and people. A plan holds if 95 % of the models of pool B accept
it, which no search and no selection has seen. What is possible is found by an oracle that may see pool A, all models
that rehearse or select: the searches rehearse with the whole of A and ask for more and more, until a plan holds. Each
way is `Explainer.explain(people, hold=0.95)`: 32 models rehearse, and 32, 100 or 200 select.

    trees     100 boosted trees of 8 leaves (scikit-learn)
    xgboost   100 boosted trees of depth 4 (needs xgboost)

    refused       people whom the deployed model does not give the class; each is in one of the next five columns
    impossible    without a plan, where nothing was found that holds, by the oracle either
    not found     without a plan, though one is possible: the search has found nothing
    lost          without a plan, though one is possible: the selection models refused all that was found
    given         the plan holds
    not held      the plan does not hold: pool B accepts it by less
    possible      for whom a plan that holds was found at all
    reached       of the possible: for whom the search had found a plan that holds, before any selection
    kept          of the reached: who were given a plan that holds
    seconds       of search and selection, by the clock

Refits are kept in the store of families. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from _side_by_side import keep, parser_of, show, timed
from torch import Tensor

from front_door import HOLD, estimator
from holdfast import Counterfactuals, Family, MinCost, Rehearsed, as_model, changes, predict, refit
from holdfast.datasets.prepared import prepare
from holdfast.explaining.searching import Answers, Question, search_held
from holdfast.families.entries import default_store

Row = dict[str, Any]

CASES = ("trees", "xgboost")
CAUTIONS = (-0.05, -0.04, -0.03, -0.02, -0.01, 0.0, 0.1, 0.2, 0.45, 1.0)  # of the oracle


@dataclass(frozen=True)
class Setting:
    case: str
    rows: int = 1000
    rehearsal: int = 32
    selection: tuple[int, ...] = (32, 100, 200)
    judges: int = 200
    trees: int = 100
    train: int | None = None  # rows of German Credit that models are fitted on, in the place of HELOC

    @cached_property
    def question(self) -> Question:
        """The people whom the deployed model refuses."""
        x = self.data.question(self.rows)
        refused = torch.nonzero(predict(self.deployed, x) != 1).flatten()
        target = torch.ones(len(refused), dtype=torch.int64)
        return Question(self.deployed, x[refused], target, self.data.encoding.space, plans=1)

    @cached_property
    def data(self) -> Any:
        return prepare("heloc" if self.train is None else "german")

    @cached_property
    def deployed(self) -> Any:
        table, encoding = self.data.train[: self.train], self.data.encoding
        numbers, labels = encoding.encode(table).numpy(), encoding.labels(table).numpy()
        return as_model(estimator(self.case, self.trees).fit(numbers, labels), encoding)

    @cached_property
    def family(self) -> Family:
        table = self.data.train[: self.train]
        return refit(self.deployed, table, changes.bootstrap(self.seen + self.judges), store=default_store())

    @property
    def seen(self) -> int:
        """How many models rehearse or select: pool A."""
        return self.rehearsal + max(self.selection)

    @property
    def judged_by(self) -> Family:
        """Pool B."""
        return self.family[self.seen :]

    @property
    def method(self) -> Rehearsed:
        return Rehearsed(self.family[: self.rehearsal], search=MinCost(norm=1))

    def holds(self, answer: Counterfactuals) -> Tensor:
        accepted = (self.judged_by.predict(answer.point) == answer.target).double().mean(0)
        return answer.found & (accepted >= HOLD - 1e-9)

    def oracle(self) -> Tensor:
        """For whom a search that sees pool A finds a plan that holds: (n,)."""
        held = torch.zeros(len(self.question.x), dtype=torch.bool)
        method = Rehearsed(self.family[: self.seen], search=MinCost(norm=1))
        for caution in CAUTIONS:
            rows = torch.nonzero(~held).flatten()
            held[rows] = self.holds(self.question.search(method.turned(caution), rows).answers[0])
        return held

    def found(self) -> Tensor:
        """For whom the search finds anything, at the value of its knob where it begins: (n,)."""
        first = min(value for value in self.method.knobs if value >= HOLD - 1)
        return self.question.search(self.method.turned(first), torch.arange(len(self.question.x))).answers[0].found

    def given(self, selection: Family) -> Answers:
        return search_held(self.question, self.method, selection, HOLD).given

    def whose(self, answers: Answers) -> tuple[Tensor, Tensor]:
        """Who has a plan, and who has one that holds: (n,), (n,)."""
        have, held = (torch.zeros(len(self.question.x), dtype=torch.bool) for _ in range(2))
        have[answers.place] = True
        held[answers.place] = self.holds(answers.counterfactuals)
        return have, held


def rows_of(setting: Setting) -> Iterator[Row]:
    took(f"{setting.case}: {setting.seen + setting.judges} refits", lambda: setting.family)
    oracle = took("the oracle", setting.oracle)
    found = took("what the search finds", setting.found)
    # Where those who judge select, nothing is lost.
    _, reached = setting.whose(took("what of it holds", partial(setting.given, setting.judged_by)))
    possible = oracle | reached
    for models in setting.selection:
        answers, seconds = timed(partial(setting.given, setting.family[setting.rehearsal :][:models]))
        have, held = setting.whose(answers)
        none = possible & ~have
        yield {
            "case": setting.case,
            "rehearse": setting.rehearsal,
            "select": models,
            "refused": len(have),
            "impossible": int((~possible & ~have).sum()),
            "not_found": int((none & ~found).sum()),
            "lost": int((none & found).sum()),
            "given": int(held.sum()),
            "not_held": int((have & ~held).sum()),
            "possible": int(possible.sum()),
            "reached": share(reached, possible),
            "kept": share(held & reached, reached),
            "seconds": seconds,
        }


def took(step: str, work: Callable[[], Any]) -> Any:
    result, seconds = timed(work)
    print(f"{step}: {seconds:.0f} s", flush=True)
    return result


def share(part: Tensor, whole: Tensor) -> float:
    return float((part & whole).sum() / whole.sum()) if whole.any() else float("nan")


def settings(options: Any) -> list[Setting]:
    if options.quick:
        return [Setting("trees", rows=80, rehearsal=4, selection=(4, 8), judges=8, trees=8, train=300)]
    sizes = options.rows, options.rehearsal, tuple(options.selection), options.judges
    return [Setting(case, *sizes) for case in options.only.split(",")]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default=",".join(CASES), help="names of cases, joined by commas")
    parser.add_argument("--rows", type=int, default=Setting.rows, help="people, refused or not")
    parser.add_argument("--rehearsal", type=int, default=Setting.rehearsal, help="models that rehearse")
    parser.add_argument("--selection", nargs="+", type=int, default=Setting.selection, help="models that select")
    parser.add_argument("--judges", type=int, default=Setting.judges, help="models of pool B")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes that fit, threads that search")
    options = parser.parse_args()
    os.environ["LOKY_MAX_CPU_COUNT"] = str(options.workers)
    rows = []
    for setting in settings(options):
        for row in rows_of(setting):
            rows.append(row)
            if options.json is not None:
                keep(options.json, rows)
    show("Plans that hold, and where the others are lost", rows)


if __name__ == "__main__":
    main()
