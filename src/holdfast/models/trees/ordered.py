"""The nodes of an ensemble in the order in which a walk meets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from holdfast.models.trees.ensemble import Ensemble

Ints = NDArray[np.int64]


def in_order(ensemble: Ensemble) -> tuple[Ints, Ints, Ints]:
    """All nodes such that those below a node follow it: their numbers, their trees, and where what is below ends."""
    fronts, trees = [ensemble.roots.astype(np.int64)], [np.arange(len(ensemble.roots))]
    while len(fronts[-1]):
        grows = ensemble.feature[fronts[-1]] >= 0
        inner = fronts[-1][grows]
        fronts.append(np.stack([ensemble.left[inner], ensemble.right[inner]], axis=1).reshape(-1).astype(np.int64))
        trees.append(np.repeat(trees[-1][grows], 2))
    size, place = (
        np.zeros(len(ensemble.feature), dtype=np.int64),
        len(ensemble.feature) + np.arange(len(ensemble.feature)),  # whatever no tree has comes last
    )
    for front in reversed(fronts):
        inner = front[ensemble.feature[front] >= 0]
        size[front] = 1
        size[inner] += size[ensemble.left[inner]] + size[ensemble.right[inner]]
    place[fronts[0]] = np.cumsum(size[fronts[0]]) - size[fronts[0]]
    for front in fronts:
        inner = front[ensemble.feature[front] >= 0]
        place[ensemble.left[inner]] = place[inner] + 1
        place[ensemble.right[inner]] = place[inner] + 1 + size[ensemble.left[inner]]
    own = np.zeros_like(place)
    own[np.concatenate(fronts)] = np.concatenate(trees)
    order = np.argsort(place)
    return order, own[order], place[order] + size[order]
