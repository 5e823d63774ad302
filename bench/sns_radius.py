"""What SNS's radius gains and costs on German Credit, in the schema space: against PGD alone, in the same run.

The schema space holds what a person can do: the columns that may change, their bounds, directions, steps and levels.
"""

from __future__ import annotations

from _side_by_side import flags, show, timed

from holdfast import PGD, SNS, Retraining, audit, other_class, seeds, train
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES

RADII = (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)


def main() -> None:
    options = flags(__doc__ or "")
    rows, members, radii = (10, 2, RADII[:2]) if options.quick else (None, 100, RADII)
    data = prepare("german")
    (x, y), question, encoding = data.rows, data.question(rows), data.encoding
    recipe = PAPER_RECIPES["german"]
    model = train(x, y, recipe, [Retraining()])[0]
    family = train(x, y, recipe, seeds(members), progress=True)

    start, seconds = timed(lambda: PGD(radius=10.0)(model, question, other_class(model, question), encoding.space))
    before = audit(start, family)
    table = []
    for radius in radii:
        answer, extra = start, 0.0
        if radius:
            answer, extra = timed(lambda radius=radius: SNS(radius=radius)(model, start, encoding.space))
        result = audit(answer, family)
        low, high = result.interval()
        table.append(
            {
                "radius": radius,
                "found": int(answer.found.sum()),
                "rate": result.rate,
                "low": low,
                "high": high,
                "pgd_rate": before.rate,
                "ratio": before.rate / result.rate if result.rate else float("nan"),
                "cost_l2": float(answer.cost()[answer.found].mean()),
                "features": float(answer.changes(encoding).groupby("row").size().mean()),
                "seconds": seconds + extra,
            }
        )
    show("SNS after PGD(radius=10), German Credit, schema space", table, options.json)


if __name__ == "__main__":
    main()
