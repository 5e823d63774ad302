"""Methods and stabilisers by name: "pgd", "min-l1+sns", "pgd+sns+sparse"."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from torch import Tensor

from holdfast.models.checked import itself
from holdfast.models.model import Model
from holdfast.search.counterfactuals import Counterfactuals, Fitted, Method, Stabiliser, check_gradient
from holdfast.search.methods import METHODS
from holdfast.search.stabilisers import STABILISERS
from holdfast.tabular.space import Space


@dataclass(frozen=True)
class Pipeline:
    """A method followed by stabilisers: a method itself."""

    method: Method
    stabilisers: tuple[Stabiliser, ...]

    def fit(self, x: Tensor, y: Tensor, space: Space, seed: int = 0) -> Self:
        stabilisers = tuple(
            each.fit(x, y, space, seed) if isinstance(each, Fitted) else each for each in self.stabilisers
        )
        return replace(self, method=self.method.fit(x, y, space, seed), stabilisers=stabilisers)

    def __call__(self, model: Model, x: Tensor, target: Tensor, space: Space) -> Counterfactuals:
        check_gradient(itself(model))  # which every stabiliser needs: said before the search, not after it
        answer = self.method(model, x, target, space)
        for stabiliser in self.stabilisers:
            answer = stabiliser(model, answer, space)
        return answer


def make_method(name: str) -> Method:
    """Make a method from its name, with its defaults; ``+`` adds stabilisers.

    The names are those of `METHODS` and `STABILISERS`; ``holdfast methods`` lists them.

    Examples:
        >>> import holdfast as hf
        >>> hf.make_method("margin").level
        0.75
        >>> both = hf.make_method("pgd+sns")  # a method too: it searches, then stabilises
        >>> both.method
        PGD(radius=None, levels=10, steps=100, random_start=True, seed=0)

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109), Section 5.1 (Baselines) and Table 1, whose lines are
    ``min-l1``, ``min-l1+sns``, ``min-l2``, ``min-l2+sns``, ``pgd``, ``pgd+sns``, ``prototype`` and ``latent``.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a method, such as 'pgd+sns', got {name!r}")
    first, *stabilisers = name.split("+")
    unknown = [first] if first not in METHODS else [word for word in stabilisers if word not in STABILISERS]
    if unknown:
        raise ValueError(
            f"'{name}': no {unknown[0]}; methods are {', '.join(METHODS)}, and + adds {', '.join(STABILISERS)}"
        )
    method = METHODS[first]()
    return Pipeline(method, tuple(STABILISERS[word]() for word in stabilisers)) if stabilisers else method
