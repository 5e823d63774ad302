"""From a table to advice that holds, for many people: how long it takes, and how many have a plan.

HELOC, the first rows of the test split as people, 96 retrained models (32 rehearse, 32 select, 32 audit), and advice
that 95 % of the models that select accept: `Explainer.explain(people, hold=0.95)`, in the schema space, with relations
and people. People whom the deployed model accepts already are told so and are not searched for.

    trees     100 boosted trees of 8 leaves (scikit-learn), refitted on bootstrapped rows
    xgboost   100 boosted trees of depth 4 (needs xgboost), refitted on bootstrapped rows
    networks  the recipe of HELOC, other seeds

    refused      people whom the deployed model does not give the class
    with plan    people with a plan that holds
    invalidated  share of the plans that the audit models invalidate
    retrain, explain, in all   seconds by the clock, with so many worker processes as --workers says
    alone        seconds that explain takes in one process, with --alone

Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from _side_by_side import keep, parser_of, show, timed

from holdfast import Advice, Explainer, changes, seeds
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES

HOLD = 0.95
CASES = ("trees", "xgboost", "networks")


@dataclass(frozen=True)
class Sizes:
    rows: int = 1000
    models: int = 96
    trees: int = 100
    epochs: int | None = None  # those of the recipe
    train: int | None = None  # rows that models are fitted on


def explainer(case: str, sizes: Sizes, workers: int) -> tuple[Explainer, Any]:
    """What explains, and the people."""
    data = prepare("heloc" if sizes.train is None else "german")
    table = data.train[: sizes.train]
    given: dict[str, Any] = {"schema": data.schema, "want": data.schema.classes[1], "workers": workers}
    given["scaling"] = data.encoding.scaling
    if case == "networks":
        recipe = PAPER_RECIPES[data.card.name]
        recipe = recipe if sizes.epochs is None else replace(recipe, epochs=sizes.epochs)
        own = Explainer(recipe, table, retrain=seeds(sizes.models), **given)
    else:
        numbers = data.encoding.encode(table).numpy()
        model = estimator(case, sizes.trees).fit(numbers, data.encoding.labels(table).numpy())
        own = Explainer(model, table, retrain=changes.bootstrap(sizes.models), **given)
    return own, data.test[: sizes.rows]


def estimator(case: str, trees: int) -> Any:
    if case == "xgboost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=trees, max_depth=4, learning_rate=0.1, n_jobs=1, random_state=0)
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=trees, max_leaf_nodes=8, early_stopping=False, random_state=0)


def row(case: str, sizes: Sizes, workers: int, alone: bool) -> dict[str, Any]:
    (own, people), preparing = timed(partial(explainer, case, sizes, workers))
    _, retraining = timed(lambda: own.roles)
    advice: Advice
    advice, explaining = timed(partial(own.explain, people, hold=HOLD))
    about = advice.summary()
    audited = about["audited"]
    return {
        "case": case,
        "people": len(advice),
        "refused": len(advice) - about["have_the_class"],
        "with plan": about["with_a_plan"],
        "invalidated": audited[0]["invalidated"] if audited else None,
        "retrain": retraining,
        "explain": explaining,
        "in all": preparing + retraining + explaining,
        "alone": timed(partial(replaced(own).explain, people, hold=HOLD))[1] if alone else None,
    }


def replaced(own: Explainer) -> Explainer:
    """The same explainer with one process, and the models that it has."""
    other = replace(own, workers=1, retrain=own.family)
    vars(other)["deployed"] = own.deployed
    return other


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default=",".join(CASES), help="names of cases, joined by commas")
    parser.add_argument("--rows", type=int, default=Sizes.rows, help="people who are asked about")
    parser.add_argument("--workers", type=int, default=2, help="worker processes")
    parser.add_argument("--alone", action="store_true", help="explain once more in one process")
    options = parser.parse_args()
    quick = Sizes(rows=8, models=9, trees=8, epochs=2, train=300)
    sizes = quick if options.quick else Sizes(rows=options.rows)
    cases = ("trees", "networks") if options.quick else options.only.split(",")
    rows = [row(case, sizes, options.workers, options.alone or options.quick) for case in cases]
    show("From a table to advice that holds", rows)
    if options.json is not None:
        keep(options.json, {"front_door": rows})


if __name__ == "__main__":
    main()
