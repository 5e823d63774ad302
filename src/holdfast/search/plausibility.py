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
    """Mean l2 distance of each point to the k nearest rows x (m, d) of its target class: (n,), NaN if not found.

    ``y`` are the classes of the rows: labels, or what a model says of them.
    """

    def measure(known: Array, asked: Array) -> Array:
        from sklearn.neighbors import NearestNeighbors  # here, since loading it takes long and few need it

        near = NearestNeighbors(n_neighbors=min(k, len(known))).fit(known)
        return np.asarray(near.kneighbors(asked)[0].mean(1))

    return _by_class(answer, x, y, k, measure)


def outlier_factor(answer: Counterfactuals, x: Tensor, y: Tensor, k: int = 20) -> Tensor:
    """Local outlier factor (Breunig et al. 2000) of each point among the rows of its target class: (n,).

    About 1 where the rows lie as densely around it as around its neighbours, well above 1 for an outlier.
    """

    def measure(known: Array, asked: Array) -> Array:
        from sklearn.neighbors import LocalOutlierFactor

        factor = LocalOutlierFactor(n_neighbors=min(k, len(known) - 1), novelty=True).fit(known)
        return np.asarray(-factor.score_samples(asked))

    return _by_class(answer, x, y, k, measure)


Measure = Callable[[Array, Array], Array]  # rows of a class, points -> a number each


def _by_class(answer: Counterfactuals, x: Tensor, y: Tensor, k: int, measure: Measure) -> Tensor:
    check_answer(answer)
    check_whole("k", k)
    check_tensor("x", x)
    check_tensor("y", y, "encoding.labels(table) makes classes, predict(model, x) too")
    width = answer.point.shape[1]
    if k < 1 or x.ndim != 2 or x.shape[1] != width or y.shape != x.shape[:1]:
        raise ValueError(
            f"expected k of 1 or more, rows (m, {width}) and classes (m,), got {k}, rows (n, d) of {tuple(x.shape)} "
            f"and classes of {tuple(y.shape)}; encode both with one Encoding, so that they have the same columns"
        )
    check_rows(x)
    if y.dtype != torch.int64:
        raise ValueError(f"y must hold class indices as int64, got {y.dtype}; use y.long()")
    x = x.detach()
    found = torch.full_like(answer.point[:, 0], torch.nan)
    for target in torch.unique(answer.target[answer.found]).tolist():
        rows = answer.found & (answer.target == target)
        known = x[y == target].cpu().numpy()
        if len(known) > 1:
            measured = measure(known, answer.point[rows].detach().cpu().numpy())
            found[rows] = torch.as_tensor(measured).to(found)
    return found
