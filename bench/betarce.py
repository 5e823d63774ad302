"""At equal k, whose statement holds: BetaRCE's bound for every person, or a rate promised for all of them.

    python bench/betarce.py --device cuda

Every method may use 32 retrained networks; others, which none of them has seen, say what then happens.

    BetaRCE              asks all 32 while it searches, and states from the same 32: each person's counterfactual is
                         valid by another retraining with the probability stated, or more, with a credibility of 95 %
    Rehearsed(12) + 20   searches with 12 and calibrates its margin with 20, as a promise does: the share that another retraining
                         invalidates is at most the rate, on average over what may be drawn; or it promises nothing
    Rehearsed            searches with all 32 and states nothing

    stated      share invalidated: 1 - the mean bound, or the promised rate
    realised    the same by the networks that nothing was chosen by, with 95 % limits
    refuted     people whose share of networks that agree, at the upper end of its 95 % Clopper-Pearson interval, is
                below what was stated of them: at most 5 % where the bounds are right
    held        BetaRCE: refuted is at most 5 %; a promise: the rate is not below the lower limit of what is realised

Free space is the paper's: any real value. Schema space is what a person can do, people included. Datasets are found
through HOLDFAST_DATA and networks are kept in HOLDFAST_FAMILIES. On two cores the networks of Seizure take an hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _side_by_side import check_device, parser_of, show, timed
from torch import Tensor

from holdfast import (
    PAPER_RECIPES,
    Audit,
    Counterfactuals,
    Family,
    MinCost,
    Model,
    Recipe,
    Rehearsed,
    Retraining,
    Space,
    audit,
    other_class,
    seeds,
    train,
)
from holdfast.datasets.prepared import prepare
from holdfast.families.entries import default_store
from holdfast.search.methods.reference.betarce import BetaRCE

DATASETS = ("german", "heloc", "seizure")
SPACES = ("free", "schema")
MODELS, REHEARSED = 32, 12  # that a method may use, and those of them that a promise searches with
RATES = (0.05, 0.1)
MARGINS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
LEAST_FOUND = 0.5  # of the rows; a margin that finds fewer ends the search


@dataclass(frozen=True)
class Question:
    """One dataset in one space: the deployed network, the 32, and those that judge."""

    labels: dict[str, Any]  # the first columns of the table
    model: Model
    x: Tensor
    target: Tensor
    space: Space
    family: Family
    judges: Family

    def asked(self, method: Any) -> Counterfactuals:
        answer: Counterfactuals = method(self.model, self.x, self.target, self.space)
        return answer


def questions(name: str, rows: int, models: int, judges: int, device: str, small: bool) -> Iterator[Question]:
    data = prepare(name)
    x, y, people = (part.to(device) for part in (*data.rows, data.question(rows)))
    recipe = replace(PAPER_RECIPES[name], hidden=(8,), epochs=5) if small else PAPER_RECIPES[name]
    store = default_store()
    model = trained(x, y, recipe, [Retraining()], store)[0]
    family = trained(x, y, recipe, seeds(models), store)
    others = trained(x, y, recipe, seeds(judges, start=101), store)
    for space in SPACES:
        own = Space.free(x) if space == "free" else data.encoding.space
        labels = {"dataset": name, "space": space, "rows": len(people), "judges": judges}
        yield Question(labels, model, people, other_class(model, people), own, family, others)


def trained(x: Tensor, y: Tensor, recipe: Recipe, changes: list[Retraining], store: Path) -> Family:
    return train(x, y, recipe, changes, store=store)


# ---- what each method says, and what becomes of it ----


def by_betarce(asked: Question, method: BetaRCE) -> dict[str, Any]:
    answer, seconds = timed(lambda: asked.asked(method))
    bound = method.statement(asked.model, answer).cpu().numpy()
    result = audit(answer, asked.judges)
    refuted = below(result, bound)
    return row(asked, "BetaRCE", result, seconds, stated=1 - float(np.nanmean(bound)), refuted=refuted,
               held=said(refuted <= 1 - method.confidence))  # fmt: skip


def below(result: Audit, bound: Any) -> float:
    """The share of counterfactuals that hold less often than stated, though the limits allow for noise."""
    low, _ = result.per_row_interval()
    found = result.counterfactuals.found.cpu().numpy()
    return float((1 - low[found] < bound[found]).mean()) if found.any() else float("nan")


def by_promise(
    asked: Question, rehearsed: int, rates: Sequence[float], margins: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Searched once at every margin, with the first members; the others choose the margin for each rate."""
    calibration = asked.family[rehearsed:]
    answers, seconds = timed(lambda: list(searched(asked, Rehearsed(asked.family[:rehearsed]), margins)))
    losses = np.stack([audit(answer, calibration).per_member for answer in answers])
    for rate in rates:
        place = chosen(losses, rate)
        method = f"Rehearsed({rehearsed}) + {len(calibration)}"
        if place is None:
            yield nothing(asked, method, rate, seconds)
            continue
        result = audit(answers[place], asked.judges)
        held = said(result.interval()[0] <= rate)
        yield row(asked, method, result, seconds, margin=margins[place], stated=rate, held=held)


