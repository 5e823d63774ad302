"""Which method for which model: what each one finds, what it costs people, how often retrained models invalidate it.

People of the test split whom the deployed model refuses are asked about, for the class that they want, in the schema
space with relations and people who could exist: what `Explainer` gives its users. Every case has its own deployed model
and retrained models, at most 3,000 rows of training, and the methods that this kind of model allows:

    network    the paper's recipe of the dataset, retrained with new seeds
    logistic   logistic regression behind one-hot columns and scaled numbers, refitted to other samples of the rows
    trees      boosted trees of scikit-learn, 100 of 8 leaves, refitted to other samples of the rows
    black box  the same trees behind a function that only answers; without promises, which ask all models at every value

Of the retrained models, 32 rehearse (8 where few are to be had), 60 select for the promises, and 60 others
audit every method.

    found         people with a counterfactual
    invalidated   share of pairs of a counterfactual and an audit model, with its 95 % limits
    common        people whom all methods helped that helped at least half as many as min-l1
    l1 common     mean cost over these people
    times         mean cost over that of min-l1, on the people whom the method helped
    seconds       of the search by the processor, with reading the models that it asks first; a promise tries all values

Datasets are found through HOLDFAST_DATA. `--rows-file results/choose.jsonl` keeps the rows that docs/choose.md is made
of (`python docs/make_choice.py`).
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from _side_by_side import parser_of, show
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import Tensor

from holdfast import (
    Counterfactuals,
    Family,
    Margin,
    MinCost,
    Rehearsed,
    Retraining,
    as_model,
    audit,
    changes,
    make_method,
    predict,
    promise,
    refit,
    seeds,
    train,
)
from holdfast.datasets.prepared import Prepared, prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.model import Model
from holdfast.search.counterfactuals import Method
from holdfast.utils.files import write_text

DATASETS = ("german", "heloc", "taiwan")
RATES = (0.1, 0.05)
CHEAPEST = "min-l1"


@dataclass(frozen=True)
class Sizes:
    rows: int = 24  # people
    rehearse: int = 32
    few: int = 8  # rehearse where few retrained models are to be had
    select: int = 60  # 0: nothing is promised
    audit: int = 60
    train: int = 3000  # rows that models are fitted to, at most
    trees: int = 100
    epochs: int | None = None  # those of the recipe
    parameter_values: tuple[float, ...] = (-0.1, 0.0, 0.45, 1.0)  # that a promise tries
    rates: tuple[float, ...] = RATES

    @property
    def models(self) -> int:
        return self.rehearse + self.select + self.audit


@dataclass(frozen=True, eq=False)
class Case:
    """One deployed model and its retrained models."""

    dataset: str
    kind: str
    data: Prepared
    model: Model
    family: Family
    gradients: bool  # whether methods that follow gradients can be used


# ---- the models ----


def network(data: Prepared, sizes: Sizes) -> tuple[Model, Family]:
    recipe = PAPER_RECIPES[data.card.name]
    recipe = recipe if sizes.epochs is None else replace(recipe, epochs=sizes.epochs)
    x, y = data.rows
    return train(x, y, recipe, [Retraining()])[0], train(x, y, recipe, seeds(sizes.models))


def logistic(data: Prepared, sizes: Sizes) -> tuple[Model, Family]:
    schema = data.schema
    levels, numbers = ([f.name for f in schema.features if f.is_numeric == kind] for kind in (False, True))
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), levels), (StandardScaler(), numbers)
    )
    own = make_pipeline(columns, LogisticRegression(max_iter=1000))
    model = as_model(own.fit(data.train[list(schema.names)], data.train[schema.label]), data.encoding)
    return model, refit(model, data.train, changes.bootstrap(sizes.models))


def trees(data: Prepared, sizes: Sizes) -> tuple[Model, Family]:
    own = HistGradientBoostingClassifier(max_iter=sizes.trees, max_leaf_nodes=8, early_stopping=False, random_state=0)
    x, y = data.rows
    model = as_model(own.fit(x.numpy(), y.numpy()), data.encoding)
    return model, refit(model, data.train, changes.bootstrap(sizes.models))


def black_box(data: Prepared, sizes: Sizes) -> tuple[Model, Family]:
    """The trees, where nobody can look inside."""
    model, family = trees(data, sizes)
    hidden = [behind(one, data) for one in (model, *(family[place] for place in range(len(family))))]
    return hidden[0], replace(Family.from_models(hidden[1:]), retrainings=family.retrainings)


def behind(model: Any, data: Prepared) -> Model:
    return as_model(lambda x: model.wrapped.predict_proba(x), data.encoding, takes="encoded", outputs="probabilities")


KINDS: dict[str, tuple[Callable[[Prepared, Sizes], tuple[Model, Family]], bool]] = {
    "network": (network, True),
    "logistic": (logistic, True),
    "trees": (trees, False),
    "black box": (black_box, False),
}


def case(dataset: str, kind: str, sizes: Sizes) -> Case:
    data = prepare(dataset)
    data = replace(data, train=data.train[: sizes.train])
    make, gradients = KINDS[kind]
    return Case(dataset, kind, data, *make(data, sizes), gradients)


# ---- the methods ----


def methods(own: Case, sizes: Sizes, rehearsed: Rehearsed) -> dict[str, Method]:
    x, y = own.data.rows
    found: dict[str, Method] = {CHEAPEST: MinCost(norm=1)}
    found |= {f"margin {level}": Margin(level=level, search=MinCost(norm=1)) for level in (0.7, 0.9)}
    if own.gradients:
        found["pgd+sns"] = make_method("pgd+sns").fit(x, y, own.data.encoding.space)
    return found | {
        f"rehearsed {sizes.few}": Rehearsed(own.family[: sizes.few]),
        f"rehearsed {sizes.rehearse}": rehearsed,
    }


def answers(own: Case, x: Tensor, target: Tensor, sizes: Sizes) -> Iterator[tuple[str, Counterfactuals | None, float]]:
    """What each method gives, with the processor's seconds; None where a promise was refused."""
    question = (own.model, x, target, own.data.encoding.space)
    rehearsed = Rehearsed(own.family[: sizes.rehearse])
    for name, method in methods(own, sizes, rehearsed).items():
        start = time.process_time()
        yield name, method(*question), time.process_time() - start
    if not sizes.select:
        return
    selection = own.family[sizes.rehearse : sizes.rehearse + sizes.select]
    start = time.process_time()
    said = promise(rehearsed, *question, selection, rate=max(sizes.rates), parameter_values=sizes.parameter_values)
    seconds = time.process_time() - start
    for rate in sizes.rates:
        # What another rate would choose stands in the curve, so the values are not all searched again.
        chosen = said.curve.loc[said.curve["bound"] <= rate, "value"]
        answer = None
        if len(chosen):
            value = float(chosen.iloc[0])
            answer = said.counterfactuals if value == said.value else rehearsed.with_parameter(value)(*question)
        yield f"promise {rate:g}", answer, seconds


