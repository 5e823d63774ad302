"""SNS against plain confidence at its price, in its ball and anywhere, on the rows that all of them find.

    python bench/matched.py

The text's settings, five deployed networks of each dataset, the first 1,000 test rows, 100 networks of new seeds; ± is
over deployed networks. About a quarter of an hour on two cores; run again after an interruption, it goes on.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from _side_by_side import flags, show

from holdfast.paper.declared import PAPER
from holdfast.paper.results import each
from holdfast.paper.runner import run

METHODS = ("pgd", "pgd+sns", "pgd+confidence", "margin-matched", "margin")


def compared(single: pd.DataFrame) -> list[dict[str, Any]]:
    """One row per dataset and method: what is invalidated and what it costs, on common rows, averaged over networks."""
    keys = ["dataset", "base_seed", "row"]
    common = single.groupby(keys)["found"].transform("all")
    means = (
        single[common].groupby(["dataset", "method", "base_seed"], sort=False)[["invalidated_seeds", "cost_l2"]].mean()
    )
    found = single.groupby(["dataset", "method"], sort=False)["found"].mean()
    share = common.groupby(single["dataset"]).mean()
    table = []
    for (dataset, method), own in means.groupby(["dataset", "method"], sort=False):
        table.append(
            {
                "dataset": dataset,
                "method": method,
                "found": float(found[dataset, method]),
                "common": float(share[dataset]),
                "invalidated": float(own["invalidated_seeds"].mean()),
                "±": float(own["invalidated_seeds"].std()),
                "l2": float(own["cost_l2"].mean()),
            }
        )
    return table


def main() -> None:
    options = flags(__doc__ or "")
    study = replace(PAPER["text"], name="matched", changes=(("seeds", 100),), rows=1000)
    study = replace(study, methods=tuple(entry for entry in study.methods if entry[0] in METHODS))
    if options.quick:
        small = {"datasets": ("german",), "rows": 10, "base_seeds": (0, 1), "changes": (("seeds", 3),)}
        study = replace(study, name="matched-quick", **small)
    file = run(study, Path("holdfast-matched") / f"{study.name}.jsonl", progress=True)
    show("At SNS's price", compared(each(file, study)), options.json)


if __name__ == "__main__":
    main()
