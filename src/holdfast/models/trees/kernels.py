"""The loop over trees, compiled by numba. Arrays are those of `Ensemble.arrays`."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True)
def sums(cells, is_number, missing, feature, split, missing_left, left, right, value, roots, sets):  # type: ignore[no-untyped-def]
    """The sum over trees of the values of the leaves that rows (n, f) reach: (n, o)."""
    total = np.zeros((cells.shape[0], value.shape[1]))
    for row in range(cells.shape[0]):
        for root in roots:
            node = root
            while feature[node] >= 0:
                column = feature[node]
                cell = cells[row, column]
                if is_number[column]:
                    goes_left = missing_left[node] if cell == missing[column] else cell <= split[node]
                else:
                    goes_left = sets[split[node], cell]
                node = left[node] if goes_left else right[node]
            for out in range(value.shape[1]):
                total[row, out] += value[node, out]
    return total
