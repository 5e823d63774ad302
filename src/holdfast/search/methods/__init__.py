"""The ways to find a counterfactual. A new one is a new file and a line in METHODS."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holdfast.search.counterfactuals import Method
from holdfast.search.methods.latent import Latent
from holdfast.search.methods.margin import Margin
from holdfast.search.methods.min_cost import MinCost
from holdfast.search.methods.pgd import PGD
from holdfast.search.methods.prototype import Prototype

METHODS: dict[str, Callable[..., Method]] = {
    "min-l1": partial(MinCost, norm=1),
    "min-l2": partial(MinCost, norm=2),
    "pgd": PGD,
    "prototype": Prototype,
    "latent": partial(Latent, samples=256, shells=20),  # the paper's one ball of 1280 finds few
    "margin": Margin,
}

__all__ = ["METHODS", "PGD", "Latent", "Margin", "MinCost", "Prototype"]
