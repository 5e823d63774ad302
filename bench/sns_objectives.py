"""What each step of SNS's derivation gains, against plain confidence and against asking for a margin.

PGD's counterfactuals of the first 200 test rows of German and HELOC in the paper's free space, moved inside the paper's
ball by every objective, by `Confidence`, and, from scratch, the cheapest points of several levels of probability
(`Margin`): how often 100 networks with new seeds invalidate them, with the interval, at which cost.
"""

from __future__ import annotations

from typing import Any

from _side_by_side import flags, rated, show, timed

from holdfast import PGD, SNS, Confidence, Counterfactuals, Margin, Retraining, Space, audit, other_class, seeds, train
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.search.stabilisers.sns import OBJECTIVES

RADII = {"german": 3.0, "heloc": 2.1}
LEVELS = (0.6, 0.75, 0.9, 0.99, 0.9999, 0.999999)


def compare(name: str, quick: bool) -> list[dict[str, Any]]:
    rows, members, steps, levels = (10, 2, 20, LEVELS[:2]) if quick else (200, 100, 200, LEVELS)
    data = prepare(name)
    (x, y), question = data.rows, data.question(rows)
    recipe, space, ball = PAPER_RECIPES[name], Space.free(x), 0.8 * RADII[name]
    model = train(x, y, recipe, [Retraining()])[0]
    family = train(x, y, recipe, seeds(members), progress=True)
    target = other_class(model, question)
    start, seconds = timed(lambda: PGD(radius=RADII[name])(model, question, target, space))
    table = [row(name, "pgd", start, seconds, family)]
    for objective in OBJECTIVES:
        moved, extra = timed(lambda o=objective: SNS(radius=ball, steps=steps, objective=o)(model, start, space))
        table.append(row(name, f"pgd+sns, {objective}", moved, extra, family))
    moved, extra = timed(lambda: Confidence(radius=ball, steps=steps)(model, start, space))
    table.append(row(name, "pgd+confidence", moved, extra, family))
    for level in levels:
        found, extra = timed(lambda p=level: Margin(level=p)(model, question, target, space))
        table.append(row(name, f"margin {level}", found, extra, family))
    return table


def row(dataset: str, method: str, answer: Counterfactuals, seconds: float, family: Any) -> dict[str, Any]:
    return rated(dataset, method, audit(answer, family)) | {"ms_a_row": 1000 * seconds / len(answer)}


def main() -> None:
    options = flags(__doc__ or "")
    table = []
    for name in ("german",) if options.quick else ("german", "heloc"):
        table += compare(name, options.quick)
    show("SNS and its objectives", table, options.json)


if __name__ == "__main__":
    main()
