"""Laws with values in [0, 1] whose means are known: how to draw from each, and its mean."""

from __future__ import annotations

DRAWS = {
    "rare, over 60 rows": (lambda draw, n: draw.binomial(60, 0.003, n) / 60, 0.003),
    "seldom, over 200 rows": (lambda draw, n: draw.binomial(200, 0.07, n) / 200, 0.07),
    "all or nothing": (lambda draw, n: draw.binomial(1, 0.1, n), 0.1),
    "skewed": (lambda draw, n: draw.beta(0.5, 2, n), 0.2),
    "narrow": (lambda draw, n: draw.beta(70, 30, n), 0.7),
    "coin": (lambda draw, n: draw.binomial(1, 0.5, n), 0.5),
}