def searched(asked: Question, method: Rehearsed, margins: Sequence[float]) -> Iterator[Counterfactuals]:
    """The answers at each margin, until one finds too few; the first is always there."""
    for margin in margins:
        answer = asked.asked(replace(method, margin=margin))
        if margin and answer.success < LEAST_FOUND:
            return
        yield answer


def chosen(losses: Any, rate: float) -> int | None:
    """Conformal risk control: the smallest margin whose losses (margins, n), made to fall, leave room for one more."""
    falling = np.maximum.accumulate(losses[::-1], axis=0)[::-1]
    kept = np.flatnonzero((falling.sum(1) + 1) / (losses.shape[1] + 1) <= rate)
    return int(kept[0]) if len(kept) else None


def by_rehearsed(asked: Question) -> dict[str, Any]:
    answer, seconds = timed(lambda: asked.asked(Rehearsed(asked.family)))
    return row(asked, f"Rehearsed({len(asked.family)})", audit(answer, asked.judges), seconds, margin=0.0)


def row(
    asked: Question,
    method: str,
    result: Audit,
    seconds: float,
    margin: Any = "-",
    stated: Any = "-",
    refuted: Any = "-",
    held: str = "-",
) -> dict[str, Any]:
    answer, (low, high) = result.counterfactuals, result.interval()
    costs = {f"l{norm}": float(answer.cost(norm)[answer.found].mean()) for norm in (2, 1)}
    rates = {"stated": stated, "realised": result.rate, "low": low, "high": high, "refuted": refuted, "held": held}
    found = {"margin": margin, "found": int(answer.found.sum())}
    return asked.labels | {"method": method} | found | costs | rates | {"seconds": round(seconds, 1)}


def nothing(asked: Question, method: str, rate: float, seconds: float) -> dict[str, Any]:
    """No margin keeps the rate, and that is said."""
    missing = dict.fromkeys(("margin", "found", "l2", "l1"), "-")
    rates = {"stated": rate, "realised": "-", "low": "-", "high": "-", "refuted": "-", "held": "refused"}
    return asked.labels | {"method": method} | missing | rates | {"seconds": round(seconds, 1)}


def said(held: bool) -> str:
    return "yes" if held else "no"


def compared(asked: Question, small: bool) -> Iterator[dict[str, Any]]:
    base = MinCost(norm=1)
    yield by_betarce(asked, BetaRCE(asked.family, delta=0.5 if small else 0.9, method=base))
    yield from by_promise(asked, *((4, (0.3,), MARGINS[:3]) if small else (REHEARSED, RATES, MARGINS)))
    yield by_rehearsed(asked)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", default=",".join(DATASETS), help="names of datasets, joined by commas")
    parser.add_argument("--rows", type=int, default=100, help="people of the test split")
    parser.add_argument("--judges", type=int, default=200, help="networks that say what happens")
    options = parser.parse_args()
    check_device(options.device)
    quick = options.quick
    sizes = (5, 8, 10) if quick else (options.rows, MODELS, options.judges)
    rows: list[dict[str, Any]] = []
    for name in DATASETS[:1] if quick else options.only.split(","):
        for asked in questions(name, *sizes, options.device, quick):
            for line in compared(asked, quick):
                print(line, flush=True)
                rows.append(line)
    show("At equal k, whose statement holds", rows, options.json)


if __name__ == "__main__":
    main()