def refused(own: Case, count: int) -> Tensor:
    """The first people of the test split whom the deployed model does not give the wanted class."""
    x = own.data.encoding.encode(own.data.test)
    return x[predict(own.model, x) == 0][:count]


def rows(own: Case, sizes: Sizes) -> list[dict[str, Any]]:
    x = refused(own, sizes.rows)
    target = torch.ones(len(x), dtype=torch.long)
    given = list(answers(own, x, target, sizes))
    others = own.family[sizes.rehearse + sizes.select :]
    cheapest = next(answer for name, answer, _ in given if name == CHEAPEST and answer is not None)
    least, enough = cheapest.cost(1), cheapest.found.sum() / 2
    found = [answer.found for _, answer, _ in given if answer is not None]
    common = torch.stack([one for one in found if one.sum() >= enough]).all(0)
    about = {"dataset": own.dataset, "model": own.kind, "people": len(x), "audit_models": len(others)}
    return [
        about | {"method": name} | measured(answer, others, common, least) | {"seconds": round(seconds, 2)}
        for name, answer, seconds in given
    ]


def measured(answer: Counterfactuals | None, others: Family, common: Tensor, least: Tensor) -> dict[str, Any]:
    found = 0 if answer is None else int(answer.found.sum())
    nothing = dict.fromkeys(("invalidated", "low", "high", "common", "l1_common", "times"))
    if answer is None or not found:
        return {"refused": answer is None, "found": found} | nothing
    result, cost = audit(answer, others), answer.cost(1)
    low, high = result.interval()
    return {
        "refused": False,
        "found": found,
        "invalidated": result.rate,
        "low": low,
        "high": high,
        "common": int(common.sum()),
        "l1_common": float(cost[common].mean()) if bool(answer.found[common].all() and common.any()) else None,
        "times": float(cost[answer.found].mean() / least[answer.found].mean()),
    }


def keep_rows(file: Path, found: list[dict[str, Any]], sizes: Sizes) -> None:
    """One JSON object per line, each with the sizes of its run; the rows of a case take the place of older ones."""
    kept = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    new = {(row["dataset"], row["model"]) for row in found}
    kept = [row for row in kept if (row["dataset"], row["model"]) not in new]
    kept += [row | {"sizes": asdict(sizes)} for row in found]
    order = list(KINDS)
    kept.sort(key=lambda row: (order.index(row["model"]), row["dataset"]))  # stable: methods keep their order
    write_text(file, "".join(json.dumps(row) + "\n" for row in kept))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--datasets", default=",".join(DATASETS), help="names of datasets, joined by commas")
    parser.add_argument("--models", nargs="+", choices=tuple(KINDS), default=list(KINDS), help="kinds of model")
    parser.add_argument("--rows", type=int, default=Sizes.rows, help="people who are asked about")
    parser.add_argument("--others", type=int, default=Sizes.audit, help="models that select, and as many that audit")
    parser.add_argument("--rows-file", type=Path, metavar="FILE", help="keep one row per line there, after each case")
    options = parser.parse_args()
    sizes = Sizes(rows=options.rows, select=options.others, audit=options.others)
    names, kinds = options.datasets.split(","), options.models
    if options.quick:
        sizes = Sizes(6, 4, 2, 9, 5, 300, 8, 2, (0.0,), (0.1,))
        names, kinds = ["german"], ["network", "black box"]
    found: list[dict[str, Any]] = []
    for dataset in names:
        for kind in kinds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of networks of two epochs, and the like
                own = replace(sizes, select=0) if kind == "black box" else sizes
                measured_now = rows(case(dataset, kind, own), own)
            found += measured_now
            if options.rows_file is not None:
                keep_rows(options.rows_file, measured_now, own)
    show("Which method for which model", found, options.json)


if __name__ == "__main__":
    main()
