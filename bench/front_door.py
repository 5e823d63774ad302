"""From a table to advice that holds, for many people: how long each step takes.

HELOC, 96 retrained models: 32 are rehearsed, 32 select, and 32 are left for an audit. People whom the deployed model
refuses are searched for in the schema space, with relations and people, as far as a share of 0.95 of the models that
select accepts what is found. The search is cautious step by step: first so many of the rehearsed models must agree,
then all of them, then by a soft minimum, each step only for those whom the one before has not brought far enough.
Whoever has nothing at one step has nothing at the next, which asks for more.

    trees     100 boosted trees of 8 leaves (scikit-learn), refitted on bootstrapped rows
    xgboost   100 boosted trees of depth 4 (needs xgboost)
    networks  the recipe of HELOC, other seeds

    rows       people whom the step is for
    seconds    by the clock, with so many worker processes as --workers says
    alone      seconds of the first step of the search in this process alone, with --alone
    found      people with a counterfactual after the step
    holding    people whose counterfactual enough of the models that select accept

Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from _side_by_side import keep, parser_of, show, timed
from torch import Tensor

from holdfast import (
    PAPER_RECIPES,
    Counterfactuals,
    Family,
    Model,
    Rehearsed,
    Retraining,
    Space,
    as_model,
    changes,
    refit,
    seeds,
    train,
)
from holdfast.datasets.prepared import prepare
from holdfast.search.in_parts import search_in_parts

HOLD = 0.95
CAUTION = (HOLD - 1, 0.0, 0.2, 0.45, 0.7, 1.0)
CASES = ("trees", "xgboost", "networks")
WANTED = 1  # the class that people want: a good risk


@dataclass(frozen=True)
class Sizes:
    rows: int = 1000
    members: int = 32  # that rehearse, and as many that select, and that audit
    trees: int = 100
    epochs: int | None = None  # those of the recipe
    train: int | None = None  # rows that models are fitted on


def made(case: str, sizes: Sizes, workers: int) -> tuple[Any, Model, Family]:
    """The data, the deployed model and its retrainings."""
    data = prepare("heloc" if sizes.train is None else "german")
    table = data.train[: sizes.train]
    x, y, count = data.encoding.encode(table), data.encoding.labels(table), 3 * sizes.members
    if case == "networks":
        recipe = PAPER_RECIPES[data.card.name]
        recipe = recipe if sizes.epochs is None else replace(recipe, epochs=sizes.epochs)
        deployed = train(x, y, recipe, [Retraining()], workers=1)[0]
        return data, deployed, train(x, y, recipe, seeds(count), workers=workers)
    own = estimator(case, sizes.trees).fit(x.numpy(), y.numpy())
    model = as_model(own, data.encoding)
    return data, model, refit(model, table, changes.bootstrap(count), workers=workers)


def estimator(case: str, trees: int) -> Any:
    if case == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=trees, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=0)
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=trees, max_leaf_nodes=8, early_stopping=False, random_state=0)


def steps(case: str, sizes: Sizes, workers: int, alone: bool) -> Iterator[dict[str, Any]]:
    """One row for every step of an explanation."""
    start = time.perf_counter()
    (data, model, family), seconds = timed(partial(made, case, sizes, workers))
    rehearsal, selection = family[: sizes.members], family[sizes.members : 2 * sizes.members]
    x = data.encoding.encode(data.test)
    x = x[model(x).argmax(1) != WANTED][: sizes.rows]
    told = partial(dict, case=case)
    yield told(step="retrain", rows=len(data.train), seconds=seconds, alone=None, found=None, holding=None)
    question = model, x, torch.full((len(x),), WANTED), data.encoding.space
    best: Counterfactuals | None = None
    share, left = torch.zeros(len(x), dtype=torch.float64), torch.arange(len(x))
    for caution in CAUTION:
        method = Rehearsed(rehearsal).turned(caution)
        if not len(left):
            break
        answer, seconds = timed(partial(searched, method, question, left, workers))
        again = timed(partial(searched, method, question, left, 1))[1] if alone and best is None else None
        accepted, selecting = timed(partial(agreed, selection, model, answer))
        best = answer if best is None else better(best, answer, accepted > share[left], left)
        share[left] = torch.maximum(share[left], accepted)
        left = left[answer.found & (share[left] < HOLD)]
        done = {"found": int(best.found.sum()), "holding": int((share >= HOLD).sum())}
        yield told(step=f"caution {caution:g}", rows=len(answer), seconds=seconds, alone=again, **done)
        yield told(step="select", rows=len(answer), seconds=selecting, alone=None, **done)
    spent = time.perf_counter() - start
    yield told(step="in all", rows=len(x), seconds=spent, alone=None, **done)


def searched(
    method: Rehearsed, question: tuple[Model, Tensor, Tensor, Space], rows: Tensor, workers: int
) -> Counterfactuals:
    model, x, target, space = question
    return search_in_parts(method, model, x[rows], target[rows], space.of(rows), workers=workers)


def agreed(selection: Family, model: Model, answer: Counterfactuals) -> Tensor:
    """The share of the models that select which accept each counterfactual: (n,); 0 where there is none."""
    return Rehearsed(selection).agreement(model, answer).nan_to_num(0.0)


def better(best: Counterfactuals, answer: Counterfactuals, take: Tensor, rows: Tensor) -> Counterfactuals:
    """The best so far, with another answer for some of these rows."""
    taken = rows[take]
    point, found = best.point.clone(), best.found.clone()
    point[taken], found[taken] = answer.point[take], answer.found[take]
    return replace(best, point=point, found=found, seen=best.seen | answer.seen)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default=",".join(CASES), help="names of cases, joined by commas")
    parser.add_argument("--rows", type=int, default=Sizes.rows, help="people who are asked about")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--alone", action="store_true", help="search the first step once more in this process")
    options = parser.parse_args()
    quick = Sizes(rows=6, members=3, trees=8, epochs=2, train=300)
    sizes = quick if options.quick else Sizes(rows=options.rows)
    cases = ("trees", "networks") if options.quick else options.only.split(",")
    alone = options.alone or options.quick
    rows = [row for case in cases for row in steps(case, sizes, options.workers, alone)]
    show("From a table to advice that holds", rows)
    if options.json is not None:
        keep(options.json, {"front_door": rows})


if __name__ == "__main__":
    main()
