"""A left-out row and the batches: drawn anew over the rows that are left, or the deployed network's with it masked.

    python bench/left_out.py

For each dataset a deployed network is trained, and copies of it that each miss one row, in the deployed network's own
batches. The released code's counterfactuals are found for it. The table has the share that the copies invalidate,
beside the same share of our families, whose batches are drawn anew, and the paper's. Means and ± are over deployed
networks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from _side_by_side import flags, show
from torch import Tensor

from holdfast import audit
from holdfast.paper.declared import PAPER
from holdfast.paper.printed import printed
from holdfast.paper.study import Study
from holdfast.paper.trials import trial
from holdfast.search.counterfactuals import Counterfactuals, other_class
from holdfast.utils.threads import one_thread

DATASETS = ("german", "ctg", "heloc", "taiwan")  # of two classes; Seizure takes long
METHODS = ("min-l1-art", "min-l2-art", "pgd", "prototype-alibi")
Weights = list[tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Copies:
    """The deployed network, then networks that miss one row each: weights (k, in, out), biases (k, 1, out)."""

    weights: Weights

    def __call__(self, x: Tensor) -> Tensor:
        """Of all: (k, n, c)."""
        return forward(self.weights, x.expand(len(self.weights[0][0]), -1, -1))

    def deployed(self, x: Tensor) -> Tensor:
        return forward([(weight[:1], bias[:1]) for weight, bias in self.weights], x[None])[0]


def forward(weights: Weights, x: Tensor) -> Tensor:
    for weight, bias in weights[:-1]:
        x = torch.baddbmm(bias, x, weight).relu()
    weight, bias = weights[-1]
    return torch.baddbmm(bias, x, weight)


def masked(study: Study, dataset: str, x: Tensor, y: Tensor, count: int, seed: int) -> Copies:
    """The same batches for all; in a network's own batches its row weighs nothing."""
    recipe, generator = study.recipe(dataset), torch.Generator().manual_seed(seed)
    missing = torch.randperm(len(x), generator=generator)[:count]
    weights: Weights = []
    for shape in pairwise((x.shape[1], *recipe.hidden, 2)):
        drawn = torch.empty(shape).uniform_(-1, 1, generator=generator) * (6 / sum(shape)) ** 0.5
        weights.append((drawn.repeat(count + 1, 1, 1), torch.zeros(count + 1, 1, shape[1])))
    trained = [tensor.requires_grad_() for pair in weights for tensor in pair]
    optimiser = torch.optim.Adam(trained, recipe.learning_rate, recipe.betas, recipe.epsilon)
    for _ in range(recipe.epochs):
        for rows in torch.randperm(len(x), generator=generator).split(recipe.batch):
            weight = torch.ones(count + 1, len(rows))
            weight[1:] -= (rows == missing[:, None]).float()
            logits = forward(weights, x[rows].expand(count + 1, -1, -1))
            losses = torch.nn.functional.cross_entropy(logits.mT, y[rows].expand(count + 1, -1), reduction="none")
            optimiser.zero_grad()
            ((losses * weight).sum(1) / weight.sum(1).clamp_min(1)).sum().backward()
            optimiser.step()
    return Copies([(weight.detach(), bias.detach()) for weight, bias in weights])


def invalidated(copies: Copies, answer: Counterfactuals) -> float:
    said = copies(answer.point[answer.found])[1:].argmax(-1)
    return float((said != answer.target[answer.found]).float().mean())


def once(
    study: Study, dataset: str, methods: tuple[str, ...], members: int, seed: int
) -> dict[str, tuple[float, float]]:
    """For each method what is invalidated with masked rows, and with batches drawn anew."""
    own = trial(study, dataset, seed)
    data, family = own.data, own.families["leave-one-out"]
    copies = masked(study, dataset, data.x, data.y, members, seed)

    def found(method: str, model: Callable[[Tensor], Tensor]) -> Counterfactuals:
        fitted = study.method(dataset, method).fit(data.x, data.y, data.space, seed)
        return fitted(model, data.question, other_class(model, data.question), data.space)

    return {
        method: (invalidated(copies, found(method, copies.deployed)), audit(found(method, own.model), family).rate)
        for method in methods
    }


def measured(dataset: str, quick: bool) -> list[dict[str, Any]]:
    methods, rows, members, bases = (("pgd",), 10, 2, 2) if quick else (METHODS, 100, 20, 3)
    study = replace(PAPER["release"], rows=rows, changes=(("leave-one-out", members),))
    if quick:
        study = replace(study, recipes={dataset: replace(study.recipe(dataset), epochs=5)})
    theirs = printed().set_index(["dataset", "method", "quantity"])["value"]
    runs = [once(study, dataset, methods, members, seed) for seed in range(bases)]
    table = []
    for method in methods:
        kept, anew = np.array([run[method] for run in runs]).T
        table.append(
            {
                "dataset": dataset,
                "method": method,
                "masked": kept.mean(),
                "± ": kept.std(ddof=1),
                "drawn anew": anew.mean(),
                "±": anew.std(ddof=1),
                "paper": float(theirs[dataset, method, "iv_loo"]),
            }
        )
    return table


def main() -> None:
    options = flags(__doc__ or "")
    names = DATASETS[: 1 if options.quick else None]
    with one_thread():
        table = [row for name in names for row in measured(name, options.quick)]
    show("Invalidated by networks that miss one row", table, options.json)


if __name__ == "__main__":
    main()
