"""A user's own boosted trees, retrained: how long an audit by refits takes, and how often they invalidate.

First table: histogram boosting of HELOC with scikit-learn's defaults as the deployed model, 100 refits on bootstrapped
rows, a search for the cheapest counterfactuals of people from the test rows, and the audit of these.

Second table, for every dataset: the first people of the test rows and the class that they do not have, in the schema
space, people included. Deployed are the paper's networks, boosted trees without sampling (scikit-learn's defaults) and
boosted trees that sample rows and columns (XGBoost), each audited by its own retrainings.

    equal         retrained models that answer exactly like the deployed one on all rows
    invalidated   share of pairs of a counterfactual and a retrained model, with its 95 % limits
    flips         share of the people themselves whom retraining gives another class

`min-l1` is the cheapest valid point, `margin` the cheapest at which the deployed model is 75 % sure. Datasets are found
through HOLDFAST_DATA. With --quick everything is a few small models of German Credit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
from _side_by_side import keep, parser_of, show, timed

from holdfast import (
    Encoding,
    Family,
    Margin,
    MinCost,
    Retraining,
    as_model,
    audit,
    changes,
    other_class,
    refit,
    seeds,
    train,
)
from holdfast.datasets.prepared import Prepared, prepare
from holdfast.families.changes import leave_one_out
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.merged import merged
from holdfast.models.model import Model
from holdfast.search.counterfactuals import Method

DATASETS = ("german", "heloc", "taiwan", "ctg", "warfarin", "seizure")
MERGED = {"warfarin": ((0,), (1, 2))}  # as in the paper: two classes of three
METHODS: dict[str, Method] = {"min-l1": MinCost(norm=1), "margin": Margin(search=MinCost(norm=1))}
PEOPLE, MEMBERS = 100, 100


# ---- the deployed models ----


def numbers(table: pd.DataFrame, encoding: Encoding) -> Any:
    return encoding.encode(table).numpy()


def plain_trees(data: Prepared, small: bool) -> Model:
    """As scikit-learn makes them: no seed changes them."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    own = HistGradientBoostingClassifier(max_iter=10 if small else 100, early_stopping=False)
    return as_model(own.fit(numbers(data.train, data.encoding), data.train[data.encoding.schema.label]), data.encoding)


def sampled_trees(data: Prepared, small: bool) -> Model:
    """Each tree sees some of the rows and of the columns."""
    from xgboost import XGBClassifier

    own = XGBClassifier(n_estimators=10 if small else 100, max_depth=4, learning_rate=0.1, subsample=0.8,
                        colsample_bytree=0.8, n_jobs=1, random_state=0)  # fmt: skip
    return as_model(own.fit(numbers(data.train, data.encoding), data.rows[1].numpy()), data.encoding)


Deployed = tuple[Model, Callable[[list[Retraining]], Family]]  # and how it is retrained


def network(data: Prepared, small: bool) -> Deployed:
    x, y = data.rows
    recipe = replace(PAPER_RECIPES[data.card.name], epochs=5) if small else PAPER_RECIPES[data.card.name]
    return train(x, y, recipe, [Retraining()])[0], lambda members: train(x, y, recipe, members)


def trees(make: Callable[[Prepared, bool], Model]) -> Callable[[Prepared, bool], Deployed]:
    def made(data: Prepared, small: bool) -> Deployed:
        model = make(data, small)
        return model, lambda members: refit(model, data.train, members)

    return made


MODELS: dict[str, Callable[[Prepared, bool], Deployed]] = {
    "network": network,
    "boosted": trees(plain_trees),
    "boosted, sampled": trees(sampled_trees),
}


# ---- the two tables ----


def joined(name: str, model: Model, family: Family) -> tuple[Model, Family]:
    """Both with the classes that the paper has."""
    return (merged(model, MERGED[name]), family.merged(MERGED[name])) if name in MERGED else (model, family)


def one_audit(name: str, members: int, people: int, small: bool) -> dict[str, Any]:
    data = prepare(name)
    model = plain_trees(data, small)
    x = data.encoding.encode(data.test[:people])
    family, fitting = timed(lambda: refit(model, data.train, changes.bootstrap(members)))
    found, searching = timed(lambda: METHODS["min-l1"](model, x, other_class(model, x), data.encoding.space))
    result, auditing = timed(lambda: audit(found, family))
    seconds = {"refit_s": fitting, "search_s": searching, "audit_s": auditing, "all_s": fitting + searching + auditing}
    return {"dataset": name, "members": members, "rows": len(x), "found": int(found.found.sum()),
            "invalidated": result.rate, **seconds}  # fmt: skip


def invalidation(name: str, members: int, people: int, small: bool) -> list[dict[str, Any]]:
    data, rows = prepare(name), []
    for kind, make in MODELS.items():
        model, retrained = make(data, small)
        x = data.encoding.encode(data.test[:people])
        family = retrained([*seeds(members), *leave_one_out(members, len(data.train)), *changes.bootstrap(members)])
        model, family = joined(name, model, family)
        for method, search in METHODS.items():
            result = audit(search(model, x, other_class(model, x), data.encoding.space), family)
            for change, part in result.by_kind.items():
                low, high = part.interval()
                rows.append(
                    {
                        "dataset": name,
                        "model": kind,
                        "method": method,
                        "change": change,
                        "rows": len(x),
                        "members": members,
                        "found": int(result.counterfactuals.found.sum()),
                        "equal": int(part.same.sum()),
                        "invalidated": part.rate,
                        "low": low,
                        "high": high,
                        "flips": part.baseline_flips,
                    }
                )
    return rows


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default=",".join(DATASETS), help="names of datasets, joined by commas")
    parser.add_argument("--members", type=int, default=MEMBERS, help="retrained models of every kind")
    options = parser.parse_args()
    quick = options.quick
    warnings.filterwarnings(
        "ignore", message="all .* refits of kind 'seeds' are one model"
    )  # the column "equal" says it
    names = DATASETS[:1] if quick else options.only.split(",")
    first = []
    if quick or "heloc" in names:
        first = [one_audit(*(("german", 3, 5, True) if quick else ("heloc", MEMBERS, PEOPLE, False)))]
        show("An audit by refitted boosted trees", first)
    rows = []
    for name in names:
        rows += invalidation(name, *((3, 5, True) if quick else (options.members, PEOPLE, False)))
    show("Invalidated by retraining: boosted trees beside networks", rows)
    if options.json is not None:
        keep(options.json, {"audit": first, "invalidation": rows})


if __name__ == "__main__":
    main()
