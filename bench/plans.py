"""Several plans for one person: how many people get two or three that change different features, and what that costs.

The people whom German Credit's deployed model refuses, from its test rows and then its training rows, in the schema
space. Beside the number of plans is how many people have two that share no feature, what the plans cost and how many
features they change, and the CPU time of three plans over that of one. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from _side_by_side import flags, show
from torch import Tensor

from holdfast import PGD, SNS, Retraining, Space, make_method, plans, predict, train
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.model import Model
from holdfast.search.counterfactuals import Method
from holdfast.search.pipeline import Pipeline
from holdfast.search.plans import Plans

METHODS: dict[str, Method] = {
    **{name: make_method(name) for name in ("min-l1", "min-l2", "prototype", "margin", "latent")},
    "pgd": PGD(radius=10.0),
    "pgd+sns": Pipeline(PGD(radius=10.0), (SNS(),)),
}


def refused(model: Model, rows: tuple[Tensor, ...], good: int, count: int) -> Tensor:
    """The first people to whom the model gives another class: (count, d)."""
    x = torch.cat(rows)
    return x[predict(model, x) != good][:count]


def apart(found: Plans, space: Space) -> Tensor:
    """Who has two plans without a feature in common: (n,)."""
    sets = [space.per_feature((plan.point != plan.origin).to(plan.point)) > 0 for plan in found.answers]
    pairs = [
        ~(sets[one] & sets[other]).any(1) & found.answers[other].found
        for other in range(len(sets))
        for one in range(other)
    ]
    return torch.stack(pairs).any(0)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """CPU seconds, so that a busy machine does not change the ratio."""
    start = time.process_time()
    return work(), time.process_time() - start


def measure(name: str, method: Method, model: Model, x: Tensor, target: Tensor, space: Space) -> dict[str, Any]:
    _, once = timed(lambda: method(model, x, target, space))
    found, seconds = timed(lambda: plans(method, model, x, target, space))
    changed = [(space.per_feature((plan.point != x).to(x)) > 0).sum(1)[plan.found] for plan in found.answers]
    return {
        "method": name,
        "people": len(x),
        "one": int((found.count >= 1).sum()),
        "two": int((found.count >= 2).sum()),
        "three": int((found.count >= 3).sum()),
        "two_apart": int(apart(found, space).sum()),
        **{f"cost_{rank}": float(found.cost[:, rank - 1].nanmean()) for rank in (1, 2, 3)},
        **{f"features_{rank}": float(changed[rank - 1].double().mean()) for rank in (1, 2, 3)},
        "seconds": seconds,
        "times_one": seconds / once,
    }


def main() -> None:
    options = flags(__doc__ or "")
    data = prepare("german")
    (x, y), good = data.rows, data.schema.classes.index("good")
    space = data.encoding.space.to(x)
    model = train(x, y, PAPER_RECIPES["german"], [Retraining()])[0]
    people = refused(model, (data.question(), x), good, 8 if options.quick else 200)
    target = torch.full((len(people),), good)
    names = ["min-l1"] if options.quick else list(METHODS)
    rows = [measure(name, METHODS[name].fit(x, y, space), model, people, target, space) for name in names]
    show("Three plans for everybody whom German Credit refuses", rows, options.json)


if __name__ == "__main__":
    main()
