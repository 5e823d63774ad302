"""What SNS's radius buys and costs on German Credit, in the schema space: against PGD alone, in the same run."""

from __future__ import annotations

from _side_by_side import divided, flags, show, timed

from holdfast import PAPER_RECIPES, PGD, SNS, Retraining, audit, other_class, seeds, train


def main() -> None:
    options = flags(__doc__ or "")
    encoding, known, asked = divided("german")
    x, y, question = encoding.encode(known), encoding.labels(known), encoding.encode(asked)
    recipe = PAPER_RECIPES["german"]
    model = train(x, y, recipe, [Retraining()])[0]
    family = train(x, y, recipe, seeds(10 if options.quick else 100), progress=True)

    start, seconds = timed(lambda: PGD(radius=10.0)(model, question, other_class(model, question), encoding.space))
    before = audit(start, family)
    rows = []
    for radius in (0.0, 2.0, 4.0, 6.0, 8.0, 10.0):
        answer, extra = start, 0.0
        if radius:
            answer, extra = timed(lambda radius=radius: SNS(radius=radius)(model, start, encoding.space))
        result = audit(answer, family)
        low, high = result.interval()
        rows.append(
            {
                "radius": radius,
                "found": int(answer.found.sum()),
                "rate": result.rate,
                "low": low,
                "high": high,
                "pgd_rate": before.rate,
                "ratio": before.rate / result.rate,
                "cost_l2": float(answer.cost()[answer.found].mean()),
                "features": float(answer.changes(encoding).groupby("row").size().mean()),
                "seconds": seconds + extra,
            }
        )
    show("SNS after PGD(radius=10), German Credit, schema space", rows, options.json)


if __name__ == "__main__":
    main()
