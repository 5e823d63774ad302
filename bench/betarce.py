"""At equal k, whose statement holds: BetaRCE's bound for every person, or a rate promised for all of them.

    python bench/betarce.py --device cuda

Every method may use 32 retrained networks; the others, which none of them has seen, say what then happens. The 32 are
drawn anew several times, since what is stated is a matter of which they are.

    BetaRCE             asks all 32 while it searches, and states from the same 32: each person's counterfactual is
                        valid by another retraining with the probability stated, or more, with a credibility of 95 %
    Rehearsed(12) + 20  searches with 12 and lets 20 choose its caution, by `promise`: the share that another
                        retraining invalidates is at most the rate, on average over the draws; or it promises nothing
    Rehearsed(32)       searches with all 32 and states nothing

    stated    share invalidated: 1 - the mean bound, or the promised rate
    realised  the same by the networks that nothing was chosen by: the mean over the draws, the least and the most
    refuted   people whose share of networks that agree, at the upper end of its 95 % Clopper-Pearson interval, is below
              what was stated of them: at most 5 % on average where the bounds are right
    held      draws in which the statement held. BetaRCE: refuted was at most 5 %; a promise: the rate was not below the
              lower 95 % limit of what was realised
    refused   draws in which nothing was promised

Free space is the paper's: any real value. Schema space is what a person can do, people included. Datasets are found
through HOLDFAST_DATA and networks are kept in HOLDFAST_FAMILIES. On two cores the networks of Seizure take an hour.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from _side_by_side import check_device, keep, parser_of, show, timed
from torch import Tensor

from holdfast import (
    Audit,
    Counterfactuals,
    Family,
    Rehearsed,
    Retraining,
    Space,
    audit,
    other_class,
    promise,
    seeds,
    train,
)
from holdfast.datasets.prepared import prepare
from holdfast.families.entries import default_store
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.guarantees.promises import Promise
from holdfast.models.model import Model
from holdfast.paper.reference.betarce import BetaRCE
from holdfast.search.counterfactuals import Method

DATASETS = ("german", "heloc", "seizure")
SPACES = ("free", "schema")
LEAST_FOUND = 0.25  # of the rows found at first; a value of the parameter that finds fewer ends a promise's search


@dataclass(frozen=True)
class Size:
    """How much is done."""

    rows: int = 100
    networks: int = 232
    models: int = 32  # that a method may use
    rehearsed: int = 12  # of them, by a promise
    draws: int = 5
    delta: float = 0.9
    rates: tuple[float, ...] = (0.05, 0.1)
    parameter_values: tuple[float, ...] | None = None  # the method's own


QUICK = Size(5, networks=18, models=8, rehearsed=4, draws=2, delta=0.5, rates=(0.3,), parameter_values=(0.0, 0.1))


@dataclass(frozen=True, eq=False)
class Question:
    """One dataset in one space: the deployed network, the models of one draw, and those that judge."""

    labels: dict[str, Any]  # the first columns of the table
    model: Model
    x: Tensor
    target: Tensor
    space: Space
    family: Family
    judges: Family

    def asked(self, method: Method) -> Counterfactuals:
        return method(self.model, self.x, self.target, self.space)

    def promised(
        self, method: Rehearsed, by: Family, rate: float, parameter_values: tuple[float, ...] | None
    ) -> Promise:
        own = {"rate": rate, "audit": self.judges, "parameter_values": parameter_values, "least_found": LEAST_FOUND}
        return promise(method, self.model, self.x, self.target, self.space, by, **own)


def questions(name: str, spaces: Sequence[str], size: Size, device: str, small: bool) -> Iterator[Question]:
    data = prepare(name)
    x, y, people = (part.to(device) for part in (*data.rows, data.question(size.rows)))
    recipe = replace(PAPER_RECIPES[name], hidden=(8,), epochs=5) if small else PAPER_RECIPES[name]
    model = train(x, y, recipe, [Retraining()], store=default_store())[0]
    networks = train(x, y, recipe, seeds(size.networks, start=101), store=default_store())
    for space in spaces:
        own = Space.free(x) if space == "free" else data.encoding.space
        for draw in range(size.draws):
            chosen = range(draw * size.models, (draw + 1) * size.models)
            others = [place for place in range(len(networks)) if place not in chosen]
            labels = {"dataset": name, "space": space, "draw": draw, "rows": len(people), "judges": len(others)}
            parts = networks.chosen(chosen), networks.chosen(others)
            yield Question(labels, model, people, other_class(model, people), own, *parts)


# ---- what each method says, and what becomes of it ----


def compared(asked: Question, size: Size) -> Iterator[dict[str, Any]]:
    yield by_betarce(asked, BetaRCE(asked.family, size.delta))
    yield from by_promise(asked, size)
    answer, seconds = timed(lambda: asked.asked(Rehearsed(asked.family)))
    yield row(asked, f"Rehearsed({len(asked.family)})", seconds, audit(answer, asked.judges))


def by_betarce(asked: Question, method: BetaRCE) -> dict[str, Any]:
    answer, seconds = timed(lambda: asked.asked(method))
    result, bound = audit(answer, asked.judges), method.statement(asked.model, answer).cpu().numpy()
    found = answer.found.cpu().numpy()
    if not found.any():
        return row(asked, "BetaRCE", seconds, result)
    refuted = float((1 - result.per_row_interval()[0] < bound)[found].mean())
    said = {"stated": 1 - float(bound[found].mean()), "refuted": refuted, "held": refuted <= 1 - method.confidence}
    return row(asked, "BetaRCE", seconds, result) | said


def by_promise(asked: Question, size: Size) -> Iterator[dict[str, Any]]:
    """The first members are rehearsed with, the others choose how large the parameter is for each rate."""
    rehearsed, calibration = Rehearsed(asked.family[: size.rehearsed]), asked.family[size.rehearsed :]
    for rate in size.rates:
        promised, seconds = timed(lambda rate=rate: asked.promised(rehearsed, calibration, rate, size.parameter_values))
        result = promised.realised if promised.promised else None
        held = None if result is None else bool(result.interval()[0] <= rate)
        name = f"Rehearsed({rehearsed.members}) + {len(calibration)}, rate {rate}"
        yield row(asked, name, seconds, result) | {"stated": rate, "held": held, "value": promised.value}


def row(asked: Question, method: str, seconds: float, result: Audit | None = None) -> dict[str, Any]:
    """What happens to the counterfactuals of one draw; nothing where none was found, or promised."""
    line = asked.labels | {"method": method} | dict.fromkeys(SAID) | {"seconds": round(seconds, 2)}
    if result is None:
        return line
    answer, (low, high) = result.counterfactuals, result.interval()
    line |= {"found": answer.success}
    if answer.success:
        line |= {"realised": result.rate, "low": float(low), "high": float(high)}
        line |= {f"l{norm}": float(answer.cost(norm)[answer.found].mean()) for norm in (1, 2)}
    return line


SAID = ("value", "found", "l2", "l1", "stated", "realised", "low", "high", "refuted", "held")


# ---- over the draws ----


def over_draws(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per dataset, space and method."""
    own: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in rows:
        own.setdefault((line["dataset"], line["space"], line["method"]), []).append(line)
    return [together(*names, lines) for names, lines in own.items()]


