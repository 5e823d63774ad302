"""Laws of members' rates on which the intervals of a mean are tried, some of them chosen to be hard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import factorial

import numpy as np
from _proved_bound import BY_MEAN, BY_NORM
from numpy.typing import NDArray

from holdfast.auditing.intervals import mean_interval, member_interval, upper_limit

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Law:
    draw: Callable[[np.random.Generator, int], Floats]
    mean: Callable[[int], float]  # may depend on the number of members, so that this number is hard


def beta(one: float, other: float) -> Law:
    return Law(lambda draw, n: draw.beta(one, other, n), lambda n: one / (one + other))


def two_points(low: float, high: float, share: Callable[[int], float]) -> Law:
    return Law(
        lambda draw, n: low + (high - low) * (draw.random(n) < share(n)).astype(float),
        lambda n: low + (high - low) * share(n),
    )


def unseen(members: int) -> float:
    """The largest share of bad members that all members miss with probability 2.5 %, and a little more."""
    return float(1 - 0.025 ** (1 / members)) + 1e-6


LAWS = {
    "all rows or none, 3 %": two_points(0, 1, lambda n: 0.03),
    "all rows or none, 50 %": two_points(0, 1, lambda n: 0.5),
    "all rows or none, at the limit": two_points(0, 1, unseen),
    "2 %, a rare bad member": two_points(0.02, 1, lambda n: 0.01),
    "2 %, bad ones at the limit": two_points(0.02, 1, unseen),
    "20 % or 60 %": two_points(0.2, 0.6, lambda n: 0.3),
    "30 to 31 %": Law(lambda draw, n: 0.3 + 0.01 * draw.random(n), lambda n: 0.305),
    "uniform": beta(1, 1),
    "Beta(0.05, 0.95)": beta(0.05, 0.95),
    "Beta(0.5, 2)": beta(0.5, 2),
    "Beta(70, 30)": beta(70, 30),
    "half Beta(1, 9), half Beta(9, 1)": Law(  # two kinds of members: not one law
        lambda draw, n: np.concatenate([draw.beta(1, 9, n // 2), draw.beta(9, 1, n - n // 2)]), lambda n: 0.5
    ),
}
INTERVALS = {
    "gaffke": member_interval,
    "betting": mean_interval,
    "by_mean": BY_MEAN.interval,
    "by_norm": BY_NORM.interval,
}


@cache
def _limits(drawn: bytes) -> Floats:
    values = np.frombuffer(drawn)
    return np.array([interval(values) for interval in INTERVALS.values()])


def tried(name: str, members: int, times: int, advance: Callable[[int], None]) -> dict[str, float | str]:
    """How often each interval holds for one law, on which side it misses, and how wide it is."""
    law, draw = LAWS[name], np.random.default_rng(0)
    mean, limits = law.mean(members), np.empty((times, len(INTERVALS), 2))
    for time in range(times):
        limits[time] = _limits(np.sort(law.draw(draw, members)).tobytes())  # few points: the same draws come again
        advance(1)
    _limits.cache_clear()
    row: dict[str, float | str] = {"law": name, "members": members}
    for place, interval in enumerate(INTERVALS):
        low, high = limits[:, place].T
        row |= {
            interval: float(((low <= mean) & (mean <= high)).mean()),
            f"{interval}_above": float((mean > high).mean()),
            f"{interval}_below": float((mean < low).mean()),
            f"{interval}_width": float((high - low).mean()),
        }
    return row


def lowest(members: int, confidence: float, triples: int) -> dict[str, float]:
    """The lowest coverage of `upper_limit` over many laws on three points, each computed exactly.

    For each triple of points, all samples and their limits are listed. A law is worst where its mean lies just above
    one of the limits: for each limit, the laws of that mean are gone through in 400 steps.
    """
    draw = np.random.default_rng(members)
    counts = np.array([(a, b, members - a - b) for a in range(members + 1) for b in range(members + 1 - a)])
    ways = np.array([factorial(members) / np.prod([factorial(count) for count in row]) for row in counts.tolist()])
    held, laws = 1.0, 0
    for triple in range(triples):
        points = np.sort(draw.random(3))
        points[0] *= triple % 2  # half of the triples begin at 0, half end at 1
        points[2] = points[2] if triple % 4 < 2 else 1.0
        limits = np.array([upper_limit(np.repeat(points, row), confidence) for row in counts])
        for limit in np.unique(limits):
            chances = _of_mean(points, limit + 1e-9)
            covered = (ways * np.prod(chances[:, None] ** counts, axis=2)) @ (limits > limit + 1e-9)
            held, laws = min(held, float(covered.min(initial=1.0))), laws + len(chances)
    return {"members": members, "confidence": confidence, "triples": triples, "laws": laws, "lowest": held}


def _of_mean(points: Floats, mean: float) -> Floats:
    """Chances of three points that give this mean: (laws, 3)."""
    last = np.linspace(0, 1, 401)
    middle = (mean - points[0] - last * (points[2] - points[0])) / (points[1] - points[0])
    chances = np.stack([1 - middle - last, middle, last], axis=1)
    return chances[(chances >= 0).all(1)]
