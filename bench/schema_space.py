"""Counterfactuals that people can really become: how many each search finds in the schema space, and at what cost.

For the six datasets with the constraints and relations their cards declare, any valid point counting, whether people
are like that or not (bench/believable.py asks for people): plain PGD whose end is rounded, PGD on a relaxation that
is annealed towards valid points, and our methods, which search among valid points (`holdfast.search.engine`). Beside is
how many rows have a valid point of the class at all, as far as random valid points and all searches together can tell.
Costs are means over the rows that both the method and min-l1 found. Datasets are found through HOLDFAST_DATA.
"""

from __future__ import annotations

from typing import Any

import torch
from _side_by_side import flags, keep, show, timed
from torch import Tensor

from holdfast import PGD, Retraining, Space, assess, make_method, other_class, train
from holdfast.datasets import DATASETS
from holdfast.datasets.prepared import prepare
from holdfast.families.recipe import PAPER_RECIPES
from holdfast.models.merged import merged
from holdfast.models.model import Model
from holdfast.models.scores import log_odds
from holdfast.search.counterfactuals import Counterfactuals
from holdfast.search.gradients import Ball, slope, unit
from holdfast.search.random_points import random_points

METHODS = ("min-l1", "min-l2", "pgd", "prototype", "latent", "margin")
RADII = {"german": 10.0, "seizure": 10.0, "ctg": 2.0, "warfarin": 3.0, "heloc": 3.0, "taiwan": 3.0}
STEPS = 200


def rounded(model: Model, x: Tensor, target: Tensor, space: Space, radius: float) -> Counterfactuals:
    """A gradient search in the hull, rounded at its end."""
    return walk(model, x, target, space, radius, strength=0.0)


def annealed(model: Model, x: Tensor, target: Tensor, space: Space, radius: float) -> Counterfactuals:
    """The same with a growing push of every group towards one of its corners, every iterate rounded and judged."""
    return walk(model, x, target, space, radius, strength=4.0)


def walk(model: Model, x: Tensor, target: Tensor, space: Space, radius: float, strength: float) -> Counterfactuals:
    grouped = torch.zeros(space.width, dtype=torch.bool)
    grouped[[column for group in space.groups for column in group.columns]] = True
    width = torch.where(grouped, space.upper - space.lower, 1)
    point, best, best_cost = x, x.clone(), torch.full_like(x[:, 0], torch.inf)
    ball = Ball(x, torch.full_like(best_cost, radius))
    for step in range(STEPS):
        _, gradient = slope(log_odds, model, point, target, x)
        on = (point - space.lower) / width  # 0 is off, 1 is on; u (1 − u) is least at both
        corners = torch.where(grouped & space.mutable, (2 * on - 1) / width, 0)
        way = unit(gradient) + strength * step / STEPS * unit(corners)
        point = space.project(ball.into(point + 4 * radius / STEPS * unit(way)), x)
        if strength or step == STEPS - 1:
            judged = assess(model, x, point, target, space)
            cost = (judged.point - x).abs().sum(1)
            better = judged.found & (cost < best_cost)
            best = torch.where(better[:, None], judged.point, best)
            best_cost = torch.where(better, cost, best_cost)
    return assess(model, x, best, target, space)


def there_is_one(model: Model, x: Tensor, target: Tensor, space: Space, tries: int) -> Tensor:
    """Which rows have a random valid point of the class: (n,)."""
    found = torch.zeros(len(x), dtype=torch.bool)
    for seed in range(tries // 500):
        points = random_points(space, x, 500, seed)
        with torch.no_grad():
            found |= (model(points.flatten(0, 1)).argmax(-1).view(500, -1) == target).any(0)
    return found


def compare(name: str, methods: tuple[str, ...], count: int, tries: int) -> list[dict[str, Any]]:
    data = prepare(name)
    (x, y), rows = data.rows, data.question(count)
    space = data.encoding.space.to(x).without_people()
    network = train(x, y, PAPER_RECIPES[name], [Retraining()])[0]
    model = merged(network, ((0,), (1, 2))) if name == "warfarin" else network
    target = other_class(model, rows)
    searches = {
        "rounded": lambda: rounded(model, rows, target, space, RADII[name]),
        "annealed": lambda: annealed(model, rows, target, space, RADII[name]),
    }
    for method in methods:
        search = PGD(radius=RADII[name]) if method == "pgd" else make_method(method).fit(x, y, space)
        searches[method] = lambda search=search: search(model, rows, target, space)
    answers = {method: timed(search) for method, search in searches.items()}
    exist = there_is_one(model, rows, target, space, tries)
    for answer, _ in answers.values():
        exist |= answer.found
    least = answers["min-l1"][0]
    table = []
    for method, (answer, seconds) in answers.items():
        both = answer.found & least.found
        features = ((answer.point != rows)[:, None] & space.features).any(2).sum(1)
        table.append(
            {
                "dataset": name,
                "method": method,
                "rows": len(rows),
                "possible": int(exist.sum()),
                "found": int(answer.found.sum()),
                "l1": float(answer.cost(1)[both].mean()),
                "l1_of_min_l1": float(answer.cost(1)[both].mean() / least.cost(1)[both].mean()),
                "l2": float(answer.cost(2)[both].mean()),
                "features": float(features[answer.found].double().mean()),
                "ms_a_row": 1000 * seconds / len(rows),
            }
        )
    return table


def main() -> None:
    options = flags(__doc__ or "")
    names = [name for name, card in DATASETS.items() if card.state() == "here"]
    rows = []
    for name in names[:1] if options.quick else names:
        found = compare(name, METHODS[:3], 10, 500) if options.quick else compare(name, METHODS, 200, 20_000)
        show(f"Valid counterfactuals: {name}", found)
        rows += found
    if options.json is not None:
        keep(options.json, rows)


if __name__ == "__main__":
    main()
