"""Methods side by side, and what predicts invalidation: the paper's central claim.

Every method, and SNS on three of them, on 200 test rows of each dataset in the paper's free space, one deployed
network, 100 networks with new seeds and 100 that leave a row out. Shown are the comparison on the rows that all methods
found (methods that find less than half are left out of it), and for each predictor its rank correlation with how often
a counterfactual is invalidated, all methods together, with limits from resampling people. The paper reports that cost
explains next to nothing (its R²). Families are kept in a store and found again. Datasets are found through
HOLDFAST_DATA.
"""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
from _side_by_side import flags, keep, show

from holdfast import PGD, SNS, Audit, Retraining, Space, audit, compare, make_method, other_class, predict, seeds, train
from holdfast.auditing.comparison import Comparison
from holdfast.auditing.predictors import diagnostics, predictors, what_predicts
from holdfast.datasets import DATASETS
from holdfast.datasets.prepared import prepare
from holdfast.families.changes import leave_one_out
from holdfast.families.entries import default_store
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.merged import merged
from holdfast.models.model import Model
from holdfast.paper.study import GROUPS

RADII = {"german": 3.0, "seizure": 3.0, "ctg": 0.2, "warfarin": 0.5, "heloc": 2.1, "taiwan": 5.0}  # the paper's
METHODS = ("min-l1", "min-l2", "pgd", "prototype", "latent", "margin")
WITH_SNS = ("min-l1", "min-l2", "pgd")


def study(name: str, methods: tuple[str, ...], rows: int, members: int) -> tuple[Comparison, list[dict[str, Any]]]:
    data = prepare(name)
    (x, y), question = data.rows, data.question(rows)
    recipe, space = PAPER_RECIPES[name], Space.free(x)
    changes = seeds(members) + leave_one_out(members, len(x))
    family = train(x, y, recipe, changes, store=default_store(), progress=True)
    network = train(x, y, recipe, [Retraining()])[0]
    model: Model = network
    if name in GROUPS:
        model, family = merged(network, GROUPS[name]), family.merged(GROUPS[name])
    target = other_class(model, question)
    audits: dict[str, Audit] = {}
    for method in methods:
        start = time.perf_counter()
        search = PGD(radius=RADII[name]) if method == "pgd" else make_method(method).fit(x, y, space)
        found = search(model, question, target, space)
        audits[method] = audit(found, family)
        if method in WITH_SNS:
            audits[f"{method}+sns"] = audit(SNS(radius=0.8 * RADII[name])(model, found, space), family)
        print(f"{name} {method}: {time.perf_counter() - start:.0f} s", flush=True)
    classes = predict(model, x)  # what a person of the class looks like to this model
    known_before = {
        method: pd.concat(
            [predictors(model, result.counterfactuals, x, classes), diagnostics(network, result.counterfactuals)],
            axis=1,
        )
        for method, result in audits.items()
    }
    predicted = [{"dataset": name, **line} for line in what_predicts(audits, known_before).to_dict("records")]
    enough = {method: result for method, result in audits.items() if result.success > 0.5}
    return compare(enough), predicted


def main() -> None:
    options = flags(__doc__ or "")
    names = [name for name, card in DATASETS.items() if card.state() == "here"]
    predicted, kept = [], []
    for name in names[:1] if options.quick else names:
        comparison, own = study(name, ("min-l2", "pgd"), 10, 3) if options.quick else study(name, METHODS, 200, 100)
        print(comparison)
        print(f"R² of cost and invalidation: {comparison.r_squared():.3f}", flush=True)
        predicted += own
        kept.append(
            {
                "dataset": name,
                "r2": comparison.r_squared(),
                "methods": comparison.table().to_dict("records"),
                "differences": comparison.differences().to_dict("records"),
                "predictors": own,
            }
        )
    show("What predicts invalidation", predicted)
    if options.json is not None:
        keep(options.json, kept)


if __name__ == "__main__":
    main()
