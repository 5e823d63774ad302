"""A user's own boosted trees, retrained: how long an audit by refits takes, and how often they invalidate.

First table: histogram boosting of HELOC with scikit-learn's defaults as the deployed model, 100 refits on bootstrapped
rows, a search for the cheapest counterfactuals of people whom the deployed model refuses, and the audit of these.

Second table: the same people, with the paper's networks, boosted trees without sampling (scikit-learn's defaults) and
boosted trees that sample rows and columns (XGBoost) as the deployed model, each audited by its own retrainings.

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
from _side_by_side import flags, keep, show, timed
from torch import Tensor

from holdfast import (
    PAPER_RECIPES,
    Encoding,
    Family,
    Margin,
    Method,
    MinCost,
    Model,
    Retraining,
    as_model,
    audit,
    changes,
    leave_one_out,
    other_class,
    predict,
    refit,
    seeds,
    train,
)
from holdfast.datasets.prepared import Prepared, prepare

DATASETS = ("german", "heloc", "taiwan")
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


def refused(model: Model, data: Prepared, count: int) -> Tensor:
    """The first people of the test rows whom the model gives the first class, the bad one in all three datasets."""
    x = data.encoding.encode(data.test)
    return x[predict(model, x) == 0][:count]


def one_audit(name: str, members: int, people: int, small: bool) -> dict[str, Any]:
    data = prepare(name)
    model = plain_trees(data, small)
    x = refused(model, data, people)
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
        x = refused(model, data, people)
        family = retrained([*seeds(members), *leave_one_out(members, len(data.train)), *changes.bootstrap(members)])
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
    options = flags(__doc__)
    quick = options.quick
    warnings.filterwarnings(
        "ignore", message="all .* refits of kind 'seeds' are one model"
    )  # the column "equal" says it
    first = one_audit(*(("german", 3, 5, True) if quick else ("heloc", MEMBERS, PEOPLE, False)))
    show("An audit by refitted boosted trees", [first])
    rows = []
    for name in DATASETS[:1] if quick else DATASETS:
        rows += invalidation(name, *((3, 5, True) if quick else (MEMBERS, PEOPLE, False)))
    show("Invalidated by retraining: boosted trees beside networks", rows)
    if options.json is not None:
        keep(options.json, {"audit": first, "invalidation": rows})


if __name__ == "__main__":
    main()
