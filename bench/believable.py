"""Advice that a person could follow: what relations and plausibility cost, and whether they are kept.

Every search is asked three times: in the space without relations and people, with relations, and with both. Every row
that it returns is checked again by `tests/people_checks.py`, plain pandas that shares nothing with the package, in the
units of the table. For the six datasets with the networks and constraints of `bench/schema_space.py`, and for tables
beside them: two that scikit-learn ships with, and those that are given.

    free, relations, both   rows found in each of the three spaces
    wrong                   violations among all rows returned in the three, each by the rules of its space
    broken                  share of the rows found without relations that break one
    implausible             share of the rows found without people that nobody is like
    missed                  rows without an answer for whom another method has a plausible one, or a training row of the
                            class, or one of many random points
    l1 ratio, time ratio    both against free: cost on the rows found in both, and time

Before that, real people as a yardstick (`bench/_yardstick.py`). Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import torch
from _outside import given
from _side_by_side import keep, parser_of, show, timed
from _yardstick import tried
from torch import Tensor

from holdfast import (
    PGD,
    Counterfactuals,
    Encoding,
    Recipe,
    Retraining,
    Schema,
    Space,
    make_method,
    other_class,
    predict,
    train,
)
from holdfast.datasets import DATASETS, load
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.merged import merged
from holdfast.models.model import Model
from holdfast.search.counterfactuals import Method
from holdfast.search.people import people_for
from holdfast.search.random_points import random_points
from holdfast.utils.progress import Advance, bar

CHECKS = Path(__file__).parents[1] / "tests" / "people_checks.py"
YARDSTICK = ("german", "heloc", "taiwan", "ctg", "warfarin")
METHODS = ("min-l1", "min-l2", "pgd", "prototype", "latent", "margin", "min-l1+sns")
RADII = {"german": 10.0, "seizure": 10.0, "ctg": 2.0, "warfarin": 3.0, "heloc": 3.0, "taiwan": 3.0}
RADIUS = 5.0  # on other tables
RECIPE = Recipe((32, 16), epochs=30, batch=64)  # likewise
SPLITS = 10
TRIES = 500  # random points for each row that no method has an answer for


@dataclass(frozen=True, eq=False)
class Case:
    """A table, what it may become, and a network."""

    name: str
    train: pd.DataFrame
    test: pd.DataFrame
    encoding: Encoding
    model: Model

    @classmethod
    def of(cls, name: str, train_rows: pd.DataFrame, test: pd.DataFrame, encoding: Encoding, seed: int) -> Case:
        x, y = encoding.encode(train_rows), encoding.labels(train_rows)
        retraining = Retraining() if seed == 0 else Retraining(init_seed=seed, order_seed=seed)
        network = train(x, y, PAPER_RECIPES.get(name, RECIPE), [retraining])[0]
        classes = len(encoding.schema.classes)
        model = merged(network, ((0,), tuple(range(1, classes)))) if classes > 2 else network
        return cls(name, train_rows, test, encoding, model)

    @cached_property
    def spaces(self) -> dict[str, Space]:
        space = self.encoding.space
        return {"free": replace(space, related=None, people=None), "relations": space.without_people(), "both": space}

    @cached_property
    def rows(self) -> tuple[Tensor, Tensor]:
        return self.encoding.encode(self.train), self.encoding.labels(self.train)

    @cached_property
    def question(self) -> tuple[Tensor, Tensor]:
        x = self.encoding.encode(self.test)
        return x, other_class(self.model, x)

    def search(self, method: str, space: Space) -> Method:
        if method == "pgd":
            return PGD(radius=RADII.get(self.name, RADIUS))
        return make_method(method).fit(*self.rows, space)

    def wrong(self, answer: Counterfactuals, schema: Schema) -> list[tuple[int, str]]:
        """What the second opinion finds wrong with the rows that were found."""
        found = answer.found.numpy()
        after = answer.to_frame(self.encoding, self.test)
        ranges = dict(zip(schema.names, self.encoding.ranges, strict=True))
        return second_opinion().violations(schema, self.test[found], after[found], self.train, ranges)


def second_opinion() -> ModuleType:
    """`tests/people_checks.py`, by its path: tests are no package."""
    if CHECKS.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(CHECKS.stem, CHECKS)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[CHECKS.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[CHECKS.stem])
    return sys.modules[CHECKS.stem]


# ---- one table ----


def compared(case: Case, methods: tuple[str, ...], advance: Advance) -> list[dict[str, Any]]:
    x, target = case.question
    answers: dict[str, dict[str, tuple[Counterfactuals, float]]] = {}
    for method in methods:
        advance(1, f"{case.name}, {method}, {len(x)} rows")
        for place, space in case.spaces.items():
            search = case.search(method, space)
            answers.setdefault(method, {})[place] = timed(lambda s=search, p=space: s(case.model, x, target, p))
    served = torch.stack([own["both"][0].found for own in answers.values()]).any(0)
    served |= reachable(case, served)
    return [row_of(case, method, own, served) for method, own in answers.items()]


def row_of(case: Case, method: str, own: dict[str, tuple[Counterfactuals, float]], served: Tensor) -> dict[str, Any]:
    schema = case.encoding.schema
    alone = replace(schema, relations=())
    answers = {place: answer for place, (answer, _) in own.items()}
    free, both = answers["free"], answers["both"]
    wrong = [case.wrong(free, alone), *(case.wrong(answers[place], schema) for place in ("relations", "both"))]
    for row, what in [one for some in wrong for one in some][:3]:
        print(f"wrong: {case.name}, {method}, row {row}: {what}", file=sys.stderr)
    together = free.found & both.found
    return {
        "dataset": case.name,
        "method": method,
        "rows": len(both),
        **{place: int(answer.found.sum()) for place, answer in answers.items()},
        "checked": sum(int(answer.found.sum()) for answer in answers.values()),
        "wrong": sum(map(len, wrong)),
        "broken": share(len({row for row, _ in case.wrong(free, schema)}), int(free.found.sum())),
        "implausible": share(int(unlike(case, answers["relations"]).sum()), int(answers["relations"].found.sum())),
        "missed": int((served & ~both.found).sum()),
        "l1_ratio": float(both.cost(1)[together].mean() / free.cost(1)[together].mean()),
        "time_ratio": own["both"][1] / own["free"][1],
        "ms_a_row": 1000 * own["both"][1] / len(both),
    }


def share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def unlike(case: Case, answer: Counterfactuals) -> Tensor:
    """Which rows that were found nobody is like, though the person is like somebody: (n,)."""
    people = people_for(case.model, case.encoding.space)
    if people is None:
        return torch.zeros_like(answer.found)
    return answer.found & ~people.plausible(answer.point, answer.target, answer.origin)


def reachable(case: Case, found: Tensor) -> Tensor:
    """For whom, of those without an answer, a training row of the class or a random point is one: (n,)."""
    x, target = case.question
    served = torch.zeros_like(found)
    for row in torch.nonzero(~found).flatten().tolist():
        home = x[row : row + 1]
        served[row] = any(good(case, points, home, target[row]) for points in candidates(case, home, target[row]))
    return served


def candidates(case: Case, home: Tensor, target: Tensor) -> Iterator[Tensor]:
    """Valid points (t, d): training rows of the class with what the person cannot change, and random ones."""
    (x, _), space = case.rows, case.encoding.space.to(home)
    donors = torch.where(space.mutable, x[predict(case.model, x) == target], home)
    yield space.snap(donors, home.expand_as(donors))
    yield random_points(space, home, TRIES)[:, 0]


def good(case: Case, points: Tensor, home: Tensor, target: Tensor) -> bool:
    """Whether one of the points is of the class and plausible."""
    of_class = points[(predict(case.model, points) == target) & (points != home).any(1)]
    people = people_for(case.model, case.encoding.space)
    if people is None or not len(of_class):
        return bool(len(of_class))
    homes = home.expand_as(of_class)
    return bool(people.plausible(of_class, target.expand(len(of_class)), homes).any())


# ---- tables ----


def of_dataset(name: str, count: int, seed: int) -> Case:
    data = prepare(name)
    first = (seed * count) % max(1, len(data.test) - count + 1)  # other people for another network
    return Case.of(name, data.train, data.test.iloc[first : first + count], data.encoding, seed)


def of_table(name: str, table: pd.DataFrame, schema: Schema, count: int, seed: int) -> Case:
    # RandomState's stream is frozen for ever.
    order = np.random.RandomState(seed).permutation(len(table))
    train_rows, test = np.split(order, [int(0.75 * len(table))])
    own = table.iloc[train_rows]
    return Case.of(name, own, table.iloc[test[:count]], Encoding.fit(own, schema), seed)


def joined(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for a dataset and method, over all networks: counts are sums, ratios are means."""
    table = pd.DataFrame(rows)
    counts = ["rows", "free", "relations", "both", "checked", "wrong", "missed"]
    how = {name: "sum" if name in counts else "mean" for name in table.columns[2:]}
    whole = table.groupby(["dataset", "method"], sort=False).agg(how).reset_index()
    return [{str(name): value for name, value in row.items()} for row in whole.to_dict("records")]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--table", nargs=2, action="append", default=[], metavar=("FILE", "LABEL"))
    parser.add_argument("--adult", metavar="FILE", help="the census table, adult.data of the UCI repository")
    parser.add_argument("--heart", metavar="FILE", help="heart_disease.tab, as Orange has it")
    parser.add_argument("--rows", type=int, default=100, help="test rows of each table, for each network")
    parser.add_argument("--networks", type=int, default=1, help="how many are trained for each table")
    parser.add_argument("--methods", default=",".join(METHODS), help="which of them, joined by commas")
    parser.add_argument("--advice", action="store_true", help="without the part about real people")
    parser.add_argument("--only", default="", help="names of datasets and tables, joined by commas")
    options = parser.parse_args()
    quick, rows = options.quick, 4 if options.quick else options.rows
    names = [name for name, card in DATASETS.items() if card.state() == "here"]
    outside = dict(given(options.table, options.adult, options.heart))
    chosen = [name for name in options.only.split(",") if name] or [*names, *outside]
    if quick and not options.only:
        chosen = ["german", "breast_cancer"]
    yardstick = [] if options.advice else real_people([n for n in YARDSTICK if n in names], outside, chosen, quick)
    methods = METHODS[:1] if quick else tuple(options.methods.split(","))
    found: list[dict[str, Any]] = []
    with bar("advice", len(chosen) * len(methods) * (1 if quick else options.networks)) as advance:
        for name in chosen:
            for seed in range(1 if quick else options.networks):
                case = of_table(name, *outside[name], rows, seed) if name in outside else of_dataset(name, rows, seed)
                found += compared(case, methods, advance)
            show(f"Advice: {name}", joined([row for row in found if row["dataset"] == name]))
    total, wrong = (sum(row[what] for row in found) for what in ("checked", "wrong"))
    print(f"{total:,} rows that were returned have been checked again: {wrong} violations")
    if options.json is not None:
        keep(options.json, {"real_people": yardstick, "advice": joined(found), "checked": total, "wrong": wrong})


def real_people(
    names: list[str], outside: dict[str, tuple[pd.DataFrame, Schema]], chosen: list[str], quick: bool
) -> list[dict[str, Any]]:
    tables = {name: outside[name] if name in outside else load(name) for name in chosen if name in (*names, *outside)}
    rows = [row for name, own in tables.items() for row in tried(name, *own, 2 if quick else SPLITS)]
    if rows:
        show("Real people as a yardstick", rows)
    return rows


if __name__ == "__main__":
    main()
