"""How far one category is from another, read off the data, as Van Looveren and Klaise (2019) do.

One-hot columns make every level as far from every other. These distances make levels near that keep the same company,
and lay the levels of a feature on one line, so that a tree, or a pull towards a prototype, can tell them apart.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from holdfast.tabular.space import Space

Categories = Literal["one-hot", "abdm", "mvdm"]
CATEGORIES = ("one-hot", "abdm", "mvdm")
QUARTILES = (0.25, 0.5, 0.75)  # at which numbers are cut into bins
EPS = 1e-12
Floats = NDArray[np.float64]


def lines(space: Space, x: Tensor, predicted: Tensor, categories: Categories) -> Tensor:
    """The map (d, f) from columns to numbers of which each one-hot group has one and every other column its own.

    Along it, levels of a group lie as far apart as ``categories`` finds them in the rows x (r, d), the farthest two of
    all as far as a column of their group is from off to on.
    """
    on = ((x - space.lower) / (space.upper - space.lower).clamp_min(EPS)).double().cpu().numpy()  # of groups: 0 or 1
    groups = [list(group.columns) for group in space.groups]
    if categories == "mvdm":
        classes = np.eye(int(predicted.max()) + 1)[predicted.cpu().numpy()]
        placed = [_placed(value_difference(_shares(on[:, group], classes))) for group in groups]
    else:
        slots, owner = _company(space, x)
        placed = []
        for number, group in enumerate(groups):
            other_columns = slots[:, owner != number]
            placed.append(_placed(association(_shares(on[:, group], other_columns))))
    return _as_map(space, groups, placed).to(x)


def association(shares: Floats) -> Floats:
    """ABDM (Le and Ho 2005): Σ (a − b) log(a / b) over what else is true of the rows at two levels: (m, m)."""
    a, b = shares[:, None], shares[None]
    return np.asarray(((a - b) * np.log((a + EPS) / (b + EPS))).sum(-1))


def value_difference(shares: Floats) -> Floats:
    """MVDM (Cost and Salzberg 1993): Σ |a − b| over the classes that the model gives the rows at two levels: (m, m)."""
    return np.asarray(np.abs(shares[:, None] - shares[None]).sum(-1))


def _shares(on: Floats, slots: Floats) -> Floats:
    """Of the rows at each level (r, m) the share in every slot (r, s): (m, s)."""
    return np.asarray((on > 0.5).T.astype(float) @ slots / ((on > 0.5).sum(0)[:, None] + EPS))


def _company(space: Space, x: Tensor) -> tuple[Floats, NDArray[np.int64]]:
    """What is true of each row, as slots that are 0 or 1 (r, s), and which group each slot belongs to, -1 for none."""
    middle = (space.lower + space.upper) / 2
    slots, owner = [], []
    for number, group in enumerate(space.groups):
        columns = list(group.columns)
        slots.append((x[:, columns] > middle[columns]).double().cpu().numpy())
        owner += [number] * len(columns)
    for column in _ungrouped(space):
        values = x[:, column].double().cpu().numpy()
        bins = np.unique(np.quantile(values, QUARTILES))
        slots.append(np.eye(len(bins) + 1)[np.searchsorted(bins, values)])
        owner += [-1] * (len(bins) + 1)
    return np.concatenate(slots, axis=1), np.array(owner)


def _ungrouped(space: Space) -> list[int]:
    grouped = {column for group in space.groups for column in group.columns}
    return [column for column in range(space.width) if column not in grouped]


def _placed(distance: Floats) -> Floats:
    """Levels on a line: how far each is, in a plane that keeps their distances, from the one that is furthest out."""
    from sklearn.manifold import smacof  # loaded where it is used: it takes a second

    plane, _ = smacof(
        distance, n_components=2, n_init=4, max_iter=5000, eps=1e-9, random_state=0, normalized_stress=False
    )
    furthest = plane[np.linalg.norm(plane, axis=1).argmax()]
    return np.asarray(np.linalg.norm(plane - furthest, axis=1))


def _as_map(space: Space, groups: list[list[int]], placed: list[Floats]) -> Tensor:
    """Centred, and scaled so that the longest line of all is as long as a typical column of its group is wide."""
    width = (space.upper - space.lower).double().cpu()
    longest = max((np.ptp(line) for line in placed), default=1.0)
    numbers = _ungrouped(space)
    table = torch.zeros(space.width, len(groups) + len(numbers), dtype=torch.float64)
    for number, (group, line) in enumerate(zip(groups, placed, strict=True)):
        centred = torch.from_numpy(line - (line.max() + line.min()) / 2)
        table[group, number] = centred / max(longest, EPS) * width[group].median() / width[group]
    table[numbers, torch.arange(len(groups), len(groups) + len(numbers))] = 1
    return table