def together(dataset: str, space: str, method: str, lines: list[dict[str, Any]]) -> dict[str, Any]:
    def told(name: str, summary: Any = np.mean) -> Any:
        values = [line[name] for line in lines if line[name] is not None]
        return float(summary(values)) if values else "-"

    held = [line["held"] for line in lines if line["held"] is not None]
    means = {name: told(name) for name in ("value", "found", "l2", "l1", "stated", "realised")}
    ends = {"least": told("realised", min), "most": told("realised", max), "refuted": told("refuted")}
    counts = {
        "held": f"{sum(held)} of {len(held)}" if held else "-",
        "refused": sum(line["found"] is None for line in lines),
        "seconds": told("seconds"),
    }
    return {"dataset": dataset, "space": space, "method": method} | means | ends | counts


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--only", default=",".join(DATASETS), help="names of datasets, joined by commas")
    parser.add_argument("--space", default=",".join(SPACES), help="free, schema, or both, joined by commas")
    parser.add_argument("--rows", type=int, default=Size.rows, help="people of the test split")
    parser.add_argument("--networks", type=int, default=Size.networks, help="retrained networks, 32 for each draw")
    parser.add_argument("--draws", type=int, default=Size.draws, help="how often the 32 are drawn")
    options = parser.parse_args()
    check_device(options.device)
    size = QUICK if options.quick else Size(options.rows, options.networks, draws=options.draws)
    if size.models * size.draws > size.networks:
        parser.error(f"{size.draws} draws of {size.models} networks need {size.draws * size.models} of them")
    rows = []
    for name in DATASETS[:1] if options.quick else options.only.split(","):
        for asked in questions(name, options.space.split(","), size, options.device, options.quick):
            for line in compared(asked, size):
                print(json.dumps(line), flush=True)
                rows.append(line)
    table = over_draws(rows)
    show("At equal k, whose statement holds", table)
    if options.json is not None:
        keep(options.json, {"table": table, "draws": rows})


if __name__ == "__main__":
    main()
