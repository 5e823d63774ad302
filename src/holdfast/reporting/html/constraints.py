"""What people could change, as the page's table shows it, and what a cost of 1 is."""

from __future__ import annotations

import numpy as np

from holdfast.explaining.person import in_words
from holdfast.tabular.encoding import Encoding
from holdfast.tabular.feature import Feature

MOST_LEVELS = 8  # that are listed


def may_change(feature: Feature) -> str:
    """What a person may do about a feature."""
    if not feature.mutable:
        return "never changes"
    return {"any": "may change", "rise": "may only rise", "fall": "may only fall"}[feature.direction]


def reachable_values(feature: Feature, columns: slice, encoding: Encoding) -> str:
    if feature.is_numeric:
        ends = (encoding.lower[columns.start], encoding.upper[columns.start])
        low, high = (in_words(float(f"{float(end):.6g}")) for end in ends)
        step = f", in steps of {in_words(feature.grid)}" if feature.grid not in (None, 1.0) else ""
        return f"{low} to {high}{step}"
    levels = [in_words(level) for level in feature.values if level not in feature.avoid]
    more = f"; and {len(levels) - MOST_LEVELS} more" if len(levels) > MOST_LEVELS else ""
    return "; ".join(levels[:MOST_LEVELS]) + more  # levels may have commas


def cost_of_change(feature: Feature, columns: slice, encoding: Encoding) -> str:
    """Of a category, the l1 distance between two of its levels: both columns move."""
    if not feature.mutable:
        return "–"
    scale = np.asarray(encoding.scale[columns], dtype=float)
    if feature.is_numeric:
        return f"{in_words(float(f'{scale[0]:.3g}'))} more or less costs 1"
    if feature.kind != "categorical":
        return f"one level up or down costs {1 / scale[0]:.3g}"
    costs = sorted(1 / scale)
    dearest = costs[-1] + (costs[-2] if len(costs) > 1 else 0)
    cheapest = costs[0] + (costs[1] if len(costs) > 1 and feature.zero_level is None else 0)
    ends = dict.fromkeys(f"{cost:.3g}" for cost in (cheapest, dearest))
    return f"another level costs {' to '.join(ends)}"
