"""Why SNS's counterfactuals are invalidated more often on Seizure under new seeds than the paper prints (.16).

    python bench/seizure.py --device cuda

Each row of the table is one way to train the networks or one setting of SNS, on the first 1,000 rows of the test split,
together and by target class. On an H200 this takes about four minutes, on two cores hours. --quick trains networks
for one epoch and shows the same columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from _side_by_side import check_device, parser_of, show

from holdfast import SNS, Confidence, audit
from holdfast.datasets import card
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.paper.declared import PAPER, RADII, pgd, released_pgd, released_sns, sns
from holdfast.paper.study import Study
from holdfast.paper.trials import trial
from holdfast.search.counterfactuals import Method
from holdfast.search.pipeline import Pipeline

NAME = "seizure"
CLASSES = card(NAME).schema.classes
RECIPE, RADIUS = PAPER_RECIPES[NAME], 0.8 * RADII[NAME]
BOTH: dict[str, Method] = {
    "pgd": pgd(NAME),
    "pgd+sns": Pipeline(pgd(NAME), (sns(NAME),)),
    "released pgd": released_pgd(NAME),
    "released pgd+sns": Pipeline(released_pgd(NAME), (released_sns(NAME),)),
}
SEVERAL = ("as printed: 128-64-16, 100 epochs, batch 128", "batch 32")  # deployed networks
SETTINGS: dict[str, Method] = {
    **{f"radius {share} ε": Pipeline(pgd(NAME), (SNS(share * RADII[NAME]),)) for share in (0.4, 0.6, 0.8, 1.0, 1.5)},
    **{f"{steps} steps": Pipeline(pgd(NAME), (SNS(RADIUS, steps=steps),)) for steps in (20, 1000)},
    **{f"{points} points": Pipeline(pgd(NAME), (SNS(RADIUS, points=points),)) for points in (1, 50)},
    "confidence": Pipeline(pgd(NAME), (Confidence(RADIUS),)),
}


def studies() -> dict[str, tuple[Study, Mapping[str, Method]]]:
    """What is varied -> how networks are trained, and what is searched for on them."""
    text, release = PAPER["text"], PAPER["release"]

    def trained(study: Study = text, **recipe: Any) -> Study:
        return replace(study, recipes={NAME: replace(RECIPE, **recipe)})

    trainings = {
        "as printed: 128-64-16, 100 epochs, batch 128": text,
        "the release's split": release,
        **{f"{epochs} epochs": trained(epochs=epochs) for epochs in (5, 10, 25, 50, 200)},
        "the release's example: 128-128, 50 epochs, batch 256": trained(
            release, hidden=(128, 128), epochs=50, batch=256
        ),
        **{f"batch {batch}": trained(batch=batch) for batch in (16, 32, 64, 512)},
        "batch 32, 50 epochs": trained(batch=32, epochs=50),
        "batch 32, the release's split": trained(release, batch=32),
        **{f"weight decay {decay:g}": trained(weight_decay=decay) for decay in (1e-4, 1e-3)},
    }
    return {"settings of SNS": (text, SETTINGS), **{name: (study, BOTH) for name, study in trainings.items()}}


def measured(study: Study, methods: Mapping[str, Method], store: Path) -> list[dict[str, Any]]:
    own = trial(study, NAME, study.base_seeds[0], store=store)
    rows = []
    for name, method in methods.items():
        answer, _ = own.answer(method)
        seeds, left_out = (audit(answer, family) for family in own.families.values())
        rows.append(
            {
                "base": study.base_seeds[0],
                "method": name,
                "found": round(answer.success, 3),
                "l2": float(answer.cost(2)[answer.found].mean()),
                "seeds": seeds.rate,
                **{f"to {CLASSES[target]}": one.rate for target, one in seeds.by_class.items()},
                "left out": left_out.rate,
            }
        )
    return rows


def tiny(study: Study, methods: Mapping[str, Method]) -> tuple[Study, Mapping[str, Method]]:
    """Two methods on a few rows, with two networks of one epoch for each kind of change."""
    recipes = {NAME: replace(study.recipe(NAME), epochs=1)}
    small = replace(study, rows=10, recipes=recipes, changes=(("seeds", 2), ("leave-one-out", 2)))
    return small, dict(list(methods.items())[:2])


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--store", type=Path, default=Path("holdfast-seizure"), help="folder of the trained networks")
    options = parser.parse_args()
    check_device(options.device)
    rows: list[dict[str, Any]] = []
    for label, (declared, methods) in list(studies().items())[: 2 if options.quick else None]:
        study = replace(declared, rows=1000, changes=(("seeds", 100), ("leave-one-out", 50)), device=options.device)
        if options.quick:
            study, methods = tiny(study, methods)
        for base in (0, 1, 2) if label in SEVERAL and not options.quick else (0,):
            sized = replace(study, base_seeds=(base,))
            new = [{"trained": label, **row} for row in measured(sized, methods, options.store)]
            print("\n".join(map(json.dumps, new)), flush=True)
            rows += new
    show("SNS on Seizure", rows, options.json)


if __name__ == "__main__":
    main()
