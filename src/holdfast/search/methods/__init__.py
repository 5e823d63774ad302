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
"""The methods by name. Each entry makes a method: with its defaults, or with the settings that you pass.

`Rehearsed` is not here, because it needs a family. `make_method` makes a method from its name, with stabilisers.

Examples:
    >>> import holdfast as hf
    >>> list(hf.METHODS)
    ['min-l1', 'min-l2', 'pgd', 'prototype', 'latent', 'margin']
    >>> hf.METHODS["pgd"](radius=5.0)
    PGD(radius=5.0, levels=10, steps=100, random_start=True, seed=0)

Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Baselines) and Appendix B.3.
"""

__all__ = ["METHODS", "PGD", "Latent", "Margin", "MinCost", "Prototype"]
