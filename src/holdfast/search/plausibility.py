"""How ordinary a counterfactual would be among people who have the class it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.models.rows import check_rows, check_tensor
from holdfast.search.counterfactuals import Counterfactuals, check_answer
from holdfast.utils.settings import check_whole

Array = NDArray[Any]


def neighbour_distance(answer: Counterfactuals, x: Tensor, y: Tensor, k: int = 5) -> Tensor:
    """How near each counterfactual is to real rows of its class: the mean l2 distance to the nearest ``k`` of them.

    Args:
        answer: The counterfactuals.
        x: Known rows, such as the training rows: (m, d).
        y: Their classes: labels, or what a model says of them: (m,).
        k: How many neighbours count.

    Returns:
        One distance per row (n,), NaN where nothing was found.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.search.plausibility import neighbour_distance
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> known = torch.tensor([[-1.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> x, target = torch.zeros(1, 2), torch.tensor([1])
        >>> found = hf.assess(model, x, torch.tensor([[2.0, 1.0]]), target, space)
        >>> # Both rows of class 1, (1, 1) and (2, 2), are at a distance of 1.
        >>> neighbour_distance(found, known, hf.predict(model, known), k=2)
        tensor([1.])

    Paper: [Black et al. 2022](https://arxiv.org/abs/2110.03109) compares counterfactuals on the data manifold (Section
    2) and measures no distance to it; the nearest rows of a class are what guides [Van Looveren and Klaise
    2019](https://arxiv.org/abs/1907.02584).
    """

    def measure(known: Array, points: Array) -> Array:
        from sklearn.neighbors import NearestNeighbors  # here, since loading it takes long and few need it

        near = NearestNeighbors(n_neighbors=min(k, len(known))).fit(known)
        return np.asarray(near.kneighbors(points)[0].mean(1))

    return _by_class(answer, x, y, k, measure)


def outlier_factor(answer: Counterfactuals, x: Tensor, y: Tensor, k: int = 20) -> Tensor:
    """How unusual each counterfactual would be among the rows of its class: the local outlier factor.

    About 1 where the rows lie as densely around it as around its neighbours, well above 1 for an outlier.

    Args:
        answer: The counterfactuals.
        x: Known rows, such as the training rows: (m, d).
        y: Their classes: labels, or what a model says of them: (m,).
        k: How many neighbours count.

    Returns:
        One factor per row (n,), NaN where nothing was found.

    Examples:
        >>> import torch
        >>> import holdfast as hf
        >>> from holdfast.search.plausibility import outlier_factor
        >>> # A model that gives class 1 where 3 x0 + 4 x1 > 5.
        >>> model = lambda x: torch.stack([5 - 3 * x[:, 0], 4 * x[:, 1]], dim=1)
        >>> side = torch.linspace(1, 2, 5)
        >>> known = torch.cartesian_prod(side, side)  # rows that fill a square
        >>> space = hf.Space.free(torch.tensor([[-3.0, -3.0], [3.0, 3.0]]))
        >>> point = torch.tensor([[1.5, 1.5], [3.0, 3.0]])  # in the middle, and far
        >>> x, target = torch.zeros(2, 2), torch.tensor([1, 1])
        >>> found = hf.assess(model, x, point, target, space)
        >>> outlier_factor(found, known, hf.predict(model, known), k=5) > 1.5
        tensor([False,  True])

    Paper: the factor is that of [Breunig et al. 2000](https://doi.org/10.1145/342009.335388).
    """

    def measure(known: Array, points: Array) -> Array:
        from sklearn.neighbors import LocalOutlierFactor

        factor = LocalOutlierFactor(n_neighbors=min(k, len(known) - 1), novelty=True).fit(known)
        return np.asarray(-factor.score_samples(points))

    return _by_class(answer, x, y, k, measure)


Measure = Callable[[Array, Array], Array]  # rows of a class, points -> a number each


def _by_class(answer: Counterfactuals, x: Tensor, y: Tensor, k: int, measure: Measure) -> Tensor:
    check_answer(answer)
    check_whole("k", k, least=1)
    check_rows(x, width=answer.point.shape[1])
    check_tensor("y", y, "encoding.labels(table) makes classes, predict(model, x) too")
    if y.shape != x.shape[:1] or y.dtype != torch.int64:
        raise ValueError(
            f"y must hold a class index for each of {len(x)} rows, (m,) as int64, got {tuple(y.shape)} as {y.dtype}; "
            "encoding.labels(table) makes them"
        )
    x = x.detach()
    found = torch.full_like(answer.point[:, 0], torch.nan)
    for target in torch.unique(answer.target[answer.found]).tolist():
        rows = answer.found & (answer.target == target)
        known = x[y == target].cpu().numpy()
        if len(known) > 1:
            measured = measure(known, answer.point[rows].detach().cpu().numpy())
            found[rows] = torch.as_tensor(measured).to(found)
    return found
