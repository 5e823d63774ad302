"""Rehearsed searches of boosted trees: what it costs to convince refits beforehand, and what others say then.

Histogram boosting of scikit-learn, 100 trees of 8 leaves, is refitted on bootstrapped rows: 32 refits are rehearsed,
100 others audit. People of the test split are asked about, for the class that they do not have, in the schema space
without relations and people.

    found         rows with a counterfactual
    invalidated   share of pairs of a counterfactual and a refit that was not rehearsed
    l1            mean cost of what was found
    l1 in common  the same over the rows that every method has found
    ms a row      of the search, by the processor; that refits are read once for all searches is not counted

Datasets are found through HOLDFAST_DATA. With --store, refits are kept in a folder for the next run.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch
from _side_by_side import keep, parser_of, show

from holdfast import Margin, MinCost, Rehearsed, as_model, audit, changes, other_class, refit
from holdfast.datasets.prepared import prepare
from holdfast.search.counterfactuals import Method

DATASETS = ("german", "heloc")


def compared(name: str, trees: int, rehearsed: int, audited: int, rows: int, store: str | None) -> list[dict[str, Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    data = prepare(name)
    own = HistGradientBoostingClassifier(max_iter=trees, max_leaf_nodes=8, early_stopping=False, random_state=0)
    own.fit(data.encoding.encode(data.train).numpy(), data.train[data.encoding.schema.label])
    model = as_model(own, data.encoding)
    family = refit(model, data.train, changes.bootstrap(rehearsed + audited), store=store)
    rehearsal, others = family[:rehearsed], family[rehearsed:]
    methods: dict[str, Method] = {
        "min-l1": MinCost(norm=1),
        "margin 0.75": Margin(level=0.75, search=MinCost(norm=1)),
        "margin 0.9": Margin(level=0.9, search=MinCost(norm=1)),
        f"rehearsed, {rehearsed}": Rehearsed(rehearsal),
        f"rehearsed, {rehearsed}, margin 0.5": Rehearsed(rehearsal, margin=0.5),
    }
    x = data.encoding.encode(data.test[:rows])
    target, space = other_class(model, x), replace(data.encoding.space, people=None, related=None)
    answers, seconds = {}, {}
    for title, method in methods.items():
        method(model, x[:1], target[:1], space)  # kernels are compiled and refits read
        start = time.process_time()
        answers[title] = method(model, x, target, space)
        seconds[title] = time.process_time() - start
    everywhere = torch.stack([answer.found for answer in answers.values()]).all(0)
    return [
        {
            "dataset": name,
            "method": title,
            "rows": len(x),
            "found": int(answer.found.sum()),
            "invalidated": audit(answer, others).rate,
            "l1": float(answer.cost(1)[answer.found].mean()),
            "l1 in common": float(answer.cost(1)[everywhere].mean()),
            "ms a row": 1000 * seconds[title] / len(x),
        }
        for title, answer in answers.items()
    ]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", default=",".join(DATASETS), help="names of datasets, joined by commas")
    parser.add_argument("--rows", type=int, default=100, help="people who are asked about")
    parser.add_argument("--store", help="a folder to keep refits in")
    options = parser.parse_args()
    rows = []
    for name in DATASETS[:1] if options.quick else options.only.split(","):
        sizes = (10, 3, 4, 6) if options.quick else (100, 32, 100, options.rows)
        rows += compared(name, *sizes, options.store)
    show("Rehearsed: boosted trees that agree beforehand", rows)
    if options.json is not None:
        keep(options.json, {"rehearsed": rows})


if __name__ == "__main__":
    main()
